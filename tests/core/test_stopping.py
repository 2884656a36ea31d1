"""fail_fast, halt and cancel (spec C.14 R5, C.16; semantics 4 and 5)."""

from __future__ import annotations

from tests.core.script import LOGICAL, TRANSIENT, Draft, Never, Parks, Script, block, plan, step

from gonogo.core import commands as c
from gonogo.core import decisions as d
from gonogo.core.events import AnswerGiven, CallDone, CancelAsked
from gonogo.core.plan import Budget, Retry


def test_C_14_R5_fail_fast_skips_what_hasnt_started_and_lets_running_steps_end() -> None:
    """Each dropped step has the reason and the cause."""
    steps = [step("a"), step("b"), step("c", "b")]
    script = Script(plan(*steps, fail_fast=True), calls={"a": LOGICAL, "b": Never()})
    script.tell(CallDone(call=2, output=1))
    assert script.outcomes() == {"a": "failed", "b": "passed", "c": "skipped"}
    assert (script.node("c").reason, script.node("c").because) == ("fail_fast", "a")


def test_semantics_4_fail_fast_waits_until_a_failure_is_final() -> None:
    """A failure that a retry mends stops nothing."""
    steps = [step("a", on_fail=block(retry=1)), step("b", "a")]
    script = Script(
        plan(*steps, fail_fast=True), calls={"a": lambda call: TRANSIENT if call.attempt == 1 else 1}
    )
    assert script.verdict == "GO"


def test_a_tolerated_failure_stops_nothing() -> None:
    """fail_fast is about failures that matter."""
    steps = [step("a", continue_on_failure=True), step("b", "a")]
    assert Script(plan(*steps, fail_fast=True), calls={"a": LOGICAL}).outcome("b") == "passed"


def test_semantics_4_fail_fast_gives_up_waits() -> None:
    """A retry that is waiting doesn't come."""
    steps = [step("w", on_fail=block(retry=Retry(1, delay_s=50))), step("a", "start"), step("start")]
    script = Script(plan(*steps, fail_fast=True), calls={"w": TRANSIENT, "a": LOGICAL})
    assert script.started.count("w") == 1
    assert (script.outcome("w"), script.state.timers) == ("failed", {})


def test_GAT_1_always_steps_run_after_fail_fast() -> None:
    """The report still comes."""
    steps = [step("a"), step("b", "a"), step("report", "a", "b", if_="always()", always=True)]
    assert Script(plan(*steps, fail_fast=True), calls={"a": LOGICAL}).started == ["a", "report"]


def test_C_16_halt_stops_running_calls_and_fails_the_step() -> None:
    """The rest is skipped as halted; the run is NO-GO even if the step tolerates failure."""
    condition = {"name": "stop", "when": "bad", "halt": True}
    steps = [step("a", conditions=[condition], continue_on_failure=True), step("slow"), step("c", "a")]
    script = Script(plan(*steps), calls={"slow": Never()})
    assert [command.call for command in script.commands if isinstance(command, c.StopCall)] == [2]
    assert (script.node("c").reason, script.outcome("slow"), script.verdict) == (
        "halted",
        "cancelled",
        "NO-GO",
    )
    assert script.rules("a") == ["a_halt_execution", "a_stop"]


def test_CAN_1_a_cancelled_call_is_not_retried_and_routes_nowhere() -> None:
    """Its outcome is cancelled, not failed."""
    keys = {
        "on_fail": block(run=["fix"], retry=Retry(5, on=("transient", "logical", "cancelled"), delay_s=10))
    }
    script = Script(plan(step("a", **keys), step("fix")), calls={"a": Never()})
    script.tell(CancelAsked())
    assert (script.started, script.outcome("a"), script.verdict) == (["a"], "cancelled", "NO-GO")


def test_CAN_1_a_cancel_during_a_wait_ends_the_wait() -> None:
    """No further attempt starts."""
    steps = [step("a", on_fail=block(retry=Retry(5, delay_s=10))), step("ask")]
    script = Script(plan(*steps), calls={"a": TRANSIENT, "ask": Parks()})
    assert script.verdict == "HOLD" or script.node("a").status == "backing_off"
    script.tell(CancelAsked())
    assert script.state.timers == {}
    assert script.outcome("ask") == "cancelled"


def test_CAN_3_a_call_that_ends_as_the_cancel_arrives_counts_and_nothing_follows() -> None:
    """At most the step in flight completes."""
    script = Script(plan(step("a"), step("b", "a")), calls={"a": Never()})
    script._perform = lambda command: None  # type: ignore[method-assign]
    script.tell(CancelAsked())
    script.tell(CallDone(call=1, output=1))
    assert (script.outcome("a"), script.outcome("b"), script.verdict) == ("passed", "skipped", "NO-GO")


def test_semantics_5_always_steps_run_during_a_cancel() -> None:
    """Within the cleanup grace."""
    steps = [step("a"), step("tidy", "a", if_="always()", always=True)]
    script = Script(plan(*steps), calls={"a": Never()})
    script.tell(CancelAsked())
    assert (script.started, script.outcome("tidy")) == (["a", "tidy"], "passed")


def test_semantics_5_a_second_cancel_stops_cleanup_too() -> None:
    """Nothing is left running."""
    steps = [step("a"), step("tidy", "a", if_="always()", always=True)]
    script = Script(plan(*steps), calls={"a": Never(), "tidy": Never()})
    script.tell(CancelAsked()).tell(CancelAsked())
    assert (script.outcome("tidy"), script.verdict) == ("cancelled", "NO-GO")


def test_semantics_5_the_cleanup_grace_ends_a_cleanup_that_hangs() -> None:
    """Ten seconds by default."""
    steps = [step("a"), step("tidy", "a", if_="always()", always=True)]
    script = Script(plan(*steps), calls={"a": Never(), "tidy": Never()})
    script.tell(CancelAsked())
    assert (script.now, script.outcome("tidy"), script.state.finished is not None) == (
        10.0,
        "cancelled",
        True,
    )


def test_a_cancelled_fan_out_opens_no_more_items() -> None:
    """The items in flight end, the rest never starts."""
    steps = [step("list", for_each=True), step("each", "list", fanout="map")]
    script = Script(plan(*steps), calls={"list": [1, 2, 3], "each": Never()})
    script.tell(CancelAsked())
    assert (script.started, script.outcome("each")) == (["list", "each@list#1[0]"], "cancelled")


# --- a cancelled run stays cancelled


def cancelled_in_cleanup(*more: Draft, calls: dict[str, object] | None = None, **keys: object) -> Script:
    """A run that was cancelled while `b` was under way, and cleans up."""
    steps = [
        step("a", effects="mutates", compensate="undo"),
        step("ask", "a"),
        step("b", "ask"),
        step("undo"),
        *more,
    ]
    script = Script(plan(*steps, **keys), calls={"ask": Parks(), "b": Never(), **(calls or {})})
    script.tell(AnswerGiven(step="ask", text="go", by="me"), CancelAsked(by="me"))
    return script


def test_semantics_5_a_halt_in_the_cleanup_leaves_the_run_cancelled() -> None:
    """Semantics 5 and 20: it is still the cancel that ended the run, so nothing is undone."""
    halt = [{"name": "stop", "when": "yes", "halt": True}]
    script = cancelled_in_cleanup(step("tidy", "b", always=True, conditions=halt))
    assert script.outcome("tidy") == "failed"
    assert [one.reason for one in script.decided(d.Stopping)] == ["cancelled"]
    assert "undo" not in script.started


def test_semantics_5_a_budget_of_time_does_not_lengthen_the_cleanup() -> None:
    """Semantics 5 and 23: a cancelled run has its grace; the alarm for its time is forgotten."""
    script = cancelled_in_cleanup(
        step("tidy", "b", always=True), calls={"tidy": Never()}, budget=Budget(time_s=5.0)
    )
    assert (script.now, script.state.stopping) == (10.0, "cancelled_hard")
    assert script.state.run_issues == []
    assert script.state.timers == {}


def test_semantics_23_an_alarm_that_goes_off_during_the_cleanup_ends_the_count_of_time() -> None:
    """Semantics 23: the time that was to be had is spent then, not when the cleanup is over."""
    script = cancelled_in_cleanup(
        step("tidy", "b", always=True), calls={"tidy": Never()}, budget=Budget(time_s=5.0)
    )
    cleared = [
        event.at for event, taken in script.records for one in taken if isinstance(one, d.TimerCleared)
    ]
    assert 5.0 in cleared
    assert script.state.spent.time_s == 5.0


def test_semantics_5_what_always_runs_has_its_on_init() -> None:
    """Semantics 5, C.10 R8: cleanup that needs something first gets it, until a second cancel."""
    cleanup = step("tidy", "w", always=True, on_init=["token"])
    script = Script(plan(step("w"), cleanup, step("token")), calls={"w": Parks()})
    script.tell(CancelAsked(by="me"))
    assert script.started == ["w", "token", "tidy"]
    script = Script(plan(step("w"), cleanup, step("token")), calls={"w": Parks(), "token": Never()})
    script.tell(CancelAsked(by="me"), CancelAsked(by="me"))
    assert (script.outcome("token"), script.node("tidy").reason) == ("cancelled", "cancelled")


def test_semantics_5_the_block_of_a_step_that_always_runs_begins_though_the_run_stops() -> None:
    """It is one of those that still run; what it sends the run to is not."""
    steps = [
        step("a"),
        step("tidy", "a", if_="always()", always=True, on_fail=block(run=["tell"])),
        step("tell", start="routed"),
    ]
    script = Script(plan(*steps), calls={"a": Never(), "tidy": LOGICAL})
    script.tell(CancelAsked())
    assert [one.trigger for one in script.decided(d.Routing, "tidy")] == ["on_fail"]
    assert (script.node("tell").reason, script.outcome("tidy")) == ("cancelled", "failed")
