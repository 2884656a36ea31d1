"""Several workers in one event loop, with an engine that hands work round among them, over runs kept in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gonogo import app
from gonogo.app import worker
from gonogo.app.engines import follow
from gonogo.app.options import Options, Start
from gonogo.app.parts import built_in_table
from gonogo.app.wiring import first_record_of, redactor_for
from gonogo.app.worker import Worker
from gonogo.core.state import State
from gonogo.engines.base import Errand
from gonogo.journal.memory import MemoryRuns
from gonogo.provider import Provider

HEAD = 'version: "1.0"\n'


class Fleet:
    """Workers by name, each with its labels. Work goes to the first that may have it and lives."""

    def __init__(self, step_types: Sequence[Provider] = ()) -> None:
        self.runs = MemoryRuns()
        self.options = Options(runs=self.runs, table=built_in_table(step_types))
        self.workers: dict[str, Worker] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.callers: list[str] = []
        self.calls: list[tuple[str, int, str]] = []
        self.segments: list[str] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- an Engine

    def submit(self, run_id: str, *, delay_s: float = 0.0, reopens: bool = False) -> None:
        self._loop.call_soon_threadsafe(self._begin, run_id, reopens)

    def begin(self, errands: Sequence[Errand]) -> Sequence[Errand]:
        return errands

    def perform(self, errands: Sequence[Errand], *, delay_s: float = 0.0) -> None:
        self._loop.call_soon_threadsafe(self._hand_out, tuple(errands))

    def close(self) -> None:
        """Nothing to let go of."""

    # --- what tests do

    async def start(self, text: str, **given: Any) -> str:
        """Submit a workflow, and have a worker begin with it; its run."""
        run_id = self.submitted(text, **given)
        self.submit(run_id)
        return run_id

    def submitted(self, text: str, **given: Any) -> str:
        """Keep a workflow for whoever begins with it; its run."""
        plan = app.loads(HEAD + text, table=self.options.table).plan
        event = first_record_of(plan, Start(**given), self.options, {}, redactor_for({}, plan))
        self.runs.submit(event)
        return event.run_id

    async def end(self, run_id: str, known: int = -1) -> State:
        """The run's state once it is over or waits."""
        async with asyncio.timeout(20):
            return await follow(run_id, self.options, known)

    async def die(self, name: str) -> None:
        """A worker is gone, without a word; its work is carried to others."""
        runs = [run_id for run_id, at in self._at.items() if at == name]
        calls = [(run_id, call, label) for run_id, call, label, at in self._under_way if at == name]
        await self.vanish(name)
        for run_id in runs:
            self._begin(run_id, False, takes_over=True)
        self._hand_out(tuple(Errand(run_id, call, label) for run_id, call, label in calls), takes_over=True)

    async def vanish(self, name: str) -> None:
        """A worker is gone, and the engine doesn't hear of it. What it has under way isn't waited for."""
        self._dead.add(name)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(worker, "END_S", 0.0)
            await self.workers.pop(name).leave()

    def at(self, run_id: str) -> str:
        """The worker that has the run."""
        return self._at[run_id]

    # --- within

    def _begin(self, run_id: str, reopens: bool, takes_over: bool = False) -> None:
        name = next(iter(self.workers))
        self._at[run_id] = name
        self.segments.append(name)
        self._spawn(self._segment(name, run_id, reopens, takes_over))

    async def _segment(self, name: str, run_id: str, reopens: bool, takes_over: bool) -> None:
        waits = await self.workers[name].segment(run_id, reopens=reopens, takes_over=takes_over)
        if waits is not None and name not in self._dead:
            self._loop.call_later(waits, self._begin, run_id, False)

    def _hand_out(self, errands: tuple[Errand, ...], takes_over: bool = False) -> None:
        for errand in errands:
            able = [name for name in self.workers if errand.label in ("", *self.labels[name])]
            if able:
                name = able[-1 - (errand.call % len(able))]
                self.calls.append((errand.run_id, errand.call, name))
                self._spawn(self._call(name, errand, takes_over))

    async def _call(self, name: str, errand: Errand, takes_over: bool) -> None:
        entry = (errand.run_id, errand.call, errand.label, name)
        self._under_way.add(entry)
        worker = self.workers[name]
        place = worker.places.ask(1)
        try:
            await place
            await worker.call(errand.run_id, errand.call, takes_over=takes_over)
        except asyncio.CancelledError:
            return  # its worker is gone
        finally:
            worker.places.withdraw(place)
            self._under_way.discard(entry)

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def prepare(self) -> None:
        """Within the event loop."""
        self._loop = asyncio.get_running_loop()
        self._at: dict[str, str] = {}
        self._dead: set[str] = set()
        self._under_way: set[tuple[str, int, str, str]] = set()


@asynccontextmanager
async def fleet(
    *names: str, labels: dict[str, tuple[str, ...]] | None = None, step_types: Sequence[Provider] = ()
) -> AsyncIterator[Fleet]:
    """A fleet of workers that are all gone afterwards."""
    made = Fleet(step_types)
    made.prepare()
    for name in names:
        made.workers[name] = worker = Worker(name, made.runs, made, made.options)
        made.labels[name] = (labels or {}).get(name, ())
        await worker.__aenter__()
    everybody = list(made.workers.values())
    try:
        yield made
    finally:
        for worker in everybody:
            await worker.__aexit__(None, None, None)
