"""The local host: runs workflows in this process, with no server. Children run beside their parents, each with its
journal.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from gonogo.core.commands import StartCall
from gonogo.core.events import CallLost, CancelAsked, RerunAsked, Resumed, RunStarted
from gonogo.core.faults import Fault
from gonogo.core.machine import begin, outstanding
from gonogo.core.state import State
from gonogo.core.stopping import is_cancelled
from gonogo.hosts import outputs
from gonogo.hosts.base import RunResult, Surroundings
from gonogo.hosts.children import Children
from gonogo.hosts.clock import RunClock, clock_after
from gonogo.hosts.literals import without_literals
from gonogo.hosts.loop import RunLoop, is_interrupted
from gonogo.hosts.warden import watched
from gonogo.journal.restoring import state_of
from gonogo.journal.store import RunJournal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
GARBAGE = (10_000, 20, 20)
"""How many new objects there are before the collector looks at them, and how many looks before one at older ones."""
_WITHOUT_PROCESSES = frozenset({"noop", "log", "script", "memory", "human-input", "http", "http_client"})
"""A run of these alone leaves nothing behind, however it ends."""


async def run_new(
    event: RunStarted, journal: RunJournal, around: Surroundings, *, signals: bool = False
) -> RunResult:
    """Run a workflow from its start to its end or to a wait for a person.

    With `signals`, the signals in SIGNALS cancel the run: once gently, twice at once. Closes the journal.

    Raises:
        JournalError, SandboxError, Bug: the run stopped where it was; it can be resumed.
    """
    try:
        plan = without_literals(event.plan, journal.seals, around.redactor)
    except BaseException:
        journal.close()
        raise
    event = replace(event, plan=plan, host=_own_name())
    return await _drive(begin(event), journal, around, RunClock(), event, signals)


async def run_again(
    journal: RunJournal,
    around: Surroundings,
    *,
    signals: bool = False,
    reopens: bool = True,
    wish: RerunAsked | None = None,
    stops: bool = False,
) -> RunResult:
    """Go on with a run whose journal was reopened: after a crash, a cancel or a hold. A run that is over
    stays so, and one that was cancelled stays cancelled unless it `reopens`; for a `wish` either goes on. With `stops`
    it is taken up to be cancelled.

    Raises as `run_new`.
    """
    state = state_of(journal.records)
    clock = clock_after(journal.records, journal.idle_s)
    if wish is None and (is_over(state) or (stops and has_ended(state))):
        return await _as_it_ended(state, journal, around, clock)
    resumed = Resumed(at=clock.now(), by=_own_name(), reopens=reopens and not stops)
    event = resumed if wish is None else replace(wish, at=clock.now(), host=_own_name())
    return await _drive(
        state, journal, around, clock, event, signals, stops=stops and not is_cancelled(state)
    )


async def _child_again(journal: RunJournal, around: Surroundings, stops: bool) -> RunResult:
    """Go on with a child, as `run_again`; one whose parent `stops` is stopped."""
    return await run_again(journal, around, stops=stops)


def _own_name() -> str:
    """Who decides, for a person who wants to look there."""
    return f"process {os.getpid()} on {os.uname().nodename}"


async def _as_it_ended(state: State, journal: RunJournal, around: Surroundings, clock: RunClock) -> RunResult:
    """What a run that is over came to. Its declared outputs are in no record: they are computed from it each time, and
    nothing of it is elsewhere.
    """
    try:
        if not state.graph.plan.outputs:
            return result_of(state, journal.notes)
        children = Children(state, journal.seals, around, run_new, _child_again)
        loop = RunLoop(state, journal, replace(around, spread=None), clock, children.run)
        try:
            given, fault = await outputs.declared(state, loop.evaluations, loop.workplace.templates)
        finally:
            await loop.evaluations.close()
        return result_of(state, (*journal.notes, *((fault.message,) if fault else ())), given, fault)
    finally:
        journal.close()


def is_over(state: State) -> bool:
    """Whether nothing is left to go on with: it ended, and not because somebody cancelled it."""
    return has_ended(state) and not is_cancelled(state)


def has_ended(state: State) -> bool:
    """Whether it is neither under way nor waits."""
    return state.finished is not None and not state.finished.parked


async def _drive(
    state: State,
    journal: RunJournal,
    around: Surroundings,
    clock: RunClock,
    event: RunStarted | Resumed | RerunAsked,
    signals: bool,
    *,
    stops: bool = False,
) -> RunResult:
    try:
        children = Children(state, journal.seals, around, run_new, _child_again)
        loop = RunLoop(state, journal, around, clock, children.run)
        in_flight = outstanding(state)
        loop.take_up(in_flight)
        loop.post(event)
        for call in loop.take_over([each for each in in_flight if isinstance(each, StartCall)]):
            loop.post(CallLost(at=clock.now(), call=call))
        if stops:
            loop.post(CancelAsked(at=clock.now(), by="the run above"))
        given, fault = None, None
        try:
            with _owning_the_process(loop) if signals else _nothing():
                await loop.run()
            if state.graph.plan.outputs and state.finished is not None and not state.finished.parked:
                given, fault = await outputs.declared(state, loop.evaluations, loop.workplace.templates)
        finally:
            await loop.evaluations.close()
        notes = (*journal.notes, *((fault.message,) if fault else ()))
        return replace(result_of(state, notes, given, fault), wakes_in_s=_wakes_in_s(state, clock))
    finally:
        journal.close()


def result_of(
    state: State, notes: tuple[str, ...] = (), given: object = None, fault: Fault | None = None
) -> RunResult:
    """What the state says a run came to; `given` are its declared outputs, `fault` what was wrong with them."""
    finished = state.finished
    verdict = finished.verdict if finished is not None else "HOLD"
    because = finished.because if finished is not None else ()
    return RunResult(
        run_id=state.run_id,
        verdict=verdict,
        state=state,
        because=() if verdict == "HOLD" else because,
        waiting=because if verdict == "HOLD" else (),
        interrupted=is_interrupted(state),
        outputs=given,
        fault=fault or outputs.worst_fault(state),
        notes=notes,
    )


def _wakes_in_s(state: State, clock: RunClock) -> float | None:
    """When something happens in a run that waits, though nobody answers."""
    if state.finished is None:
        return 0.0  # it was left, for another host to go on with
    if not state.finished.parked or not state.timers:
        return None
    return max(0.0, min(due_s for due_s, _ in state.timers.values()) - clock.now())


@contextmanager
def _owning_the_process(loop: RunLoop) -> Iterator[None]:
    """The process is there for this run alone: signals to it are meant for the run, and with it its commands end."""
    types = {step.type for step in loop.state.graph.plan.steps.values()}
    without = types <= _WITHOUT_PROCESSES
    with _cancelled_by_signals(loop), _seldom_collected(), _nothing() if without else watched():
        yield


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """What a run makes it keeps to its end, and next to nothing of it goes in circles. To look for those as often as
    Python does by itself would make each step of a long run dearer than the one before.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def _cancelled_by_signals(loop: RunLoop) -> Iterator[None]:
    """Signals that ask for an end become events while the run is under way; those that are ignored (`nohup`) stay
    so. Only the main thread gets signals.
    """
    running = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(number: signal.Signals) -> None:
        loop.post(CancelAsked(at=loop.clock.now(), by=number.name, interrupted=True))

    before = {
        number: handler for number in SIGNALS if (handler := signal.getsignal(number)) != signal.SIG_IGN
    }
    for number in before:
        running.add_signal_handler(number, asked, number)
    try:
        yield
    finally:
        # One that comes in between would meet the system's own handler, which ends the process at once.
        others = signal.pthread_sigmask(signal.SIG_BLOCK, before)
        for number, handler in before.items():
            running.remove_signal_handler(number)
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, others)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
