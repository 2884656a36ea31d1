"""Where breakers' records are kept: in memory, or in files that processes share and that outlive them.

A record is replaced only by who has seen its last version. Times in a record are on the machine's monotonic clock; what
another boot or machine wrote is moved to it by the wall clock's difference, never to a longer wait than it was written
with, whatever the clocks did meanwhile (B35, TIM-2).
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

import msgspec
from msgspec import Struct, structs

from gonogo.gate.breaker import CLOSED, BreakerRecord, Isolation, moved

FILE_BYTES_MAX = 64 * 1024
LOCK_TRIES = 50
LOCK_PAUSE_S = 0.001
KEYS_MAX = 10_000
ISOLATION_S_MAX = 30 * 86_400.0
_FORMAT = 1


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


class _Sheet(Struct, frozen=True):
    """A file's content. `boot`, `monotonic_s` and `wall_s`: whose monotonic clock the record's times are on."""

    format: int
    key: str
    version: int
    boot: str
    monotonic_s: float
    wall_s: float
    record: BreakerRecord


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
        self.reach_s = reach_s
        self.damaged = 0
        self._monotonic = monotonic
        self._wall = wall
        self._boot = _boot_id() if boot is None else boot
        self._shifts: dict[str, tuple[int, float]] = {}
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _trouble("make", self.folder, error) from error

    def load(self, key: str) -> Stored:
        """The record, its times moved to this process's clock."""
        sheet = self._sheet(self._path(key))
        if sheet is None or sheet.key != key:
            return _ABSENT
        return Stored(sheet.version, self._here(sheet))

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
            sheet = _Sheet(_FORMAT, key, version + 1, self._boot, self._monotonic(), self._wall(), record)
            _replace(path, msgspec.json.encode(sheet))
        except OSError as error:
            raise _trouble("write", path, error) from error
        finally:
            os.close(lock)
        self._shifts[key] = (version + 1, 0.0)
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

    def _sheet(self, path: Path) -> _Sheet | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _trouble("read", path, error) from error
        try:
            data = os.read(descriptor, FILE_BYTES_MAX)
            sheet = msgspec.json.decode(data, type=_Sheet)
        except (msgspec.MsgspecError, UnicodeDecodeError, OSError, RecursionError):
            self.damaged += 1
            return None
        finally:
            os.close(descriptor)
        return sheet if sheet.format == _FORMAT and sheet.version > 0 else None

    def _here(self, sheet: _Sheet) -> BreakerRecord:
        """The record on this process's clock; how far it is moved is settled when a version is seen first."""
        now_s = self._monotonic()
        known = self._shifts.get(sheet.key)
        if known is not None and known[0] == sheet.version:
            by_s = known[1]
        else:
            by_s = self._shift(sheet, now_s)
            if len(self._shifts) >= KEYS_MAX:
                self._shifts.clear()
            self._shifts[sheet.key] = (sheet.version, by_s)
        record = moved(sheet.record, by_s, now_s, self.reach_s)
        isolation = record.isolation
        if isolation is None or isolation.until_s <= now_s + ISOLATION_S_MAX:
            return record
        capped = Isolation(now_s + ISOLATION_S_MAX, isolation.reason, isolation.by)
        return structs.replace(record, isolation=capped)

    def _shift(self, sheet: _Sheet, now_s: float) -> float:
        if sheet.boot and sheet.boot == self._boot and sheet.monotonic_s <= now_s:
            return 0.0
        elapsed_s = max(0.0, self._wall() - sheet.wall_s)
        return now_s - elapsed_s - sheet.monotonic_s

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


def _boot_id() -> str:
    """Names the machine's boot, within which its monotonic clock is one; empty where the system doesn't tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _trouble(doing: str, path: Path, error: OSError) -> StoreTrouble:
    return StoreTrouble(f"can't {doing} {path}: {error.strerror or error}")
