"""A second attempt beside a slow one: off by default, bounded, billed (G.4 15, F26)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.gate.world import NO_WAIT, Http, Slow, answered, gate, play, policy, world

from gonogo.gate import Bounds, BreakerPolicy, Exhausted, Purse, RetryShare
from gonogo.gate.decisions import AttemptStarted
from gonogo.gate.policy import Hedge

HEDGE = Hedge(delay_s=1.0)


def test_the_faster_of_two_wins_and_the_other_is_cut_off() -> None:
    """Both are in the record; the answer comes when the faster one has it."""
    there = world(a=Slow(10, "slow"), b=Slow(2, "quick"))

    async def story() -> Any:
        one = gate(policy("a", "b", hedge=HEDGE))
        answer = await one.answer(there.step())
        at, calls = one.clock.now(), len(there.calls)
        await asyncio.sleep(100)
        return answer, at, calls == len(there.calls)

    answer, at, quiet = play(story)
    assert (answer.value, answer.target, at, quiet) == ("quick", "b", 3.0, True)
    assert [
        (each.target, each.failure.kind if each.failure else "ok") for each in answer.record.attempts
    ] == [
        ("b", "ok"),
        ("a", "cancelled"),
    ]
    started = [each for each in answer.record.decisions if isinstance(each, AttemptStarted)]
    assert [each.hedge for each in started] == [False, True]


def test_the_first_may_still_win() -> None:
    """Then the second is cut off."""
    answer = answered(policy("a", "b", hedge=HEDGE), world(a=Slow(2, "a"), b=Slow(9, "b")))
    assert (answer.value, answer.target) == ("a", "a")


def test_a_quick_answer_gets_no_second_one() -> None:
    """The usual case costs nothing."""
    there = world(a=Slow(0.5, "a"), b="b")
    answered(policy("a", "b", hedge=HEDGE), there)
    assert there.called == ["a"]


def test_a_failure_leaves_the_field_to_the_other() -> None:
    """Whichever fails first."""
    for script in (
        {"a": Slow(2, Http(500)), "b": Slow(5, "fine")},
        {"a": Slow(6, "fine"), "b": Slow(2, Http(500))},
    ):
        there = world(**script)
        answer = answered(policy("a", "b", hedge=HEDGE, backoff=NO_WAIT), there)
        assert (answer.value, sorted(there.called)) == ("fine", ["a", "b"])


def test_two_failures_are_two_attempts() -> None:
    """Then rules and bounds go on as ever."""
    there = world(a=Slow(2, Http(500)), b=Slow(2, Http(500)))
    given = policy("a", "b", hedge=HEDGE, backoff=NO_WAIT, bounds=Bounds(attempts_max=3))
    with pytest.raises(Exhausted):
        answered(given, there)
    assert len(there.calls) <= 3


@pytest.mark.parametrize(
    ("more", "step"),
    [
        ({}, {"effects": "mutates"}),
        ({"bounds": Bounds(attempts_max=1)}, {}),
        ({"bounds": Bounds(attempts_max=6)}, {"unfit": lambda target: "no" if target.name == "b" else None}),
    ],
)
def test_no_second_one_where_it_may_not_be(more: dict[str, Any], step: dict[str, Any]) -> None:
    """Calls that change something, spent bounds, no other target."""
    there = world(a=Slow(5, "a"), b="b")
    assert answered(policy("a", "b", hedge=HEDGE, **more), there, **step).value == "a"
    assert there.called == ["a"]


def test_the_share_of_retries_and_the_purse_count_it() -> None:
    """No storm in a partial outage."""
    for more in ({"retries": RetryShare(floor=0)}, {"purse": Purse(attempts_max=1)}):
        there = world(a=Slow(5, "a"), b="b")
        answer = answered(policy("a", "b", hedge=HEDGE), there, more)
        assert (answer.value, there.called) == ("a", ["a"])
        assert answer.record.why_not("b")[0].startswith("not beside another")


def test_a_cancel_ends_both() -> None:
    """B21: raised on, unchanged; both leases are free."""
    there = world(a=Slow(50), b=Slow(50))

    async def story() -> Any:
        one = gate(policy("a", "b", hedge=HEDGE, breaker=BreakerPolicy(failures=1)))
        task = asyncio.create_task(one.call(there.step()))
        await asyncio.sleep(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert one.breakers is not None
        return one.clock.now(), [each.state for each in one.breakers.listed() if each.state != "closed"]

    assert play(story) == (2.0, [])
    assert len(there.calls) == 2
