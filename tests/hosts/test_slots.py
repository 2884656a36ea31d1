"""Places that calls share: who has one next, and what becomes of those that nobody uses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gonogo.hosts import slots
from gonogo.hosts.slots import Places, Slots


def told(story: Callable[[], Awaitable[None]]) -> None:
    """Within an event loop, and in time."""

    async def within() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(within())


class Door:
    """Of a queue."""

    def __init__(self) -> None:
        self.is_open = True

    def shut(self) -> None:
        self.is_open = False

    def open(self) -> None:
        self.is_open = True


def test_places_go_to_whoever_came_first() -> None:
    """One that was taken back in the queue is passed over."""

    async def story() -> None:
        places = Places(1)
        first, second, third, fourth = (places.ask() for _ in range(4))
        places.withdraw(second)
        places.give(1)
        assert (first.done(), third.done(), fourth.done()) == (True, True, False)
        places.withdraw(third)
        assert fourth.done()

    told(story)


def test_calls_from_queues_and_those_of_runs_here_take_turns() -> None:
    """However many of one kind there are."""

    async def story() -> None:
        places = Places(1)
        had = places.ask()
        own = [places.ask() for _ in range(3)]
        queued = places.ask(1)
        for _ in range(2):
            places.withdraw(had)
            had = next(each for each in (*own, queued) if each.done() and each is not had)
        assert (queued.done(), [each.done() for each in own]) == (True, [True, False, False])

    told(story)


def test_a_full_house_shuts_its_doors_until_a_place_is_free_that_nobody_waits_for() -> None:
    """What came in then would wait here, while others are idle."""

    async def story() -> None:
        places, door = Places(2), Door()
        places.add_door(door)
        assert (places.take(5), door.is_open) == (2, False)
        waiting = places.ask()
        places.give(1)
        assert (waiting.done(), door.is_open) == (True, False)
        places.give(1)
        assert door.is_open

    told(story)


def test_a_place_is_left_to_the_doors_now_and_then_though_somebody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A queue would else starve behind a worker's own runs; who waits has the place if nobody comes."""
    monkeypatch.setattr(slots, "TURN_S", 0.0)
    monkeypatch.setattr(slots, "TURN_LASTS_S", 0.01)

    async def story() -> None:
        places, door = Places(1), Door()
        places.add_door(door)
        places.take(1)
        waiting = places.ask()
        places.give(1)
        assert (waiting.done(), door.is_open) == (False, True)
        await waiting
        assert not door.is_open

    told(story)


def test_who_looks_for_a_place_in_vain_leaves_nothing_behind() -> None:
    """A worker may be full for hours, and asks again and again."""

    async def story() -> None:
        places = Places(1)
        places.take(1)
        assert [await places.freed(0.0) for _ in range(3)] == [False] * 3
        assert not places._looking
        looks = asyncio.ensure_future(places.freed(20.0))
        await asyncio.sleep(0)
        places.give(1)
        assert await looks

    told(story)


def test_what_is_under_way_already_counts_though_there_is_no_place_for_it() -> None:
    """The next one waits until there are fewer than may be."""

    async def story() -> None:
        places = Places(1)
        under_way = [places.seize(), places.seize()]
        waiting = places.ask()
        places.withdraw(under_way[0])
        assert not waiting.done()
        places.withdraw(under_way[1])
        assert waiting.done()

    told(story)


def test_a_call_that_is_stopped_while_it_waits_leaves_no_place_taken() -> None:
    """Nor one that was just given one."""

    async def story() -> None:
        tree, worker = Places(1), Places(1)
        shared = Slots(tree, worker)
        worker.take(1)

        async def call() -> None:
            async with shared.of(7, outside=True):
                raise AssertionError

        for given in (0, 1):
            task = asyncio.create_task(call())
            await asyncio.sleep(0)
            worker.give(given)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        assert (tree.take(9), worker.take(9)) == (1, 1)

    told(story)


def test_what_a_call_was_lent_is_there_for_its_giver_at_the_end() -> None:
    """It lets go of it while its gate waits, and may end meanwhile."""

    async def story() -> None:
        places = Places(1)
        lent = Slots(None, places, lent=True)
        for is_back in (True, False):
            assert places.take(1) == 1
            async with lent.of(7, outside=True):
                lent.let_go(7)
                assert places.is_free_for(1)
                if is_back:
                    await lent.take(7)
            places.give(1)
        assert places.take(9) == 1

    told(story)


def test_attempts_of_one_call_that_want_its_slot_back_together_take_one() -> None:
    """It has several requests at a time."""

    async def story() -> None:
        tree = Places(2)
        shared = Slots(tree)
        async with shared.of(7, outside=True):
            shared.let_go(7)
            await asyncio.gather(shared.take(7), shared.take(7))
            assert tree.take(9) == 1
            tree.give(1)
        assert tree.take(9) == 2

    told(story)


def test_what_does_nothing_outside_takes_no_place_of_its_worker() -> None:
    """It computes; a run of such steps goes on beside whatever else there is."""

    async def story() -> None:
        worker = Places(1)
        async with Slots(None, worker).of(7, outside=False):
            assert worker.take(1) == 1
        async with Slots(None, worker).of(8, outside=False):
            assert worker.busy == 1
        worker.give(1)
        assert worker.take(9) == 1

    told(story)
