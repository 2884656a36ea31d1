"""Calls that come in groups: who performs which, and what goes back to the queue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest

from gonogo.engines.base import NEWER_S, Errand
from gonogo.engines.dbos import groups
from gonogo.engines.dbos.doors import Door, hang
from gonogo.engines.dbos.groups import Groups
from gonogo.errors import EngineError, JournalError
from gonogo.hosts.slots import Places

LONG_S = 30.0


class Here:
    """A worker and its engine. Calls end when `go` is set."""

    def __init__(self, places: int, workers: int = 1, *, singly: bool = False) -> None:
        self.door = Door()
        self.begun: list[int] = []
        self.handed_back: list[list[int]] = []
        self.go = asyncio.Event()
        self.changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.is_broken = False
        self.newer: set[int] = set()
        self.delays_s: set[float] = set()
        self.places = Places(places)
        self.places.add_door(self.door)
        self.groups = Groups(self, self, self.places, lambda: workers, singly=lambda _: singly)  # type: ignore[arg-type]

    async def calls(self, run_id: str, calls: Sequence[int], ended: Callable[[int], None]) -> Sequence[int]:
        self.begun += calls
        self.changed.set()
        await self.go.wait()
        ended(len(calls))
        return [call for call in calls if call in self.newer]

    def perform(self, errands: Sequence[Errand], *, delay_s: float = 0.0) -> None:
        self.delays_s.add(delay_s)
        if self.is_broken:
            self.is_broken = False
            raise EngineError("not now", advice="wait")
        self.handed_back.append([each.call for each in errands])
        self._loop.call_soon_threadsafe(self.changed.set)


async def performed(here: Here, calls: int) -> None:
    """A group is given to it and comes to its end."""
    under_way = asyncio.create_task(here.groups.perform("r", range(calls), ""))
    async with asyncio.timeout(LONG_S):
        while len(here.begun) + sum(map(len, here.handed_back)) < calls:
            await here.changed.wait()
            here.changed.clear()
        here.go.set()
        await under_way


def test_a_worker_alone_begins_with_what_it_has_places_for_and_hands_the_rest_back() -> None:
    """Never more at once than there are places."""

    async def story() -> None:
        here = Here(places=3)
        await performed(here, 8)
        assert (here.begun, here.handed_back) == ([0, 1, 2], [[3, 4, 5, 6, 7]])

    asyncio.run(story())


def test_short_calls_follow_one_another_on_the_same_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that becomes free soon enough is taken."""
    monkeypatch.setattr(groups, "LINGER_S", LONG_S)

    async def story() -> None:
        here = Here(places=3)
        here.go.set()
        await performed(here, 8)
        assert (here.begun, here.handed_back) == (list(range(8)), [])

    asyncio.run(story())


def test_a_worker_among_others_keeps_its_share() -> None:
    """It could perform all of them, but so could the others."""

    async def story() -> None:
        here = Here(places=16, workers=3)
        await performed(here, 15)
        assert (here.begun, here.handed_back) == (list(range(5)), [list(range(5, 15))])

    asyncio.run(story())


def test_few_calls_stay_together() -> None:
    """To spread them would cost more than they do."""

    async def story() -> None:
        here = Here(places=16, workers=3)
        await performed(here, groups.SHARE_MIN)
        assert here.handed_back == []

    asyncio.run(story())


def test_what_is_for_a_newer_worker_goes_back_to_the_queue_for_later() -> None:
    """Its places are free meanwhile."""

    async def story() -> None:
        here = Here(places=3)
        here.newer = {1}
        await performed(here, 3)
        assert (here.handed_back, here.delays_s) == ([[1]], {NEWER_S})
        assert here.places.take(9) == 3

    asyncio.run(story())


def test_where_a_queue_counts_its_workflows_each_stands_for_one_call() -> None:
    """Else a limit over all workers, or a rate, would let in too many."""

    async def story() -> None:
        here = Here(places=16, singly=True)
        await performed(here, 5)
        assert (here.begun, here.handed_back) == ([0], [[1, 2, 3, 4]])

    asyncio.run(story())


def test_calls_that_cannot_be_handed_back_are_performed_here() -> None:
    """The engine was away; nobody else will ever hear of them."""

    async def story() -> None:
        here = Here(places=16, workers=3)
        here.is_broken = True
        await performed(here, 15)
        assert (here.begun, here.handed_back) == (list(range(15)), [])

    asyncio.run(story())


def test_calls_that_cannot_be_claimed_are_offered_again_and_their_places_are_free() -> None:
    """Nobody else would hear of them, and the worker would take fewer and fewer."""

    async def story() -> None:
        here = Here(places=3)

        async def broken(run_id: str, calls: Sequence[int], ended: Callable[[int], None]) -> Sequence[int]:
            ended(1)
            raise JournalError("the store is gone")

        here.calls = broken  # type: ignore[method-assign]
        await here.groups.perform("r", [1, 2], "")
        assert (here.handed_back, here.delays_s) == ([[1, 2]], {NEWER_S})
        assert here.places.take(9) == 3

    asyncio.run(story())


def test_a_full_worker_looks_at_no_queue_until_a_place_is_free() -> None:
    """What it took then would wait for it, while others are idle."""

    async def story() -> None:
        here, stop, looks = Here(places=1), threading.Event(), threading.Event()

        def look() -> None:
            here.door.wait(stop, 0.0)
            looks.set()

        assert here.places.take(1) == 1
        thread = threading.Thread(target=look)
        thread.start()
        assert not await asyncio.to_thread(looks.wait, 0.1)
        here.places.give(1)
        assert await asyncio.to_thread(looks.wait, LONG_S)
        thread.join()

    asyncio.run(story())


def sleeping(event: threading.Event, ended: list[bool], name: str) -> threading.Thread:
    """A queue's thread as DBOS has it: it sleeps on an event."""
    thread = threading.Thread(target=lambda: ended.append(event.wait(LONG_S)), name=name)
    thread.start()
    return thread


def test_a_queue_that_is_rung_for_is_looked_at_and_the_others_sleep_on() -> None:
    """By the names of their threads; what was rung before the thread sleeps counts."""
    doors, event = {"a": Door(), "b": Door()}, threading.Event()
    hang(doors, [event])
    doors["a"].ring()
    ended: list[bool] = []
    rung = sleeping(event, ended, "queue-worker-a")
    other = sleeping(event, [], "queue-worker-b")
    rung.join(LONG_S)
    assert ended == [False]
    assert other.is_alive()
    event.set()
    other.join(LONG_S)
    assert not other.is_alive()


def test_threads_still_end_when_they_are_told_to() -> None:
    """A shut door and a thread of something else keep nobody."""
    doors, event = {"a": Door()}, threading.Event()
    hang(doors, [event])
    doors["a"].shut()
    ended: list[bool] = []
    threads = [sleeping(event, ended, "queue-worker-a"), sleeping(event, ended, "something")]
    event.set()
    for thread in threads:
        thread.join(LONG_S)
    assert ended == [True, True]
