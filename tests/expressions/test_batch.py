"""Batches on an event loop: at once where that is quick, in the background where not, and given up in good order."""

from __future__ import annotations

import asyncio

from gonogo.expressions.request import Request
from gonogo.expressions.results import Failure, Result, Value
from gonogo.expressions.sandbox import Sandbox

ENDLESS = Request("while (true);", "value", {}, 0.2)
ONE = Request("1", "value", {})


async def settled(sandbox: Sandbox, *requests: Request) -> tuple[bool, list[Result]]:
    """Whether the results were there at once, and the results."""
    batch = sandbox.begin(requests)
    assert batch is not None
    at_once = batch.results is not None
    return at_once, list(await batch.finish())


def test_what_takes_longer_is_finished_in_the_background(sandbox: Sandbox) -> None:
    """The event loop is held up for a moment only; the child ends the run itself."""
    at_once, (result,) = asyncio.run(settled(sandbox, ENDLESS))
    assert not at_once
    assert isinstance(result, Failure)
    assert result.kind == "limit"


def test_nothing_asked_is_answered_at_once(sandbox: Sandbox) -> None:
    """Without the child."""
    assert asyncio.run(settled(sandbox)) == (True, [])


def test_a_batch_under_way_keeps_others_out(sandbox: Sandbox) -> None:
    """Nothing is sent, nothing is held: who asks must ask again."""

    async def both() -> list[Result]:
        first = sandbox.begin([ENDLESS])
        assert first is not None
        assert sandbox.begin([ONE]) is None
        await first.finish()
        return (await settled(sandbox, ONE))[1]

    assert asyncio.run(both()) == [Value(1)]


def test_a_dropped_batch_leaves_the_sandbox_usable(sandbox: Sandbox) -> None:
    """Twice does no harm; its child is gone, the next gets another."""

    async def given_up() -> list[Result]:
        batch = sandbox.begin([ENDLESS])
        assert batch is not None
        batch.drop()
        batch.drop()
        return (await settled(sandbox, ONE))[1]

    assert asyncio.run(given_up()) == [Value(1)]


def test_closing_ends_a_batch_nobody_waits_for(sandbox: Sandbox) -> None:
    """A task that was cancelled before it began can't have waited."""

    async def left() -> None:
        assert sandbox.begin([ENDLESS]) is not None
        sandbox.close()

    asyncio.run(left())
    assert sandbox.evaluate([ONE]) == [Value(1)]
