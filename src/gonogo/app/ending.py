"""A worker that is told to end: by whom, with what under way, and that it did."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable

from gonogo.report.layout import count

log = logging.getLogger("gonogo.worker")


class Ending(asyncio.Event):
    """Set once SIGTERM or SIGINT comes."""

    def __init__(self) -> None:
        super().__init__()
        self._by = ""

    def heed(self) -> None:
        """Hear the signals of this process from now on. Within the event loop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._ask, number)

    async def tell(self, under_way: Callable[[], tuple[int, int]], drain_s: float) -> None:
        """Once told to end, say what there is to wait for: runs, and calls."""
        await self.wait()
        runs, calls = under_way()
        log.info(
            "draining after %s: takes nothing new; under way: %s and %s, calls have %g s to end",
            self._by,
            count(runs, "run"),
            count(calls, "call"),
            drain_s,
        )

    def over(self) -> None:
        """Say that the worker has ended."""
        log.info("ended after %s; what it left goes on with other workers", self._by)

    def _ask(self, number: signal.Signals) -> None:
        self._by = self._by or number.name
        self.set()
