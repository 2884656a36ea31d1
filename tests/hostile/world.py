"""Starts gonogo as a real process in unfriendly surroundings, and finds what it leaves running.

This process adopts orphans while a command runs (Linux: a subreaper), so that a process which lost its parent,
its session and its environment is found all the same.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "gonogo")
LIMIT_S = 60.0
GONE_WITHIN_S = 3.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h
_LEFT_OUT = ("GITHUB_", "GIT_", "NO_COLOR", "PYTHON")


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would change a command's ways."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
    return {**kept, "GIT_CEILING_DIRECTORIES": "/", "PYTHONDONTWRITEBYTECODE": "1", **more}


def workflow(folder: Path, steps: str, top: str = "") -> None:
    """A `gonogo.yaml` in the folder with these steps."""
    body = "\n".join(f"  {line}" for line in steps.strip("\n").splitlines())
    (folder / "gonogo.yaml").write_text(f'version: "1.0"\n{top}steps:\n{body}\n')


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: a signal), what it said, what it left running."""

    code: int
    out: str
    err: str
    left: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """Both streams."""
        return self.out + self.err


def gonogo(*arguments: str, cwd: Path | str, env: Mapping[str, str] | None = None, **more: Any) -> Ended:
    """Run the installed command to its end. `more` goes to Popen. A hang is an error of the test."""
    with adopting() as orphans:
        running = start(*arguments, cwd=cwd, env=env, **more)
        return ended(running, orphans)


def start(
    *arguments: str, cwd: Path | str, env: Mapping[str, str] | None = None, **more: Any
) -> subprocess.Popen[bytes]:
    """The command as a process that goes on; use inside `adopting`."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = more.pop("command", [COMMAND])
    return subprocess.Popen(
        [*command, *arguments], cwd=cwd, env=environment() if env is None else env, **{**streams, **more}
    )


def ended(running: subprocess.Popen[bytes], orphans: Orphans, limit_s: float = LIMIT_S) -> Ended:
    """Wait for the end. A command that hangs is killed, with its stacks in the error where it tells them."""
    try:
        out, err = running.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
        raise
    finally:
        left = orphans.after(GONE_WITHIN_S)
    return Ended(
        running.returncode,
        (out or b"").decode("utf-8", "replace"),
        (err or b"").decode("utf-8", "replace"),
        left,
    )


def pause(seconds: float) -> None:
    """Real time, for real processes."""
    select.select([], [], [], seconds)


class Orphans:
    """The processes below this one that weren't there before, and that none of those started: a server of other tests
    starts some of its own as it likes.
    """

    def __init__(self) -> None:
        self._before: frozenset[int] = frozenset(pid for pid, _ in _descendants())

    def now(self) -> dict[int, str]:
        """Process ids and command lines; the dead are collected."""
        found = {}
        for pid, parent in _descendants(self._before):
            if _state(pid) == "Z":
                if parent == os.getpid():
                    _collect(pid)
                continue
            found[pid] = _command_line(pid)
        return found

    def after(self, seconds: float) -> tuple[str, ...]:
        """The command lines of those that live longer than `seconds`; they are killed."""
        until = time.monotonic() + seconds
        while (living := self.now()) and time.monotonic() < until:
            pause(0.02)
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return tuple(f"{pid} {command}" for pid, command in sorted(living.items()))


@contextmanager
def adopting() -> Iterator[Orphans]:
    """While it lasts, orphans become children of this process."""
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_SUBREAPER, 1, 0, 0, 0)
    orphans = Orphans()
    try:
        yield orphans
    finally:
        orphans.after(0)
        library.prctl(_SUBREAPER, 0, 0, 0, 0)


def _descendants(but_for: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """(process, parent) of everything below this process, but for some and all that is below them."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))):
            parents[int(name)] = int(stat[1])
    return [(pid, parent) for pid, parent in parents.items() if _is_below(pid, parents, but_for)]


def _is_below(pid: int, parents: dict[int, int], but_for: frozenset[int]) -> bool:
    at: int | None = pid
    while at and at not in but_for:
        at = parents.get(at)
        if at == os.getpid():
            return True
    return False


def _stat(pid: int) -> list[str]:
    """State, parent, …; empty when it is gone. The name before may hold spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().decode("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def _state(pid: int) -> str:
    return (_stat(pid) or ["Z"])[0]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[:300]
    except OSError:
        return ""


def _collect(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
