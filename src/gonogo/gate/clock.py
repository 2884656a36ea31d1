"""Where a gate's time comes from. Durations are monotonic, so that a changed wall clock shortens nothing.

On asyncio a limit is a timer that cancels the task, as `asyncio.timeout` does: half the cost of a cancel scope. It
cancels again every second until the block is left: code may swallow the first. Every piece of a stream has a limit;
they share one timer (`Alarm`).
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
SPARE_MAX = 64
"""So many timers are kept for the next calls of a gate; a call beyond them arms one of its own."""


class Limit(Protocol):
    """What `limit` gives: whether the time was up."""

    @property
    def cancelled_caught(self) -> bool:
        """True when the block was cut short by this limit."""
        ...


class Alarm(Protocol):
    """Limits one block after the other, never two at a time, at less cost than a `limit` for each."""

    def limit(self, delay_s: float) -> AbstractContextManager[Limit, bool]:
        """Cut short what is awaited in the block entered next when `delay_s` is over."""
        ...

    def close(self) -> None:
        """There are no more blocks."""
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

    def alarm(self) -> Alarm:
        """A limit for many blocks in a row."""
        ...


class SystemClock:
    """The real one."""

    __slots__ = ("_spare",)

    def __init__(self) -> None:
        self._spare: list[_Lent] = []

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s`."""
        await anyio.sleep(delay_s)

    def limit(self, delay_s: float) -> AbstractContextManager[Limit, bool]:
        """Cut short what is awaited in the block when `delay_s` is over."""
        loop = _running()
        if loop is None:
            return anyio.move_on_after(delay_s)
        alarm = self._spare.pop() if self._spare else None
        if alarm is None or alarm.loop is not loop:
            alarm = _Lent(loop, self._spare)
        return alarm.limit(delay_s)

    def alarm(self) -> Alarm:
        """A limit for many blocks in a row."""
        loop = _running()
        return _Scopes() if loop is None else _Alarm(loop)


class _Alarm:
    """Cancels the task that waits in its block when the time is up, and takes that back when the block is left.

    Its timer stays armed between blocks and is only moved on when it rings too early: a stream enters a block a piece.
    """

    __slots__ = ("_before", "_due_at", "_fired", "_task", "_timer", "cancelled_caught", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._before = self._fired = 0
        self._due_at = 0.0
        self.cancelled_caught = False

    def limit(self, delay_s: float) -> _Alarm:
        """Watch the running task's next block."""
        self._task = task = asyncio.current_task(self.loop)
        assert task is not None
        self._before = task.cancelling()
        self._fired = 0
        self.cancelled_caught = False
        self._due_at = due_at = self.loop.time() + delay_s
        timer = self._timer
        if timer is None:
            self._arm(due_at)
        elif due_at < timer.when():
            timer.cancel()
            self._arm(due_at)
        return self

    def close(self) -> None:
        """There are no more blocks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, at: float) -> None:
        # A context of its own, because the loop keeps cancelled timers for a while: a copy of the running one would
        # keep the whole call with them.
        self._timer = self.loop.call_at(at, self._ring, context=Context())

    def _ring(self) -> None:
        self._timer = None
        task = self._task
        if task is None:
            return
        now = self.loop.time()
        if not self._fired and now < self._due_at:
            self._arm(self._due_at)
            return
        self._fired += 1
        task.cancel()
        self._arm(now + AGAIN_S)

    def __enter__(self) -> _Alarm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if not self._fired:
            return False
        self.close()
        assert task is not None
        left = min(task.uncancel() for _ in range(self._fired))
        # What somebody else cancelled meanwhile stays cancelled.
        self.cancelled_caught = (
            left <= self._before and kind is not None and issubclass(kind, asyncio.CancelledError)
        )
        return self.cancelled_caught


class _Lent(_Alarm):
    """For one block; then it goes back, its timer still armed, for somebody else's."""

    __slots__ = ("_spare",)

    def __init__(self, loop: asyncio.AbstractEventLoop, spare: list[_Lent]) -> None:
        super().__init__(loop)
        self._spare = spare

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        caught = False
        if self._fired:
            caught = super().__exit__(kind, error, trace)
        self._task = None
        if len(self._spare) < SPARE_MAX:
            self._spare.append(self)
        else:
            self.close()
        return caught


class _Scopes:
    """An alarm where the loop isn't asyncio's."""

    __slots__ = ()

    def limit(self, delay_s: float) -> AbstractContextManager[Limit, bool]:
        """A scope for the next block."""
        return anyio.move_on_after(delay_s)

    def close(self) -> None:
        """There is nothing to take back."""


def _running() -> asyncio.AbstractEventLoop | None:
    """asyncio's loop, if it runs here."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
