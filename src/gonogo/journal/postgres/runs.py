"""Runs in Postgres: the rows of a run are read as the lines of a file would be, and trusted as little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gonogo.core.events import RunStarted
from gonogo.errors import JournalError
from gonogo.journal.codec import LineDamaged, NewerFormat, decode_line
from gonogo.journal.large import all_put_back, put_back
from gonogo.journal.lines import NewerJournal, Reading
from gonogo.journal.postgres import listed
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.blobs import PostgresBlobs
from gonogo.journal.postgres.inbox import PostgresInbox
from gonogo.journal.postgres.lease import Lease, cut_off, no_such_run
from gonogo.journal.postgres.link import PATIENCE_S, Link, answers
from gonogo.journal.postgres.seals import PostgresSeals, SealKeys
from gonogo.journal.postgres.writer import PostgresJournal
from gonogo.journal.records import FORMAT_VERSION, Record
from gonogo.journal.sharing import SharedRuns
from gonogo.journal.store import Blobs, Durability, Loaded, check_run_id

if TYPE_CHECKING:
    from pathlib import Path

    from gonogo.journal.glimpse import Glimpse
    from gonogo.journal.postgres.pool import PostgresPool
    from gonogo.journal.postgres.sheets import PostgresSheets
    from gonogo.journal.postgres.turns import PostgresTurns
    from gonogo.journal.summary import Summary
    from gonogo.journal.wanted import Wanted

__all__ = ["PostgresRuns"]

T = TypeVar("T")

_ROWS = 200
"""Rows that are read at once; each line is small (large values are kept apart)."""
_LINES = "select seq, line from gonogo_records where run_id = %s and seq >= %s order by seq limit %s"
_SUBMIT = "insert into gonogo_runs as run (run_id, submitted) values (%s, %b) on conflict (run_id) do "
_NEW = "nothing"
_SAME = "update set submitted = excluded.submitted where run.next_seq is null and run.submitted = excluded.submitted"
_ASKED = "select run_id, min(id) from gonogo_inbox where not refused group by run_id"


class PostgresRuns(SharedRuns):
    """The runs of a database (a schema of it). One connection for all that is done in this process, made when it is
    first used. `tell` hears when Postgres is away and when it is back.
    """

    def __init__(
        self,
        url: str | Address,
        *,
        durability: Durability = "effects",
        tell: Callable[[str], None] = lambda text: None,
        patience_s: float = PATIENCE_S,
        seal_key: str = "",
        folder: Path | None = None,
    ) -> None:
        """`seal_key`: what secret outputs are encrypted with (`seals.py`). `folder`: where large values go, if not into
        rows (`folder.py`). Raises UsageError for what is no URL of a Postgres.
        """
        self.address = url if isinstance(url, Address) else Address(url)
        self.durability = durability
        self._tell = tell
        self._patience_s = patience_s
        self._link = Link(self.address, tell=tell, patience_s=patience_s)
        self._seal_keys = SealKeys(seal_key)
        self._folder = folder
        self._pool: PostgresPool | None = None
        self._breakers: PostgresSheets | None = None
        self._turns: PostgresTurns | None = None

    def create(self, run_id: str) -> PostgresJournal:
        """Start a run's journal.

        Raises:
            UsageError: the id isn't one.
            JournalError: there is such a run already, or Postgres refuses.
            RunLocked: another process is just starting the same run.
        """
        lease = Lease(check_run_id(run_id), self._link)
        self._link.do(f"create run {run_id}", lease.create)
        return self._journal(lease, [])

    def reopen(self, run_id: str) -> PostgresJournal:
        """Go on with a run.

        Raises:
            RunLocked: another process writes it.
            JournalError: there is no such run, or its journal can't be trusted or written.
        """
        lease = Lease(check_run_id(run_id), self._link)
        self._link.do(f"open run {run_id}", lease.reopen)
        blobs = self.blobs(run_id)
        try:
            records = all_put_back(
                Reading(self.lines(run_id), self._named(run_id), decode_line, run_id=run_id), blobs
            )
        except BaseException:
            self._link.attempt(lease.release)
            raise
        return self._journal(lease, records)

    def read(self, run_id: str) -> Loaded:
        """The records of a run, changing nothing; works while another process writes it. Raises JournalError."""
        reading = self.records(run_id)
        records = list(reading)
        return Loaded(records, reading.notes)

    def records(self, run_id: str) -> Reading[Record]:
        """As `read`, one record after the other."""
        blobs = self.blobs(run_id)
        lines = self.lines(run_id)
        return Reading(
            lines, self._named(run_id), decode_line, lambda record: put_back(record, blobs), run_id=run_id
        )

    def records_after(self, run_id: str, seq: int) -> list[Record]:
        """The run's records behind record `seq`, as far as there are any. Raises JournalError."""
        blobs = self.blobs(run_id)
        found = []
        while rows := self._rows(run_id, seq + 1):
            for number, line in rows:
                try:
                    record = decode_line(line)
                except LineDamaged as error:
                    raise self._damaged(run_id, f"record {number}: {error}") from error
                except NewerFormat as error:
                    raise self._newer(run_id, str(error)) from error
                if number != seq + 1 or record.seq != number:
                    raise self._damaged(run_id, f"expected record {seq + 1}, found {record.seq}")
                found.append(put_back(record, blobs))
                seq = number
            if len(rows) < _ROWS:
                break
        return found

    def submit(self, event: RunStarted) -> None:
        """Keep a run that hasn't started. Raises JournalError when its id is known, UsageError for a bad one."""
        given = [check_run_id(event.run_id), msgspec.json.encode(event)]
        queries = chain([_SUBMIT + _NEW], repeat(_SUBMIT + _SAME))  # what was sent before may have been done
        made = self._link.do(
            f"submit run {event.run_id}",
            lambda connection: connection.execute(next(queries), given).rowcount,
        )
        if not made:
            raise JournalError(
                f"there is a run {event.run_id} already", advice="'gonogo resume' goes on with it"
            )

    def submitted(self, run_id: str) -> RunStarted | None:
        """The start of a run that was submitted and hasn't started. Raises JournalError."""
        query = "select submitted from gonogo_runs where run_id = %s and next_seq is null and submitted is not null"
        row = self._link.do(
            f"read run {run_id}",
            lambda connection: connection.execute(query, [check_run_id(run_id)], binary=True).fetchone(),
        )
        try:
            event = None if row is None else msgspec.json.decode(row[0], type=RunStarted)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(run_id, f"what would start it can't be read: {error}") from error
        if event is not None and event.format_version > FORMAT_VERSION:
            by = f"format {event.format_version} by gonogo {event.core_version}"
            raise self._newer(run_id, f"{by}; this version reads up to {FORMAT_VERSION}")
        return event

    def glimpses(self, run_id: str) -> Reading[Glimpse]:
        """As `records`, with only what is counted."""
        from gonogo.journal.glimpse import glimpse_decoder

        return Reading(self.lines(run_id), self._named(run_id), glimpse_decoder())

    def fault_glimpses(self, run_id: str) -> Reading[Glimpse]:
        """As `glimpses`, those that tell nothing of faults being empty."""
        from gonogo.journal.glimpse import fault_glimpse_decoder

        return Reading(self.lines(run_id), self._named(run_id), fault_glimpse_decoder())

    def lines(self, run_id: str) -> Iterator[bytes]:
        """The lines of a run as they are kept, those included that are written meanwhile. Raises JournalError, also
        while it is gone through.
        """
        return self._lines(run_id, *self._bounds(check_run_id(run_id)))

    def blobs(self, run_id: str) -> Blobs:
        """The run's large values."""
        rows = PostgresBlobs(check_run_id(run_id), self._link)
        if self._folder is None:
            return rows
        from gonogo.journal.postgres.folder import FolderBlobs

        return FolderBlobs(self._folder, run_id, rows)

    def inbox(self, run_id: str) -> PostgresInbox:
        """Where to leave requests for the run. Raises JournalError when there is no such run."""
        self._bounds(check_run_id(run_id))
        return PostgresInbox(run_id, self._link)

    def seals(self, run_id: str) -> PostgresSeals:
        """The run's secret values."""
        return PostgresSeals(check_run_id(run_id), self._link, self._seal_keys)

    def ids(self) -> list[str]:
        """All run ids, sorted. Raises JournalError."""
        query = "select run_id from gonogo_runs order by run_id"
        rows = self._link.do("list runs", lambda connection: connection.execute(query).fetchall())
        return [run_id for (run_id,) in rows]

    def summaries(self, ids: Iterable[str]) -> list[Summary]:
        """These runs as a list shows them, in this order, with two queries; unknown ones say so in `note`."""
        ids = list(ids)
        return self._link.do(
            "list runs", lambda connection: listed.summaries(connection, ids, self._link.schema)
        )

    def find(self, wanted: Wanted, limit: int) -> list[Summary]:
        """The newest runs that are wanted. Raises JournalError."""
        return self._link.do(
            "list runs", lambda connection: listed.found(connection, wanted, limit, self._link.schema)
        )

    def cut_off(self, run_id: str) -> bool:
        """Take a run from whoever writes it, alive or not, and end that session; whether there was one. It writes no
        more of the run. Raises JournalError.
        """
        return self._link.do(
            f"cut off the writer of run {run_id}",
            lambda connection: cut_off(check_run_id(run_id), connection, self._link.schema),
        )

    def asked(self) -> dict[str, str]:
        """The runs of which something is asked, each with the id of the first request. Raises JournalError."""
        rows = self._link.do("list requests", lambda connection: connection.execute(_ASKED).fetchall())
        return {run_id: str(first) for run_id, first in rows}

    def answers(self) -> bool:
        """Whether Postgres lets somebody in, by a connection of its own."""
        return answers(self.address)

    def at_once(self, work: Callable[[], T]) -> T:
        """What `work` makes, without waiting. Raises StoreAway."""
        return self._link.at_once(work)

    @property
    def is_away(self) -> bool:
        """Whether Postgres is waited for just now."""
        return self._link.is_away or (self._pool is not None and self._pool.is_away)

    def set_aside(self, run_id: str, why: str | None) -> None:
        """Keep that nobody goes on with a run, or that somebody does. Raises JournalError."""
        query = "update gonogo_runs set aside = %s where run_id = %s and aside is distinct from %s"
        told = None if why is None else why.replace("\0", "\N{REPLACEMENT CHARACTER}")
        given = [told, check_run_id(run_id), told]
        self._link.do(f"set run {run_id} aside", lambda connection: connection.execute(query, given))

    @property
    def pool(self) -> PostgresPool:
        """Calls that any worker may perform, over a connection of their own."""
        if self._pool is None:
            from gonogo.journal.postgres.pool import PostgresPool

            self._pool = PostgresPool(self.address, tell=self._tell, patience_s=self._patience_s)
        return self._pool

    @property
    def breakers(self) -> PostgresSheets:
        """What the circuit breakers of outbound calls know, over a connection of its own."""
        if self._breakers is None:
            from gonogo.journal.postgres.sheets import PostgresSheets

            self._breakers = PostgresSheets(self.address, tell=self._tell)
        return self._breakers

    @property
    def turns(self) -> PostgresTurns:
        """Turns under rate limits, over a connection of its own."""
        if self._turns is None:
            from gonogo.journal.postgres.turns import PostgresTurns

            self._turns = PostgresTurns(self.address, tell=self._tell)
        return self._turns

    def close(self) -> None:
        """Let go of all connections; what is done next makes new ones."""
        self._link.close()
        if self._pool is not None:
            self._pool.close()
        if self._breakers is not None:
            self._breakers.close()
        if self._turns is not None:
            self._turns.close()

    def __enter__(self) -> PostgresRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _journal(self, lease: Lease, records: list[Record]) -> PostgresJournal:
        blobs, seals = self.blobs(lease.run_id), self.seals(lease.run_id)
        return PostgresJournal(self._link, lease, self.durability, records, blobs, seals)

    def _named(self, run_id: str) -> str:
        """What messages call the journal."""
        return f"run {run_id} in {self.address}"

    def _bounds(self, run_id: str) -> tuple[int | None, int | None]:
        """The run's first record and the one that is due. Raises JournalError when there is no such run."""
        query = "select first_seq, next_seq from gonogo_runs where run_id = %s"
        row = self._link.do(
            f"read run {run_id}", lambda connection: connection.execute(query, [run_id]).fetchone()
        )
        if row is None:
            raise no_such_run(run_id, self.address)
        return row[0], row[1]

    def _lines(self, run_id: str, first: int | None, due: int | None) -> Iterator[bytes]:
        """Reading tells of a gap between rows; here is told of one at their end, and of a run that is queued."""
        seq = first if first is not None else 0
        if due is None and self.submitted(run_id) is not None:
            raise JournalError(
                f"run {run_id} is queued: no worker has begun with it",
                advice="see that a worker of its engine runs: 'gonogo worker'",
            )
        while rows := self._rows(run_id, seq):
            for number, line in rows:
                if not line.endswith(b"\n"):
                    raise self._damaged(run_id, f"record {number} is cut short")
                yield line
                seq = number + 1
        if due is not None and seq < due:
            raise self._damaged(run_id, f"records {seq} to {due - 1} are missing")

    def _rows(self, run_id: str, seq: int) -> list[tuple[int, bytes]]:
        return self._link.do(
            f"read run {run_id}",
            lambda connection: connection.execute(_LINES, [run_id, seq, _ROWS], binary=True).fetchall(),
        )

    def _newer(self, run_id: str, what: str) -> NewerJournal:
        return NewerJournal(
            f"{self._named(run_id)}: a newer gonogo wrote this: {what}", advice="update gonogo to read it"
        )

    def _damaged(self, run_id: str, what: str) -> JournalError:
        return JournalError(
            f"run {run_id} in {self.address} is damaged: {what}", advice="restore its rows from a backup"
        )
