"""A server that is a child process: messages are lines on its standard input and output, as MCP's stdio says.

Starting and ending it is `_process.py`'s part: whatever happens, nothing of its family is left. It gets few variables
of gonogo's own environment, and those that the step gives: a server is somebody else's program.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio

from gonogo.provider import Context
from gonogo.providers import _process
from gonogo.providers._family import MARK
from gonogo.providers._mcp.messages import Inbox, Message, Trouble, too_large, written
from gonogo.providers._mcp.server import Server

PASSED_ON = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER", "LOGNAME", MARK})
"""What a server gets of gonogo's own environment: what most programs need, and no secret. MCP's SDKs pass as few."""
STDERR_BYTES_MAX = 64 * 1024
_STDERR_CHARACTERS_SHOWN = 1000
_CHUNK_BYTES = 64 * 1024
_CLOSING_S = 0.5
"""How long a server may take to end by itself when its input ends."""
_LAST_WORDS_S = 0.2
_QUEUED_MAX = 1000


@asynccontextmanager
async def server(of: Server, context: Context, inbox: Inbox) -> AsyncIterator[Pipe]:
    """A started server; it has ended when this is left. Raises Trouble when it can't be started."""
    try:
        async with _process.started(_command(of, context)) as (child, family):
            pipe = Pipe(child, inbox, of.bytes_max)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pipe.keep_errors, context)
                tasks.start_soon(pipe.feed)
                yield pipe
                tasks.cancel_scope.cancel()
            if not pipe.hurried:
                await _end(child)
            await _process.end_left_behind(family, child)
    except _process.StartProblem as problem:
        kind = "overloaded" if problem.transient else "bad-request"
        fault_class = "transient" if problem.transient else "logical"
        raise Trouble("mcp.start", kind, problem.message, fault_class=fault_class, effect="none") from problem  # type: ignore[arg-type]


def _command(of: Server, context: Context) -> _process.Command:
    assert of.command is not None
    return _process.Command(
        arguments=(of.command, *of.args),
        environment=environment_of(of, os.environ),
        directory=os.path.join(context.working_directory, of.cwd),
        stdin=b"",
        named=f"the server '{of.command}'",
        data_by="methodArgs:",
    )


def environment_of(of: Server, own: Mapping[str, str]) -> dict[str, str]:
    """All variables of a server: few of `own`, then those of the workflow and the step."""
    passed = {name: value for name, value in own.items() if name in PASSED_ON}
    return {**passed, "GONOGO_IDEMPOTENCY_KEY": of.key, **of.env}


async def _end(child: subprocess.Popen[bytes]) -> None:
    """Its input ends, which asks it to end. What then goes on is ended by who started it."""
    assert child.stdin is not None
    child.stdin.close()
    with anyio.move_on_after(_CLOSING_S):
        await _process.exited(child)


class Pipe:
    """The lines to and from one server. Requests come one after the other, so whoever asks reads."""

    __slots__ = (
        "_buffer", "_bytes_max", "_child", "_errors", "_errors_read", "_inbox", "_queue", "_searched", "_waiting",
        "hurried",
    )  # fmt: skip

    def __init__(self, child: subprocess.Popen[bytes], inbox: Inbox, bytes_max: int) -> None:
        self.hurried = False
        self._child = child
        self._inbox = inbox
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self._searched = 0
        self._errors = _process.Kept(STDERR_BYTES_MAX)
        self._errors_read = anyio.Event()
        self._queue, self._waiting = anyio.create_memory_object_stream[bytes](_QUEUED_MAX)

    async def ask(self, message: Message, headers: Mapping[str, str]) -> Message:
        """The answer to a request. Raises Trouble: the server is gone, or says too much."""
        self._send(message)
        while True:
            answer, reply = self._inbox.take(await self._line(), message["id"])
            if reply is not None:
                self._send(reply)
            if answer is not None:
                return answer

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send what has no answer."""
        self._send(message)

    def errors(self) -> str:
        """The end of what it wrote on standard error."""
        text = self._errors.stream().text().strip()
        cut = len(text) > _STDERR_CHARACTERS_SHOWN
        return f"…{text[-_STDERR_CHARACTERS_SHOWN:]}" if cut else text

    def hurry(self) -> None:
        """It is of no use any more: end it without asking first."""
        self.hurried = True

    async def keep_errors(self, context: Context) -> None:
        """Read standard error to its end; whoever watches sees its last line."""
        await _process.read_to_end(self._child.stderr, self._errors, context.progress)
        self._errors_read.set()

    async def feed(self) -> None:
        """Write what is queued; a server that reads no more is noticed by who waits for its answer."""
        async with self._queue, self._waiting:
            async for line in self._waiting:
                if not await _process.wrote(self._child.stdin, line):
                    return

    def _send(self, message: Message) -> None:
        try:
            self._queue.send_nowait(written(message) + b"\n")
        except anyio.WouldBlock:
            told = "the server asks and doesn't read what it is answered"
            raise Trouble("mcp.too_many", "bad-request", told) from None
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # it reads no more; what it still has to say is read, and then its end

    async def _line(self) -> bytes:
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if self._searched > self._bytes_max:
                raise too_large(self._bytes_max)
            chunk = await self._more()
            if not chunk:
                raise await self._gone()
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        if len(line) > self._bytes_max:
            raise too_large(self._bytes_max)
        return line

    async def _more(self) -> bytes:
        pipe = self._child.stdout
        assert pipe is not None
        while True:
            await anyio.wait_readable(pipe)
            try:
                return os.read(pipe.fileno(), _CHUNK_BYTES)
            except BlockingIOError:
                continue

    async def _gone(self) -> Trouble:
        """Its output has ended: how, and its last words."""
        with anyio.move_on_after(_LAST_WORDS_S):
            await _process.exited(self._child)
            await self._errors_read.wait()
        said = self.errors()
        how = _how(self._child.returncode)
        last = f"; it said last: {said}" if said else ""
        told = f"the server {how} before it answered{last}{self._inbox.hint()}"
        return Trouble("mcp.closed", "network", told, fault_class="transient", cause=how)


def _how(code: int | None) -> str:
    if code is None:
        return "closed its output"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
