"""G7 (C.8, semantics 19): behind a failed critical step nothing changes the outside until that step passes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.guide.conftest import Play, play
from tests.guide.stage import Fails, Turns

from gonogo.core import decisions as d

__all__ = ["play"]

POST = "type: github, op: comment.create, criticality: external, if: 'true', guarantee: 'true'"

EDGES = {
    "an alternative": "depends_on: 'first|other'",
    "an open edge": "depends_on: [{step: first, on_failure: continue}]",
    "a chain": "depends_on: between",
    "a chain of alternatives": "depends_on: 'between|other'",
}

BEHIND = """
steps:
  first: {{type: noop, criticality: {criticality}, {construct}}}
  other: {{type: noop}}
  between: {{type: noop, depends_on: 'first|other'}}
  post: {{{post}, {edge}}}
  read: {{type: github, op: issues.list, {edge}}}
"""

FAILURES = {
    "guarantee": ("guarantee: output.fine", {"fine": False}),
    "fail_if": ("fail_if: output.bad", {"bad": True}),
    "schema": ("schema: {type: string}", 1),
    "call": ("group: g", Fails("logical")),
}


def behind(play: Play, criticality: str, failure: str, edge: str, post: str = POST) -> Any:
    """Play a mutating and a reading step behind one that fails."""
    construct, answer = FAILURES[failure]
    text = BEHIND.format(criticality=criticality, construct=construct, edge=EDGES[edge], post=post)
    return play(text, {"first": answer})


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("criticality", ["external", "internal"])
def test_I_2_suppression_reaches_every_mutating_step_behind(play: Play, criticality: str, edge: str) -> None:
    """I.2 suppression, G7: not called, reason `suppressed`, because of that step, whatever edges lead there."""
    ran = behind(play, criticality, "guarantee", edge)
    assert ran.why("post") == ("skipped", "suppressed")
    assert [skip.because for skip in ran.decisions(d.Skipped, "post")] == ["first"]
    assert (ran.stage.called("post"), ran["read"].outcome, ran.verdict) == ([], "passed", "NO-GO")


@pytest.mark.parametrize("failure", FAILURES)
def test_G_7_every_failure_suppresses(play: Play, failure: str) -> None:
    """G7, C.8: a broken contract, a detector, a schema, a failed call."""
    assert behind(play, "internal", failure, "an alternative").why("post") == ("skipped", "suppressed")


def test_G_7_a_direct_dependency_blocks_too(play: Play) -> None:
    """G7: through the plain edge nothing is called either."""
    ran = play(
        f"steps: {{first: {{type: noop, criticality: internal}}, post: {{{POST}, depends_on: first}}}}",
        {"first": Fails()},
    )
    assert (ran.why("post"), ran.stage.called("post")) == (("skipped", "suppressed"), [])


def test_G_7_a_failure_that_is_tolerated_suppresses_all_the_same(play: Play) -> None:
    """G7, semantics 1: tolerating a critical failure opens the gate for readers, not for what changes the outside."""
    ran = play(
        f"""
steps:
  first: {{type: noop, criticality: internal, continue_on_failure: true}}
  post: {{{POST}, depends_on: first}}
  read: {{type: noop, depends_on: first}}
""",
        {"first": Fails()},
    )
    assert ran.why("post") == ("skipped", "suppressed")
    assert (ran["read"].outcome, ran.verdict) == ("passed", "GO")


@pytest.mark.parametrize("edge", EDGES)
def test_G_7_other_steps_suppress_nothing(play: Play, edge: str) -> None:
    """C.8: a failed info step has no say over what is not gated by it."""
    ran = behind(play, "info", "guarantee", edge)
    assert (ran["post"].outcome, len(ran.stage.called("post"))) == ("passed", 1)


@pytest.mark.parametrize(
    ("post", "outcome"),
    [(POST, "skipped"), ("type: command, exec: echo, mutates: true, criticality: info", "passed")],
)
def test_G_7_a_failed_policy_blocks_external_steps(play: Play, post: str, outcome: str) -> None:
    """C.8, row policy failure: steps of criticality external, transitively; other mutating steps go on."""
    ran = behind(play, "policy", "guarantee", "a chain", post)
    assert ran["post"].outcome == outcome


def test_G_7_a_policy_that_says_no_in_passing_suppresses_nothing(play: Play) -> None:
    """Only a failure does; a denial is an output, for `if` to read."""
    ran = play(
        f"steps: {{first: {{type: noop, criticality: policy}}, post: {{{POST}, depends_on: first}}}}",
        {"first": {"granted": False}},
    )
    assert ran["post"].outcome == "passed"


def test_G_7_a_retry_that_mends_it_suppresses_nothing(play: Play) -> None:
    """C.8: only the latest outcome counts, and nobody looks before it is final."""
    text = BEHIND.format(
        criticality="internal", construct="on_fail: {retry: {max: 1}}", edge=EDGES["an open edge"], post=POST
    )
    assert play(text, {"first": Turns(Fails(), {})})["post"].outcome == "passed"


LIFTED = """
steps:
  first: {{type: noop, criticality: internal}}
  other:
    type: noop
    depends_on: [{{step: first, on_failure: continue}}]
    on_success: {{goto_js: "return outputs_meta.first.failed ? 'first' : null"}}
  post: {{{post}, depends_on: 'first|quick'}}
  quick: {{type: noop}}
"""


def test_G_7_a_later_pass_lifts_it(play: Play) -> None:
    """G7: remediated, the step passes; what was suppressed then runs, once."""
    ran = play(LIFTED.format(post=POST), {"first": Turns(Fails("logical"), {})})
    assert [skip.reason for skip in ran.decisions(d.Skipped, "post")] == ["suppressed"]
    assert (ran["post"].outcome, len(ran.stage.called("post")), ran.verdict) == ("passed", 1, "GO")


def test_G_7_a_later_failure_suppresses_what_has_not_run(play: Play) -> None:
    """The guard's latest outcome counts at the moment of the call."""
    ran = play(
        f"""
max_parallelism: 1
steps:
  first:
    type: noop
    criticality: internal
    on_success: {{goto_js: "return outputs_history.first.length < 2 ? 'first' : null"}}
  quick: {{type: noop}}
  post: {{{POST}, depends_on: [quick, 'first|quick']}}
""",
        {"first": Turns({}, Fails("logical"))},
    )
    assert (ran.why("post"), ran.stage.called("post")) == (("skipped", "suppressed"), [])


def test_G_7_a_remedy_may_change_the_outside(play: Play) -> None:
    """C.5, first member rule: what a failed step's own on_fail runs is not suppressed by that step."""
    ran = play(
        f"""
steps:
  first: {{type: noop, criticality: internal, on_fail: {{run: [undo]}}}}
  undo: {{{POST}, depends_on: first}}
""",
        {"first": Fails()},
    )
    assert (ran["undo"].outcome, len(ran.stage.called("undo"))) == ("passed", 1)


ITEMS = """
steps:
  list: {{type: noop, forEach: true}}
  check: {{type: noop, criticality: internal, fanout: map, depends_on: list, fail_if: item === 'bad'}}
  post: {{{post}, fanout: map, depends_on: [{{step: check, on_failure: continue}}]}}
  once: {{{post}, fanout: reduce, depends_on: [{{step: check, on_failure: continue}}]}}
"""


def test_G_7_items_are_suppressed_one_by_one(play: Play) -> None:
    """Semantics 19, law 5: a failed item suppresses its own mutators and every reduce behind it, nobody else's."""
    ran = play(ITEMS.format(post=POST), {"list": ["good", "bad", "fine"]})
    assert [(item.outcome, item.reason) for item in ran["post"].items or ()] == [
        ("passed", None),
        ("skipped", "suppressed"),
        ("passed", None),
    ]
    assert ran.why("once") == ("skipped", "suppressed")
    assert [call.names["item"] for call in ran.stage.called("post")] == ["good", "fine"]


def test_G_7_good_items_suppress_nothing(play: Play) -> None:
    """The same without a bad one."""
    ran = play(ITEMS.format(post=POST), {"list": ["good", "fine"]})
    assert (len(ran.stage.called("post")), len(ran.stage.called("once")), ran.verdict) == (2, 1, "GO")


@pytest.mark.parametrize(
    ("condition", "outcome"), [("always()", "passed"), ("failure()", "passed"), ("true", "skipped")]
)
def test_G_7_what_is_written_for_a_failure_may_act(play: Play, condition: str, outcome: str) -> None:
    """Semantics 5, GAT-1: a step that `if: always()` or `if: failure()` starts tells of the failure."""
    post = f"{{type: github, op: comment.create, criticality: external, if: {condition}, depends_on: first}}"
    ran = play(f"steps: {{first: {{type: noop, criticality: internal}}, post: {post}}}", {"first": Fails()})
    assert ran["post"].outcome == outcome


def test_G_7_an_item_behind_a_failed_list_is_not_another_lists(play: Play) -> None:
    """Semantics 19: nested: only the innermost item in which the guard failed is suppressed."""
    ran = play(
        f"""
steps:
  outer: {{type: noop, forEach: true}}
  inner: {{type: noop, forEach: true, fanout: map, depends_on: outer}}
  check: {{type: noop, criticality: internal, fanout: map, depends_on: inner}}
  post: {{{POST}, fanout: map, depends_on: [{{step: check, on_failure: continue}}]}}
""",
        {
            "outer": ["a", "b"],
            "inner": lambda call: [call.names["item"] + "1", call.names["item"] + "2"],
            "check": lambda call: Fails("logical") if call.names["item"] == "a2" else {},
        },
    )
    assert [call.names["item"] for call in ran.stage.called("post")] == ["a1", "b1", "b2"]


def test_G_7_it_holds_after_a_resume(play: Play) -> None:
    """What was suppressed stays so when the run goes on in another process; an answer changes nothing about it."""
    ran = play(
        f"""
steps:
  first: {{type: noop, criticality: internal}}
  ask: {{type: human-input, prompt: "go?", depends_on: [{{step: first, on_failure: continue}}]}}
  post: {{{POST}, depends_on: ask}}
""",
        {"first": Fails("logical")},
    )
    assert ran.verdict == "HOLD"
    done = ran.answered("ask", "yes")
    assert (done.why("post"), done.verdict) == (("skipped", "suppressed"), "NO-GO")
