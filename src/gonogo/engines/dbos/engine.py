"""Hands work over: rows in DBOS' queues. Needs nothing but the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa
from dbos import DBOSClient, EnqueueOptions
from dbos._serialization import DBOSPortableJSON

from gonogo.engines.base import Errand, together
from gonogo.engines.dbos import names
from gonogo.engines.dbos.telling import told
from gonogo.engines.urls import sqlalchemy_url
from gonogo.errors import EngineError
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.bell import channel_of

GROUP_MAX = 50
"""Calls in one workflow."""
Near = Callable[[str, int], Callable[[], None] | None]
"""How this process is rung for, where so many calls in a queue are enough of its own business; None: all are."""
_RING = sa.text("select pg_notify(:channel, :name)")


class DbosEngine:
    """The queues of one database."""

    def __init__(self, address: Address, near: Near = lambda queue, calls: None) -> None:
        """Raises EngineError when the database can't be reached."""
        self.together = GROUP_MAX
        """Most calls in one workflow. One, where the queue has limits, which count workflows."""
        self._address = address
        self._near = near
        with self._told("reached"):
            self._pool = sa.create_engine(
                sqlalchemy_url(address), pool_size=4, max_overflow=0, pool_pre_ping=True
            )
            self._pool.connect().close()  # before the library does, which prints what is wrong
            self._client = DBOSClient(
                system_database_engine=self._pool,
                dbos_system_schema=names.SCHEMA,
                serializer=DBOSPortableJSON,
                retry_connection_errors=False,
            )

    def check_prepared(self) -> None:
        """Raises EngineError when no worker has ever been started there."""
        with self._told("asked"), self._pool.connect() as connection:
            found = connection.execute(sa.text(f"select to_regclass('{names.SCHEMA}.queues')")).scalar()
        if found is None:
            raise EngineError(
                f"no worker has ever been started on {self._address}, so there are no queues",
                advice="start one, which prepares the database: gonogo worker --engine dbos",
            )

    def submit(self, run_id: str, *, delay_s: float = 0.0, reopens: bool = False) -> None:
        """Put a segment into its queue. Two of one run do no harm: the second finds the run taken or at rest."""
        options = _options(names.SEGMENT, names.SEGMENTS, names.segment_id(run_id))
        if delay_s > 0:
            options["delay_seconds"] = delay_s
        with self._told("asked"), self._pool.begin() as transaction:
            self._client.enqueue_in_transaction(transaction, options, run_id, reopens)
            if delay_s <= 0:
                _ring(transaction, names.SEGMENTS)

    def perform(self, errands: Sequence[Errand]) -> None:
        """Put calls into the queues of their labels, those of one run together."""
        queues = Counter(names.queue_of(errand.label) for errand in errands)
        near = {queue: self._near(queue, calls) for queue, calls in queues.items()}
        with self._told("asked"), self._pool.begin() as transaction:
            for (run_id, label), calls in together(errands, self.together):
                options = _options(names.CALLS_OF, names.queue_of(label), names.group_id(run_id))
                self._client.enqueue_in_transaction(transaction, options, run_id, calls, label)
            for queue in (queue for queue, ring in near.items() if ring is None):
                _ring(transaction, queue)
        for ring in near.values():
            if ring is not None:
                ring()

    def close(self) -> None:
        """Let go of the connections."""
        self._client.destroy()
        self._pool.dispose()

    def _told(self, what: str) -> AbstractContextManager[None]:
        problem = f"the queues in {self._address} can't be {what}"
        return told(problem, self._address, "check that the database can be reached")


_JSON: Any = DBOSPortableJSON.name()


def _options(workflow: str, queue: str, workflow_id: str) -> EnqueueOptions:
    return {
        "workflow_name": workflow,
        "queue_name": queue,
        "workflow_id": workflow_id,
        "app_version": names.VERSION,
        "serialization_type": _JSON,
    }


def _ring(transaction: sa.Connection, queue: str) -> None:
    """Heard once the transaction is over, by who is awake; polling is for the rest."""
    transaction.execute(_RING, {"channel": channel_of(queue), "name": queue})
