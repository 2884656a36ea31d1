"""What came of calls, on its way into the pool: those that end at about the same moment are one write there.

A write to the store waits for its disk, and everything else here waits with it. One for each call would cost more than
a short call itself. For a store that is away only the answers wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gonogo.core.events import AnyEvent
from gonogo.hosts.pen import when_back
from gonogo.journal.pool import Pool
from gonogo.journal.store import StoreAway

TOGETHER_S = 0.005
"""So long after a write whatever ends is gathered for the next one; what ends after a pause is written at once."""
Left = tuple[int, AnyEvent, int]
"""Call, event, and the claim's `before`."""


class Answers:
    """Those of one worker. Made and used within one asyncio event loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: dict[str, list[Left]] = {}
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
        self._write_all(list(waiting.items()), written)
        self._next_s = asyncio.get_running_loop().time() + TOGETHER_S

    def _write_all(self, waiting: list[tuple[str, list[Left]]], written: asyncio.Future[None]) -> None:
        """Those that are written are taken off the list. To write some again does no harm: their tickets have ended."""

        def fail(problem: BaseException) -> None:
            written.set_exception(problem)
            written.exception()  # whoever waits may be gone

        try:
            while waiting:
                self._pool.at_once(lambda: self._leave(*waiting[0]))
                del waiting[0]
        except StoreAway as away:
            loop = asyncio.get_running_loop()
            when_back(loop, away, lambda: self._write_all(waiting, written), fail)
        except Exception as problem:  # noqa: BLE001 - for whoever waits
            fail(problem)
        else:
            written.set_result(None)

    def _leave(self, run_id: str, answers: Sequence[Left]) -> None:
        self._pool.leave_all(run_id, answers)
