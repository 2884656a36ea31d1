"""What a worker does for an engine: goes on with runs, and performs calls of runs that others go on with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gonogo.app.again import wish_left_for
from gonogo.app.keeping import Here, persistently
from gonogo.app.living import WHO, Living
from gonogo.app.options import Options
from gonogo.app.wiring import plan_in, started_by, surroundings_of
from gonogo.core.events import RunStarted
from gonogo.core.plan import Plan
from gonogo.engines.base import NEWER_S, TAKEOVERS_MAX, Errand, Limits
from gonogo.errors import EngineError, GonogoError, Interrupted, RunLocked
from gonogo.hosts.errands import Errands
from gonogo.hosts.local import run_again, run_new
from gonogo.hosts.pen import when_back
from gonogo.hosts.slots import Places
from gonogo.hosts.spread import Spread
from gonogo.journal.lines import NewerJournal, NoSuchRun
from gonogo.journal.pool import Ticket
from gonogo.journal.sharing import SharedRuns
from gonogo.journal.store import StoreAway

if TYPE_CHECKING:
    from gonogo.engines.base import Engine, Stopping
    from gonogo.hosts.base import RunResult, Surroundings

TAKEN_S = 3.0
"""So long a run that another worker has is waited for: it may be about to leave it, and not have seen a request."""
_AGAIN_S = 0.25
HELD_S = 5.0
"""A run that another process has is looked at again so soon, where none but the engine's own may have it."""
END_S = 10.0
"""Longest for what is under way to end, once it has to."""
ASIDE_AGAIN_S = 60.0
"""A run that can neither go on nor be set aside is tried again so soon: none but its worker knows of it."""
HEAR_AGAIN_S = 5.0
"""Whether a call is to stop is asked again so soon, where the store gives no hope of its coming back."""
DISPATCH_AGAIN_S = (0.1, 0.5, 2.0, 5.0)
"""Pauses between tries to hand work to an engine that can't be reached; the last one for as long as it takes."""

log = logging.getLogger("gonogo.worker")
taken = logging.getLogger("gonogo.worker.taken")
"""Each run and call that a worker takes; shown where somebody asks for it."""


class Worker:
    """One worker process: an engine's `Work`."""

    def __init__(
        self, name: str, runs: SharedRuns, engine: Engine, options: Options, calls: int = Limits().calls
    ) -> None:
        """`calls`: most at once, of its own runs and of others' together."""
        self.places = Places(calls)
        self._runs = runs
        self._engine = engine
        self._options = replace(options, runs=runs)
        self._bells = Bells(runs)
        self._dispatch = Dispatch(engine)
        self._spread = Spread(runs.pool, self._dispatch.put, self._bells.listen)
        self._errands = Errands(name, runs, self._around_a_call)
        self._bells.listen(name, self._hear)
        self._here = Here()
        self._living = Living(self._here, runs.pool, engine, self._bells.listen)

    async def free(self, run_id: str, call: int | None) -> bool:
        """Wait until whoever has the work doesn't answer, however long; False when the store doesn't."""
        if not await asyncio.to_thread(self._runs.answers):
            return False
        try:
            await self._living.silent(run_id, call)
        except StoreAway:
            return False
        return True

    async def segment(
        self, run_id: str, *, reopens: bool = False, takes_over: bool = False, alone: bool = False
    ) -> float | None:
        """Go on with a run until it is over or only waits. One that can't go on is tried again, then set aside."""

        async def work() -> float | None:
            if takes_over:
                log.warning("takes over run %s: the worker that had it isn't heard of", run_id)
                await asyncio.to_thread(self._runs.cut_off, run_id)
            try:
                return await self._carried(run_id, reopens)
            except RunLocked:  # whoever has it hears of every request
                if alone and reopens:  # what it handed over may be lost with all that the engine knew
                    await self._living.handed_over(run_id)
                return HELD_S if alone else None

        return await self._here.done((run_id, None), work, given_again=takes_over)

    @property
    def is_cut_off(self) -> bool:
        """Whether the store is waited for."""
        return self._runs.is_away

    def under_way(self) -> tuple[int, int]:
        """How many runs and calls are with this worker now."""
        return sum(call is None for _, call in self._here.keys), self._errands.under_way

    async def call(self, run_id: str, call: int, *, takes_over: bool) -> bool:
        """Perform a call, unless somebody has; False when it is for a newer worker."""

        async def work() -> bool:
            try:
                return await self._errands.perform(run_id, call, takes_over=takes_over, tries=TAKEOVERS_MAX)
            except NewerJournal as problem:
                log.warning("call %d of run %s is left to a newer worker: %s", call, run_id, problem.message)
                return False

        return await self._here.done((run_id, call), work, given_again=takes_over)

    async def calls(self, run_id: str, calls: Sequence[int], ended: Callable[[int], None]) -> Sequence[int]:
        """Perform those of these calls that no worker has; those that are for a newer worker."""
        try:
            return await self._errands.perform_free(run_id, calls, ended, tries=TAKEOVERS_MAX)
        except NewerJournal as problem:
            log.warning("calls of run %s are left to a newer worker: %s", run_id, problem.message)
            return calls

    async def lost(self, worker: str) -> None:
        """Let others have what a dead worker had. Nothing else need tell them of it: it is handed over once more."""
        errands = [Errand(*free) for free in await asyncio.to_thread(self._runs.pool.lose, worker)]
        if errands:
            await asyncio.to_thread(self._engine.perform, errands)

    def listen(self, name: str, then: Callable[[], None]) -> Callable[[], None]:
        """Hear what is rung for in the store."""
        return self._bells.listen(name, then)

    async def wake(self, run_id: str, delay_s: float) -> None:
        """Have somebody go on with a run then. None but this worker knows that it has to."""
        await _handed_over(
            f"run {run_id} waits to be woken", lambda: self._engine.submit(run_id, delay_s=delay_s)
        )

    async def aside(self, run_id: str, call: int | None, takeovers: int) -> None:
        """Say which work is given up until somebody asks for it."""
        if call is None:
            await self._set_aside(run_id, f"it lost {takeovers} workers")
            return
        log.error("call %d of run %s is given up: it lost %d workers", call, run_id, takeovers)
        await self._errands.give_up(run_id, call, takeovers)

    async def leave_when(self, stopping: Stopping) -> None:
        """Once told to stop, let runs leave as soon as nothing of theirs is under way here."""
        await stopping.wait()
        self._spread.leaving.ask()

    async def __aenter__(self) -> Worker:
        self._bells.start()
        self._bells.listen(WHO, self._living.answer)
        self._dispatch.start()
        return self

    async def leave(self) -> None:
        """Whatever is still here leaves as it is. To cancel its task would cancel the run."""
        self._spread.leaving.ask(now=True)
        await self._here.over(END_S)
        await self._errands.close()

    async def __aexit__(self, *_: object) -> None:
        await self.leave()
        await self._dispatch.close()
        self._bells.close()

    def _hear(self) -> None:
        """What runs say to the calls that are here. A store that is away is asked once it is back; one that refuses us
        meanwhile, as where a newer gonogo has changed the tables, now and then.
        """
        loop = asyncio.get_running_loop()

        def later(_: BaseException) -> None:
            loop.call_later(HEAR_AGAIN_S, self._hear)

        try:
            self._runs.pool.at_once(self._errands.hear)
        except StoreAway as away:
            when_back(loop, away, self._hear, later)

    async def _carried(self, run_id: str, reopens: bool) -> float | None:
        """Neither on nor aside, a run stays here, and is taken over when this worker ends: for an engine a failure is
        the end of it.
        """
        while True:
            try:
                return await self._went_on(run_id, reopens)
            except RunLocked:
                raise
            except GonogoError as problem:
                if await self._is_set_aside(run_id, problem.message):
                    return None
            await asyncio.sleep(ASIDE_AGAIN_S)

    async def _is_set_aside(self, run_id: str, why: str) -> bool:
        try:
            await self._set_aside(run_id, why)
        except GonogoError as problem:
            told = "run %s can't go on: %s; nor can it be set aside: %s; it is tried again in %g s"
            log.error(told, run_id, why, problem.message, ASIDE_AGAIN_S)
            return False
        return True

    async def _went_on(self, run_id: str, reopens: bool) -> float | None:
        """Raises RunLocked, and GonogoError for what doesn't pass."""
        try:
            result = await persistently(
                lambda: self._when_free(run_id, reopens),
                lambda told: log.error("run %s can't go on: %s", run_id, told),
            )
        except Interrupted:
            return 0.0
        except NewerJournal as problem:
            log.warning("run %s is left to a newer worker: %s", run_id, problem.message)
            return NEWER_S
        except NoSuchRun as problem:  # there is nothing to set aside
            log.error(
                "%s: it was deleted, or is another store's, whose workers share this queue", problem.message
            )
            return None
        return 0.0 if self._spread.leaving.asked and result.verdict == "HOLD" else result.wakes_in_s

    async def _set_aside(self, run_id: str, why: str) -> None:
        """Kept with the run, for whoever looks at it. Raises JournalError."""
        await asyncio.to_thread(self._runs.set_aside, run_id, why)
        log.error("run %s is set aside: %s; 'gonogo resume %s' tries again", run_id, why, run_id)

    async def _when_free(self, run_id: str, reopens: bool) -> RunResult:
        end_s = asyncio.get_running_loop().time() + TAKEN_S
        while True:
            try:
                return await self._go_on(run_id, reopens)
            except RunLocked:
                if asyncio.get_running_loop().time() > end_s:
                    raise
                await asyncio.sleep(_AGAIN_S)

    async def _go_on(self, run_id: str, reopens: bool) -> RunResult:
        """Beside the event loop, as long as it takes to open the run: the store may let it wait, as for a table that is
        locked.
        """
        first = await asyncio.to_thread(self._runs.submitted, run_id)
        if first is not None:
            around = self._around(first)
            new = await asyncio.to_thread(self._runs.create, run_id)
            taken.info("takes run %s, which is new", run_id)
            return await run_new(first, new, around)
        journal = await asyncio.to_thread(self._runs.reopen, run_id)
        try:
            wish = await asyncio.to_thread(wish_left_for, journal)
            plan = wish.plan if wish is not None else None
            around = self._around(started_by(journal), plan or plan_in(journal.records))
        except BaseException:
            journal.close()
            raise
        taken.info("takes run %s", run_id)
        return await run_again(journal, around, reopens=reopens, wish=wish)

    def _around(self, first: RunStarted, plan: Plan | None = None) -> Surroundings:
        around = surroundings_of(first, self._runs, self._options, plan)
        return replace(around, spread=self._spread, places=self.places)

    def _around_a_call(self, first: RunStarted, plan: Plan) -> Surroundings:
        return replace(surroundings_of(first, self._runs, self._options, plan), places=self.places)


class Dispatch:
    """Hands calls to the engine beside the event loop, in order, as many at once as have gathered."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[Errand] = []
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Within the event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, tickets: Sequence[Ticket]) -> None:
        """Have these performed; returns at once."""
        errands = [Errand(each.run_id, each.command.call, each.label) for each in tickets]
        self._waiting += self._engine.begin(errands)
        if self._waiting:
            self._some.set()

    async def close(self) -> None:
        """What wasn't handed over is offered again by whoever takes its run over."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            errands, self._waiting = self._waiting, []
            if errands:
                await _handed_over(f"{len(errands)} calls wait", partial(self._engine.perform, errands))


async def _handed_over(told: str, hand_over: Callable[[], object]) -> None:
    """Raises nothing: were Dispatch's task to end, no call of this worker's runs would ever be handed over."""
    pauses = iter(DISPATCH_AGAIN_S)
    while True:
        try:
            await asyncio.to_thread(hand_over)
            return
        except EngineError as problem:
            log.warning("%s: %s", told, problem.message)
        except Exception:
            log.exception("%s: the engine broke; please report it", told)
        await asyncio.sleep(next(pauses, DISPATCH_AGAIN_S[-1]))


class Bells:
    """One bell for all that this worker listens to: the runs it goes on with, and itself."""

    def __init__(self, runs: SharedRuns) -> None:
        self._bell = runs.pool.bell([])
        self._ears: dict[str, list[Callable[[], None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Within the event loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._bell.fileno(), self._ring)

    def listen(self, name: str, then: Callable[[], None]) -> Callable[[], None]:
        """Have `then` called when `name` is rung for, until the answer is called."""
        ears = self._ears.setdefault(name, [])
        if not ears:
            self._bell.add(name)
        ears.append(then)

        def deaf() -> None:
            ears.remove(then)
            if not ears:
                del self._ears[name]
                self._bell.remove(name)

        return deaf

    def close(self) -> None:
        """Hear no more."""
        if self._loop is not None:
            self._loop.remove_reader(self._bell.fileno())
        self._bell.close()

    def _ring(self) -> None:
        """What one of those who listen makes of it is no matter of the others."""
        for name in self._bell.heard():
            for ear in tuple(self._ears.get(name, ())):
                try:
                    ear()
                except Exception:
                    log.exception("what was rung for with %s isn't heeded", name)
