"""The guide's behaviour matrix: each construct at each criticality, for what stands behind it and beside it."""

from __future__ import annotations

import pytest
from tests.guide.conftest import Play, Played
from tests.guide.stage import Fails

from gonogo.core import decisions as d

CRITICALITIES = ("external", "internal", "policy", "info")
CRITICAL = CRITICALITIES[:3]

CONSTRUCTS = {
    "if": 'if: "false"',
    "assume": 'assume: "false"',
    "guarantee": 'guarantee: "false"',
    "fail_if": 'fail_if: "true"',
}
SKIPS = {"if": "if_condition", "assume": "assume"}

FLOW = """
steps:
  it:
    type: noop
    criticality: {criticality}
    continue_on_failure: false
    {construct}
    on_fail: {{retry: {{max: 2}}, run: [mend]}}
  other: {{type: noop}}
  mend: {{type: noop}}
  read: {{type: noop, depends_on: it}}
  read-either: {{type: noop, depends_on: 'it|other'}}
  unrelated: {{type: noop}}
  post: {{type: github, op: comment.create, criticality: external, depends_on: it}}
  post-either: {{type: github, op: comment.create, criticality: external, depends_on: 'it|other'}}
"""


def flow(play: Play, criticality: str, construct: str, answer: object = None) -> Played:
    """Play the flow with one construct that says no."""
    text = FLOW.format(criticality=criticality, construct=CONSTRUCTS.get(construct, construct))
    return play(text, {"it": answer})


@pytest.mark.parametrize("criticality", CRITICALITIES)
@pytest.mark.parametrize("construct", SKIPS)
def test_a_gate_skips_at_every_criticality(play: Play, criticality: str, construct: str) -> None:
    """Matrix, rows if and assume: skipped, no call, no retry; its own dependents wait in vain, alternatives don't."""
    ran = flow(play, criticality, construct)
    assert ran.why("it") == ("skipped", SKIPS[construct])
    assert (ran.stage.called("it"), ran.decisions(d.Retrying), ran["mend"].outcome) == ([], [], "skipped")
    assert [ran[name].outcome for name in ("read", "read-either", "unrelated")] == [
        "skipped",
        "passed",
        "passed",
    ]
    assert (ran.why("post"), ran["post-either"].outcome) == (("skipped", "dependency_failed"), "passed")
    assert ran.verdict == "GO"


@pytest.mark.parametrize("criticality", CRITICALITIES)
@pytest.mark.parametrize("construct", ["guarantee", "fail_if"])
def test_a_detector_fails_at_every_criticality(play: Play, criticality: str, construct: str) -> None:
    """Matrix, rows guarantee and fail_if: a failure with its issue, remedied once, not retried for being wrong."""
    ran = flow(play, criticality, construct)
    assert (ran["it"].outcome, len(ran.stage.called("it")), ran["mend"].outcome) == ("failed", 1, "passed")
    rule = {"guarantee": "contract/guarantee_failed", "fail_if": "it_fail_if"}[construct]
    assert ran.rules("it") == [rule]
    assert [ran[name].outcome for name in ("read", "read-either", "unrelated")] == [
        "skipped",
        "passed",
        "passed",
    ]
    assert ran.verdict == "NO-GO"


@pytest.mark.parametrize("construct", ["guarantee", "fail_if"])
@pytest.mark.parametrize(
    ("criticality", "outcome"), [*((name, "skipped") for name in CRITICAL), ("info", "passed")]
)
def test_a_critical_failure_keeps_others_from_acting(
    play: Play, criticality: str, outcome: str, construct: str
) -> None:
    """Matrix, G7: behind a critical step even an alternative way leads to no side effect; behind others it does."""
    ran = flow(play, criticality, construct)
    assert ran.why("post") == ("skipped", "dependency_failed" if criticality == "info" else "suppressed")
    assert ran["post-either"].outcome == outcome
    assert len(ran.stage.called("post-either")) == (1 if outcome == "passed" else 0)


@pytest.mark.parametrize("criticality", CRITICALITIES)
def test_only_outages_are_tried_again(play: Play, criticality: str) -> None:
    """Matrix: transient faults are retried at every criticality, within the cap; wrong results at none."""
    assert len(flow(play, criticality, "group: g", Fails()).stage.called("it")) == 3
    assert len(flow(play, criticality, "group: g", Fails("logical")).stage.called("it")) == 1


WAITS = """
steps:
  it: {type: noop, criticality: info, on_fail: {retry: {max: 3, backoff: {mode: exponential, delay_ms: 2}}}}
"""


def test_waits_double_and_vary_by_a_tenth(play: Play) -> None:
    """Numeric defaults, G9: the first, twice, four times the delay, each give or take 10 %."""
    delays = [one.delay_s * 1000 for one in play(WAITS, {"it": Fails()}).decisions(d.Retrying)]
    assert delays == pytest.approx([2, 4, 8], rel=0.1)
    assert delays != [2.0, 4.0, 8.0]


def test_a_backoff_without_a_delay_begins_with_a_second() -> None:
    """Numeric defaults: 1, 2, 4 s."""
    from tests.guide.test_twins import load

    block = (
        load("steps: {it: {type: noop, on_fail: {retry: {max: 3, backoff: {mode: exponential}}}}}")
        .plan.steps["it"]
        .on_fail
    )
    assert block is not None
    assert block.retry is not None
    assert (block.retry.delay_s, block.retry.mode, block.retry.jitter) == (1.0, "exponential", 0.1)


@pytest.mark.parametrize("criticality", CRITICALITIES)
def test_a_breach_counts_as_no_go(play: Play, criticality: str) -> None:
    """Semantics 21: unless the step tolerates failure, which a written info does."""
    step = f"{{type: noop, criticality: {criticality}, mutates: false, on_success: {{goto: it}}}}"
    verdict = play(f"routing: {{max_loops: 1}}\nsteps: {{it: {step}}}").verdict
    assert verdict == ("GO" if criticality == "info" else "NO-GO")
