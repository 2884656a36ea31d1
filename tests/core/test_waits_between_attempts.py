"""Waits before a retry: whose time counts, what they hold, timers that come late, twice or never (C.9 R4, law 1)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.script import TRANSIENT, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import machine
from gonogo.core.commands import SetTimer
from gonogo.core.plan import Plan, Retry

EXACT = Retry(3, mode="exponential", delay_s=1, jitter=0)


@pytest.mark.parametrize(("wish_s", "waits"), [(None, [1, 2, 4]), (3, [3, 3, 4]), (900, [60, 60, 60])])
def test_C_9_R4_the_far_sides_wish_raises_a_wait_up_to_a_minute(
    wish_s: float | None, waits: list[float]
) -> None:
    """C.9 R4, G9: 1, 2, 4 s; Retry-After raises them, the cap of 60 s holds."""
    fault = replace(TRANSIENT, retry_after_s=wish_s)
    script = Script(plan(step("a", on_fail=block(retry=EXACT))), calls={"a": fault})
    assert [each.delay_s for each in script.decided(d.Retrying)] == waits


def test_C_9_R4_a_wait_holds_no_slot() -> None:
    """C.9 R4: with one slot, others run meanwhile."""
    script = Script(
        plan(step("a", on_fail=block(retry=EXACT)), step("b"), step("c", "b"), max_parallelism=1),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
    )
    assert script.started == ["a", "b", "c", "a"]
    assert script.verdict == "GO"


def test_C_9_R7_what_remedies_comes_first_and_dependents_last() -> None:
    """C.9 R6, R7: remediation, then the wait, then the step alone, then what depends on it, once."""
    script = Script(
        plan(step("a", on_fail=block(run=["mend"], retry=EXACT)), step("mend"), step("n", "a")),
        calls={"a": lambda command: TRANSIENT if command.attempt < 3 else "fine"},
    )
    assert script.started == ["a", "mend", "a", "mend", "a", "n"]


def test_G_24_attempt_loop_and_error_are_seen_by_expressions() -> None:
    """G24: of the run that is judged; `error` is null once it has passed."""
    seen: list[Any] = []

    def look(names: Any) -> bool:
        error = names["error"]
        seen.append((names["attempt"], names["loop"], error and error["class"]))
        return True

    Script(
        plan(step("a", guarantee=["look"], on_fail=block(retry=EXACT))),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
        answers={"look": look},
    )
    assert seen[0] == (1, 0, "transient")
    assert seen[1][:2] == (2, 0)


def waiting() -> tuple[Any, SetTimer]:
    """A run in its wait before the second attempt, at 10 s, and the timer it has set."""
    made: Plan = plan(step("a", on_fail=block(retry=EXACT)))
    first = e.RunStarted(run_id="run", plan=made, started_at_ms=0, at=10.0)
    state = machine.begin(first)
    machine.advance(state, first)
    commands = machine.advance(state, e.CallFailed(at=10.0, call=1, fault=TRANSIENT)).commands
    return state, next(each for each in commands if isinstance(each, SetTimer))


@pytest.mark.parametrize("at", [11.0, 1e9, 0.0])
def test_TIM_a_timer_fires_once_whatever_the_clock_says(at: float) -> None:
    """On time, a year late, or on a clock that was set back: one attempt, and time never goes back."""
    state, timer = waiting()
    assert timer.due_s == 11.0
    assert len(machine.advance(state, e.TimerFired(at=at, timer=timer.timer)).commands) == 1
    assert not machine.advance(state, e.TimerFired(at=at, timer=timer.timer)).commands
    assert state.at >= 10.0


def test_TIM_no_wait_is_negative_on_a_clock_that_was_set_back() -> None:
    """What is due is due after what has happened."""
    state, timer = waiting()
    machine.advance(state, e.TimerFired(at=11.0, timer=timer.timer))
    commands = machine.advance(state, e.CallFailed(at=3.0, call=2, fault=TRANSIENT)).commands
    assert [each.due_s for each in commands if isinstance(each, SetTimer)] == [13.0]
