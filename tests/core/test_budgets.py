"""Loops and runs are bounded (spec C.12, semantics 21)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, Script, block, plan, step

from gonogo.core import decisions as d


def loop(max_loops: int) -> Script:
    """A check that never holds and sends the run back."""
    steps = [step("write"), step("verify", "write", on_fail=block(goto="write"))]
    return Script(plan(*steps, max_loops=max_loops), calls={"verify": LOGICAL})


@pytest.mark.parametrize("allowed", [0, 1, 3, 8])
def test_LOOP_1_a_limit_of_n_allows_n_routed_rounds(allowed: int) -> None:
    """One round plus N, then one issue and NO-GO."""
    script = loop(allowed)
    assert script.started == ["write", "verify"] * (allowed + 1)
    assert [issue.rule_id for issue in script.state.run_issues] == ["verify/routing/loop_budget_exceeded"]
    assert (script.outcome("verify"), script.verdict) == ("failed", "NO-GO")


def test_the_outputs_of_every_round_stay_readable() -> None:
    """LOOP-1: history has all rounds."""
    assert len(loop(3).state.history["write"]) == 4


def test_LOOP_2_two_steps_that_send_each_other_round_end() -> None:
    """The issue names the cycle and the limit."""
    steps = [
        step("research", on_success=block(goto="search")),
        step("search", on_success=block(goto="research")),
    ]
    script = Script(plan(*steps, max_loops=6))
    assert len(script.started) <= 8
    assert "search → research → search" in script.state.run_issues[0].message


def test_a_refusal_by_a_passed_step_is_no_go_unless_tolerated() -> None:
    """semantics 21."""
    back = [step("a", on_success=block(goto="a"))]
    assert Script(plan(*back, max_loops=2)).verdict == "NO-GO"
    assert (
        Script(plan(step("a", continue_on_failure=True, on_success=block(goto="a")), max_loops=2)).verdict
        == "GO"
    )


def test_C_12_R6_max_runs_of_a_step_ends_it() -> None:
    """The run that would exceed it isn't started; the step fails."""
    script = Script(plan(step("a", max_runs=3, on_success=block(goto="a")), max_loops=100))
    assert len(script.started) == 3
    assert (script.rules("a"), script.node("a").reason) == (["a/limits/max_runs_exceeded"], "max_runs")


def test_C_12_R6_the_workflows_own_limit_counts_where_a_step_has_none() -> None:
    """`limits.max_runs_per_check`; 0 means no limit."""
    assert len(Script(plan(step("a", on_success=block(goto="a")), max_loops=20, max_runs=4)).started) == 4
    assert len(Script(plan(step("a", on_success=block(goto="a")), max_loops=20, max_runs=0)).started) == 21


def test_loops_are_counted_per_scope() -> None:
    """H18: one item's rounds don't use up another's."""
    steps = [
        step("list", for_each=True),
        step("w", "list", fanout="map"),
        step("v", "w", fanout="map", on_fail=block(goto="w")),
    ]
    script = Script(plan(*steps, max_loops=2), calls={"list": [1, 2], "v": LOGICAL})
    assert script.state.loops == {"list#1[0]": 2, "list#1[1]": 2}


def test_a_first_run_of_a_target_is_no_loop() -> None:
    """Only re-entries count: a limit of 0 still lets a remediation run."""
    script = Script(
        plan(step("a", on_fail=block(run=["fix"])), step("fix"), max_loops=0), calls={"a": LOGICAL}
    )
    assert script.started == ["a", "fix"]
    assert script.decided(d.Refused) == []


def test_an_item_that_sends_the_whole_list_round_uses_the_loops_of_the_run() -> None:
    """It is another item each time, so its own scope would never run out."""
    steps = [step("list", for_each=True), step("each", "list", fanout="map", on_fail=block(goto="list"))]
    script = Script(plan(*steps, max_loops=2), calls={"list": [1], "each": LOGICAL})
    assert (script.started.count("list"), script.state.loops) == (3, {"": 2})
