"""Runs kept in memory: for tests and for programs that embed gonogo and need no resume after a crash.

Same contract as `jsonl.py`, tested by the same tests: records go through their JSON lines, so what works here
works on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gonogo.core.events import RunStarted
from gonogo.errors import Bug, JournalError, RunLocked
from gonogo.journal.blobs import BLOB_BYTES, BLOB_BYTES_MAX, digest_of, reference
from gonogo.journal.codec import decode_line
from gonogo.journal.glimpse import Glimpse, fault_glimpse_decoder, glimpse_decoder
from gonogo.journal.inbox import normalise_request
from gonogo.journal.large import all_put_back, lines_of, put_back
from gonogo.journal.lines import Reading
from gonogo.journal.memory_pool import MemoryBells, MemoryPool
from gonogo.journal.normalise import to_json
from gonogo.journal.records import Record
from gonogo.journal.sealing import MemorySeals
from gonogo.journal.sharing import SharedRuns
from gonogo.journal.store import Blobs, Inbox, Loaded, Request, RunJournal, check_run_id

__all__ = ["MemoryBlobs", "MemoryInbox", "MemoryJournal", "MemoryRuns"]


class MemoryBlobs(Blobs):
    """Large values by digest, as JSON."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def put(self, value: Any) -> Any:
        """`value` itself, or a reference to it when its JSON is above `BLOB_BYTES`. Raises NotStorable."""
        data = to_json(value, size_bytes_max=BLOB_BYTES_MAX)
        if len(data) <= BLOB_BYTES:
            return value
        kept = reference(value, data)
        self._kept[str(digest_of(kept))] = data
        return kept

    def get(self, value: Any) -> Any:
        """The value behind a reference; any other value as it is. Raises JournalError when it isn't there."""
        digest = digest_of(value)
        if digest is None:
            return value
        if digest not in self._kept:
            raise JournalError(f"there is no large value {digest}")
        return msgspec.json.decode(self._kept[digest])

    def digests(self) -> list[str]:
        """The names of all, sorted."""
        return sorted(self._kept)


class MemoryInbox(Inbox):
    """Requests in a list."""

    def __init__(self, ring: Callable[[], None] = lambda: None) -> None:
        self._waiting: dict[str, Request] = {}
        self._count = 0
        self._ring = ring

    def put(self, request: Request) -> str:
        """Leave a request; the answer is its id."""
        self._count += 1
        request_id = f"{self._count:020d}"
        self._waiting[request_id] = normalise_request(msgspec.structs.replace(request, request=request_id))
        self._ring()
        return request_id

    def take(self, seen: Collection[str] = ()) -> list[Request]:
        """Requests in their order, without those the journal has `seen`."""
        return [request for request_id, request in self._waiting.items() if request_id not in seen]

    def done(self, request_id: str) -> None:
        """Forget a request."""
        self._waiting.pop(request_id, None)


class _Run:
    """What outlives the writer of a run."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.lines: list[bytes] = []
        self.blobs = MemoryBlobs()
        self.inbox = MemoryInbox(ring)
        self.seals = MemorySeals()
        self.writer: MemoryJournal | None = None
        self.aside: str | None = None
        self.submitted: RunStarted | None = None

    def records(self) -> list[Record]:
        return all_put_back([decode_line(line) for line in self.lines], self.blobs)


class MemoryRuns(SharedRuns):
    """A place that keeps runs until the process ends, and the calls of theirs that any host here may perform."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._bells = MemoryBells()
        self._pool = MemoryPool(self._bells)

    @property
    def pool(self) -> MemoryPool:
        """Calls that any worker may perform."""
        return self._pool

    def create(self, run_id: str) -> MemoryJournal:
        """Start a run's journal. Raises JournalError when there is one, UsageError for a bad id."""
        known = self._runs.get(check_run_id(run_id))
        if known is not None and (known.submitted is None or known.lines):
            raise JournalError(f"there is a run {run_id} already", advice="'gonogo resume' goes on with it")
        run = known or self._new(run_id)
        return MemoryJournal(run_id, run)

    def submit(self, event: RunStarted) -> None:
        """Keep a run that hasn't started. Raises JournalError when its id is known, UsageError for a bad one."""
        if check_run_id(event.run_id) in self._runs:
            raise JournalError(
                f"there is a run {event.run_id} already", advice="'gonogo resume' goes on with it"
            )
        self._new(event.run_id).submitted = event

    def submitted(self, run_id: str) -> RunStarted | None:
        """The start of a run that was submitted and hasn't started."""
        run = self._runs.get(check_run_id(run_id))
        return run.submitted if run is not None and not run.lines else None

    def cut_off(self, run_id: str) -> bool:
        """Let another write a run; whoever wrote it can't any more. Whether there was one."""
        run = self._known(run_id)
        held, run.writer = run.writer is not None, None
        return held

    def asked(self) -> dict[str, str]:
        """The runs of which something is asked, each with the id of the first request."""
        first = {run_id: next(iter(run.inbox.take()), None) for run_id, run in self._runs.items()}
        return {run_id: request.request for run_id, request in first.items() if request is not None}

    def answers(self) -> bool:
        """It is here."""
        return True

    @property
    def is_away(self) -> bool:
        """Never."""
        return False

    def set_aside(self, run_id: str, why: str | None) -> None:
        """Keep that nobody goes on with a run. Raises JournalError."""
        self._known(run_id).aside = why

    def reopen(self, run_id: str) -> MemoryJournal:
        """Go on with a run. Raises RunLocked while its writer isn't closed, JournalError when there is none."""
        run = self._known(run_id)
        if run.writer is not None:
            raise RunLocked(f"run {run_id} is being written", advice="close its journal first")
        return MemoryJournal(run_id, run)

    def read(self, run_id: str) -> Loaded:
        """The records of a run. Raises JournalError."""
        return Loaded(self._known(run_id).records())

    def records(self, run_id: str) -> Reading[Record]:
        """As `read`, one record after the other."""
        run = self._known(run_id)
        return Reading(
            run.lines, Path(run_id), decode_line, lambda record: put_back(record, run.blobs), run_id=run_id
        )

    def records_after(self, run_id: str, seq: int) -> list[Record]:
        """The run's records behind record `seq`. Raises JournalError."""
        run = self._known(run_id)
        found = [decode_line(line) for line in run.lines]
        return all_put_back([record for record in found if record.seq > seq], run.blobs)

    def lines(self, run_id: str) -> list[bytes]:
        """The lines of a run as they are kept. Raises JournalError."""
        return list(self._known(run_id).lines)

    def glimpses(self, run_id: str) -> Reading[Glimpse]:
        """As `records`, with only what is counted."""
        return Reading(self._known(run_id).lines, Path(run_id), glimpse_decoder())

    def fault_glimpses(self, run_id: str) -> Reading[Glimpse]:
        """As `glimpses`, those that tell nothing of faults being empty."""
        return Reading(self._known(run_id).lines, Path(run_id), fault_glimpse_decoder())

    def blobs(self, run_id: str) -> MemoryBlobs:
        """The run's large values. Raises JournalError."""
        return self._known(run_id).blobs

    def inbox(self, run_id: str) -> MemoryInbox:
        """Where to leave requests for the run. Raises JournalError."""
        return self._known(run_id).inbox

    def seals(self, run_id: str) -> MemorySeals:
        """The run's secret values. Raises JournalError."""
        return self._known(run_id).seals

    def ids(self) -> list[str]:
        """All run ids, sorted."""
        return sorted(self._runs)

    def _new(self, run_id: str) -> _Run:
        run = self._runs[run_id] = _Run(lambda: self._bells.ring(run_id))
        return run

    def _known(self, run_id: str) -> _Run:
        if check_run_id(run_id) not in self._runs:
            raise JournalError(f"there is no run {run_id}")
        return self._runs[run_id]


class MemoryJournal(RunJournal):
    """The one writer of a run."""

    def __init__(self, run_id: str, run: _Run) -> None:
        self.run_id = run_id
        self.records = run.records()
        self.notes = ()
        self.idle_s = None
        self.blobs = run.blobs
        self.inbox = run.inbox
        self.seals = run.seals
        self._run = run
        self._next_seq = self.records[-1].seq + 1 if self.records else None
        run.writer = self

    def append(self, records: Sequence[Record], *, sync: bool = False) -> None:
        """Add a batch, all or none; `sync` changes nothing here. Raises Bug as `lines_of`, and once closed."""
        if self._run.writer is not self:
            raise Bug(f"run {self.run_id}: a record came after its journal was closed")
        lines, self._next_seq = lines_of(records, self._next_seq, self._run.blobs, self.run_id)
        self._run.lines.extend(lines)

    def confirm(self) -> None:
        """Raises JournalError when another writes the run."""
        if self._run.writer is not self:
            raise JournalError(f"run {self.run_id} was taken over", advice="leave it to who has it")

    def close(self) -> None:
        """Let others write. May be called twice."""
        if self._run.writer is self:
            self._run.writer = None
