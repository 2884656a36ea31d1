"""What came of calls, on its way into the pool: those that end at about the same moment are one write there.

A write to the store waits for its disk, and everything else here waits with it. One for each call would cost more than
a short call itself.
"""

from __future__ import annotations

import asyncio

from gonogo.core.events import AnyEvent
from gonogo.journal.pool import Pool

TOGETHER_S = 0.005
"""So long after a write whatever ends is gathered for the next one; what ends after a pause is written at once."""


class Answers:
    """Those of one worker. Made and used within one asyncio event loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: dict[str, list[tuple[int, AnyEvent, int]]] = {}
        self._written: asyncio.Future[None] | None = None
        self._next_s = 0.0

    async def leave(self, run_id: str, call: int, event: AnyEvent, before: int) -> None:
        """Returns once it is durable, or nobody waits for it any more. Raises JournalError."""
        self._waiting.setdefault(run_id, []).append((call, event, before))
        if self._written is None:
            loop = asyncio.get_running_loop()
            self._written = loop.create_future()
            loop.call_at(max(self._next_s, loop.time()), self._write, self._written)
        await asyncio.shield(self._written)

    def _write(self, written: asyncio.Future[None]) -> None:
        waiting, self._waiting, self._written = self._waiting, {}, None
        try:
            for run_id, answers in waiting.items():
                self._pool.leave_all(run_id, answers)
        except Exception as error:  # noqa: BLE001 - for whoever waits
            written.set_exception(error)
            written.exception()  # they may all be gone
        else:
            written.set_result(None)
        self._next_s = asyncio.get_running_loop().time() + TOGETHER_S
