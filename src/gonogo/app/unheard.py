"""Requests that reached the store though their engine was never told: it was away, or whoever asked was cut off between
the two.

Whoever has a run sees what is asked of it by itself; nobody looks at one that waits. So each worker looks at all that
is asked, and what is still there at its next look is handed on as if it had been asked just now. To do so once too
often does no harm: an engine only has somebody look at the run.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

from gonogo.app.carried import carried_in
from gonogo.app.engines import hand_on
from gonogo.app.options import Options
from gonogo.errors import GonogoError
from gonogo.journal.sharing import SharedRuns

LOOK_S = 4.0
"""Between looks: what is asked is heard of within two of them, once the engine answers."""

log = logging.getLogger("gonogo.worker")


class Unheard:
    """Those of one store, as one worker sees them, for runs that its engine (`name`) carries."""

    def __init__(self, name: str, runs: SharedRuns, options: Options) -> None:
        self._name = name
        self._runs = runs
        self._options = options
        self._seen: dict[str, str] = {}
        self._handed: dict[str, str] = {}
        self._told: dict[str, str] = {}

    async def watch(self) -> NoReturn:
        """Look again and again. A store that is away is no reason to stop: that is when requests get lost."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except GonogoError as problem:
                log.warning("what is asked of runs isn't looked at for now: %s", problem.message)
            except Exception:
                # Were this to end, nobody would ever look again.
                log.exception("what is asked of runs isn't looked at for now; please report it")

    async def look(self) -> None:
        """Hand on what was there at the last look, too; each request once. Raises JournalError."""
        waiting = dict(self._runs.at_once(self._runs.asked))
        for known in (self._handed, self._told):
            for run_id in known.keys() - waiting.keys():
                del known[run_id]
        seen, self._seen = self._seen, waiting
        for run_id, first in waiting.items():
            if seen.get(run_id) == first and self._handed.get(run_id) != first:
                await self._hand_on(run_id, first)

    async def _hand_on(self, run_id: str, first: str) -> None:
        try:
            await asyncio.to_thread(self._handed_on, run_id)
        except GonogoError as problem:
            if self._told.get(run_id) != first:
                log.warning("what is asked of run %s waits: %s", run_id, problem.message)
            self._told[run_id] = first
        else:
            self._handed[run_id] = first

    def _handed_on(self, run_id: str) -> None:
        """Unless the engine isn't ours. Beside the event loop: the store and the engine may let it wait."""
        carried = carried_in(self._runs, run_id)
        if carried is not None and carried.carrier.name == self._name:
            hand_on(carried.run_id, carried.carrier, self._options)
