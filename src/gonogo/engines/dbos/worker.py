"""Takes work from DBOS' queues and does it on the worker's own event loop.

A workflow here is one function without steps: the journal remembers, so DBOS has nothing to remember but that the work
isn't over. When it is carried again after a crash, the whole function runs again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient
from dbos._serialization import DBOSPortableJSON

from gonogo.engines.base import Limits, Places, Stopping, Work, new_worker_id
from gonogo.engines.dbos import bounds, names
from gonogo.engines.dbos.connections import pool_of
from gonogo.engines.dbos.doors import Door, hang
from gonogo.engines.dbos.engine import DbosEngine
from gonogo.engines.dbos.groups import Groups
from gonogo.engines.dbos.own import keep_own
from gonogo.engines.dbos.sweep import sweeping
from gonogo.engines.dbos.takeover import Lease, Told, Watch, end_at_once, hand_back
from gonogo.engines.dbos.telling import told
from gonogo.engines.urls import named
from gonogo.journal.postgres.address import Address

CONNECTIONS = 20
"""Most that DBOS has at once; there are as many as were ever needed."""
POLL_S = 1.0
"""How often the queue of segments is looked at when nobody rings: nobody does when a delay is over."""
AFTER_S = 0.02
"""So long after a workflow's end DBOS has noted it, and may begin another in its place."""
_ADVICE = "check the store's address; its user must be allowed to create schemas and tables there"
BUSY_S = 0.03
"""So long after an idle one a worker without a free place would look for calls; with some, in proportion."""
TOLD_S = 3.0
"""Longest for what the thread that takes over waits for; then it looks once more who is dead."""
HANGS_S = 20.0
"""A loop that doesn't go round for so long hangs."""

log = logging.getLogger("gonogo.worker")


class DbosWorker:
    """One worker process. `serve` once; DBOS keeps its state per process."""

    def __init__(
        self, address: Address, worker: str | None = None, *, fenced: Callable[[], object] = end_at_once
    ) -> None:
        """`fenced` ends whatever this process does, once others may have its work. Raises EngineError when the database
        can't be reached, or refuses what a worker needs.
        """
        self._fenced = fenced
        self.worker = worker or new_worker_id()
        self.address = named(address, self.worker)
        """For all connections of this worker: whoever takes over from it ends them by this name."""
        with told(f"the database {address} can't be used by a worker", address, _ADVICE):
            self._lease = Lease(self.address, self.worker)
            self._lease.acquire()
            (store,) = self._lease.connection.execute(names.STORE).fetchall()[0]
        self._schema = names.schema_of(store)
        self._pool = pool_of(self.address, CONNECTIONS)
        self._bounds = bounds.Bounds(self._lease.connection, self._schema)
        self._queues: frozenset[str] = frozenset()
        """Of the calls that this worker takes; none before and after it does."""
        self._groups: Groups | None = None
        self._engine: DbosEngine | None = None
        self._ticked_s = time.monotonic()
        self._dbos = DBOS(config=_config(self._pool, self._schema, self.worker))

    @property
    def engine(self) -> DbosEngine:
        """Hands over work. Raises EngineError when the database can't be reached."""
        if self._engine is None:
            self._engine = DbosEngine(self.address, self._begin, self._bounds.together)
        return self._engine

    def _begin(self, run_id: str, calls: Sequence[int], label: str) -> bool:
        if self._groups is None or names.queue_of(label) not in self._queues:
            return False
        return self._groups.begin(run_id, calls, label)

    async def serve(self, work: Work, limits: Limits, stopping: Stopping, ready: Callable[[], None]) -> None:
        """Take work until told to stop; see `EngineWorker`."""
        loop = asyncio.get_running_loop()
        queues = [names.CALLS, *(names.queue_of(label) for label in limits.labels)]
        doors = {queue: Door() for queue in (names.SEGMENTS, *queues)}
        watch = Watch(self._lease, _Told(work, loop), self._is_alive)
        places = work.places
        for queue in queues:
            places.add_door(doors[queue])
        groups = self._groups = Groups(
            work, self.engine, places, lambda: self._lease.others + 1, singly=self._bounds.counts
        )
        _define(work, loop, limits, groups, doors)
        DBOS.listen_queues(list(doors))
        beside = [loop.create_task(self._tick()), loop.create_task(sweeping(self._pool, self._schema))]
        with told(f"DBOS can't be set up in {self.address}", self.address, _ADVICE):
            watch.start(self._fenced)
            await asyncio.to_thread(self._launch, limits, queues)
            keep_own(
                self._dbos._sys_db, {names.SEGMENTS: limits.segments} | dict.fromkeys(queues, limits.calls)
            )
        hang(doors, self._dbos.background_thread_stop_events)
        deaf = [work.listen(queue, _ear(queue, door, places, loop)) for queue, door in doors.items()]
        client = DBOSClient(
            system_database_engine=self._pool,
            dbos_system_schema=self._schema,
            serializer=DBOSPortableJSON,
        )
        watch.take_over_by(client, lambda: self._bounds.look(lambda queue: _heed(doors.get(queue))))
        try:
            self._queues = frozenset(queues)
            ready()
            await stopping.wait()
            self._queues = frozenset()
            logging.getLogger("dbos").setLevel(logging.ERROR)  # it warns of all that is left to others
            patience_s = max(1, round(limits.drain_s))
            await asyncio.gather(
                asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=patience_s),
                groups.over(patience_s),
            )
            await work.leave()
            await work.lost(self.worker)
            await asyncio.to_thread(hand_back, client, self._lease)
        finally:
            for listen_no_more in deaf:
                listen_no_more()
            for task in beside:
                task.cancel()
            watch.stop()
            client.destroy()
            self._pool.dispose()
        self._lease.release()

    def _launch(self, limits: Limits, queues: list[str]) -> None:
        self._bounds.look()  # as soon as DBOS is there, it takes calls
        DBOS.launch()
        DBOS.register_queue(
            names.SEGMENTS,
            worker_concurrency=limits.segments,
            polling_interval_sec=POLL_S,
            on_conflict="always_update",
        )
        for queue in queues:
            DBOS.register_queue(queue, polling_interval_sec=bounds.POLL_S, on_conflict="never_update")
        self._bounds.agree(queues, limits)
        if kept := self._bounds.of(queues):
            log.info("over all workers %s; --calls-everywhere unlimited and --rate unlimited lift it", kept)

    async def _tick(self) -> None:
        while True:
            self._ticked_s = time.monotonic()
            await asyncio.sleep(1.0)

    def _is_alive(self) -> bool:
        return time.monotonic() - self._ticked_s < HANGS_S


def _config(pool: sa.Engine, schema: str, worker: str) -> Any:
    return {
        "name": "gonogo",
        "system_database_engine": pool,
        "dbos_system_schema": schema,
        "executor_id": worker,
        "application_version": names.VERSION,
        "serializer": DBOSPortableJSON,
        "log_level": "WARNING",
    }


def _define(
    work: Work, loop: asyncio.AbstractEventLoop, limits: Limits, groups: Groups, doors: dict[str, Door]
) -> None:
    """The two workflows. They run on DBOS' loop and only wait for what is done on the worker's."""
    segments = _Running(limits.segments, doors[names.SEGMENTS], loop)
    grouped = {queue: _Running(limits.calls, door, loop) for queue, door in doors.items()}

    @DBOS.workflow(name=names.SEGMENT)
    async def segment(run_id: str, reopens: bool) -> None:
        with segments:
            wake_s = await _on(loop, work.segment(run_id, reopens=reopens))
            if wake_s is not None:
                await _on(loop, work.wake(run_id, wake_s))

    @DBOS.workflow(name=names.CALLS_OF)
    async def calls_of(run_id: str, calls: list[int], label: str) -> None:
        with grouped[names.queue_of(label)]:
            await _on(loop, groups.perform(run_id, calls, label))


def _ear(queue: str, door: Door, places: Places, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """What is done when a queue is rung for. All workers hear of a call at once; who has less to do is first."""
    if queue == names.SEGMENTS:
        return door.ring
    return lambda: door.ring() if places.busy == 0 else _later(loop, places.busy * BUSY_S, door)


def _heed(door: Door | None) -> None:
    """Before it waits, a queue's thread reads what bounds it: what it waits with is the older bound."""
    if door is not None:
        door.ring()


def _later(loop: asyncio.AbstractEventLoop, seconds: float, door: Door) -> None:
    loop.call_later(seconds, door.ring)


class _Running:
    """Workflows of one queue under way here. Where there were as many as may be, the end of one makes room for
    another, which DBOS would find at its next look only.
    """

    def __init__(self, most: int, door: Door, loop: asyncio.AbstractEventLoop) -> None:
        self._most = most
        self._door = door
        self._loop = loop
        self._count = 0

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        if self._count >= self._most and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.call_later, AFTER_S, self._door.ring)
        self._count -= 1


async def _on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class _Told(Told):
    """What the thread that takes over tells, done in the worker's loop."""

    def __init__(self, work: Work, loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._loop = loop

    def lost(self, worker: str) -> None:
        self._do(self._work.lost(worker))

    def aside(self, run_id: str, takeovers: int) -> None:
        self._do(self._work.aside(run_id, None, takeovers))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        doing = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            doing.result(timeout=TOLD_S)
        finally:
            doing.cancel()
