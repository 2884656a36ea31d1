"""Where a gate's time comes from. Durations are monotonic, so that a changed wall clock shortens nothing.

On asyncio a limit is a timer that cancels the task, as `asyncio.timeout` does: half the cost of a cancel scope, and
every piece of a stream has one. It cancels again every second until the block is left: code may swallow the first.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager
from contextvars import Context
from types import TracebackType
from typing import Any, Protocol

import anyio

AGAIN_S = 1.0
"""How long code may ignore that its time is up before it is told again."""


class Limit(Protocol):
    """What `limit` gives: whether the time was up."""

    @property
    def cancelled_caught(self) -> bool:
        """True when the block was cut short by this limit."""
        ...


class Clock(Protocol):
    """Time for a gate. Tests hand in a virtual one."""

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def wall(self) -> float:
        """Unix time, seconds; for people, for dates in headers, and for what outlives the machine's boot."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s`; a cancellation ends it at once."""
        ...

    def limit(self, delay_s: float) -> AbstractContextManager[Limit, bool]:
        """Cut short what is awaited in the block when `delay_s` is over."""
        ...


class SystemClock:
    """The real one."""

    __slots__ = ()

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def wall(self) -> float:
        """Unix time, seconds."""
        return time.time()

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s`."""
        await anyio.sleep(delay_s)

    def limit(self, delay_s: float) -> AbstractContextManager[Limit, bool]:
        """Cut short what is awaited in the block when `delay_s` is over."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # not asyncio
            task = None
        return anyio.move_on_after(delay_s) if task is None else _TaskLimit(task, delay_s)


class _TaskLimit:
    """Cancels a task when the time is up, and takes that back when the block is left."""

    __slots__ = ("_before", "_fired", "_task", "_timer", "cancelled_caught")

    def __init__(self, task: asyncio.Task[Any], delay_s: float) -> None:
        self._task = task
        self._fired = 0
        self._before = task.cancelling()
        self.cancelled_caught = False
        self._arm(delay_s)

    def _arm(self, delay_s: float) -> None:
        # A context of its own, because the loop keeps cancelled timers for a while: a copy of the running one would
        # keep the whole call with them.
        loop = self._task.get_loop()
        self._timer = loop.call_at(loop.time() + delay_s, self._fire, context=Context())

    def _fire(self) -> None:
        self._fired += 1
        self._task.cancel()
        self._arm(AGAIN_S)

    def __enter__(self) -> _TaskLimit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._timer.cancel()
        if not self._fired:
            return False
        left = min(self._task.uncancel() for _ in range(self._fired))
        # What somebody else cancelled meanwhile stays cancelled.
        self.cancelled_caught = (
            left <= self._before and kind is not None and issubclass(kind, asyncio.CancelledError)
        )
        return self.cancelled_caught
