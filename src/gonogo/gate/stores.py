"""Where breakers' records are kept: in memory, in files that processes share and that outlive them, or with a keeper
that machines share.

A record is replaced only by who has seen its last version. How it is written is `sheets.py`'s.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from gonogo.errors import GonogoError
from gonogo.gate.breaker import CLOSED, BreakerRecord
from gonogo.gate.processes import Processes
from gonogo.gate.sheets import ISOLATION_S_MAX, KEYS_MAX, Sheet, Sheets

__all__ = [
    "FILE_BYTES_MAX",
    "ISOLATION_S_MAX",
    "KEYS_MAX",
    "FileStore",
    "Keeper",
    "KeptStore",
    "MemoryStore",
    "Store",
    "StoreTrouble",
    "Stored",
]

FILE_BYTES_MAX = 64 * 1024
LOCK_TRIES = 50
LOCK_PAUSE_S = 0.001


class StoreTrouble(Exception):  # noqa: N818 - the name says what happened
    """The store can't be read or written now; no call fails because of it."""


class Stored(Struct, frozen=True):
    """A record and its version; version 0 is one that isn't there yet."""

    version: int
    record: BreakerRecord


class Store(Protocol):
    """Keeps records by key. `blocking`: its methods touch the disk or the network and belong into a thread."""

    @property
    def blocking(self) -> bool:
        """Whether calls may block."""
        ...

    @property
    def processes(self) -> Processes | None:
        """Who is known of the processes that share it; None where no others do."""
        ...

    def load(self, key: str) -> Stored:
        """The record; a closed one of version 0 when there is none, or none that can be read. Raises StoreTrouble."""
        ...

    def compare_and_set(self, key: str, version: int, record: BreakerRecord) -> bool:
        """Replace the record if it still has this version. Raises StoreTrouble."""
        ...

    def keys(self) -> list[str]:
        """All keys. Raises StoreTrouble."""
        ...


_ABSENT = Stored(0, CLOSED)


class MemoryStore:
    """For one process; gone with it. The oldest key goes when there are too many."""

    blocking = False
    processes: Processes | None = None
    __slots__ = ("_lock", "_records")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, Stored] = {}

    def load(self, key: str) -> Stored:
        """The record."""
        return self._records.get(key, _ABSENT)

    def compare_and_set(self, key: str, version: int, record: BreakerRecord) -> bool:
        """Replace the record if it still has this version."""
        with self._lock:
            before = self._records.get(key, _ABSENT)
            if before.version != version:
                return False
            if before is _ABSENT and len(self._records) >= KEYS_MAX:
                del self._records[next(iter(self._records))]
            self._records[key] = Stored(version + 1, record)
        return True

    def keys(self) -> list[str]:
        """All keys."""
        return list(self._records)


class FileStore:
    """One small file a key in a folder, for this user alone. Writers hold a lock (flock), readers need none.

    A file that is torn, damaged or of another format counts as not there, and is replaced by the next writer; `damaged`
    counts those met. `reach_s` is the longest wait any record may ask for.
    """

    blocking = True

    def __init__(
        self,
        folder: str | Path,
        *,
        reach_s: float = 86_400.0,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        boot: str | None = None,
    ) -> None:
        """Make the folder if need be. Raises StoreTrouble when that can't be done."""
        self.folder = Path(folder)
        self.processes: Processes | None = Processes()
        self._sheets = Sheets(reach_s, monotonic, wall, boot)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _trouble("make", self.folder, error) from error

    @property
    def reach_s(self) -> float:
        """The longest wait a record may ask for."""
        return self._sheets.reach_s

    @property
    def damaged(self) -> int:
        """How many files were met that hold no record."""
        return self._sheets.damaged

    def load(self, key: str) -> Stored:
        """The record, its times moved to this process's clock."""
        sheet = self._sheet(self._path(key))
        if sheet is None or sheet.key != key:
            return _ABSENT
        return Stored(sheet.version, self._sheets.here(sheet))

    def compare_and_set(self, key: str, version: int, record: BreakerRecord) -> bool:
        """Replace the file, whole or not at all, if it still has this version."""
        path = self._path(key)
        try:
            lock = self._locked(path)
        except OSError as error:
            raise _trouble("lock", path, error) from error
        try:
            before = self._sheet(path)
            if (before.version if before else 0) != version:
                return False
            _replace(path, self._sheets.written(key, version + 1, record))
        except OSError as error:
            raise _trouble("write", path, error) from error
        finally:
            os.close(lock)
        self._sheets.wrote(key, version + 1)
        return True

    def keys(self) -> list[str]:
        """Keys of all files that can be read."""
        try:
            paths = sorted(self.folder.glob("*.json"))[:KEYS_MAX]
        except OSError as error:
            raise _trouble("list", self.folder, error) from error
        return [sheet.key for path in paths if (sheet := self._sheet(path)) is not None]

    def _path(self, key: str) -> Path:
        return self.folder / f"{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}.json"

    def _sheet(self, path: Path) -> Sheet | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _trouble("read", path, error) from error
        try:
            data = os.read(descriptor, FILE_BYTES_MAX)
        except OSError:
            data = b""
        finally:
            os.close(descriptor)
        return self._sheets.read(data)

    def _locked(self, path: Path) -> int:
        """A held lock. The file stays; the system drops the lock with the process, however that ends."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path.with_suffix(".lock"), flags, 0o600)
        for _ in range(LOCK_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                    os.close(descriptor)
                    raise
                select.select([], [], [], LOCK_PAUSE_S)
            else:
                return descriptor
        os.close(descriptor)
        raise OSError(errno.EWOULDBLOCK, "another process keeps it locked", str(path))


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _trouble(doing: str, path: Path, error: OSError) -> StoreTrouble:
    return StoreTrouble(f"can't {doing} {path}: {error.strerror or error}")


class Keeper(Protocol):
    """Keeps bytes by key and version for machines that share it. Every method may raise GonogoError."""

    def sheet(self, key: str) -> tuple[int, bytes] | None:
        """Version and content; None when there is none."""
        ...

    def replace_sheet(self, key: str, version: int, data: bytes) -> bool:
        """Put `data` there as version + 1 if this version is there (0: none)."""
        ...

    def sheets(self, limit: int) -> list[tuple[str, bytes]]:
        """Keys and contents, by key, so many at most."""
        ...


class KeptStore:
    """Records with a keeper. One that is damaged or of another format counts as not there, and is replaced."""

    blocking = True

    def __init__(
        self,
        keeper: Keeper,
        *,
        reach_s: float = 86_400.0,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        boot: str | None = None,
    ) -> None:
        self._keeper = keeper
        self.processes: Processes | None = Processes()
        self._sheets = Sheets(reach_s, monotonic, wall, boot)

    def load(self, key: str) -> Stored:
        """The record, its times moved to this process's clock."""
        try:
            found = self._keeper.sheet(key)
        except GonogoError as error:
            raise StoreTrouble(error.message) from error
        if found is None:
            return _ABSENT
        version, data = found
        sheet = self._sheets.read(data)
        if sheet is None or sheet.key != key or sheet.version != version:
            return Stored(version, CLOSED)
        return Stored(version, self._sheets.here(sheet))

    def compare_and_set(self, key: str, version: int, record: BreakerRecord) -> bool:
        """Replace the record if it still has this version."""
        try:
            done = self._keeper.replace_sheet(key, version, self._sheets.written(key, version + 1, record))
        except GonogoError as error:
            raise StoreTrouble(error.message) from error
        if done:
            self._sheets.wrote(key, version + 1)
        return done

    def keys(self) -> list[str]:
        """Keys of all records that can be read."""
        try:
            found = self._keeper.sheets(KEYS_MAX)
        except GonogoError as error:
            raise StoreTrouble(error.message) from error
        return [key for key, data in found if self._sheets.read(data) is not None]
