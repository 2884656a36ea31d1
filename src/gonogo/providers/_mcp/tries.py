"""The attempts of one call to a server: each meets it anew, and what the last one came to is kept for its fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from gonogo.gate.failures import GateError
from gonogo.gate.step import Attempt
from gonogo.provider import Context
from gonogo.providers._calling import LEAD_S
from gonogo.providers._mcp import process, web
from gonogo.providers._mcp.messages import Inbox, Trouble
from gonogo.providers._mcp.server import Server

if TYPE_CHECKING:
    from gonogo.providers._mcp.talking import Connection, Progress

T = TypeVar("T")


async def library() -> ModuleType:
    """`talking.py`. Importing it takes a second or two, in which other steps go on and a cancel is heard.

    Raises ModuleNotFoundError where the extra `mcp` isn't installed.
    """
    from importlib import import_module

    return await anyio.to_thread.run_sync(
        import_module, "gonogo.providers._mcp.talking", abandon_on_cancel=True
    )


class Tries(Generic[T]):
    """The attempts of one call. `ask` says what is asked of a connection; `named` is that for people."""

    __slots__ = (
        "_ask",
        "_called",
        "_context",
        "_inbox",
        "_named",
        "_progress",
        "_server",
        "_stderr",
        "_talking",
    )

    def __init__(
        self,
        server: Server,
        context: Context,
        talking: ModuleType,
        named: str,
        ask: Callable[[Connection, Progress], Awaitable[T | Trouble]],
    ) -> None:
        self._server = server
        self._context = context
        self._named = named
        self._ask = ask
        self._talking = talking
        self._inbox = Inbox(context.progress)
        self._progress: Progress = talking.Progress()
        self._called = False
        self._stderr = ""

    async def invoke(self, attempt: Attempt) -> T:
        """One attempt. Its own limit comes just before the gate's, so that it says how far it got. Raises Trouble."""
        self._called = self._called or self._progress.called
        self._inbox = Inbox(self._context.progress)
        self._progress = self._talking.Progress()
        limit_s = max(attempt.timeout_s - LEAD_S, attempt.timeout_s / 2)
        ended: T | Trouble | None = None
        async with self._met(attempt) as connection:
            with anyio.move_on_after(limit_s):
                ended = await self._ask(connection, self._progress)
            self._stderr = connection.errors()
            if ended is None or (isinstance(ended, Trouble) and ended.kind != "bad-request"):
                connection.hurry()
        if ended is None:
            raise self._settled(self._late(limit_s))
        if isinstance(ended, Trouble):
            raise self._settled(ended)
        return ended

    @property
    def called(self) -> bool:
        """Whether the tool was called in any attempt, so that it may have done something."""
        return self._called or self._progress.called

    def stderr(self) -> dict[str, str]:
        """What a started server wrote there, for the meta."""
        return {"stderr": self._stderr} if self._stderr else {}

    def cause(self, error: GateError, timeout_s: float) -> Trouble | None:
        """What the last attempt came to; None where the gate itself ended the call."""
        cause = error.__cause__
        if error.kind in ("deadline", "timeout-total") and error.attempts and not isinstance(cause, Trouble):
            cause = self._settled(self._late(timeout_s))
        return cause if isinstance(cause, Trouble) else None

    def _met(self, attempt: Attempt) -> AbstractAsyncContextManager[Any]:
        if self._server.command is not None:
            return process.server(self._server, self._context, self._inbox)
        return web.server(self._server, self._inbox, attempt)

    def _late(self, limit_s: float) -> Trouble:
        what = self._named if self._progress.called else "the server"
        told = f"{what} didn't answer within {limit_s:.3g} s{self._inbox.hint()}"
        return Trouble("mcp.timeout", "timeout-total", told, fault_class="transient")

    def _settled(self, trouble: Trouble) -> Trouble:
        """With what happened outside: before the tool was called, nothing."""
        if trouble.effect is None:
            trouble.effect = "unknown" if self._progress.called else "none"
        return trouble
