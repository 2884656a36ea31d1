"""How long is waited, and when not at all (F23, F24; RET-1, RET-4, TIM-1)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.world import Http, Slow, answered, gate, play, policy, world

from gonogo.gate import Backoff, Bounds, DeadlineExceeded, Exhausted, GateError
from gonogo.gate.decisions import WaitStarted
from gonogo.gate.observed import signal_of
from gonogo.gate.signals import Classification, Signal
from gonogo.gate.waits import wait_s

WALL = 1_800_000_000.0
DOWN = Classification("server-5xx", "test")
LIMITED = Classification("rate-limit", "test")


def seen(headers: dict[str, str]) -> Signal:
    """What is seen of an exception whose answer has these headers."""
    error = Http(429)
    error.headers = headers
    return signal_of(error, WALL)


@given(st.integers(0, 10_000), st.text(max_size=20), st.floats(0, 1e6), st.floats(0, 1e6))
def test_RET_1_every_wait_is_finite_and_within_its_cap(
    number: int, identity: str, base: float, cap: float
) -> None:
    """RET-1: never negative, never above the cap, however many attempts."""
    for failure in (DOWN, LIMITED):
        delay = wait_s(Backoff(base_s=base, cap_s=cap), failure, number, identity)
        assert math.isfinite(delay)
        assert 0 <= delay <= cap


@given(st.integers(1, 50), st.text(max_size=20), st.floats(0, 1e5))
def test_a_wait_is_never_shorter_than_the_far_side_asked(number: int, identity: str, asked: float) -> None:
    """RET-4: a computed backoff never shortens the server's wait; equal jitter adds a tenth at most."""
    failure = Classification("rate-limit", "test", retry_after_s=asked)
    assert asked <= wait_s(Backoff(), failure, number, identity) <= asked * 1.1 + 1e-9


def test_throttling_waits_at_least_half_the_step() -> None:
    """F23: equal jitter; full jitter would let everybody come back at once."""
    waits = [wait_s(Backoff(base_s=1), LIMITED, 3, f"{n}") for n in range(200)]
    assert 2 <= min(waits) < max(waits) <= 4


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"x-ms-retry-after-ms": "40"}, 0.04),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:03 GMT"}, 3.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:59:57 GMT"}, 0.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000007"}, 7.0),
        ({"x-ratelimit-remaining": "3", "x-ratelimit-reset": "1800000007"}, None),
        ({"retry-after": "86400"}, 86400.0),
        ({}, None),
    ],
)
def test_RET_4_every_form_of_the_wish_is_read(headers: dict[str, str], expected: float | None) -> None:
    """B42: seconds, dates, milliseconds, a spent limit's reset."""
    assert seen(headers).retry_after_s == expected


@pytest.mark.parametrize("text", ["-5", "banana", "99999999999", "1e9", "", "nan", "inf", "٣", "5; 6"])
def test_RET_4_f_what_makes_no_sense_is_ignored_with_a_note(text: str) -> None:
    """RET-4 f, B42."""
    found = seen({"retry-after": text})
    assert found.retry_after_s is None
    assert found.note


@given(st.text(max_size=60))
def test_no_header_breaks_the_reader(text: str) -> None:
    """Headers are hostile input."""
    assert isinstance(seen({"retry-after": text}), Signal)


def test_RET_4_a_the_second_call_is_not_before_the_wish() -> None:
    """RET-4 a, b; S01: a short wait stays on the same target."""
    there = world(a=[Http(429, retry_after="3"), "fine"], b="b")
    answered(policy("a", "b"), there)
    assert there.called == ["a", "a"]
    assert 3.0 <= there.at[1] <= 3.3


def test_a_long_wait_goes_elsewhere_at_once() -> None:
    """F24."""
    there = world(a=Http(429, retry_after="30"), b="b")
    answered(policy("a", "b"), there)
    assert there.called == ["a", "b"]
    assert there.at[1] == 0.0


def test_a_wait_past_the_deadline_goes_elsewhere_even_if_it_is_short() -> None:
    """B20: switch before failing; the refused wait is in the record."""
    there = world(a=Http(429, retry_after="4"), b="b")
    answer = answered(policy("a", "b", bounds=Bounds(deadline_s=3)), there)
    assert (answer.target, there.at[1]) == ("b", 0.0)
    assert answer.record.decided()[0].blocked_by.startswith("deadline: wait 4")


def test_a_long_wait_is_waited_when_there_is_nowhere_else() -> None:
    """F24: inside the deadline."""
    there = world(a=[Http(429, retry_after="30"), "fine"])
    answered(policy("a"), there)
    assert 30.0 <= there.at[1] <= 33.0


def test_RET_4_e_a_wait_that_is_too_long_fails_at_once_and_says_so() -> None:
    """RET-4 e, B20: no sleep beyond the maximum; the wish is on the error."""
    there = world(a=Http(429, retry_after="86400"))

    async def story() -> tuple[Any, float]:
        one = gate(policy("a"))
        with pytest.raises(DeadlineExceeded) as raised:
            await one.call(there.step())
        return raised.value, one.clock.now()

    error, at = play(story)
    assert at == 0.0
    assert error.retry_after_s == 86400.0
    assert "wait" in error.record.decided()[0].blocked_by


def test_RET_4_d_a_plain_403_is_not_retried() -> None:
    """RET-4 d."""
    there = world(a=Http(403))
    with pytest.raises(GateError):
        answered(policy("a"), there)
    assert there.called == ["a"]


def test_RET_4_c_a_403_that_tells_when_to_come_back_is_a_limit() -> None:
    """RET-4 c, with a header; by text alone a step has to say it."""
    there = world(a=[Http(403, retry_after="2"), "fine"])
    assert answered(policy("a"), there).value == "fine"


def test_TIM_1_no_wait_begins_that_would_end_after_the_deadline() -> None:
    """TIM-1: attempts at 0, 1 and 3 s, then it stops at 3 s with the last error and a note."""
    from gonogo.gate import rule

    there = world(a=Http(500))
    rules = tuple(
        rule("retry", {"attempt": count}, wait_s=wait) for count, wait in ((1, 1.0), (2, 2.0), (3, 4.0))
    )

    async def story() -> tuple[Any, float]:
        one = gate(
            policy("a", after=rules, bounds=Bounds(deadline_s=5, attempts_per_target=9, attempts_max=9))
        )
        with pytest.raises(DeadlineExceeded) as raised:
            await one.call(there.step())
        return raised.value, one.clock.now()

    error, at = play(story)
    assert there.at == [0.0, 1.0, 3.0]
    assert at == 3.0
    assert isinstance(error.__cause__, Http)


def test_TIM_1_an_attempt_under_way_is_cut_at_the_deadline() -> None:
    """TIM-1: not at its own timeout."""
    there = world(a=Slow(100))

    async def story() -> float:
        one = gate(policy("a", bounds=Bounds(deadline_s=5)))
        with pytest.raises(DeadlineExceeded):
            await one.call(there.step())
        return one.clock.now()

    assert play(story) == 5.0


def test_TIM_2_a_wall_clock_that_jumps_changes_no_wait() -> None:
    """TIM-2: ten monotonic seconds are ten seconds."""
    there = world(a=[Http(429, retry_after="10"), "fine"])

    async def story() -> float:
        import asyncio

        one = gate(policy("a"))
        task = asyncio.create_task(one.call(there.step()))
        await asyncio.sleep(1)
        one.clock.wall_offset_s += 3600  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        one.clock.wall_offset_s -= 7200  # type: ignore[attr-defined]
        await task
        return one.clock.now()

    assert 10 <= play(story) <= 11


def test_the_waits_of_one_seed_are_the_same_every_time() -> None:
    """Law 1; another seed gives others."""

    def waits(seed: str) -> list[float]:
        there = world(a=[Http(500), Http(500), "fine"])
        answer = answered(policy("a"), there, {"seed": seed})
        return [each.wait_s for each in answer.record.decisions if isinstance(each, WaitStarted)]

    assert waits("s") == waits("s") != waits("t")


def test_S02_a_limit_for_ever_is_asked_three_times_then_the_next() -> None:
    """S02: at most six on the first, at most four within three seconds."""
    there = world(a=Http(429), b="b")
    answered(policy("a", "b"), there)
    assert there.called == ["a", "a", "a", "b"]


def test_everything_down_is_exhausted_within_the_bounds() -> None:
    """B19: three a target, six in all."""
    there = world(a=Http(500), b=Http(500), c=Http(500))
    with pytest.raises(Exhausted):
        answered(policy("a", "b", "c"), there)
    assert there.called == ["a"] * 3 + ["b"] * 3
