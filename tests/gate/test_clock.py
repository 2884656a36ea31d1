"""Limits of time: they nest with everybody's cancel scopes, insist, and never hide another's cancellation."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from tests.gate.world import NO_WAIT, Chunk, collected, gate, play, policy

from gonogo.gate import Bounds, Exhausted, Gate, GateError, Step, Timers


async def with_scopes(attempt: Any) -> str:
    """As HTTP clients do: scopes and task groups around every wait."""
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0.1)
        await anyio.sleep(0.1)
    return "fine"


async def pieces_with_scopes(attempt: Any) -> AsyncIterator[Chunk]:
    """The same in a stream, between its pieces."""
    for text in "ab":
        with anyio.fail_after(5):
            await anyio.sleep(0.1)
        yield Chunk(text)
    yield Chunk(finish="stop", end=True)


def test_a_step_may_open_scopes_of_its_own() -> None:
    """A limit is entered before the step takes its first step."""

    async def story() -> Any:
        one = gate(policy("a"))
        step = Step("x", with_scopes, pieces_with_scopes)
        return await one.call(step), [piece.text for piece in await collected(one.stream(step))]

    assert play(story) == ("fine", ["a", "b", ""])


def test_a_step_whose_scopes_are_cut_short_is_a_timeout() -> None:
    """And leaves nothing behind."""

    async def hangs(attempt: Any) -> None:
        with anyio.CancelScope():
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep, 1000)

    async def story() -> Any:
        one = gate(policy("a", timers=Timers(attempt_s=2), backoff=NO_WAIT))
        with pytest.raises(Exhausted) as raised:
            await one.call(Step("x", hangs))
        await anyio.sleep(1)
        return raised.value.kind, one.clock.now(), len(asyncio.all_tasks())

    assert play(story) == ("timeout-total", 3.0, 1)


def test_code_that_swallows_its_cancellation_is_told_again() -> None:
    """Law 2: it ends all the same."""

    async def stubborn(attempt: Any) -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass
        await asyncio.sleep(1000)

    async def story() -> Any:
        one = gate(policy("a", timers=Timers(attempt_s=2), bounds=Bounds(attempts_max=1)))
        with pytest.raises(GateError):
            await one.call(Step("x", stubborn))
        current = asyncio.current_task()
        assert current is not None
        return one.clock.now(), current.cancelling()

    assert play(story) == (5.0, 0)


@pytest.mark.parametrize("scope", [False, True])
def test_a_cancellation_at_the_same_moment_is_not_hidden(scope: bool) -> None:
    """B21: whoever cancels from outside has the last word."""

    async def story() -> Any:
        one = gate(policy("a", timers=Timers(attempt_s=2), backoff=NO_WAIT))

        async def hangs(attempt: Any) -> None:
            await asyncio.sleep(1000)

        if scope:
            with anyio.move_on_after(2) as outer:
                await one.call(Step("x", hangs))
            return outer.cancelled_caught, one.clock.now()
        task = asyncio.create_task(one.call(Step("x", hangs)))
        asyncio.get_running_loop().call_later(2, task.cancel)
        await asyncio.wait([task])
        return task.cancelled(), one.clock.now()

    cancelled, at = play(story)
    assert (cancelled, at) == (True, 2.0)


def test_a_limit_that_is_over_keeps_nothing_alive() -> None:
    """The loop keeps cancelled timers for a while; the call, its answer and its record don't stay with them."""

    class Answer:
        pass

    async def story() -> Any:
        values = [Answer()]
        seen = weakref.ref(values[0])

        async def give() -> Answer:
            return values.pop()

        await Gate("a").call(give)
        gc.collect()
        return seen()

    assert asyncio.run(story()) is None
