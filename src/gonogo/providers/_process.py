"""Child processes for commands: each in a session of its own, fed, read raw, ended with all it started.

Output is read in chunks, never by lines, and kept head and tail up to a cap. Nothing here knows what a step
is: the command provider says what an ending means. Ending the whole family is `_family.py`'s part. POSIX
only.
"""

from __future__ import annotations

import errno
import os
import secrets
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import IO

import anyio
from msgspec import Struct

from gonogo.providers._family import GRACE_S, MARK, Family, marked

KEPT_BYTES_MAX = 8 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_CHUNKS_IN_A_ROW = 16
_SETTLE_S = 0.1
"""How long pipes and children may outlive the command before they count as left behind."""
_LEFT_BEHIND_GRACE_S = 0.5
_POLL_S = 0.01
_REAPING_S = 0.5
_SHOWN_BYTES = 400
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_SHORTAGES = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


class StartProblem(Exception):  # noqa: N818 - the name says what happened
    """The command wasn't started. `transient`: the machine was short of something and may not be later."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.transient = transient


class Command(Struct, frozen=True):
    """What to start. `environment` is the whole environment; `stdin` None means end of file at once.

    `named` and `data_by` are for messages: what it is to the step's author, and the key that takes data of any kind.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    stdin: bytes | None = None
    timeout_s: float | None = None
    grace_s: float = GRACE_S
    named: str = "the command"
    data_by: str = "stdin:"


class Stream(Struct, frozen=True):
    """What was kept of an output of `size_bytes`: all of it in `head`, or the first and the last part."""

    head: bytes
    tail: bytes
    size_bytes: int

    @property
    def dropped_bytes(self) -> int:
        """How much of the middle is missing."""
        return self.size_bytes - len(self.head) - len(self.tail)

    @property
    def is_utf8(self) -> bool:
        """False when decoding replaces something."""
        parts = (self.head, self.tail) if self.dropped_bytes else (self.head + self.tail,)
        try:
            for part in parts:
                part.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    def text(self) -> str:
        """UTF-8 whatever the locale; what isn't becomes U+FFFD. A cut falls between characters."""
        if not self.dropped_bytes:
            return (self.head + self.tail).decode("utf-8", "replace")
        head = _without_cut_end(self.head).decode("utf-8", "replace")
        tail = self.tail.lstrip(_CONTINUATION_BYTES).decode("utf-8", "replace")
        return f"{head}\n[... {self.dropped_bytes} of {self.size_bytes} bytes left out ...]\n{tail}"


class Ended(Struct, frozen=True):
    """How it ended. `signal` when a signal ended it (`exit_code` is then 128 + signal, as shells say).

    `left_behind`: process ids that outlived it and were ended; `killed`: those that TERM didn't end.
    """

    exit_code: int
    signal: str | None
    stdout: Stream
    stderr: Stream
    timed_out: bool = False
    left_behind: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()


class Kept:
    """Keeps head and tail of a stream up to `bytes_max`, in constant memory."""

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._half = bytes_max // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._size += len(chunk)
        room = self._half - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self._half:
            del self._tail[: len(self._tail) - self._half]

    def stream(self) -> Stream:
        """What has been kept so far."""
        return Stream(bytes(self._head), bytes(self._tail[-self._half :]), self._size)


async def run(
    command: Command, show: Callable[[str], None] = lambda text: None, kept_bytes_max: int = KEPT_BYTES_MAX
) -> Ended:
    """Run to the end, or to the timeout, and leave nothing running. `show` gets the last line of new output.

    Raises StartProblem when nothing was started. A cancel ends the whole family before it goes on.
    """
    out, err = Kept(kept_bytes_max), Kept(kept_bytes_max)
    killed: tuple[int, ...] = ()
    left_behind: tuple[int, ...] = ()
    async with started(command) as (process, family), anyio.create_task_group() as readers:
        readers.start_soon(read_to_end, process.stdout, out, show)
        readers.start_soon(read_to_end, process.stderr, err, show)
        timed_out = not await _fed_and_exited(process, command)
        if timed_out:
            with anyio.CancelScope(shield=True):
                killed = await family.end(process.poll, command.grace_s)
        else:
            left_behind = await end_left_behind(family, process)
        readers.cancel_scope.deadline = anyio.current_time() + _SETTLE_S
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    return Ended(
        exit_code=code if code >= 0 else 128 - code,
        signal=signal.Signals(-code).name if code < 0 else None,
        stdout=out.stream(),
        stderr=err.stream(),
        timed_out=timed_out,
        left_behind=left_behind,
        killed=killed,
    )


@asynccontextmanager
async def started(command: Command) -> AsyncIterator[tuple[subprocess.Popen[bytes], Family]]:
    """The process and its family; whatever happens inside, nothing of them is left afterwards."""
    process, family = _start(command)
    orderly = False
    try:
        yield process, family
        orderly = process.returncode is not None
    finally:
        try:
            if not orderly:
                with anyio.CancelScope(shield=True):
                    await family.end(process.poll, command.grace_s)
        finally:
            _let_go(process)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes and collect the status of one that has just been killed (it takes no more than moments)."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(_REAPING_S)
    except subprocess.TimeoutExpired:
        pass  # it hangs in the kernel; the next look at any child collects it


def _start(command: Command) -> tuple[subprocess.Popen[bytes], Family]:
    token = secrets.token_hex(8)
    environment = {**command.environment, MARK: marked(command.environment, token)}
    if not os.path.isdir(command.directory):
        raise StartProblem(f"there is no folder '{command.directory}' to start {command.named} in")
    try:
        process = subprocess.Popen(
            [_encoded(argument, command) for argument in command.arguments],
            bufsize=0,
            stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.directory,
            env={_encoded(name, command): _encoded(value, command) for name, value in environment.items()},
            start_new_session=True,
        )
    except OSError as problem:
        raise StartProblem(_told(problem, command), transient=problem.errno in _SHORTAGES) from problem
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
    return process, Family(process.pid, token)


def _encoded(text: str, command: Command) -> bytes:
    """UTF-8 whatever the locale; names of files that aren't UTF-8 go through unchanged."""
    try:
        encoded = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise StartProblem(
            f"a text for {command.named} holds half a character at {problem.start}"
        ) from problem
    if b"\0" in encoded:
        raise StartProblem(
            f"a text for {command.named} holds a NUL byte, which no system takes; pass it by `{command.data_by}`"
        )
    return encoded


def _told(problem: OSError, command: Command) -> str:
    reason = problem.strerror or type(problem).__name__
    advice = f"; pass large data by `{command.data_by}`" if problem.errno == errno.E2BIG else ""
    return f"{command.named} can't be started: {reason.lower()}{advice}"


async def _fed_and_exited(process: subprocess.Popen[bytes], command: Command) -> bool:
    """Feed it and wait for its end; False when time ran out first."""
    async with anyio.create_task_group() as feeders:
        if command.stdin is not None:
            feeders.start_soon(_feed, process.stdin, command.stdin)
        with anyio.move_on_after(command.timeout_s):
            await exited(process)
        feeders.cancel_scope.cancel()
    return process.poll() is not None


async def exited(process: subprocess.Popen[bytes]) -> None:
    """Wait for this process alone: neither for its children nor for the end of its output."""
    try:
        watch = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or before 5.3
        while process.poll() is None:  # noqa: ASYNC110 - the system offers nothing to wait for
            await anyio.sleep(_POLL_S)
        return
    try:
        await anyio.wait_readable(watch)
    finally:
        os.close(watch)
    process.wait()


async def _feed(pipe: IO[bytes] | None, text: bytes) -> None:
    assert pipe is not None
    try:
        await wrote(pipe, text)
    finally:
        pipe.close()


async def wrote(pipe: IO[bytes] | None, text: bytes) -> bool:
    """Write all of it, as the process reads; False when it has read all it wanted."""
    assert pipe is not None
    rest = memoryview(text)
    try:
        while rest:
            await anyio.wait_writable(pipe)
            rest = rest[os.write(pipe.fileno(), rest[:_CHUNK_BYTES]) :]
    except BrokenPipeError:
        return False
    return True


async def read_to_end(pipe: IO[bytes] | None, kept: Kept, show: Callable[[str], None]) -> None:
    """Keep what a pipe gives until it ends; `show` gets the last line of what is new."""
    assert pipe is not None
    while True:
        await anyio.wait_readable(pipe)
        for _ in range(_CHUNKS_IN_A_ROW):  # then let others have the loop
            try:
                chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
            except BlockingIOError:
                break
            if not chunk:
                return
            kept.add(chunk)
            show(_last_line(chunk))


async def end_left_behind(family: Family, process: subprocess.Popen[bytes]) -> tuple[int, ...]:
    """End what still runs of a family that should be gone; returns who that was."""
    members = family.left_behind()
    if not members or await family.gone_within(_SETTLE_S, process.poll):
        return ()
    with anyio.CancelScope(shield=True):
        await family.end(process.poll, _LEFT_BEHIND_GRACE_S)
    return members


def _last_line(chunk: bytes) -> str:
    lines = chunk[-_SHOWN_BYTES:].rstrip().splitlines()
    if not lines:
        return ""
    return _without_cut_end(lines[-1].lstrip(_CONTINUATION_BYTES)).decode("utf-8", "replace")


def _without_cut_end(text: bytes) -> bytes:
    """Without the first bytes of a character whose other bytes are missing."""
    for length in range(1, min(3, len(text)) + 1):
        lead = text[-length]
        if lead >= 0xC0:
            needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return text[:-length] if length < needed else text
        if lead < 0x80:
            break
    return text
