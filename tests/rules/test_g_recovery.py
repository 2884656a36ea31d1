"""G12, G27, G38 with C.15 R3: escalation, what comes after the last retry, undoing, one shot."""

from __future__ import annotations

from typing import Any

import pytest
from tests.guide.conftest import Play, play
from tests.guide.stage import Fails, Turns

from gonogo.core import decisions as d
from gonogo.errors import ConfigError
from gonogo.provider import Done

__all__ = ["play"]

# --- G27: escalation

ESCALATED = """
steps:
  a: {{type: noop, {keys}on_fail: {{escalate: page, {block}}}}}
  page: {{type: noop, start: routed}}
  mend: {{type: noop, start: routed}}
"""


@pytest.mark.parametrize(
    ("block", "answer", "started"),
    [
        ("retry: {max: 2}", Fails(), ["a", "a", "a", "page"]),
        ("retry: {max: 2}", Turns(Fails(), {}), ["a", "a"]),
        ("run: [mend]", Fails(), ["a", "mend", "page"]),
        ("retry: {max: 1}, run: [mend]", Fails(), ["a", "mend", "a", "mend", "page"]),
        ("retry: {max: 2}", Fails("logical"), ["a", "page"]),
    ],
)
def test_G_27_escalation_comes_last_and_once(play: Play, block: str, answer: Any, started: list[str]) -> None:
    """G27: after retries and remedies, and only if the failure stands."""
    ran = play(ESCALATED.format(keys="", block=block), {"a": answer})
    assert ran.started == started


def test_G_27_the_failure_stands_whatever_the_target_does(play: Play) -> None:
    """G27: a person was told; that mends nothing. The target's own failure is its own."""
    answers: tuple[Any, ...] = ({}, Fails("logical"))
    for answer in answers:
        ran = play(ESCALATED.format(keys="", block=""), {"a": Fails("logical"), "page": answer})
        assert (ran["a"].outcome, ran.verdict) == ("failed", "NO-GO")


def test_G_27_each_item_escalates_for_itself(play: Play) -> None:
    """G27: once per step, scope and run."""
    text = """
steps:
  list: {type: noop, forEach: true}
  a: {type: noop, fanout: map, depends_on: list, on_fail: {escalate: page}}
  page: {type: noop}
"""
    ran = play(text, {"list": [1, 2], "a": Fails("logical")})
    assert [call.scope for call in ran.stage.called("page")] == ["list#1[0]", "list#1[1]"]


def test_G_27_an_unknown_target_is_refused(play: Play) -> None:
    """G27, I.1 8: at load."""
    with pytest.raises(ConfigError):
        play("steps: {a: {type: noop, on_fail: {escalate: nobody}}}")


# --- After the last retry

EXHAUSTED = """
steps:
  a: {{type: noop, on_fail: {{retry: {{max: 1, exhausted: {how}}}}}}}
  next: {{type: noop, depends_on: a}}
  other: {{type: noop, start: routed}}
"""


@pytest.mark.parametrize(
    ("how", "outcome", "following", "verdict"),
    [("fail", "failed", "skipped", "NO-GO"), ("continue", "tolerated", "passed", "GO")],
)
def test_after_the_last_retry_a_step_fails_or_goes_on(
    play: Play, how: str, outcome: str, following: str, verdict: str
) -> None:
    """C.9 R11: the author chooses what the end of retries means."""
    ran = play(EXHAUSTED.format(how=how), {"a": Fails()})
    assert (ran["a"].outcome, ran["next"].outcome, ran.verdict) == (outcome, following, verdict)
    assert len(ran.stage.called("a")) == 2


def test_after_the_last_retry_a_route_is_taken(play: Play) -> None:
    """C.9 R11: `exhausted: {goto: step}`."""
    ran = play(EXHAUSTED.format(how="{goto: other}"), {"a": Fails()})
    assert (ran.started, ran["other"].outcome) == (["a", "a", "other"], "passed")


@pytest.mark.parametrize(
    ("answer", "outcome", "verdict"), [("accept", "tolerated", "GO"), ("fail", "failed", "NO-GO")]
)
def test_after_the_last_retry_a_person_decides(play: Play, answer: str, outcome: str, verdict: str) -> None:
    """C.9 R11, semantics 3: `exhausted: hold`: the run is HOLD until somebody says retry, accept or fail."""
    ran = play(EXHAUSTED.format(how="hold"), {"a": Fails()})
    assert (ran.verdict, ran["a"].outcome) == ("HOLD", "waiting")
    done = ran.answered("a", answer)
    assert done.verdict == verdict
    assert done["a"].outcome == outcome


# --- C.15 R3: one shot


def test_C_15_R3_a_one_shot_step_runs_once(play: Play) -> None:
    """C.15 R3, G38: routed to again it isn't called; that is recorded."""
    text = """
steps:
  once: {type: noop, tags: [one_shot]}
  a: {type: noop, depends_on: once, on_success: {goto_js: "return outputs_history.a.length < 3 ? 'once' : null"}}
tag_filter: {include: [one_shot]}
"""
    ran = play(text)
    assert len(ran.stage.called("once")) == 1
    assert ran.decisions(d.OneShotSkip)


# --- G12: undoing

DONE = {"book": {"seat": 4}, "pay": {"sum": 9}}
UNDONE = """
steps:
  book: {{type: github, op: comment.create, criticality: external, compensate: unbook}}
  pay: {{type: github, op: comment.create, criticality: external, depends_on: book, compensate: refund}}
  last: {{type: noop, depends_on: pay{more}}}
  unbook: {{type: noop}}
  refund: {{type: noop}}
"""


def test_G_12_what_was_done_is_undone_backwards(play: Play) -> None:
    """G12, semantics 20: the run would end NO-GO, so the latest comes first; each is told what was done."""
    ran = play(UNDONE.format(more=""), {"book": {"seat": 4}, "pay": {"sum": 9}, "last": Fails("logical")})
    assert ran.started == ["book", "pay", "last", "refund", "unbook"]
    assert ran.stage.called("unbook")[0].names["args"]["output"] == {"seat": 4}
    assert ran.verdict == "NO-GO"


def test_G_12_a_halt_undoes_too(play: Play) -> None:
    """G12: halted after the external step had succeeded."""
    more = ", failure_conditions: {stop: {condition: 'true', halt_execution: true}}"
    ran = play(UNDONE.format(more=more), DONE)
    assert ran.started[-2:] == ["refund", "unbook"]


@pytest.mark.parametrize("answers", [DONE, {**DONE, "book": Fails("logical")}])
def test_G_12_nothing_is_undone_that_stands_or_was_not_done(play: Play, answers: dict[str, Any]) -> None:
    """G12: a run that is GO keeps what it did; a step that failed did nothing to undo."""
    ran = play(UNDONE.format(more=""), answers)
    assert (ran.stage.called("unbook"), ran.stage.called("refund")) == ([], [])


def test_G_12_what_did_nothing_outside_is_not_undone(play: Play) -> None:
    """G12: a call that says that it had no effect left nothing to undo."""
    ran = play(UNDONE.format(more=""), {**DONE, "pay": Done({}, effect="none"), "last": Fails("logical")})
    assert ran.started[-2:] == ["last", "unbook"]


def test_G_12_an_undoing_that_fails_stops_no_other(play: Play) -> None:
    """Semantics 20: an issue and a fault of its own; the rest is undone; NO-GO either way."""
    ran = play(UNDONE.format(more=""), {**DONE, "last": Fails("logical"), "refund": Fails("logical")})
    assert (ran["refund"].outcome, ran["unbook"].outcome, ran.verdict) == ("failed", "passed", "NO-GO")


@pytest.mark.parametrize("compensate", ["book", "nobody"])
def test_G_12_a_wrong_undoing_is_refused(play: Play, compensate: str) -> None:
    """At load: of itself, or a step that isn't there."""
    with pytest.raises(ConfigError):
        play(UNDONE.format(more="").replace("compensate: unbook", f"compensate: {compensate}"))
