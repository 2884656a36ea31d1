"""Work of a worker that an engine lost sight of: whoever is to take it over asks in the store whether it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.hosts.fleet import Fleet
from tests.hosts.test_worker import Touch, outcome, with_fleet

from gonogo.app import living, worker
from gonogo.engines.base import Errand
from gonogo.errors import RunLocked
from gonogo.journal.memory import MemoryJournal

OWN = "steps:\n  one: {type: touch, what: x, waits: true}\n"
FAR = "steps:\n  one: {type: touch, what: x, waits: true, runs_on: far}\n"
Story = Callable[[Fleet, Touch], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are in one loop."""
    monkeypatch.setattr(living, "SILENT_S", 0.05)
    monkeypatch.setattr(living, "LISTENS_S", 0.01)


def asked(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set once somebody was asked three times."""
    times, many, answer = [0], asyncio.Event(), living.Living.answer

    def counted(self: living.Living) -> None:
        times[0] += 1
        if times[0] > 6:  # both are asked each time
            many.set()
        answer(self)

    monkeypatch.setattr(living.Living, "answer", counted)
    return many


@pytest.mark.parametrize(("text", "call"), [(OWN, None), (FAR, 1)], ids=["run", "call"])
def test_what_a_living_worker_has_under_way_is_not_free(
    text: str, call: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is once that has ended."""
    many = asked(monkeypatch)

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start(text)
        await touch.begun.wait()
        free = asyncio.create_task(made.workers["b"].free(run_id, call))
        async with asyncio.timeout(20):
            await many.wait()
            assert not free.done()
            touch.go.set()
            assert await free
        assert outcome(await made.end(run_id), "one") == "passed"

    with_fleet(story, "a", "b", labels={"a": ("far",)})


def test_what_a_dead_worker_had_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers for it any more."""
    many = asked(monkeypatch)

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start(OWN)
        await touch.begun.wait()
        free = asyncio.create_task(made.workers["b"].free(run_id, None))
        async with asyncio.timeout(20):
            await many.wait()
            assert not free.done()
            await made.vanish("a")
            assert await free
        assert (made.segments, touch.touched) == (["a"], ["x"])

    with_fleet(story, "a", "b")


def test_what_is_under_way_here_is_free_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is given its own work again goes on with it as it is."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start(OWN)
        await touch.begun.wait()
        monkeypatch.setattr(living, "SILENT_S", 1000.0)
        async with asyncio.timeout(20):
            assert await made.workers["a"].free(run_id, None)
        touch.go.set()
        assert outcome(await made.end(run_id), "one") == "passed"
        assert touch.touched == ["x"]

    with_fleet(story, "a", "b")


def test_calls_that_a_living_worker_cannot_hand_over_are_handed_over_for_it() -> None:
    """It may have no way to the engine, whose other workers would wait for nothing."""

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start(FAR)
        async with asyncio.timeout(20):
            while not made.runs.pool.open(run_id):  # noqa: ASYNC110 - nobody tells of an offer
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert made.calls == []  # nobody had the label when it was handed over
        made.labels["b"] = ("far",)
        free = asyncio.create_task(made.workers["b"].free(run_id, None))
        async with asyncio.timeout(20):
            await touch.begun.wait()
            touch.go.set()
            assert await free
        assert [each[2] for each in made.calls] == ["b"]

    with_fleet(story, "a", "b")


@pytest.mark.parametrize(("alone", "waits"), [(True, worker.HELD_S), (False, None)])
def test_a_run_that_another_process_has_is_looked_at_again_where_nobody_else_would_be_given_it(
    alone: bool, waits: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has it may be somebody whom the engine lost sight of: if that one dies, the run is nobody's."""
    monkeypatch.setattr(worker, "TAKEN_S", 0.0)

    async def story(made: Fleet, touch: Touch) -> None:
        run_id = await made.start("steps:\n  ask: {type: human-input, prompt: ok}\n")
        await made.end(run_id)
        journal = await had(made, run_id)
        assert await made.workers["a"].segment(run_id, alone=alone) == waits
        journal.close()

    with_fleet(story, "a")


@pytest.mark.parametrize("reopens", [True, False])
def test_calls_that_an_engine_forgot_are_handed_over_when_somebody_resumes_a_run_that_another_worker_has(
    reopens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has it takes them for handed over. Once for each time that is asked: there may be many."""
    monkeypatch.setattr(worker, "TAKEN_S", 0.0)
    handed: list[tuple[Errand, ...]] = []

    async def story(made: Fleet, touch: Touch) -> None:
        monkeypatch.setattr(made, "perform", lambda errands: handed.append(tuple(errands)))
        run_id = await made.start(FAR)
        async with asyncio.timeout(20):
            while not handed:  # noqa: ASYNC110 - nobody tells of an offer
                await asyncio.sleep(0.01)
        assert await made.workers["b"].segment(run_id, reopens=reopens, alone=True) == worker.HELD_S
        assert handed == [(Errand(run_id, 1, "far"),)] * (2 if reopens else 1)

    with_fleet(story, "a", "b")


async def had(made: Fleet, run_id: str) -> MemoryJournal:
    """The run's journal, in the hands of somebody else, as soon as its worker has left it."""
    while True:
        try:
            return made.runs.reopen(run_id)
        except RunLocked:
            await asyncio.sleep(0)
