"""The truth on disk: one folder a run.

    <runs folder>/<run id>/journal.jsonl   the records, only ever added to
                           journal.torn    ends of lines that a crash cut, set aside at the next opening
                           blobs/          large values (blobs.py)
                           inbox/          requests from other processes (inbox.py)
                           sealed          secret values, if steps gave some (sealing.py)
                           lock            who writes the run

Folders have mode 0700 and files 0600. One write a batch. A batch that can't be written whole is taken back,
so that what is there can still be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gonogo.errors import Bug, JournalError
from gonogo.journal import files
from gonogo.journal.blobs import FileBlobs
from gonogo.journal.codec import decode_line
from gonogo.journal.inbox import FileInbox
from gonogo.journal.large import all_put_back, lines_of, put_back
from gonogo.journal.lines import Reading
from gonogo.journal.records import Record
from gonogo.journal.sealing import FileSeals
from gonogo.journal.store import Durability, Loaded, RunJournal, Runs, check_run_id, is_run_id

if TYPE_CHECKING:
    from gonogo.journal.glimpse import Glimpse

__all__ = ["JsonlJournal", "JsonlRuns"]

JOURNAL = "journal.jsonl"
BLOBS = "blobs"
TORN = "journal.torn"
LOCK = "lock"
SEALED = "sealed"
_APPEND = os.O_RDWR | os.O_APPEND


class JsonlRuns(Runs):
    """A folder of runs. The folder is made when the first run is."""

    def __init__(self, folder: str | Path, *, durability: Durability = "effects") -> None:
        self.folder = Path(folder).absolute()
        self.durability = durability

    def create(self, run_id: str) -> JsonlJournal:
        """Start a run's journal.

        Raises:
            UsageError: the id can't be a folder's name.
            JournalError: there is such a run already, or the folder can't be written.
            RunLocked: another process is just starting the same run.
        """
        home = self._home(run_id)
        path = home / JOURNAL
        with files.system_errors("create", path):
            files.make_folder(home)
            files.real_folder(home)
            lock = files.Lock(home / LOCK, run_id)
            try:
                descriptor = files.lock_too(self._new_file(path), run_id, home / LOCK)
            except BaseException:
                lock.release()
                raise
        return JsonlJournal(run_id, home, descriptor, lock, self.durability)

    def reopen(self, run_id: str) -> JsonlJournal:
        """Go on with a run; a line that a crash cut is set aside, with a note.

        Raises:
            RunLocked: another process writes it.
            JournalError: there is no such run, or its journal can't be trusted or written.
        """
        home = self._known(run_id)
        path = home / JOURNAL
        with files.system_errors("open", path):
            lock = files.Lock(home / LOCK, run_id)
            try:
                descriptor = files.lock_too(files.open_file(path, _APPEND), run_id, home / LOCK)
            except BaseException:
                lock.release()
                raise
        journal = JsonlJournal(run_id, home, descriptor, lock, self.durability)
        try:
            journal.load()
        except BaseException:
            journal.abandon()
            raise
        return journal

    def read(self, run_id: str) -> Loaded:
        """The records of a run, changing nothing; works while another process writes it. Raises JournalError."""
        reading = self.records(run_id)
        records = list(reading)
        return Loaded(records, reading.notes)

    def records(self, run_id: str) -> Reading[Record]:
        """As `read`, one record after the other."""
        path, blobs = self._known(run_id) / JOURNAL, self.blobs(run_id)
        return Reading(_lines(path), path, decode_line, lambda record: put_back(record, blobs), run_id=run_id)

    def lines(self, run_id: str) -> Iterator[bytes]:
        """The lines of a run as they are kept; the last one may be torn."""
        return _lines(self._known(run_id) / JOURNAL)

    def glimpses(self, run_id: str) -> Reading[Glimpse]:
        """As `records`, with only what is counted."""
        from gonogo.journal.glimpse import glimpse_decoder

        path = self._known(run_id) / JOURNAL
        return Reading(_lines(path), path, glimpse_decoder())

    def fault_glimpses(self, run_id: str) -> Reading[Glimpse]:
        """As `glimpses`, those that tell nothing of faults being empty."""
        from gonogo.journal.glimpse import fault_glimpse_decoder

        path = self._known(run_id) / JOURNAL
        return Reading(_lines(path), path, fault_glimpse_decoder())

    def blobs(self, run_id: str) -> FileBlobs:
        """The run's large values, for reading."""
        return FileBlobs(self._home(run_id) / BLOBS)

    def inbox(self, run_id: str) -> FileInbox:
        """Where to leave requests for the run. Raises JournalError when there is no such run."""
        return FileInbox(self._known(run_id) / "inbox")

    def seals(self, run_id: str) -> FileSeals:
        """The run's secret values."""
        return FileSeals(self._home(run_id) / SEALED, durable=self.durability != "none")

    def ids(self) -> list[str]:
        """All run ids, sorted; what isn't a run's folder is passed over. Raises JournalError."""
        if not self.folder.exists():
            return []
        with files.system_errors("list", self.folder), os.scandir(self.folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(name for name in names if is_run_id(name) and (self.folder / name / JOURNAL).is_file())

    def _home(self, run_id: str) -> Path:
        return self.folder / check_run_id(run_id)

    def _known(self, run_id: str) -> Path:
        home = self._home(run_id)
        if not (home / JOURNAL).exists():
            missing = f"there is no run {run_id} in {self.folder}"
            raise JournalError(missing, advice="'gonogo runs' lists the runs")
        with files.system_errors("open", home):
            files.real_folder(home)
        return home

    def _new_file(self, path: Path) -> int:
        """The journal's descriptor; its name, and the folder's, last like what will be written."""
        try:
            descriptor = files.open_file(path, _APPEND | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            descriptor = files.open_file(path, _APPEND)
            if os.fstat(descriptor).st_size:
                os.close(descriptor)
                raise JournalError(
                    f"there is a run {path.parent.name} already", advice="'gonogo resume' goes on with it"
                ) from None
            # Its first host died before its first record: nothing was begun, and the lock is ours.
        if self.durability != "none":
            files.sync_folder(path.parent)
            files.sync_folder(self.folder)
        return descriptor


def _lines(path: Path) -> Iterator[bytes]:
    """The lines that are there; what is written after a line without its end was met is left for the next reader."""
    with files.system_errors("read", path), os.fdopen(files.open_file(path, os.O_RDONLY), "rb") as file:
        for line in file:
            yield line
            if not line.endswith(b"\n"):
                return


class JsonlJournal(RunJournal):
    """The one writer of a run's file; holds its lock until `close`."""

    def __init__(
        self, run_id: str, home: Path, descriptor: int, lock: files.Lock, durability: Durability
    ) -> None:
        self.run_id = run_id
        self.path = home / JOURNAL
        self.records = []
        self.notes: tuple[str, ...] = ()
        self.idle_s = None
        self.blobs = self._blobs = FileBlobs(home / BLOBS)
        self.inbox = FileInbox(home / "inbox")
        self.seals = FileSeals(home / SEALED, durable=durability != "none")
        self._descriptor = descriptor
        self._lock = lock
        self._durability = durability
        self._size_bytes = 0
        self._next_seq: int | None = None
        self._unsynced = False
        self._closed = False

    def append(self, records: Sequence[Record], *, sync: bool = False) -> None:
        """Add a batch with one write. With `sync` (or durability every) it survives a power cut when this returns.

        Raises:
            JournalError: it can't be written (nothing of the batch is in the file then) or not be made
            durable (nobody knows then what is). Either way this journal takes nothing more: what its caller
            knows is ahead of it.
            Bug: the records don't follow the last one, hold what is no JSON, or the journal is closed.
        """
        if self._closed:
            raise Bug(f"run {self.run_id}: a record came after its journal was closed")
        lines, due = lines_of(records, self._next_seq, self._blobs, self.run_id)
        data = b"".join(lines)
        try:
            self._write(data)
            if self._durability == "every" or (sync and self._durability != "none"):
                self._sync()
        except OSError as error:
            self.abandon()
            raise files.journal_error("write", self.path, error) from error
        except JournalError:
            self.abandon()
            raise
        self._next_seq = due

    def close(self) -> None:
        """Make everything durable (unless durability is none) and let others write. May be called twice.

        Raises:
            JournalError: it can't be made durable; the journal is closed all the same.
        """
        if self._closed:
            return
        try:
            if self._durability != "none":
                with files.system_errors("write", self.path):
                    self._sync()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file and the lock, without a sync."""
        if not self._closed:
            self._closed = True
            os.close(self._descriptor)
            self._lock.release()

    def load(self) -> None:
        """Read what is there and mend its end. Raises JournalError."""
        reading = Reading(_lines(self.path), self.path, decode_line, run_id=self.run_id)
        self.records = all_put_back(reading, self._blobs)
        self._size_bytes = reading.whole_bytes
        self._next_seq = self.records[-1].seq + 1
        with files.system_errors("mend", self.path):
            self._mend(reading)

    def _mend(self, reading: Reading[Record]) -> None:
        """Cut a torn line off, after its bytes are safe elsewhere; or give a whole line its missing end."""
        if reading.unended:
            self._write(b"\n")
        if not reading.torn:
            return
        aside = self.path.with_name(TORN)
        descriptor = files.open_file(aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            files.write_all(descriptor, reading.torn + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.ftruncate(self._descriptor, reading.whole_bytes)
        self.notes = (f"the last line was cut by a crash; its {len(reading.torn)} bytes are in {aside}",)

    def _write(self, data: bytes) -> None:
        try:
            files.write_all(self._descriptor, data)
        except OSError:
            os.ftruncate(self._descriptor, self._size_bytes)
            raise
        self._size_bytes += len(data)
        self._unsynced = True

    def _sync(self) -> None:
        """Blobs first: a durable record never points to what isn't there. A file without a name is lost."""
        self._blobs.sync()
        if not os.fstat(self._descriptor).st_nlink:
            raise JournalError(
                f"{self.path} was deleted while run {self.run_id} wrote it",
                advice="what the run did is written nowhere; look before you start it again",
            )
        if self._unsynced:
            files.sync_data(self._descriptor)
            self._unsynced = False
