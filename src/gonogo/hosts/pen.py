"""Writes a run's records, tells who watches, and knows when nothing can be written because the store is away.

The event loop never waits for a store: commands go on, time limits hold, and signals are heard. What must be written
first waits here instead (`is_stuck`), with all that depends on it, until `then` is called.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from gonogo.core.decisions import AnyDecision
from gonogo.core.events import AnyEvent
from gonogo.errors import Interrupted, JournalError
from gonogo.hosts.base import LogLine, Surroundings
from gonogo.journal.records import Record
from gonogo.journal.store import RunJournal, StoreAway

T = TypeVar("T")

STUCK_S = 90.0
"""Longest for one batch, however often the store comes back for a moment."""
INTERRUPTED_S = 0.5
"""The same, once whoever is there with the run told it to end (law 7)."""


class Pen:
    """One run's. Made and used within one asyncio event loop."""

    def __init__(
        self,
        journal: RunJournal,
        around: Surroundings,
        *,
        then: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        """`then` is called when it may be tried again, `fail` when that won't help."""
        self.must_sync = False
        """Whether what is written next has to be durable."""
        self._journal = journal
        self._around = around
        self._then = then
        self._fail = fail
        self._seq = journal.records[-1].seq + 1 if journal.records else 0
        self._unwritten: list[Record] = []
        self._stuck_s: float | None = None
        self._waits = False
        self._free: asyncio.Future[None] | None = None
        self._broken: set[int] = set()
        self._loop = asyncio.get_running_loop()

    @property
    def last(self) -> int:
        """The record that was added last."""
        return self._seq - 1

    @property
    def is_stuck(self) -> bool:
        """Whether there are records that can't be written now."""
        return self._stuck_s is not None

    def add(self, now_s: float, event: AnyEvent, decisions: tuple[AnyDecision, ...]) -> None:
        """One more record, to be written."""
        self._unwritten.append(Record(self._seq, now_s, event, decisions))
        self._seq += 1

    async def free(self) -> None:
        """Returns once nothing is stuck."""
        while self.is_stuck:
            if self._free is None:
                self._free = self._loop.create_future()
            await asyncio.shield(self._free)

    async def sure(self) -> None:
        """Returns while the run is this host's, waiting for a store that is away. Raises JournalError when another may
        have it.
        """
        while True:
            await self.free()
            try:
                self._journal.at_once(self._journal.confirm)
                return
            except StoreAway as away:
                await _back(self._loop, away)

    def write(self) -> Sequence[Record]:
        """Append what was added since the last time; those that are durable now. It may be stuck afterwards. Raises
        JournalError.
        """
        records, sync = self._unwritten, self.must_sync
        if not records or self._waits:
            return ()
        try:
            self._journal.at_once(lambda: self._journal.append(records, sync=sync))
        except StoreAway as away:
            self._stick(away)
            return ()
        except JournalError:
            self._unwritten = []  # nothing more can be written; to try would hide the reason
            raise
        self._unwritten, self.must_sync, self._stuck_s = [], False, None
        if self._free is not None:
            self._free.set_result(None)
            self._free = None
        for sink in self._around.sinks:
            self._show(sink, records)
        return records if sync else ()

    def _stick(self, away: StoreAway) -> None:
        now_s = time.monotonic()
        self._stuck_s = now_s if self._stuck_s is None else self._stuck_s
        if now_s - self._stuck_s > STUCK_S:
            raise away
        self._waits = True
        when_back(self._loop, away, self._again, self._fail)

    def _again(self) -> None:
        self._waits = False
        self._then()

    def give_up_soon(self) -> None:
        """Nobody waits for what is stuck: it ends here, though that can't be written."""
        if self.is_stuck:
            self._loop.call_later(INTERRUPTED_S, self._give_up)

    def _give_up(self) -> None:
        if self.is_stuck:
            run_id = self._journal.run_id
            told = f"run {run_id} was interrupted while its store didn't answer, so the store doesn't know"
            advice = (
                f"once it answers, 'gonogo resume {run_id}' goes on, and 'gonogo cancel {run_id}' ends it"
            )
            self._fail(Interrupted(told, advice=advice))

    def _show(self, sink: Callable[[Record], None], records: Sequence[Record]) -> None:
        """Watching never changes a run; that a watcher broke is told once, and it is asked again all the same."""
        for record in records:
            try:
                sink(record)
            except Exception as error:  # noqa: BLE001 - a foreign function may raise anything
                if id(sink) not in self._broken:
                    self._broken.add(id(sink))
                    self._tell(f"what watches the run broke: {type(error).__name__}: {error}")

    def _tell(self, text: str) -> None:
        told = self._around.redactor.text(text)
        with suppress(Exception):  # whoever listens may be what broke
            self._around.log(LogLine(self._journal.run_id, "", "", "warn", told))


async def answered(at_once: Callable[[Callable[[], T]], T], work: Callable[[], T]) -> T:
    """What `work` makes of a store, waiting for one that is away; nobody else here waits with it. It may be done twice.
    Raises JournalError.
    """
    while True:
        try:
            return at_once(work)
        except StoreAway as away:
            await _back(asyncio.get_running_loop(), away)


async def _back(loop: asyncio.AbstractEventLoop, away: StoreAway) -> None:
    """Until the store answers again. Raises JournalError when it isn't waited for any longer."""
    back: asyncio.Future[None] = loop.create_future()

    def fail(problem: BaseException) -> None:
        if not back.done():
            back.set_exception(problem)

    when_back(loop, away, lambda: None if back.done() else back.set_result(None), fail)
    await back


def when_back(
    loop: asyncio.AbstractEventLoop,
    away: StoreAway,
    then: Callable[[], None],
    fail: Callable[[BaseException], None],
) -> None:
    """Call `then` in the loop when the store answers again, or `fail` with why it isn't waited for any longer."""

    def told(problem: JournalError | None) -> None:
        with suppress(RuntimeError):  # the loop is over, and with it whoever wanted to know
            if problem is None:
                loop.call_soon_threadsafe(then)
            else:
                loop.call_soon_threadsafe(fail, problem)

    away.when_back(told)
