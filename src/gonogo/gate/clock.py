"""Where a gate's time comes from. Durations are monotonic, so that a changed wall clock shortens nothing."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Protocol

import anyio


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
        return anyio.move_on_after(delay_s)
