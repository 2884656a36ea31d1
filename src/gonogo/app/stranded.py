"""Calls that mutate, whose worker is gone together with all others that have their label.

An engine keeps such a call for whoever has the label next, and its run would wait for that without a word. But nobody
may perform it again: nobody knows what became of it, and to say so takes no label.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from gonogo.core.events import CallLost
from gonogo.errors import JournalError
from gonogo.journal.pool import Pool

LOOK_S = 4.0
LOOKS = 3
"""What is so at as many looks in a row is said: a worker that is connected anew has said by then that it lives."""
MOST = 100
"""So many at one look."""

log = logging.getLogger("gonogo.worker")


class Stranded:
    """Those of one store, as one worker sees them; `find` gives runs and numbers of at most so many calls."""

    def __init__(self, worker: str, pool: Pool, find: Callable[[int], list[tuple[str, int]]]) -> None:
        self._worker = worker
        self._pool = pool
        self._find = find
        self._seen: dict[tuple[str, int], int] = {}

    async def watch(self) -> NoReturn:
        """Look again and again; a store that is away is no reason to stop."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await asyncio.to_thread(self.look)
            except JournalError as problem:
                log.warning("calls whose workers are gone aren't looked for just now: %s", problem.message)
            except Exception:
                # Were this to end, nobody would ever look again.
                log.exception("calls whose workers are gone aren't looked for just now; please report it")

    def look(self) -> None:
        """Say of calls that were there at the last looks, too, that they are in doubt. What was seen before a store was
        away counts no more: no worker could say then that it lives. Raises JournalError.
        """
        seen, self._seen = self._seen, {}
        self._seen = {each: seen.get(each, 0) + 1 for each in self._find(MOST)}
        for (run_id, call), looks in self._seen.items():
            if looks >= LOOKS:
                self._say(run_id, call)

    def _say(self, run_id: str, call: int) -> None:
        claim = self._pool.claim(run_id, call, self._worker)
        if claim is None:
            return
        if claim.newer or not claim.before or claim.ticket.command.effects != "mutates":
            self._pool.pass_over(
                claim, self._worker, f"it waits for a worker with the label {claim.ticket.label}"
            )
            return
        self._pool.leave(run_id, call, CallLost(call=call, by=claim.had), before=claim.before)
        log.warning(
            "call %d of run %s is in doubt: the worker that performed it is gone, and no other has the label %s",
            call,
            run_id,
            claim.ticket.label,
        )
