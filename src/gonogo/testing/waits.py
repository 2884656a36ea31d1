"""A gate's clock for tests that call real servers: waits take no time and are noted, limits are real."""

from __future__ import annotations

import anyio

from gonogo.gate.clock import SystemClock


class SkippingClock(SystemClock):
    """The system's time, put forward by each wait. `waits_s` holds the waits, in order."""

    __slots__ = ("skipped_s", "waits_s")

    def __init__(self) -> None:
        super().__init__()
        self.skipped_s = 0.0
        self.waits_s: list[float] = []

    def now(self) -> float:
        """Monotonic seconds, with what was skipped."""
        return super().now() + self.skipped_s

    def wall(self) -> float:
        """Unix time, with what was skipped."""
        return super().wall() + self.skipped_s

    async def sleep(self, delay_s: float) -> None:
        """Return at once, later."""
        self.waits_s.append(delay_s)
        self.skipped_s += delay_s
        await anyio.lowlevel.checkpoint()
