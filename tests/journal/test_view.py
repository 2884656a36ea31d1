"""What reports, the web page, the command line and tests read: cli.md, spec D.3."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gonogo.core.events import CallDone, CallFailed, CallLost, CallParked, CancelAsked, RunStarted
from gonogo.core.faults import Fault, Issue
from gonogo.core.machine import advance, begin
from gonogo.core.plan import Block, Edge, Expression, Need, Plan, Retry, Step, Target
from gonogo.expressions.results import Failure
from gonogo.journal.codec import decode_line, encode_line
from gonogo.journal.records import Record
from gonogo.journal.view import exit_code, run_view

BOOM = Fault(kind="command.exit", fault_class="logical", rule_id="x/boom", message="exit 3")
FLAKY = Fault(kind="http.status", fault_class="transient", rule_id="x/busy", message="busy")


def after(*names: str) -> tuple[Need, ...]:
    """A `depends_on` of these steps, all of them."""
    return tuple(Need((Edge(name),)) for name in names)


def plan_of(*steps: Step, **more: Any) -> Plan:
    """A plan of these steps."""
    return Plan("test", {step.name: step for step in steps}, **more)


def fails(*steps: str, fault: Fault = BOOM):
    """Calls of these steps fail, all others work."""

    def outcome(command):
        return CallFailed(call=command.call, fault=fault) if command.step in steps else command.step

    return outcome


LISTED = plan_of(
    Step("list", "script", for_each=True),
    Step("work", "noop", depends_on=after("list"), fanout="map"),
    Step("sum", "noop", depends_on=after("work")),
)


def works_on_three(command):
    """`list` gives three items; the second one of `work` fails."""
    if command.step == "list":
        return ["a", "b", {"long": "x" * 80}]
    second = command.step == "work" and command.scope.endswith("[1]")
    return CallFailed(call=command.call, fault=BOOM) if second else command.scope


def test_the_json_object_is_the_one_of_the_command_line(drive) -> None:
    """cli.md: exactly these keys."""
    view = run_view(drive(plan_of(Step("lint", "command")), trigger={"name": "manual", "secret": 1}))
    told = view.as_json()
    assert list(told) == [
        "run_id", "verdict", "standing", "aside", "exit_code", "event", "waiting", "steps", "statistics", "faults",
        "fault_events", "undone", "budgets", "metrics",
    ]  # fmt: skip
    assert (told["run_id"], told["verdict"], told["exit_code"]) == ("r", "GO", 0)
    assert told["event"] == {"name": "manual"}
    assert told["steps"]["lint"] == {
        "outcome": "passed", "reason": None, "attempts": 1, "runs": 1, "output": None, "issues": [], "fault": None,
        "duration_ms": 10, "criticality": "info", "criticality_source": "inferred",
    }  # fmt: skip


def test_the_json_object_is_plain_json(drive) -> None:
    """Another parser reads the same."""
    told = run_view(drive(LISTED, works_on_three)).as_json()
    assert json.loads(msgspec.json.encode(told)) == told


def test_steps_are_in_configuration_order_whatever_the_order_they_ran_in(drive) -> None:
    """cli.md: every list is in configuration order."""
    plan = plan_of(Step("last", "noop", depends_on=after("first")), Step("first", "noop"))
    assert list(run_view(drive(plan)).steps) == ["last", "first"]


def test_a_failure_is_told_with_its_fault_and_what_it_stopped(drive) -> None:
    """NO-GO names the step; what waited for it says why it was skipped."""
    plan = plan_of(Step("a", "noop"), Step("b", "noop", depends_on=after("a")))
    view = run_view(drive(plan, fails("a")))
    assert (view.verdict, view.exit_code, view.because) == ("NO-GO", 1, ("a",))
    assert view.steps["a"].fault == BOOM
    assert view.steps["a"].as_json()["fault"]["class"] == "logical"
    assert [issue.message for issue in view.steps["a"].issues] == ["exit 3"]
    assert (view.steps["b"].outcome, view.steps["b"].reason) == ("skipped", "dependency_failed")
    assert view.steps["b"].attempts == view.steps["b"].runs == view.steps["b"].duration_ms == 0


def test_a_tolerated_failure_is_its_own_outcome(drive) -> None:
    """semantics.md 1: tolerated means continue_on_failure."""
    view = run_view(drive(plan_of(Step("a", "noop", continue_on_failure=True)), fails("a")))
    assert (view.verdict, view.steps["a"].outcome) == ("GO", "tolerated")


def test_items_are_told_in_index_order_with_their_scope(drive) -> None:
    """cli.md, semantics.md 27: `items` only for fanned-out steps, in index order, with `scope`."""
    view = run_view(drive(LISTED, works_on_three))
    items = view.steps["work"].as_json()["items"]
    assert [(item["index"], item["scope"], item["outcome"]) for item in items] == [
        (0, "list#1[0]", "passed"),
        (1, "list#1[1]", "failed"),
        (2, "list#1[2]", "passed"),
    ]
    assert items[0]["output"] == "list#1[0]"
    assert (view.steps["work"].outcome, view.steps["work"].reason) == ("failed", "partial")
    assert view.steps["work"].attempts == 3
    assert [issue.scope for issue in view.steps["work"].issues] == ["list#1[1]"]
    assert view.steps["work"].fault == BOOM
    assert view.steps["list"].items is None


def test_twelve_items_are_in_the_order_of_numbers_not_of_text(drive) -> None:
    """Item 10 comes after item 9."""
    view = run_view(drive(LISTED, lambda command: list(range(12)) if command.step == "list" else None))
    assert [item.index for item in view.steps["work"].items] == list(range(12))


def test_a_fan_out_over_nothing_is_a_skip(drive) -> None:
    """forEach_empty is a reason."""
    step = run_view(drive(LISTED, lambda command: [])).steps["work"]
    assert (step.outcome, step.reason) == ("skipped", "forEach_empty")


def retried() -> Plan:
    """A step with up to two retries."""
    return plan_of(Step("a", "noop", on_fail=Block(retry=Retry(2, delay_s=1.0, jitter=0.0))))


def test_every_attempts_fault_is_kept(drive) -> None:
    """A retry that went well doesn't hide what went wrong before."""

    def outcome(command):
        failed = CallFailed(call=command.call, fault=FLAKY)
        return failed if command.attempt < 3 else "ok"

    view = run_view(drive(retried(), outcome))
    assert (view.verdict, view.steps["a"].attempts, view.steps["a"].runs) == ("GO", 3, 1)
    assert view.steps["a"].fault is None
    assert [(fault["step"], fault["attempt"], fault["class"]) for fault in view.faults] == [
        ("a", 1, "transient"),
        ("a", 2, "transient"),
    ]
    assert view.statistics["retries"] == 2
    assert view.statistics["transientFailures"] == 2


def test_statistics_have_the_reports_names(drive) -> None:
    """Spec D.3 with its D: runs add up, items count one by one, a forEach step counts once."""
    told = run_view(drive(LISTED, works_on_three)).statistics
    assert list(told) == [
        "totalChecksConfigured", "totalExecutions", "successfulExecutions", "failedExecutions", "skippedChecks",
        "totalDuration", "wallDuration", "retries", "transientFailures", "logicalFailures", "loopBudgetHits",
        "suppressed", "checks",
    ]  # fmt: skip
    assert [check["checkName"] for check in told["checks"]] == ["list", "work", "sum"]
    work = told["checks"][1]
    assert list(work) == [
        "checkName", "totalRuns", "successfulRuns", "failedRuns", "skippedRuns", "skipped", "skipReason",
        "skipCondition", "totalDuration", "perIterationDuration", "issuesFound", "issuesBySeverity",
        "outputsProduced", "errorMessage", "forEachPreview",
    ]  # fmt: skip
    assert (work["totalRuns"], work["successfulRuns"], work["failedRuns"]) == (3, 2, 1)
    assert len(work["perIterationDuration"]) == 3
    assert work["totalDuration"] == sum(work["perIterationDuration"])
    assert work["issuesBySeverity"] == {"critical": 0, "error": 1, "warning": 0, "info": 0}
    assert told["totalExecutions"] == told["successfulExecutions"] + told["failedExecutions"] == 5
    assert told["totalDuration"] == max(check["totalDuration"] for check in told["checks"])


def test_a_call_repeated_after_it_was_lost_is_one_run(drive) -> None:
    """The time of a run is from its first start, the lost call included."""

    def outcome(command):
        return CallLost(call=command.call) if command.call == 1 else "ok"

    view = run_view(drive(plan_of(Step("a", "noop", effects="idempotent")), outcome))
    check = view.statistics["checks"][0]
    assert (check["totalRuns"], check["perIterationDuration"]) == (1, [20])
    assert view.steps["a"].attempts == 2


def test_a_superseded_run_is_counted(drive) -> None:
    """semantics.md 7: it ran, though its result was not used."""
    plan = plan_of(Step("a", "noop", on_success=Block(goto="b")), Step("b", "noop"))
    check = run_view(drive(plan)).statistics["checks"][1]
    assert (check["totalRuns"], check["successfulRuns"]) == (2, 2)


def test_the_preview_shows_three_items_of_fifty_characters(drive) -> None:
    """Spec D.3, 5."""
    items = ["x" * 80, {"a": 1}, 3, 4, 5]
    view = run_view(drive(LISTED, lambda command: items if command.step == "list" else None))
    assert view.statistics["checks"][0]["forEachPreview"] == ["x" * 50, '{"a": 1}', "3", "...2 more"]


@pytest.mark.parametrize("broken", [False, True])
def test_a_skip_names_its_condition(drive, broken: bool) -> None:
    """Statistics say which expression kept a step from running."""
    plan = plan_of(Step("a", "noop", if_condition=0), expressions=(Expression("branch == 'x'", "condition"),))
    view = run_view(drive(plan, value=lambda ask: Failure("error", "no") if broken else False))
    check = view.statistics["checks"][0]
    assert (check["skipped"], check["skipReason"], check["skipCondition"]) == (
        True,
        "if_condition",
        "branch == 'x'",
    )
    assert view.statistics["skippedChecks"] == 1
    assert view.verdict == ("NO-GO" if broken else "GO")


def test_a_hold_says_what_is_asked(drive) -> None:
    """semantics.md 3: HOLD, with the prompt, and what waits behind it."""

    def outcome(command):
        return CallParked(call=command.call, prompt="ship it?", details={"by": "ops"})

    view = run_view(
        drive(plan_of(Step("ask", "human-input"), Step("b", "noop", depends_on=after("ask"))), outcome)
    )
    assert (view.verdict, view.exit_code, view.parked) == ("HOLD", 3, True)
    assert (view.steps["ask"].outcome, view.steps["ask"].reason) == ("waiting", "person")
    assert (view.steps["b"].outcome, view.steps["b"].reason) == ("waiting", "not_started")
    (waiting,) = view.waiting
    assert (waiting.step, waiting.prompt, waiting.details) == ("ask", "ship it?", {"by": "ops"})


def test_a_lost_mutating_call_is_in_doubt(drive) -> None:
    """semantics.md 16: nobody knows, so a person must say."""
    plan = plan_of(Step("post", "http", effects="mutates"))
    view = run_view(drive(plan, lambda command: CallLost(call=command.call)))
    assert (view.verdict, view.steps["post"].outcome) == ("HOLD", "in_doubt")
    assert view.waiting[0].in_doubt


def test_a_run_under_way_has_no_verdict() -> None:
    """After a crash, or while it runs: 130, it can be resumed."""
    start = RunStarted(run_id="r", plan=plan_of(Step("a", "noop")), started_at_ms=1)
    records = [Record(0, 0.0, start, advance(begin(start), start).decisions)]
    view = run_view(records)
    assert (view.verdict, view.exit_code) == (None, 130)
    assert (view.steps["a"].outcome, view.steps["a"].reason) == ("waiting", "running")


def test_an_interrupted_run_says_so(drive) -> None:
    """cli.md: 130."""
    parked = lambda command: CallParked(call=command.call)  # noqa: E731
    records = drive(plan_of(Step("ask", "noop")), parked, events=[CancelAsked(interrupted=True)])
    view = run_view(records)
    assert (view.exit_code, view.interrupted, view.steps["ask"].outcome) == (130, True, "cancelled")


@pytest.mark.parametrize(("verdict", "code"), [("GO", 0), ("NO-GO", 1), ("HOLD", 3), (None, 130)])
def test_each_verdict_has_its_exit_code(verdict: str | None, code: int) -> None:
    """H27: cli.md's table."""
    assert exit_code(verdict) == code


def test_steps_left_out_are_told_apart_from_steps_skipped(drive) -> None:
    """A step the event filter excludes is no part of the run."""
    plan = plan_of(Step("a", "noop"), Step("b", "noop", on=("pr_opened",)))
    view = run_view(drive(plan, trigger={"name": "manual"}))
    assert (list(view.steps), view.excluded) == (["a"], {"b": "event_filter"})
    assert view.statistics["totalChecksConfigured"] == 2


def test_a_plan_that_cannot_run_is_a_fault_of_the_run(drive) -> None:
    """No error path is silent (law 4)."""
    plan = plan_of(Step("a", "noop", depends_on=after("b")), Step("b", "noop", depends_on=after("a")))
    view = run_view(drive(plan))
    assert view.verdict == "NO-GO"
    assert "wait for each other" in view.faults[0]["message"]


def test_a_refused_loop_is_counted_and_told(drive) -> None:
    """Spec C.12: budgets say what was used and who was refused."""
    plan = plan_of(
        Step("a", "noop"),
        Step("b", "noop", depends_on=after("a"), on_success=Block(goto="a")),
    )
    view = run_view(drive(plan))
    assert view.statistics["loopBudgetHits"] == 1
    assert view.budgets["max_loops"] == {"allowed": 10, "used": {"": 10}}
    assert [(one["step"], one["target"], one["limit"]) for one in view.budgets["refused"]] == [
        ("b", "a", "max_loops")
    ]
    assert view.steps["a"].runs == 11


def test_a_step_routed_to_from_one_item_is_told_by_what_it_came_to(drive) -> None:
    """A remedy that ran for one item ran, though it never ran for the run as a whole."""
    plan = plan_of(
        Step("list", "script", for_each=True),
        Step("work", "noop", depends_on=after("list"), fanout="map", on_fail=Block(run=(Target("fix"),))),
        Step("fix", "noop"),
    )
    view = run_view(drive(plan, works_on_three))
    assert view.steps["fix"].runs == 1
    assert (view.steps["fix"].outcome, [item.scope for item in view.steps["fix"].items]) == (
        "passed",
        ["list#1[1]"],
    )


def test_the_journal_alone_is_enough(drive) -> None:
    """Spec D.4: rebuilt from what was written, the view is the same."""

    def outcome(command):
        if command.step == "list":
            return CallDone(call=command.call, output=["a"], issues=(Issue("r", "m", file="f.py", line=3),))
        return works_on_three(command)

    records = drive(LISTED, outcome)
    again = [decode_line(encode_line(one)) for one in records]
    assert run_view(again).as_json() == run_view(records).as_json()
