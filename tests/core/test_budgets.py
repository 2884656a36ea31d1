"""Loops and runs are bounded (spec C.12, semantics 21)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core.budgets import is_undoing, runs_refusal
from gonogo.core.faults import Issue
from gonogo.core.plan import Retry
from gonogo.core.state import Init, Undoable


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


# --- what a refusal says


def second_fails(command: object) -> object:
    """A call that fails in the second item."""
    return LOGICAL if command.scope.endswith("[1]") else "fine"  # type: ignore[attr-defined]


def issue(step: str, limit: str, message: str, scope: str | None = None) -> Issue:
    """An issue of the run itself, which no comment in a file suppresses."""
    return Issue(f"{step}/{limit}", message, check_name=step, scope=scope, engine=True)


def test_a_refused_loop_is_an_issue_of_the_run() -> None:
    """C.12, D.1: rule, step, scope and the loop in words."""
    text = "step verify may not route to write again: this scope has used its 1 loops (verify → write)"
    assert loop(1).state.run_issues == [issue("verify", "routing/loop_budget_exceeded", text)]


def test_a_refused_loop_of_an_item_names_the_item() -> None:
    """H18: the scope is the item's."""
    steps = [step("list", for_each=True), step("each", "list", fanout="map", on_fail=block(goto="each"))]
    script = Script(plan(*steps, max_loops=0), calls={"list": [1], "each": LOGICAL})
    text = "step each may not route to each again: this scope has used its 0 loops (each)"
    assert script.state.run_issues == [issue("each", "routing/loop_budget_exceeded", text, "list#1[0]")]
    assert [(one.limit, one.used, one.allowed) for one in script.decided(d.Refused)] == [("max_loops", 0, 0)]


def test_a_refused_run_is_an_issue_of_the_step() -> None:
    """C.12 R6: how often it has run, how often it may."""
    script = Script(plan(step("a", max_runs=2, on_success=block(goto="a"))))
    text = "step a has run 2 times, max_runs allows 2 (a → a)"
    assert script.node("a").issues == (issue("a", "limits/max_runs_exceeded", text),)


def test_a_refused_run_of_an_item_names_the_item() -> None:
    """C.12 R6: its runs under an earlier run of the fan-out count, too."""
    again = iter([True, False])
    script = Script(
        plan(
            step("list", for_each=True),
            step("each", "list", fanout="map", max_runs=1),
            step("after", "each", on_success=block(when=[("again", "each")])),
        ),
        calls={"list": [1]},
        answers={"again": lambda _: next(again)},
    )
    text = "step each has run 1 times, max_runs allows 1 (each)"
    assert script.node("each", "list#1[0]").issues == (
        issue("each", "limits/max_runs_exceeded", text, "list#1[0]"),
    )


@pytest.mark.parametrize(
    ("routes", "start", "told"),
    [
        ({"a": "a"}, "routed", "a → a"),
        ({"a": "b", "b": "c", "c": "a"}, "routed", "a → b → c → a"),
        ({"a": "b", "b": "c", "c": "a"}, "init", "a → b → c → a"),
        ({"a": "b", "b": "c", "c": "d", "d": "b"}, "routed", "b → c → d → b"),
    ],
)
def test_LOOP_2_a_refusal_names_the_whole_loop(routes: dict[str, str], start: str, told: str) -> None:
    """LOOP-2: every step on the way round, in its order, and none that isn't on it; whatever else was routed since."""
    first, *others = ((name, {"on_success": block(goto=target)}) for name, target in routes.items())
    steps = [step(first[0], **first[1]), *(step(name, start=start, **keys) for name, keys in others)]
    script = Script(plan(*steps, max_loops=7 if start == "init" else 6))
    assert script.state.run_issues[0].message.endswith(f"({told})")


def test_LOOP_2_the_loops_of_another_scope_are_not_told() -> None:
    """LOOP-2, H18: an item's loop is its own."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("w", "list", fanout="map"),
            step("v", "w", fanout="map", on_fail=block(goto="w")),
            step("u", "list", fanout="map", on_fail=block(goto="u")),
            max_loops=2,
        ),
        calls={
            "list": [1, 2],
            "v": lambda command: LOGICAL if "[0]" in command.scope else 1,
            "u": second_fails,
        },
    )
    told = {one.scope: one.message.partition("(")[2] for one in script.state.run_issues}
    assert told == {"list#1[0]": "v → w)", "list#1[1]": "u → u)"}


def test_C_12_R6_a_retry_is_no_run() -> None:
    """C.12 R6: attempts are counted by the retry's own limit."""
    script = Script(
        plan(step("a", max_runs=1, on_fail=block(retry=Retry(2)))),
        calls={"a": lambda command: TRANSIENT if command.attempt < 3 else "fine"},
    )
    assert script.started == ["a", "a", "a"]


def test_C_12_R6_one_run_is_one_run() -> None:
    """C.12 R6: the smallest limit."""
    assert Script(plan(step("a", max_runs=1, on_success=block(goto="a")))).started == ["a"]


def test_G_4_strict_makes_a_refused_loop_fatal_for_a_step_that_tolerates_failure_too() -> None:
    """G4: under strict nothing is tolerated here."""
    one = step("a", continue_on_failure=True, on_success=block(goto="a"))
    assert [one.fatal for one in Script(plan(one, max_loops=1, safety="strict")).decided(d.Refused)] == [True]


def test_C_12_R6_a_step_without_a_limit_runs_as_often_as_it_is_sent() -> None:
    """C.12 R6: its own `max_runs: 0` is no limit, whatever the workflow's is."""
    one = step("a", max_runs=0, on_success=block(goto="a"))
    assert len(Script(plan(one, max_loops=6, max_runs=2)).started) == 7


@pytest.mark.parametrize(
    ("init", "may_run"),
    [(Init(), True), (Init(done=True), True), (Init(done=True, numbered=False), False), (None, False)],
)
def test_C_12_R6_a_run_whose_on_init_has_begun_is_counted_already(init: Init | None, may_run: bool) -> None:
    """C.12 R6: it is the run that its call belongs to, until that is made."""
    script = Script(plan(step("a", max_runs=1)))
    node = script.node("a")
    node.init = init
    refused = runs_refusal(script.state, script.state.step(node), "", node)
    assert (refused is None) is may_run


def test_only_the_step_that_undoes_counts_as_undoing() -> None:
    """Semantics 20: what else might run meanwhile has no reserve."""
    state = Script(plan(step("a", compensate="undo"), step("undo", start="routed"), step("b"))).state
    assert not is_undoing(state, "undo")
    state.undoing = Undoable("a", "", 1, None, None)
    assert [name for name in ("a", "undo", "b") if is_undoing(state, name)] == ["undo"]
