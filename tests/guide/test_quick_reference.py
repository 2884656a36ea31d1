"""The guide's table of differences: when each construct is judged, what it sees, what it does, what is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.guide.conftest import Play, Played
from tests.guide.stage import Fails

from gonogo.core import decisions as d
from gonogo.core.events import CallDone

BEFORE = ("if", "assume")
AFTER = ("guarantee", "fail_if")

ONE = """
steps:
  before: {{type: noop}}
  it: {{type: noop, depends_on: before, {construct}: {text}, on_fail: {{run: [mend]}}, on_success: {{run: [cheer]}}}}
  mend: {{type: noop}}
  cheer: {{type: noop}}
  next: {{type: noop, depends_on: it}}
"""


def judged(play: Play, construct: str, expression: str, **given: Any) -> Played:
    """Play a step with one construct."""
    text = ONE.format(construct=construct, text=json.dumps(expression))
    return play(text, {"before": {"ready": True}, "it": {"size": 3}}, **given)


@pytest.mark.parametrize("construct", BEFORE)
@pytest.mark.parametrize("expression", ["false", "outputs.before.nothing.here"])
def test_a_gate_that_is_closed_calls_nothing(play: Play, construct: str, expression: str) -> None:
    """`if` and `assume`, false or in error: no call, no run counted, no routing, dependents skipped."""
    ran = judged(play, construct, expression)
    assert ran.why("it") == ("skipped", {"if": "if_condition", "assume": "assume"}[construct])
    assert (ran.stage.called("it"), ran["it"].runs) == ([], 0)
    assert ran.why("mend") == ran.why("cheer") == ("skipped", "not_routed")
    assert ran.why("next") == ("skipped", "dependency_failed")


@pytest.mark.parametrize("construct", AFTER)
def test_a_detector_that_fires_has_a_counted_run(play: Play, construct: str) -> None:
    """`guarantee` broken or `fail_if` true: the step has run; issues; routed to on_fail, not to on_success."""
    ran = judged(play, construct, {"guarantee": "output.size > 3", "fail_if": "output.size === 3"}[construct])
    assert (ran["it"].outcome, ran["it"].runs, len(ran.stage.called("it"))) == ("failed", 1, 1)
    assert len(ran["it"].issues) == 1
    assert (ran["mend"].outcome, ran["cheer"].outcome) == ("passed", "skipped")
    assert ran.output("it") == {"size": 3}


@pytest.mark.parametrize("construct", [*BEFORE, *AFTER])
def test_a_construct_that_is_content_lets_all_go_on(play: Play, construct: str) -> None:
    """Each the other way round: the step passes and its dependents run."""
    ran = judged(play, construct, "false" if construct == "fail_if" else "true")
    assert (ran["it"].outcome, ran["cheer"].outcome, ran["next"].outcome) == ("passed",) * 3
    assert ran.verdict == "GO"


@pytest.mark.parametrize("construct", AFTER)
def test_an_error_after_the_call_takes_the_construct_own_safe_side(play: Play, construct: str) -> None:
    """H47: an error breaks a guarantee; a detector isn't triggered by one, unless the step is critical (H43)."""
    ran = judged(play, construct, "output.nothing.here")
    lax = play(f"steps: {{it: {{type: noop, {construct}: output.nothing.here}}}}", {"it": {}})
    assert ran["it"].outcome == "failed"  # it routes, so it is internal
    assert lax["it"].outcome == ("failed" if construct == "guarantee" else "passed")


SEEN = (
    "event.name === 'manual' && env.HERE === 'yes' && filesCount === 0",
    "outputs.before.ready === true && !memory.get('nothing')",
)


@pytest.mark.parametrize("construct", [*BEFORE, *AFTER])
def test_every_construct_sees_the_same_world(play: Play, construct: str) -> None:
    """H9, B.3: event, environment, change, earlier outputs and memory, before and after the call."""
    for expression in SEEN:
        asked = f"!({expression})" if construct == "fail_if" else expression
        ran = judged(play, construct, asked, env={"HERE": "yes"}, context={"files": []})
        assert (expression, ran["it"].outcome, ran.rules("it")) == (expression, "passed", [])


@pytest.mark.parametrize(
    ("construct", "own"), [("if", False), ("assume", False), ("guarantee", True), ("fail_if", True)]
)
def test_only_what_comes_after_the_call_sees_its_output(play: Play, construct: str, own: bool) -> None:
    """`output` is null until the call has returned."""
    expression = "output && output.size === 3" if own else "output === null"
    ran = judged(play, construct, f"!({expression})" if construct == "fail_if" else expression)
    assert ran["it"].outcome == "passed"


def test_assume_sees_every_dependency_settled(play: Play) -> None:
    """Also one that failed and was tried again, at its latest run."""
    text = """
steps:
  shaky: {type: noop, fail_if: attempt < 2, on_fail: {retry: {max: 1, retry_on: [logical]}}}
  it: {type: noop, depends_on: shaky, assume: outputs_meta.shaky.outcome === 'passed'}
"""
    assert play(text)["it"].outcome == "passed"


def test_the_constructs_are_judged_in_order(play: Play) -> None:
    """`if`, `assume`, the call, `guarantee` with `fail_if`, then transitions before goto_js and goto."""
    text = """
steps:
  it:
    type: noop
    if: "true"
    assume: ["true"]
    guarantee: ["true"]
    fail_if: "false"
    on_success: {transitions: [{when: "true", to: there}], goto_js: "return 'wrong'", goto: wrong}
  there: {type: noop, start: routed}
  wrong: {type: noop, start: routed}
"""
    ran = play(text)
    kinds = d.Judged | d.Started | d.Routed
    told = [
        getattr(one, "construct", type(one).__name__)
        for one in ran.decisions(d.Decision, "it")
        if isinstance(one, kinds)
    ]
    assert told == ["if", "assume", "Started", "guarantee", "fail_if", "when", "Routed"]
    assert (ran["there"].outcome, ran["wrong"].outcome) == ("passed", "skipped")


@pytest.mark.parametrize(("construct", "outcome"), [("guarantee", True), ("fail_if", False)])
def test_both_detectors_may_stand_side_by_side(play: Play, construct: str, outcome: bool) -> None:
    """Both are judged on every run, whatever the other says; both issues are there."""
    text = 'steps: {it: {type: noop, guarantee: "false", fail_if: "true"}}'
    ran = play(text)
    assert ran.rules("it") == ["contract/guarantee_failed", "it_fail_if"]
    assert [one.result for one in ran.judged(construct)] == [not outcome]


def test_a_skip_is_an_entry_without_a_result(play: Play) -> None:
    """H17: a record of the skip, with expression and reason, and no call's record; a run has the whole result."""
    skipped, passed = judged(play, "assume", "false"), judged(play, "assume", "true")
    assert [(one.step, one.reason) for one in skipped.decisions(d.Skipped, "it")] == [("it", "assume")]
    counts = [sum(isinstance(record.event, CallDone) for record in ran.records) for ran in (skipped, passed)]
    assert counts == [1, 4]
    assert (skipped.output("it"), passed.output("it")) == (None, {"size": 3})


@pytest.mark.parametrize(
    ("needs", "outcome"),
    [
        ("it", "skipped"),
        ("it|before", "passed"),
        ("[before, 'it|before']", "passed"),
        ("[before, it]", "skipped"),
    ],
)
@pytest.mark.parametrize("construct", BEFORE)
def test_skips_reach_dependents_unless_another_way_is_open(
    play: Play, construct: str, needs: str, outcome: str
) -> None:
    """Alternatives need one satisfied member; without one the skip goes on."""
    text = ONE.replace("depends_on: it}", f"depends_on: {needs}}}").format(
        construct=construct, text='"false"'
    )
    assert play(text)["next"].outcome == outcome


@pytest.mark.parametrize("construct", BEFORE)
def test_a_tolerant_skip_opens_its_edges(play: Play, construct: str) -> None:
    """H16: with continue_on_failure a skip doesn't block, whichever gate it was."""
    text = ONE.replace("on_fail", "continue_on_failure: true, on_fail").format(
        construct=construct, text='"false"'
    )
    assert play(text)["next"].outcome == "passed"


def test_a_failed_call_is_judged_too(play: Play) -> None:
    """Contracts see what is known of a failed call; its own failure stays the first reason."""
    ran = play(
        "steps: {it: {type: noop, guarantee: output.known === true}}", {"it": Fails(output={"known": True})}
    )
    assert (ran["it"].outcome, ran.judged("guarantee")[0].result) == ("failed", True)
