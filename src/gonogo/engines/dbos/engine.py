"""Hands work over: rows in DBOS' queues. Needs nothing but the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa
from dbos import DBOSClient, EnqueueOptions
from dbos._serialization import DBOSPortableJSON
from sqlalchemy.exc import DBAPIError

from gonogo.engines.base import Errand, together
from gonogo.engines.dbos import names
from gonogo.engines.dbos.connections import pool_of
from gonogo.engines.dbos.telling import told
from gonogo.errors import EngineError
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.bell import channel_of

CONNECTIONS = 4
GROUP_MAX = 50
"""Calls in one workflow."""
Begin = Callable[[str, Sequence[int], str], bool]
"""Begins here with calls of a run and one label; whether it does."""
_RING = sa.text("select pg_notify(:channel, :name)")


class DbosEngine:
    """The queues of one database."""

    def __init__(
        self,
        address: Address,
        begin: Begin = lambda run_id, calls, label: False,
        together: Callable[[int], int] = lambda most: most,
    ) -> None:
        """`together`: how many calls a workflow stands for, of those that it may. Raises EngineError when the database
        can't be reached.
        """
        self._together = together
        self._address = address
        self._begin = begin
        with self._told("reached"):
            self._pool = pool_of(address, CONNECTIONS)
            with self._pool.connect() as connection:  # before the library does, which prints what is wrong
                self._schema = names.schema_of(connection.execute(sa.text(names.STORE)).scalar_one())
            self._client = DBOSClient(
                system_database_engine=self._pool,
                dbos_system_schema=self._schema,
                serializer=DBOSPortableJSON,
                retry_connection_errors=False,
            )

    def check_prepared(self) -> None:
        """Raises EngineError when no worker has ever been started there."""
        with self._told("asked"), self._pool.connect() as connection:
            found = connection.execute(sa.text(f"select to_regclass('{self._schema}.queues')")).scalar()
        if found is None:
            raise EngineError(
                f"no worker has ever been started on {self._address}, so there are no queues",
                advice="start one, which prepares the database: gonogo worker --engine dbos",
            )

    def submit(self, run_id: str, *, delay_s: float = 0.0, reopens: bool = False) -> None:
        """Put a segment into its queue. Two of one run do no harm: the second finds the run taken or at rest."""
        options = _options(names.SEGMENT, names.SEGMENTS, names.segment_id(run_id), delay_s)

        def work(transaction: sa.Connection) -> None:
            self._client.enqueue_in_transaction(transaction, options, run_id, reopens)
            if delay_s <= 0:
                _ring(transaction, names.SEGMENTS)

        self._do(work)

    def begin(self, errands: Sequence[Errand]) -> Sequence[Errand]:
        """Few calls stay with the worker that has their run. They need no workflow: they are lost with their run's host
        only, and whoever finds a worker dead hands over all that it had.
        """
        return [
            Errand(run_id, call, label)
            for (run_id, label), calls in together(errands, len(errands))
            if not self._begin(run_id, calls, label)
            for call in calls
        ]

    def perform(self, errands: Sequence[Errand], *, delay_s: float = 0.0) -> None:
        """Put calls into the queues of their labels, those of one run together."""

        def work(transaction: sa.Connection) -> None:
            for (run_id, label), calls in together(errands, self._together(GROUP_MAX)):
                options = _options(names.CALLS_OF, names.queue_of(label), names.group_id(run_id), delay_s)
                self._client.enqueue_in_transaction(transaction, options, run_id, calls, label)
            for label in sorted({errand.label for errand in errands}):
                _ring(transaction, names.queue_of(label))

        self._do(work)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.destroy()
        self._pool.dispose()

    def _do(self, work: Callable[[sa.Connection], None]) -> None:
        """In one transaction. That a connection was lost since its last use shows at the next: then once more, on
        another. A workflow that is put there twice for that finds nothing left to do.
        """
        with self._told("asked"):
            try:
                with self._pool.begin() as transaction:
                    work(transaction)
            except DBAPIError as problem:
                if not problem.connection_invalidated:
                    raise
                with self._pool.begin() as transaction:
                    work(transaction)

    def _told(self, what: str) -> AbstractContextManager[None]:
        problem = f"the queues in {self._address} can't be {what}"
        return told(problem, self._address, "check that the database can be reached")


_JSON: Any = DBOSPortableJSON.name()


def _options(workflow: str, queue: str, workflow_id: str, delay_s: float) -> EnqueueOptions:
    options: EnqueueOptions = {
        "workflow_name": workflow,
        "queue_name": queue,
        "workflow_id": workflow_id,
        "app_version": names.VERSION,
        "serialization_type": _JSON,
    }
    if delay_s > 0:
        options["delay_seconds"] = delay_s
    return options


def _ring(transaction: sa.Connection, queue: str) -> None:
    """Heard once the transaction is over, by who is awake; polling is for the rest."""
    transaction.execute(_RING, {"channel": channel_of(queue), "name": queue})
