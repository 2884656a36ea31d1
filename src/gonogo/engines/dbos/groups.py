"""Calls that came together, performed by as many workers as have places for them.

One workflow brings several calls of a run. A worker keeps its fair share of them, begins with what it has places for,
and hands the rest back to the queue as another workflow: others take that, or itself once it has places again. A call
that it has claimed stays in its own workflow until it has ended, so it is found if the worker dies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from gonogo.engines.base import NEWER_S, Engine, Errand, Places, Work
from gonogo.errors import EngineError

LINGER_S = 0.05
"""So long a call waits here for a place that another worker may have free. Short calls have made room by then."""
SHARE_MIN = 4
"""To hand on fewer calls costs more than it gains."""
NEAR = 0.25
"""A worker with no larger part of its places taken begins with the calls of its own runs without telling others."""

log = logging.getLogger("gonogo.worker")


class Groups:
    """What a worker does with groups of calls. Within its event loop.

    `workers` says how many share the queue. `singly`: of which labels a workflow stands for one call, since its queue
    counts them.
    """

    def __init__(
        self,
        work: Work,
        engine: Engine,
        places: Places,
        workers: Callable[[], int],
        *,
        singly: Callable[[str], bool],
    ) -> None:
        self._work = work
        self._engine = engine
        self._places = places
        self._workers = workers
        self._singly = singly
        self._own: set[asyncio.Task[None]] = set()

    def begin(self, run_id: str, calls: Sequence[int], label: str) -> bool:
        """Perform a few calls of a run that is here, as long as there is little else to do; whether that is so."""
        is_near = self._places.busy <= NEAR and self._places.is_free_for(len(calls))
        if self._singly(label) or len(calls) > SHARE_MIN or not is_near:
            return False
        self._places.take(len(calls))
        own = asyncio.get_running_loop().create_task(self._begun(run_id, calls, label))
        self._own.add(own)
        own.add_done_callback(self._own.discard)
        return True

    async def over(self, within_s: float) -> None:
        """Until what was begun here is over."""
        if self._own:
            await asyncio.wait(self._own, timeout=within_s)

    async def perform(self, run_id: str, calls: Sequence[int], label: str) -> None:
        """Until each call has ended, is another worker's, or is in the queue again."""
        share = self._share(len(calls), label)
        kept = [*calls[:share], *await self._left_over(run_id, calls[share:], label)]
        begun: list[asyncio.Task[None]] = []
        while kept:
            places = self._places.take(1 if self._singly(label) else len(kept))
            if places:
                now, kept = kept[:places], kept[places:]
                begun.append(asyncio.create_task(self._begun(run_id, now, label)))
            elif not await self._places.freed(LINGER_S):
                kept = await self._left_over(run_id, kept, label)
        for done in await asyncio.gather(*begun, return_exceptions=True):
            if isinstance(done, BaseException):
                raise done

    async def _begun(self, run_id: str, calls: Sequence[int], label: str) -> None:
        """Each place is free again when its call has ended, and all of them are whatever happens. What can't be done
        here is offered once more: whoever gets it claims none of those that are over.
        """
        taken = len(calls)

        def ended(number: int) -> None:
            nonlocal taken
            taken -= number
            self._places.give(number)

        try:
            left = await self._work.calls(run_id, calls, ended)
        except Exception as problem:  # noqa: BLE001 - whatever it is, their run would wait for ever (law 2)
            log.warning("%d calls of run %s are left to others: %s", len(calls), run_id, problem)
            left = calls
        finally:
            self._places.give(taken)
        while left := await self._left_over(run_id, left, label, NEWER_S):  # noqa: ASYNC110 - the engine is away
            await asyncio.sleep(NEWER_S)

    def _share(self, calls: int, label: str) -> int:
        return 1 if self._singly(label) else max(SHARE_MIN, -(-calls // self._workers()))

    async def _left_over(
        self, run_id: str, calls: Sequence[int], label: str, delay_s: float = 0.0
    ) -> list[int]:
        """Hand calls back; those that can't be handed back."""
        if not calls:
            return []
        errands = [Errand(run_id, call, label) for call in calls]
        try:
            await asyncio.to_thread(self._engine.perform, errands, delay_s=delay_s)
        except EngineError as problem:
            log.warning("%d calls can't be left to others: %s", len(calls), problem.message)
            return list(calls)
        return []
