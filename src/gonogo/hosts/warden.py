"""Ends what a run started when the process that hosts the run is killed and can't do it itself.

A second process waits for the end of the first: a pipe whose other end only the first holds. Then it ends, TERM
before KILL, whatever carries the first one's mark in its environment, and what descends from that. It runs this
file alone, in an interpreter without packages, so nothing but the standard library is imported here. How calls
are ended while the host lives is `providers/_family.py`'s part, which adds its marks behind this one. Linux only:
elsewhere nobody can look at another process's environment.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

MARK = "GONOGO_CALL"
GRACE_S = 1.5
FIRST_S = 0.3
_ROUNDS = 20
_ROUND_S = 0.05


@contextmanager
def watched() -> Iterator[None]:
    """While it lasts, commands are marked as this process's and ended should it be killed.

    Changes the process's own environment, from which commands get theirs: only for a process that does nothing
    else. Without a second process (none may be started) the run goes on all the same.
    """
    before = os.environ.get(MARK)
    mark = os.urandom(8).hex()
    second = _start(mark)
    os.environ[MARK] = f"{before}:{mark}" if before else mark
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(MARK, None)
        else:
            os.environ[MARK] = before
        if second is not None:
            _dismiss(second)


def _start(mark: str) -> subprocess.Popen[bytes] | None:
    import subprocess

    if not (sys.executable and os.path.isdir("/proc/self")):
        return None
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, mark],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
    except OSError:
        return None


def _dismiss(second: subprocess.Popen[bytes]) -> None:
    second.kill()
    second.wait()
    if second.stdin is not None:
        second.stdin.close()


def _main(mark: str) -> None:
    """The second process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    first = _tops(_marked(mark))
    _send(signal.SIGTERM, first)
    _wait(mark, FIRST_S)
    _send(signal.SIGTERM, _marked(mark) - first)
    _wait(mark, GRACE_S - FIRST_S)
    for _ in range(_ROUNDS):
        if not _send(signal.SIGKILL, _marked(mark)):
            break
        _pause()


def _wait(mark: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while _marked(mark) and time.monotonic() < until:
        _pause()


def _tops(processes: set[int]) -> set[int]:
    """Those that none of the others has started.

    They are told first: a shell whose child is ended says so on a pipe that nobody reads any more, and dies of that
    before it can clean up.
    """
    return {process for process in processes if _parent(process) not in processes}


def _pause() -> None:
    select.select([], [], [], _ROUND_S)


def _send(number: int, processes: set[int]) -> bool:
    """To each of them; False when there was none."""
    for process in processes:
        try:
            os.kill(process, number)
            os.kill(process, signal.SIGCONT)  # a stopped one heeds TERM only when it goes on
        except (ProcessLookupError, PermissionError):
            pass  # gone, or another user's now
    return bool(processes)


def _marked(mark: str) -> set[int]:
    """Living processes with the mark, and those below them."""
    parents = {int(name): _parent(name) for name in os.listdir("/proc") if name.isdigit()}
    found = {process for process, parent in parents.items() if parent and _carries(process, mark)}
    below: dict[int, list[int]] = {}
    for process, parent in parents.items():
        below.setdefault(parent, []).append(process)
    waiting = list(found)
    while waiting:
        fresh = [process for process in below.get(waiting.pop(), ()) if process not in found]
        found.update(fresh)
        waiting += fresh
    return found


def _parent(process: str | int) -> int:
    """0 for one that is dead or gone. The fields stand behind the name, which may hold anything: proc_pid_stat(5)."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            state, parent, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return 0
    return 0 if state in (b"Z", b"X") else int(parent)


def _carries(process: int, mark: str) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return mark.encode() in file.read()
    except OSError:
        return False


if __name__ == "__main__":
    _main(sys.argv[1])
