"""Whether a worker that its engine lost sight of lives.

An engine takes a worker for dead that it doesn't hear of; but it may have been the engine that was away, or the network
between the two. The store knows better: whoever is to take work over asks there, and waits as long as somebody answers
that it has the work under way. To take it all the same would put calls in doubt that are well. A worker that stands
still doesn't answer. Nothing rests on an answer: one that is lost costs a doubt, since claims and epochs keep out
whoever was taken for dead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from gonogo.app.keeping import Here
from gonogo.engines.base import Engine, Errand
from gonogo.errors import EngineError, JournalError
from gonogo.journal.pool import Pool

WHO = "$who"
"""What all workers listen to."""
SILENT_S = 1.0
"""So long an answer is waited for."""
LISTENS_S = 0.25
"""So long for the store to know who listens. A name may be heard by then, though nobody rang."""

log = logging.getLogger("gonogo.worker")


class Living:
    """What one worker says of itself and asks of others. Made and used within one asyncio event loop."""

    def __init__(
        self,
        here: Here,
        pool: Pool,
        engine: Engine,
        listen: Callable[[str, Callable[[], None]], Callable[[], None]],
    ) -> None:
        self._here = here
        self._pool = pool
        self._engine = engine
        self._listen = listen

    def answer(self) -> None:
        """Somebody asks: say what is under way here."""
        try:
            self._ring([_sign(run_id, call) for run_id, call in self._here.keys])
        except JournalError as problem:
            log.warning("others aren't told that this worker lives: %s", problem.message)

    async def silent(self, run_id: str, call: int | None) -> None:
        """Until nobody else has it under way; at once when it is here. The engine doesn't hear of the worker that has
        a run, which may be for want of a way to it: calls of that run are handed over for it. Raises JournalError,
        and StoreAway where the store isn't waited for.
        """
        handed: set[int] = set()
        heard = asyncio.Event()
        deaf = self._listen(_sign(run_id, call), heard.set)
        try:
            await _is_set(heard, LISTENS_S)
            while (run_id, call) not in self._here.keys and await self._answers(heard):
                if call is None:
                    handed |= await self.handed_over(run_id, handed)
                await asyncio.sleep(SILENT_S)
        finally:
            deaf()

    async def handed_over(self, run_id: str, known: Collection[int] = ()) -> set[int]:
        """Hand over calls of a run that another worker has, and that nobody has claimed: those that were handed over,
        of all but the `known`. Nothing when the engine can't be had. Raises JournalError, and StoreAway where the
        store isn't waited for.
        """
        unclaimed = self._pool.at_once(lambda: self._pool.unclaimed(run_id))
        errands = [Errand(run_id, call, label) for call, label in unclaimed if call not in known]
        if not errands:
            return set()
        try:
            await asyncio.to_thread(self._engine.perform, errands)
        except EngineError as problem:
            log.warning("%d calls of run %s wait: %s", len(errands), run_id, problem.message)
            return set()
        return {errand.call for errand in errands}

    async def _answers(self, heard: asyncio.Event) -> bool:
        heard.clear()
        self._ring([WHO])
        return await _is_set(heard, SILENT_S)

    def _ring(self, names: Collection[str]) -> None:
        self._pool.at_once(lambda: self._pool.ring(names))


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _sign(run_id: str, call: int | None) -> str:
    return f"{run_id} lives" if call is None else f"{run_id}/{call} lives"
