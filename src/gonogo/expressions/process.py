"""The child process seen from its client: start it, send a frame, wait for the reply, kill it when it hangs.

Two ways to wait, the same rules: `exchange` blocks, `exchange_async` lets other tasks run. Both spin for a
moment first, because being woken costs four times a small evaluation. What frames mean is left to
`sandbox.py`.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gonogo.errors import SandboxError
from gonogo.expressions.frames import pack, unpack

if TYPE_CHECKING:
    import asyncio
    import subprocess

SPIN_S = 50e-6
LOADING_S = 10.0
LOOK_EVERY_S = 0.05  # the child says in shared memory when a run starts; that wakes nobody
RUNS_MAX = 1_000_000
REPLY_BYTES_MAX = 256 << 20
ENGINE_IS_WRONG = 3
_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Died:
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

    def exchange(self, parts: Sequence[str], limits_s: Sequence[float]) -> Reply:
        """Send a frame and wait for its reply; `limits_s` are the limits of its runs, in order."""
        left = self._begin(parts)
        reply: Reply | None = None
        while left:
            left = self._write_some(left)
            if left and (reply := self._pause(self._to_child, True, limits_s)):
                return reply
        buffer = bytearray()
        while (reply := self._read(buffer)) is None:
            if self._spinning():
                os.sched_yield()
            elif reply := self._pause(self._from_child, False, limits_s):
                return reply
        return reply

    async def exchange_async(self, parts: Sequence[str], limits_s: Sequence[float]) -> Reply:
        """As `exchange`, with the event loop free after the first 50 µs. Cancelling it kills the child."""
        try:
            left = self._begin(parts)
            reply: Reply | None = None
            while left:
                left = self._write_some(left)
                if left and (reply := await self._pause_async(self._to_child, True, limits_s)):
                    return reply
            buffer = bytearray()
            while (reply := self._read(buffer)) is None:
                if self._spinning():
                    os.sched_yield()
                elif reply := await self._pause_async(self._from_child, False, limits_s):
                    return reply
        except BaseException:
            self.kill()
            raise
        return reply

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

    def _begin(self, parts: Sequence[str]) -> memoryview:
        self._marker[0] = -1
        self._sent_at = time.monotonic()
        self._spin_until = self._sent_at + SPIN_S
        return memoryview(pack(parts))

    def _spinning(self) -> bool:
        return time.monotonic() < self._spin_until

    def _write_some(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self._to_child, left) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            return left[len(left) :]  # the read that follows finds the end

    def _read(self, buffer: bytearray) -> Reply | None:
        try:
            data = os.read(self._from_child, _CHUNK_BYTES)
        except BlockingIOError:
            return None
        if not data:
            return self._died(hung=False)
        buffer += data
        if len(buffer) > REPLY_BYTES_MAX:
            return self._died(hung=False)
        try:
            return unpack(buffer)
        except ValueError:
            return self._died(hung=False)

    def _died(self, *, hung: bool) -> Died:
        return Died(self._run_under_way(), hung, self.kill())

    def _run_under_way(self) -> int | None:
        """What the marker says; the child may have been taken over, so any number may stand there."""
        number = self._marker[0]
        return int(number) if 0 <= number < RUNS_MAX else None

    def _left_s(self, limits_s: Sequence[float]) -> float:
        """Seconds until the run under way has used up its time on the wall clock."""
        run, now = self._run_under_way(), time.monotonic()
        since = self._marker[1] if self._sent_at <= self._marker[1] <= now else self._sent_at
        last = self._sent_at + LOADING_S + sum(limits_s)
        if run is not None and run < len(limits_s):
            return min(since + limits_s[run] + self._grace_s, last) - now
        return min(since + LOADING_S, last) - now

    def _pause(self, descriptor: int, writing: bool, limits_s: Sequence[float]) -> Died | None:
        left_s = self._left_s(limits_s)
        if left_s <= 0:
            return self._died(hung=True)
        waiting = select.poll()  # select() can't watch descriptors over 1023
        waiting.register(descriptor, select.POLLOUT if writing else select.POLLIN)
        waiting.poll(max(1, int(min(left_s, LOOK_EVERY_S) * 1000)))
        return None

    async def _pause_async(self, descriptor: int, writing: bool, limits_s: Sequence[float]) -> Died | None:
        import asyncio

        left_s = self._left_s(limits_s)
        if left_s <= 0:
            return self._died(hung=True)
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        watch, ignore = (
            (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
        )
        watch(descriptor, _wake, ready)
        timer = loop.call_later(min(left_s, LOOK_EVERY_S), _wake, ready)
        try:
            await ready
        finally:
            timer.cancel()
            ignore(descriptor)
        return None


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
