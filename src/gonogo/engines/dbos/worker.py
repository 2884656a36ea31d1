"""Takes work from DBOS' queues and does it on the worker's own event loop.

A workflow here is one function without steps: the journal remembers, so DBOS has nothing to remember but that the work
isn't over. When it is carried again after a crash, the whole function runs again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from dbos import DBOS, DBOSClient
from dbos._serialization import DBOSPortableJSON

from gonogo.engines.base import Limits, Stopping, Work, new_worker_id
from gonogo.engines.dbos import names
from gonogo.engines.dbos.engine import DbosEngine
from gonogo.engines.dbos.takeover import Lease, Watch, end_at_once, hand_back
from gonogo.engines.dbos.telling import told
from gonogo.engines.urls import named, sqlalchemy_url
from gonogo.journal.postgres.address import Address

POLL_S = 0.05
"""How often a queue is looked at."""
_ADVICE = "check the store's address; its user must be allowed to create schemas and tables there"
HANGS_S = 20.0
"""A loop that doesn't go round for so long hangs."""


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
        self._ticked_s = time.monotonic()
        DBOS(config=_config(self.address, self.worker))

    @property
    def engine(self) -> DbosEngine:
        """Hands over work; made anew at each call."""
        return DbosEngine(self.address)

    async def serve(self, work: Work, limits: Limits, stopping: Stopping, ready: Callable[[], None]) -> None:
        """Take work until told to stop; see `EngineWorker`."""
        loop = asyncio.get_running_loop()
        _define(work, loop)
        queues = [names.CALLS, *(names.queue_of(label) for label in limits.labels)]
        DBOS.listen_queues([names.SEGMENTS, *queues])
        ticking = loop.create_task(self._tick())
        watch = Watch(self._lease, _aside(work, loop), self._is_alive)
        watch.start(self._fenced)
        with told(f"DBOS can't be set up in {self.address}", self.address, _ADVICE):
            await asyncio.to_thread(_launch, limits, queues)
        client = DBOSClient(
            system_database_url=sqlalchemy_url(self.address),
            dbos_system_schema=names.SCHEMA,
            serializer=DBOSPortableJSON,
        )
        watch.take_over_by(client)
        try:
            ready()
            await stopping.wait()
            patience_s = max(1, round(limits.drain_s))
            await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=patience_s)
            await work.leave()
            await asyncio.to_thread(hand_back, client, self.worker)
        finally:
            ticking.cancel()
            watch.stop()
            client.destroy()
        self._lease.release()

    async def _tick(self) -> None:
        while True:
            self._ticked_s = time.monotonic()
            await asyncio.sleep(1.0)

    def _is_alive(self) -> bool:
        return time.monotonic() - self._ticked_s < HANGS_S


def _config(address: Address, worker: str) -> Any:
    return {
        "name": "gonogo",
        "system_database_url": sqlalchemy_url(address),
        "dbos_system_schema": names.SCHEMA,
        "executor_id": worker,
        "application_version": names.VERSION,
        "serializer": DBOSPortableJSON,
        "log_level": "WARNING",
    }


def _define(work: Work, loop: asyncio.AbstractEventLoop) -> None:
    """The two workflows. They run on DBOS' loop and only wait for what is done on the worker's.

    A call's workflow has its own id, so it runs a second time only when its first worker is gone.
    """

    @DBOS.workflow(name=names.SEGMENT)
    async def segment(run_id: str, reopens: bool) -> None:
        wake_s = await _on(loop, work.segment(run_id, reopens=reopens))
        if wake_s is not None:
            await _on(loop, work.wake(run_id, wake_s))

    @DBOS.workflow(name=names.CALL)
    async def call(run_id: str, number: int) -> None:
        await _on(loop, work.call(run_id, number, takes_over=True))


async def _on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def _launch(limits: Limits, queues: list[str]) -> None:
    DBOS.launch()
    DBOS.register_queue(
        names.SEGMENTS,
        worker_concurrency=limits.segments,
        polling_interval_sec=POLL_S,
        on_conflict="always_update",
    )
    everywhere = limits.calls_everywhere
    rate = None if limits.rate is None else {"limit": limits.rate[0], "period": limits.rate[1]}
    for queue in queues:
        DBOS.register_queue(
            queue,
            worker_concurrency=limits.calls if everywhere is None else min(limits.calls, everywhere),
            global_concurrency=everywhere,
            limiter=rate,  # type: ignore[arg-type]
            polling_interval_sec=POLL_S,
            on_conflict="always_update",
        )


def _aside(work: Work, loop: asyncio.AbstractEventLoop) -> Any:
    def aside(run_id: str, call: int | None, takeovers: int) -> None:
        asyncio.run_coroutine_threadsafe(work.aside(run_id, call, takeovers), loop).result(timeout=30.0)

    return aside
