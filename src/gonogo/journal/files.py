"""The few file operations that journals need, done carefully: private modes, no symbolic links, whole writes,
one writer.

Every system error becomes a JournalError that names the file and what to do.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gonogo.errors import JournalError, RunLocked

__all__ = [
    "Holder",
    "Lock",
    "atomic_write",
    "holder_of",
    "is_held",
    "journal_error",
    "make_folder",
    "open_file",
    "read_file",
    "real_folder",
    "sync_data",
    "sync_folder",
    "system_errors",
    "write_all",
]

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC
sync_data = getattr(os, "fdatasync", os.fsync)
"""Content and length, not the time of change; systems without it sync everything."""


@contextmanager
def system_errors(doing: str, path: Path) -> Iterator[None]:
    """Turn OSError into a JournalError: "can't write …/journal.jsonl: No space left on device"."""
    try:
        yield
    except OSError as error:
        raise journal_error(doing, path, error) from error


def journal_error(doing: str, path: Path, error: OSError) -> JournalError:
    """What an OSError means for a journal."""
    return JournalError(
        f"can't {doing} {path}: {error.strerror or error}", advice=_advice(error.errno, doing, path)
    )


def _advice(number: int | None, doing: str, path: Path) -> str:
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "what was written before is whole: free some space, then go on with 'gonogo resume'"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"make {_nearest_folder(path)} writable, or choose another folder with --runs-dir"
    if number in (errno.ELOOP, errno.ENOTDIR):
        return "a symbolic link is in the way; journals are only kept in real folders and files"
    if number == errno.ENOENT and doing == "create":
        return f"{_nearest_folder(path)} takes no folders: choose another place with --runs-dir"
    if number == errno.ENOENT:
        return "see 'gonogo runs' for what there is, or choose another folder with --runs-dir"
    return "see that the disk is well, then go on with 'gonogo resume'"


def _nearest_folder(path: Path) -> Path:
    """The folder that is there and refused."""
    return next((folder for folder in path.parents if folder.exists()), path)


def make_folder(path: Path) -> None:
    """Create a folder, and those around it, for this user alone; one that is there stays as it is. Raises OSError."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=FOLDER_MODE)
        except FileExistsError:  # another process was faster, or a dangling link: told apart by the next step
            if not folder.is_dir():
                raise


def real_folder(path: Path) -> None:
    """Raises OSError unless `path` is a folder and no symbolic link."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise OSError(errno.ENOTDIR, "not a real folder", str(path))


def open_file(path: Path, flags: int) -> int:
    """A descriptor for a private file, never through a symbolic link and never of a pipe or device. Raises OSError."""
    descriptor = os.open(path, flags | _SAFE | os.O_NONBLOCK, FILE_MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def read_file(path: Path) -> bytes:
    """All of a private file. Raises OSError."""
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        return file.read()


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however often the system takes only a part. Raises OSError."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power cut. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def atomic_write(path: Path, data: bytes, *, durable: bool) -> None:
    """Put a file in place whole or not at all; a reader never sees a part of it. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    descriptor = open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class Holder(msgspec.Struct, frozen=True):
    """Who writes a run: a process, its machine, and since when (Unix time in milliseconds)."""

    pid: int
    host: str
    since_ms: int

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since_ms / 1000))
        return f"process {self.pid} on {self.host}, since {since}"


class Lock:
    """The right to write a run, held through an advisory lock (flock): the system drops it with the process,
    however it ends.

    The file stays; its content only says who holds it. flock doesn't reach over some network file systems.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        """Take the lock. Raises RunLocked when it is held, OSError when the file can't be made."""
        self._descriptor = open_file(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock_exclusively(self._descriptor)
            holder = Holder(pid=os.getpid(), host=os.uname().nodename, since_ms=int(time.time() * 1000))
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, msgspec.json.encode(holder), 0)
        except BlockingIOError:
            os.close(self._descriptor)
            raise _locked(run_id, path) from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Let others write. May be called once."""
        os.close(self._descriptor)


def lock_too(descriptor: int, run_id: str, path: Path) -> int:
    """Hold what is written itself, too: the lock at `path` may be deleted under a run. Closes it and raises RunLocked
    when somebody else holds it.
    """
    try:
        _lock_exclusively(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        raise _locked(run_id, path) from None
    return descriptor


def _locked(run_id: str, path: Path) -> RunLocked:
    return RunLocked(
        f"run {run_id} is being written by {holder_of(path) or 'another process'}",
        advice="wait until it ends, or stop it; 'gonogo cancel' asks it to stop by itself",
    )


def _lock_exclusively(descriptor: int) -> None:
    """Try twice: `is_held` borrows the lock for microseconds, and that must not look like a second writer."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        select.select([], [], [], 0.02)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def holder_of(path: Path) -> Holder | None:
    """Who wrote their name into a lock file last; None when nobody or unreadable."""
    try:
        return msgspec.json.decode(read_file(path), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock right now. Raises nothing: what can't be asked counts as not held."""
    try:
        descriptor = open_file(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
