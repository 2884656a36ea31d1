"""What a worker hears of the store: whoever listens to a name, and nobody waits for a store that is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from tests.hosts.fleet import Fleet
from tests.hosts.test_worker import Touch, with_fleet

from gonogo.app import living
from gonogo.app.worker import Bells
from gonogo.core.events import CancelAsked
from gonogo.errors import JournalError
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.store import StoreAway

FAR = "steps:\n  one: {type: touch, what: x, waits: true, runs_on: far}\n"


def test_all_who_listen_to_a_name_hear_it_until_they_listen_no_more() -> None:
    """Whoever ends first leaves the others what they listen to."""

    async def story() -> None:
        runs, heard = MemoryRuns(), [asyncio.Event() for _ in range(2)]
        bells = Bells(runs)
        bells.start()
        deaf = [bells.listen("x", each.set) for each in heard]
        try:
            async with asyncio.timeout(20):
                runs.pool.ring(["x"])
                await asyncio.gather(*(each.wait() for each in heard))
                heard[1].clear()
                deaf[0]()
                runs.pool.ring(["x"])
                await heard[1].wait()
            deaf[1]()
            assert bells._ears == {}
        finally:
            bells.close()

    asyncio.run(story())


def test_one_who_listens_and_breaks_keeps_it_from_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    """All that is rung for comes by one bell."""

    async def story() -> None:
        runs, heard = MemoryRuns(), asyncio.Event()
        bells = Bells(runs)
        bells.start()
        bells.listen("x", lambda: int("none"))
        bells.listen("x", heard.set)
        try:
            async with asyncio.timeout(20):
                runs.pool.ring(["x"])
                await heard.wait()
        finally:
            bells.close()

    asyncio.run(story())
    assert "what was rung for with x isn't heeded" in caplog.text


def test_a_call_that_was_told_to_stop_while_the_store_was_away_is_stopped_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody rings a second time, and the event loop waits for nothing."""
    ears: list[Callable[[None], None]] = []

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start(FAR)
        await touch.begun.wait()
        a, at_once = made.workers["a"], made.runs.pool.at_once

        def away(work: Any) -> Any:
            if work == a._errands.hear:
                raise StoreAway("it doesn't answer", advice="wait", when_back=ears.append)
            return at_once(work)

        async with asyncio.timeout(20):
            with monkeypatch.context() as patched:
                patched.setattr(made.runs.pool, "at_once", away)
                made.runs.inbox(run_id).put(CancelAsked())
                while not ears:  # noqa: ASYNC110 - nobody tells of it
                    await asyncio.sleep(0.01)
            assert a.under_way()[1] == 1
            ears[0](None)
            while a.under_way()[1]:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)

    with_fleet(story, "b", "a", labels={"a": ("far",)})


def test_a_store_that_refuses_a_worker_is_not_asked_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose tables a newer gonogo has made: each time makes a connection."""
    asked = []

    def refuse(told: Callable[[JournalError], None]) -> None:
        told(JournalError("a newer gonogo made the tables"))

    async def story(made: Fleet, touch: Touch) -> None:
        def away(work: Any) -> Any:
            asked.append(work)
            raise StoreAway("it doesn't answer", advice="wait", when_back=refuse)

        with monkeypatch.context() as patched:
            patched.setattr(made.runs.pool, "at_once", away)
            patched.setattr("gonogo.app.worker.HEAR_AGAIN_S", 3600.0)
            made.workers["a"]._hear()
            for _ in range(50):
                await asyncio.sleep(0)
        assert len(asked) == 1

    with_fleet(story, "a")


def test_a_call_that_is_given_to_a_worker_twice_is_not_taken_over_while_another_worker_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when the engine was away twice: the first of those who wait here may hear of it no more."""
    monkeypatch.setattr(living, "SILENT_S", 0.1)
    monkeypatch.setattr(living, "LISTENS_S", 0.01)
    looks = [0]

    async def story(made: Fleet, touch: Touch) -> None:
        many, answers = asyncio.Event(), living.Living._answers

        async def counted(self: living.Living, heard: asyncio.Event) -> bool:
            looks[0] += 1
            if looks[0] > 6:
                many.set()
            return await answers(self, heard)

        monkeypatch.setattr(living.Living, "_answers", counted)
        run_id = await made.start(FAR)
        await touch.begun.wait()
        free = [asyncio.create_task(made.workers["b"].free(run_id, 1)) for _ in range(2)]
        async with asyncio.timeout(20):
            await many.wait()
            assert not any(each.done() for each in free)
            touch.go.set()
            assert await asyncio.gather(*free) == [True, True]

    with_fleet(story, "a", "b", labels={"a": ("far",)})


def test_a_worker_whose_store_is_away_does_not_wait_to_say_that_it_lives(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its event loop would stand still, and so would all that it has under way."""

    def away(work: Any) -> NoReturn:
        raise StoreAway("it doesn't answer", advice="wait", when_back=lambda then: None)

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start(FAR)
        await touch.begun.wait()
        with monkeypatch.context() as patched:
            patched.setattr(made.runs.pool, "at_once", away)
            made.workers["a"]._living.answer()
            assert not await made.workers["b"].free(run_id, 1)
            with pytest.raises(StoreAway):
                await made.workers["b"]._living.handed_over(run_id)
        touch.go.set()

    with_fleet(story, "a", "b", labels={"a": ("far",)})
    assert "it doesn't answer" in caplog.text
