"""What becomes of each fault: detected, isolated, attempts, and exactly one end (spec G16)."""

from __future__ import annotations

from collections import defaultdict

from tests.core.script import LOGICAL, TRANSIENT, Parks, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.plan import Retry

ENDS = ("recovery.succeeded", "recovery.failed")


def told(script: Script, name: str | None = None) -> list[str]:
    """The events, in order."""
    return [one.event for one in script.decided(d.FaultEvent, name)]


def by_fault(script: Script) -> dict[int, list[str]]:
    """The events of each fault."""
    found: dict[int, list[str]] = defaultdict(list)
    for one in script.decided(d.FaultEvent):
        found[one.fault].append(one.event)
    return found


def test_G_16_a_run_without_failures_tells_of_none() -> None:
    """G16: skips are no faults."""
    assert told(Script(plan(step("a"), step("b", "a", if_="no")), answers={"no": False})) == []


def test_G_16_a_failure_nobody_handles_ends_at_once() -> None:
    """G16: detected, then failed; nothing depends on it, so there is nothing to isolate."""
    assert told(Script(plan(step("a")), calls={"a": LOGICAL})) == ["detected", "recovery.failed"]


def test_G_16_retries_are_attempts_of_one_fault() -> None:
    """G16: k and delay with each; a new failure while it is open is the same fault."""
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(2, delay_s=1.0, jitter=0.0)))), calls={"a": TRANSIENT}
    )
    assert told(script) == ["detected", "recovery.attempted", "recovery.attempted", "recovery.failed"]
    attempts = [one.detail for one in script.decided(d.FaultEvent) if one.event == "recovery.attempted"]
    assert attempts[1] == {"action": "retry", "k": 2, "delay_ms": 1000}


def test_G_16_success_ends_the_fault() -> None:
    """G16: the fault's own kind and class are told with its end, too."""
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(1)))),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
    )
    end = script.decided(d.FaultEvent)[-1]
    assert (end.event, end.kind, end.fault_class) == ("recovery.succeeded", "test.transient", "transient")


def test_G_16_gated_and_suppressed_steps_are_named() -> None:
    """G16: isolation lists whom the failure was kept from, each once; not what is there to mend it."""
    script = Script(
        plan(
            step("a", criticality="internal", on_fail=block(["mend"], escalate="page")),
            step("mend", "a"),
            step("page", "a"),
            step("next", "a"),
            step("post", "a", effects="mutates"),
            step("report", "a?"),
            step("deploy", "report", effects="mutates"),
        ),
        calls={"a": LOGICAL},
    )
    isolated = next(one for one in script.decided(d.FaultEvent) if one.event == "isolated")
    assert isolated.detail == {"gated": ["next"], "suppressed": ["post", "deploy"]}


def test_G_16_an_item_is_isolated_from_the_others() -> None:
    """G16, law 5: the fan-out as a whole isn't another fault."""
    script = Script(
        plan(step("list", for_each=True), step("each", "list", fanout="map")),
        calls={"list": [1, 2], "each": lambda command: LOGICAL if command.scope.endswith("[1]") else "fine"},
    )
    assert {(one.step, one.scope) for one in script.decided(d.FaultEvent)} == {("each", "list#1[1]")}
    assert told(script) == ["detected", "isolated", "recovery.failed"]


def test_G_16_a_remedy_is_an_attempt_and_the_later_pass_the_end() -> None:
    """G16: what on_fail runs sends the run back, and the step passes."""
    script = Script(
        plan(step("a", on_fail=block(run=["mend"])), step("mend", on_success=block(goto="a"))),
        calls={"a": lambda command: LOGICAL if command.execution == 1 else "fine"},
    )
    assert by_fault(script) == {1: ["detected", "recovery.attempted", "recovery.succeeded"]}


def test_G_16_a_remedy_that_brings_nothing_back_fails_with_the_run() -> None:
    """G16: until then something may still send the run to the step."""
    script = Script(plan(step("a", on_fail=block(run=["mend"])), step("mend")), calls={"a": LOGICAL})
    assert told(script) == ["detected", "recovery.attempted", "recovery.failed"]


def test_G_16_failing_again_after_the_end_is_another_fault() -> None:
    """G16: exactly one end a fault."""
    again = iter([True, False])
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(1)), on_success=block(when=[("again", "a")]))),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
        answers={"again": lambda _: next(again)},
    )
    assert list(by_fault(script).values()) == [["detected", "recovery.attempted", "recovery.succeeded"]] * 2


def test_G_16_a_cancel_ends_what_was_being_tried() -> None:
    """G16: a run that stops tries nothing more."""
    script = Script(
        plan(step("a", on_fail=block(run=["ask"], retry=Retry(1))), step("ask")),
        calls={"a": TRANSIENT, "ask": Parks()},
    )
    assert told(script) == ["detected", "recovery.attempted"]
    script.tell(e.CancelAsked(by="me"))
    assert told(script)[-1] == "recovery.failed"


def test_the_state_folds_back_to_the_open_faults() -> None:
    """Law 1, and what a parked run goes on with."""
    script = Script(
        plan(step("a", on_fail=block(run=["ask"], retry=Retry(1))), step("ask")),
        calls={"a": TRANSIENT, "ask": Parks()},
    )
    assert script.verdict == "HOLD"
    assert script.folded().open_faults == script.state.open_faults != {}
