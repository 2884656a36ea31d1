"""The child process seen from its client: start it, send a frame, wait for the reply, kill it when it hangs.

Most replies come within some tens of µs, which is less than it costs an event loop to wait for them: so the reply is
waited for on the spot for a moment (`reply_at_once`), and only then with `reply`, which blocks, or `reply_async`, which
lets other tasks run. Neither side ever spins: a process that slept is run at once when it is woken, one that was busy
has to wait for its turn where there is other work. What frames mean is left to `sandbox.py`.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from gonogo.errors import SandboxError
from gonogo.expressions.frames import pack, unpack

if TYPE_CHECKING:
    import asyncio
    import subprocess

LOADING_S = 10.0
LOOK_EVERY_S = 0.05
RUNS_MAX = 1_000_000
REPLY_BYTES_MAX = 256 << 20
ENGINE_IS_WRONG = 3
_CHUNK_BYTES = 1 << 18


class Died(Struct, frozen=True):
    """The child is gone. `run` is the run of the frame it was at, None while loading; `hung`: killed for time."""

    run: int | None
    hung: bool
    exit_code: int | None


Reply = list[str] | Died


def engine_path() -> str:
    """The file of the engine's extension module; raises SandboxError when quickjs-ng isn't what is installed."""
    from importlib.util import find_spec

    spec = find_spec("_quickjs")
    if spec is None or spec.origin is None:
        raise SandboxError("expressions need the package quickjs-ng", advice="pip install quickjs-ng")
    return spec.origin


def _shared_page() -> tuple[int, mmap.mmap]:
    """A page of memory to share: its descriptor, never one of the standard three (a caller may have closed those)."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("gonogo-marker", os.MFD_CLOEXEC)
    else:
        import tempfile

        file, name = tempfile.mkstemp()
        os.unlink(name)
    os.ftruncate(file, mmap.PAGESIZE)
    descriptor = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(file)
    return descriptor, mmap.mmap(descriptor, mmap.PAGESIZE)


class Child:
    """One running child process. Not thread safe; `Sandbox` holds the lock."""

    def __init__(self, now_ms: float, memory_bytes: int, result_bytes: int, grace_s: float) -> None:
        self._grace_s = grace_s
        self.pid_of_parent = os.getpid()
        try:
            self._marker_file, self._marker_map = _shared_page()
        except OSError as error:
            raise SandboxError(f"the expression sandbox can't be started: {error.strerror}") from error
        self._marker = memoryview(self._marker_map).cast("d")
        self._process = self._start(engine_path(), [repr(now_ms), str(memory_bytes), str(result_bytes)])
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to_child = self._process.stdin.fileno()
        self._from_child = self._process.stdout.fileno()
        os.set_blocking(self._to_child, False)
        os.set_blocking(self._from_child, False)
        self._writable, self._readable = (
            select.poll(),
            select.poll(),
        )  # select() can't watch descriptors over 1023
        self._writable.register(self._to_child, select.POLLOUT)
        self._readable.register(self._from_child, select.POLLIN)
        self._limits_s: Sequence[float] = ()
        self._buffer = bytearray()
        self._left = memoryview(b"")

    def _start(self, engine: str, settings: list[str]) -> subprocess.Popen[bytes]:
        import subprocess

        here = Path(__file__).parent
        marker = self._marker_file
        if not sys.executable:
            raise SandboxError(
                "the expression sandbox needs a Python interpreter to start; sys.executable is empty"
            )
        command = [
            sys.executable,
            "-I",
            "-S",
            str(here / "worker.py"),
            engine,
            str(here / "js"),
            *settings,
            str(marker),
        ]
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env={"TZ": "UTC"},
                pass_fds=(marker,),
            )
        except OSError as error:
            raise SandboxError(f"the expression sandbox can't be started: {error.strerror}") from error

    def send(self, parts: Sequence[str], limits_s: Sequence[float]) -> None:
        """Send a frame, as much of it as goes without waiting; one of the three below gets its reply.

        `limits_s` are the limits of its runs, in order.
        """
        self._marker[0] = -1
        self._sent_at = time.monotonic()
        self._limits_s = limits_s
        self._buffer = bytearray()
        self._left = memoryview(pack(parts))
        self._write_some()

    def reply_at_once(self, until_s: float) -> Reply | None:
        """The reply if it is there by `until_s` on the monotonic clock, a ms more or less; None: it takes longer."""
        while not self._left:
            self._readable.poll(1)
            if (reply := self._read()) is not None or time.monotonic() >= until_s:
                return reply
        return None

    def reply(self) -> Reply:
        """The reply; blocks. A child that takes too long is killed."""
        while True:
            if (reply := self._proceed()) is not None or (reply := self._overdue()) is not None:
                return reply
            waiting = self._writable if self._left else self._readable
            waiting.poll(max(1, int(self._wait_s() * 1000)))

    async def reply_async(self) -> Reply:
        """As `reply`, with the event loop free meanwhile. Cancelling it kills the child."""
        try:
            while True:
                if (reply := self._proceed()) is not None or (reply := self._overdue()) is not None:
                    return reply
                await self._pause()
        except BaseException:
            self.kill()
            raise

    def exchange(self, parts: Sequence[str], limits_s: Sequence[float]) -> Reply:
        """Send a frame and wait for its reply; blocks."""
        self.send(parts, limits_s)
        return self.reply()

    def kill(self) -> int | None:
        """End the child, whatever state it is in, and let go of everything; safe to repeat."""
        self._process.kill()
        code = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._marker.release()
        if not self._marker_map.closed:
            self._marker_map.close()
            os.close(self._marker_file)
        return code

    def abandon(self) -> None:
        """Let go of a child that belongs to the process this one was forked from."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.returncode = 0

    def _proceed(self) -> Reply | None:
        """Write and read what goes without waiting."""
        if self._left:
            self._write_some()
        return None if self._left else self._read()

    def _write_some(self) -> None:
        try:
            self._left = self._left[os.write(self._to_child, self._left) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._left = self._left[len(self._left) :]  # the read that follows finds the end

    def _read(self) -> Reply | None:
        try:
            data = os.read(self._from_child, _CHUNK_BYTES)
        except BlockingIOError:
            return None
        if not data:
            return self._died(hung=False)
        self._buffer += data
        if len(self._buffer) > REPLY_BYTES_MAX:
            return self._died(hung=False)
        try:
            return unpack(self._buffer)
        except ValueError:
            return self._died(hung=False)

    def _died(self, *, hung: bool) -> Died:
        return Died(self._run_under_way(), hung, self.kill())

    def _run_under_way(self) -> int | None:
        """What the marker says; the child may have been taken over, so any number may stand there."""
        number = self._marker[0]
        return int(number) if 0 <= number < RUNS_MAX else None

    def _left_s(self) -> float:
        """Seconds until the run under way has used up its time on the wall clock."""
        run, now, limits_s = self._run_under_way(), time.monotonic(), self._limits_s
        since = self._marker[1] if self._sent_at <= self._marker[1] <= now else self._sent_at
        last = self._sent_at + LOADING_S + sum(limits_s)
        if run is not None and run < len(limits_s):
            return min(since + limits_s[run] + self._grace_s, last) - now
        return min(since + LOADING_S, last) - now

    def _overdue(self) -> Died | None:
        return self._died(hung=True) if self._left_s() <= 0 else None

    def _wait_s(self) -> float:
        """How long to wait before looking again: the child says in shared memory when a run starts."""
        return min(max(0.0, self._left_s()), LOOK_EVERY_S)

    async def _pause(self) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        watch, ignore, descriptor = loop.add_reader, loop.remove_reader, self._from_child
        if self._left:
            watch, ignore, descriptor = loop.add_writer, loop.remove_writer, self._to_child
        watch(descriptor, _wake, ready)
        timer = loop.call_later(self._wait_s(), _wake, ready)
        try:
            await ready
        finally:
            timer.cancel()
            ignore(descriptor)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
