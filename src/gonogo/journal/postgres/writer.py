"""The one writer of a run in Postgres: each batch is one statement, which also checks that the run is still ours.

What needn't be on disk yet is committed without waiting for it. A Postgres that crashes may lose such records though
their host lives on, so they are kept here until a later commit has put them on disk, and are written again if need be:
by number and content, so that nothing is there twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from gonogo.core.decisions import Finished
from gonogo.core.events import RunStarted
from gonogo.errors import Bug, JournalError
from gonogo.journal.large import lines_of
from gonogo.journal.postgres.inbox import PostgresInbox
from gonogo.journal.postgres.lease import Lease, epoch_of, lost_to
from gonogo.journal.postgres.link import Connection, Link
from gonogo.journal.postgres.seals import PostgresSeals
from gonogo.journal.records import Record
from gonogo.journal.store import Blobs, Durability, RunJournal, StoreAway

__all__ = ["UNSYNCED_BYTES_MAX", "PostgresJournal"]

T = TypeVar("T")

SURE_S = 0.5
"""So long nobody asks again whether the run is still ours. Nobody is taken for dead in so short a time."""
UNSYNCED_BYTES_MAX = 256 * 1024
"""Bytes of records that may be kept here for not being on disk yet; a batch beyond that waits for the disk."""

_ADD = """
    with mine as (
        update gonogo_runs set
            submitted = null, aside = null, first_seq = coalesce(first_seq, %(first)s), next_seq = %(next)s,
            last_at = %(at)s, written = clock_timestamp(), verdict = %(verdict)s,
            workflow = coalesce(%(workflow)s, workflow), event = coalesce(%(event)s, event),
            parent = coalesce(%(parent)s, parent), started_at_ms = coalesce(%(started_at_ms)s, started_at_ms)
        where run_id = %(run)s and epoch = %(epoch)s and next_seq is not distinct from %(due)s{mode}
        returning run_id
    )
    insert into gonogo_records (run_id, seq, line)
    select mine.run_id, new.seq, new.line
    from mine, unnest(%(seqs)s::bigint[], %(lines)b::bytea[]) as new (seq, line)
"""
_ADD_NOW = _ADD.format(mode="")
_ADD_SOON = _ADD.format(mode=" and set_config('synchronous_commit', 'off', true) is not null")


class _Head(Struct, frozen=True):
    """What a list shows of a run, as far as a batch tells it; None leaves it as it is."""

    at: float
    verdict: str | None
    workflow: str | None = None
    event: str | None = None
    parent: str | None = None
    started_at_ms: int | None = None


class _Batch(Struct, frozen=True):
    """Lines with the number of the first."""

    first: int
    lines: list[bytes]
    head: _Head

    @property
    def next(self) -> int:
        return self.first + len(self.lines)

    @property
    def is_start(self) -> bool:
        return self.head.started_at_ms is not None


class PostgresJournal(RunJournal):
    """Holds the run's lease until `close`. Not for several threads."""

    def __init__(
        self,
        link: Link,
        lease: Lease,
        durability: Durability,
        records: list[Record],
        blobs: Blobs,
        seals: PostgresSeals,
    ) -> None:
        self.run_id = lease.run_id
        self.records = records
        self.notes = ()
        self.idle_s = lease.idle_s
        self.blobs = self._blobs = blobs
        self.inbox = PostgresInbox(self.run_id, link)
        self.seals = seals
        self._link = link
        self._lease = lease
        self._durability = durability
        self._next_seq = records[-1].seq + 1 if records else None
        self._unsynced: list[_Batch] = []
        self._unsynced_bytes = 0
        self._is_behind = False
        self._closed = False
        self._sure_s = float("-inf")

    def append(self, records: Sequence[Record], *, sync: bool = False) -> None:
        """Add a batch with one statement. With `sync` (or durability every) it survives a power cut of the server.

        Waits while the server is away, for a time (`link.py`).

        Raises:
            StoreAway: within `at_once`: the same records have to come again.
            JournalError: it can't be written, or another process has taken the run over. This journal takes nothing
            more then: what its caller knows is ahead of it.
            Bug: the records don't follow the last one, hold what is no JSON, or the journal is closed.
        """
        if self._closed:
            raise Bug(f"run {self.run_id}: a record came after its journal was closed")
        began_s = time.monotonic()
        try:
            lines, due = lines_of(records, self._next_seq, self._blobs, self.run_id)
            if not lines:
                return
            batch = _Batch(records[0].seq, lines, _head_of(records))
            wait = self._waits(batch, sync)
            self._link.do(f"write run {self.run_id}", lambda connection: self._add(connection, batch, wait))
        except StoreAway:
            self._is_behind = True
            raise
        except JournalError:
            self.abandon()
            raise
        self._is_behind = False
        self._next_seq = due
        self._sure_s = began_s
        self._remember(batch, wait)

    def confirm(self) -> None:
        """Ask whether the run is still ours, unless a batch has said so a moment ago.

        Raises JournalError: another process has taken it over, or Postgres can't be asked (StoreAway within `at_once`).
        """
        began_s = time.monotonic()
        if began_s - self._sure_s > SURE_S:
            self._link.do(f"go on with run {self.run_id}", self._confirmed)
            self._sure_s = began_s

    def close(self) -> None:
        """Make everything durable (unless durability is none) and let others write. May be called twice.

        Raises:
            JournalError: it can't be made durable; the journal is closed all the same.
        """
        if self._closed:
            return
        if self._is_behind:
            self.abandon()
            return
        try:
            self._link.do(f"write run {self.run_id}", self._let_go)
        except JournalError:
            self.abandon()
            raise
        self._closed = True

    def at_once(self, work: Callable[[], T]) -> T:
        """What `work` makes, without waiting. Raises StoreAway."""
        return self._link.at_once(work)

    def abandon(self) -> None:
        """Let others write, whatever isn't on disk yet."""
        if not self._closed:
            self._closed = True
            self._lease.forget()
            self._link.attempt(self._lease.release)

    def _waits(self, batch: _Batch, sync: bool) -> bool:
        """Whether the batch is to be on disk when it is written."""
        if self._unsynced_bytes + sum(map(len, batch.lines)) > UNSYNCED_BYTES_MAX:
            return True
        return self._durability == "every" or (sync and self._durability != "none")

    def _remember(self, batch: _Batch, wait: bool) -> None:
        """What isn't known to be on disk. A commit that was waited for has put all before it there, too."""
        if wait:
            self._unsynced.clear()
            self._unsynced_bytes = 0
        else:
            self._unsynced.append(batch)
            self._unsynced_bytes += sum(map(len, batch.lines))

    def _add(self, connection: Connection, batch: _Batch, wait: bool) -> None:
        due = batch.first if self._next_seq is not None else None
        if self._lease.generation != self._link.generation:
            found = self._go_on(connection)
            if found == batch.next:
                self._check_same(connection, batch)  # only the answer was lost
                return
            if found != due:
                raise self._refused(connection, batch)
        if not self._added(connection, batch, due, wait):
            raise self._refused(connection, batch)

    def _confirmed(self, connection: Connection) -> None:
        """What may have been written without an answer is for the batch itself to find, when it comes again."""
        if self._lease.generation != self._link.generation and not self._is_behind:
            self._go_on(connection)
        elif epoch_of(self.run_id, connection) != self._lease.epoch:
            raise lost_to(self.run_id, connection)

    def _go_on(self, connection: Connection) -> int | None:
        """After a lost connection: hold the lease again and write again what the server lost; which record is due then.

        Raises JournalError, NotYet.
        """
        due = self._lease.regain(connection)
        for kept in self._unsynced:
            if due == kept.first or (due is None and kept.is_start):
                if not self._added(connection, kept, due, True):
                    raise self._refused(connection, kept)
                due = kept.next
            elif due is not None and due >= kept.next:
                self._check_same(connection, kept)
            else:
                raise self._refused(connection, kept)
        return due

    def _added(self, connection: Connection, batch: _Batch, due: int | None, wait: bool) -> bool:
        """False when the run isn't ours any more or another record is due."""
        head = batch.head
        given = {
            "run": self.run_id,
            "epoch": self._lease.epoch,
            "due": due,
            "first": batch.first,
            "next": batch.next,
            "at": head.at,
            "verdict": head.verdict,
            "workflow": head.workflow,
            "event": head.event,
            "parent": head.parent,
            "started_at_ms": head.started_at_ms,
            "seqs": list(range(batch.first, batch.next)),
            "lines": batch.lines,
        }
        return connection.execute(_ADD_NOW if wait else _ADD_SOON, given).rowcount == len(batch.lines)

    def _check_same(self, connection: Connection, batch: _Batch) -> None:
        query = "select line from gonogo_records where run_id = %s and seq >= %s and seq < %s order by seq"
        there = connection.execute(query, [self.run_id, batch.first, batch.next], binary=True).fetchall()
        if [line for (line,) in there] != batch.lines:
            raise self._refused(connection, batch)

    def _refused(self, connection: Connection, batch: _Batch) -> JournalError:
        query = "select epoch, next_seq from gonogo_runs where run_id = %s"
        row = connection.execute(query, [self.run_id]).fetchone()
        if row is not None and row[0] == self._lease.epoch:
            return JournalError(
                f"run {self.run_id} in {self._link.address} isn't as this process wrote it: record {batch.first} came "
                f"where {row[1]} is due",
                advice="its rows were changed or restored from an older backup; 'gonogo show' tells what is there",
            )
        return lost_to(self.run_id, connection)

    def _let_go(self, connection: Connection) -> None:
        if self._lease.generation != self._link.generation:
            self._go_on(connection)
        self._lease.release(connection)


def _head_of(records: Sequence[Record]) -> _Head:
    first, last = records[0].event, records[-1]
    verdicts = [decision.verdict for decision in last.decisions if isinstance(decision, Finished)]
    head = _Head(last.at, verdicts[-1] if verdicts else None)
    if not isinstance(first, RunStarted):
        return head
    return _Head(
        head.at,
        head.verdict,
        _storable(first.plan.name),
        _text(first.trigger, "name"),
        _text(first.parent, "run_id"),
        first.started_at_ms,
    )


def _text(mapping: dict[str, object] | None, key: str) -> str | None:
    value = mapping.get(key) if mapping else None
    return _storable(value) if isinstance(value, str) else None


def _storable(text: str) -> str:
    """Postgres' texts hold no NUL; the record itself keeps what was given."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
