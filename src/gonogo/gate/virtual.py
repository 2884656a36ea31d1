"""Virtual time for tests of policies: an event loop whose clock jumps to the next timer instead of waiting for it.

    from gonogo.gate.virtual import VirtualClock, run

    async def story() -> None:
        gate = Gate(policy, clock=VirtualClock(), seed="a")
        ...

    run(story)

For code that waits for timers alone: real sockets, processes and threads take no virtual time, so timers overtake them.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from gonogo.gate.clock import SystemClock

T = TypeVar("T")


class VirtualClock(SystemClock):
    """The virtual loop's time. `wall_offset_s` may be changed at will, as if somebody set the wall clock."""

    __slots__ = ("wall_offset_s",)

    def __init__(self, wall_offset_s: float = 1_800_000_000.0) -> None:
        super().__init__()
        self.wall_offset_s = wall_offset_s

    def now(self) -> float:
        """Monotonic seconds of the running loop."""
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        """Unix time, seconds."""
        return self.wall_offset_s + self.now()


def run(story: Callable[[], Awaitable[T]]) -> T:
    """Run an async function in virtual time, from second 0 on."""

    async def told() -> T:
        return await story()

    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(told())


class _VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own."""

    def __init__(self) -> None:
        self.virtual_s = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        """Virtual seconds."""
        return self.virtual_s


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing but what is there: a wait for a timer moves the clock instead."""

    def __init__(self, loop: _VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, Any]]:
        """Files that are ready; else the time of the next timer has come."""
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self._loop.virtual_s += timeout
        return ready
