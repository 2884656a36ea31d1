"""The loop all hosts share: events in, `advance`, records appended, commands handed out (architecture.md 1).

    post(event) ─▶ turn: advance each ─▶ perform the commands ─▶ append all, one write ─▶ tell the sinks

Events that come at the same moment are one turn, and so are those that steps which never wait bring at once. A turn's
records are written before anything else gets the processor, so a task that was made for a call begins after them; and
before the commands where a mutating call, a request or the end of the run depends on them: those are durable then.
While nothing can be written there is no turn, and no call begins; what is under way goes on. Where the run is and what
a call means is not known here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gonogo.core.commands import (
    ClearTimer,
    Command,
    Evaluate,
    FinishRun,
    LetAttempt,
    SetTimer,
    StartCall,
    StopCall,
)
from gonogo.core.events import (
    AnyEvent,
    CallDone,
    CallFailed,
    CallParked,
    CancelAsked,
    TimerFired,
)
from gonogo.core.machine import advance
from gonogo.core.state import State
from gonogo.errors import Bug, GonogoError, Interrupted, JournalError
from gonogo.hosts.attempts import Attempts
from gonogo.hosts.base import Surroundings
from gonogo.hosts.clock import RunClock
from gonogo.hosts.context import RunChild
from gonogo.hosts.pen import Pen
from gonogo.hosts.requests import REQUESTS, Requests, is_from_inbox
from gonogo.hosts.vault import vault_of
from gonogo.hosts.workplace import Workplace
from gonogo.journal.store import RunJournal

if TYPE_CHECKING:
    from gonogo.hosts.away import Away
    from gonogo.hosts.spread import Spread

TURNS_MAX = 32
"""Turns in a row before timers and signals get their turn; steps that never wait bring the next one at once."""
_RETURNS = (CallDone, CallFailed, CallParked)


class RunLoop:
    """One run under way. Made and used within one asyncio event loop."""

    def __init__(
        self, state: State, journal: RunJournal, around: Surroundings, clock: RunClock, child: RunChild
    ) -> None:
        self.state = state
        self.journal = journal
        self.around = around
        self.clock = clock
        self._attempts = Attempts(state, around, clock, self.post, self._sure)
        vault = vault_of(state, journal, around.redactor)
        self.workplace = Workplace(
            state,
            journal.blobs,
            vault,
            around,
            clock,
            child,
            post=self.post,
            fail=self.fail,
            attempts=self._attempts,
            sure=lambda command: self._sure(),
        )
        self.evaluations = self.workplace.evaluations
        self._calls = self.workplace.calls
        self._pen = Pen(journal, around, then=self._turn, fail=self.fail)
        self._kept: list[Command] = []
        self._requests = Requests(journal, vault, clock, post=self.post, fail=self.fail)
        self._away = _away(self, around.spread)
        self._stay = self._away.leaving.listen(self._may_leave) if self._away is not None else _nothing
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._inbox: list[AnyEvent] = []
        self._turn_is_due = False
        self._mutating: set[int] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._patience: asyncio.TimerHandle | None = None

    def post(self, event: AnyEvent) -> None:
        """Something happened; it will be part of the next turn."""
        self._inbox.append(event)
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)
        elif type(event) is CancelAsked and event.interrupted:
            self._pen.give_up_soon()

    def fail(self, error: BaseException) -> None:
        """The run can't go on here; what is in the journal is enough to resume it. What nobody expected is a Bug."""
        if not self._done.done():
            expected = isinstance(error, GonogoError) or not isinstance(error, Exception)
            self._done.set_exception(error if expected else self._bug(error))
            if self._away is not None:
                self._away.hush()

    async def _sure(self) -> None:
        """Right before something changes outside: a host that stood still since its last record may have lost the run
        (law 3). Raises JournalError.
        """
        try:
            await self._pen.sure()
        except JournalError as error:
            self.fail(error)
            raise

    def _bug(self, error: BaseException) -> Bug:
        told = self.around.redactor.text(f"the engine failed: {type(error).__name__}: {error}")
        bug = Bug(told, advice=f"please report it with the journal of {self.state.run_id}")
        bug.__cause__ = error
        return bug

    def take_up(self, commands: Iterable[Command]) -> None:
        """After a resume: timers that were set before."""
        for command in commands:
            if isinstance(command, SetTimer):
                self._set_timer(command)

    def take_over(self, commands: Sequence[StartCall]) -> list[int]:
        """After a resume: calls that other workers may perform are offered again. Returns those nobody knows of; what
        keeps the run from going on is raised by `run`.
        """
        if self._away is None:
            return [command.call for command in commands]
        try:
            return self._offered_again(self._away, commands)
        except Exception as error:  # noqa: BLE001 - as in a turn
            self.fail(error)
            return []

    def _offered_again(self, away: Away, commands: Sequence[StartCall]) -> list[int]:
        kept = self.around.kept
        if kept.is_top(self.state.run_id) and commands:
            from gonogo.hosts.outlived import keep_slots  # a run that is new does without

            keep_slots(self.state, self.around)
        known = away.known()
        away.has_heard(self.journal.records)
        lost: list[int] = []
        for command in commands:
            offered = command.call in known
            if offered or away.takes(command):
                away.take_up(command, offered=offered)
            else:
                lost.append(command.call)
        kept.give_back(self.state.run_id)
        return lost

    async def run(self) -> None:
        """Until the run is over or parked. Cancelling this cancels the run: it ends as after Ctrl-C, in short
        time, and the cancellation goes on.

        The sandbox stays, for what is computed from the end; `evaluations.close` is the caller's to call.

        Raises:
            JournalError, SandboxError, Bug: the run can't go on; it can be resumed.
        """
        self._requests.watch()
        try:
            await self._until_done()
        finally:
            await self._close()

    async def _until_done(self) -> None:
        try:
            await asyncio.shield(self._done)
        except asyncio.CancelledError:
            import anyio  # a run that nobody cancels does without

            with anyio.CancelScope(shield=True):
                await self._until_cancelled()
            raise

    async def _until_cancelled(self) -> None:
        while not self._done.done():
            self.post(CancelAsked(at=self.clock.now(), by="caller", interrupted=True))
            try:
                await asyncio.shield(self._done)
            except asyncio.CancelledError:
                continue  # asked again: cleanup stops, too

    async def _close(self) -> None:
        for timer in (self._patience, *self._timers.values()):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
        self._requests.close()
        if self._away is not None:
            self._away.close()
            self._stay()
        if self.around.kept.is_top(self.state.run_id):
            self.around.kept.close()
        await self._calls.close()

    # --- one turn

    def _turn(self) -> None:
        if self._done.done():
            return
        try:
            try:
                if self._caught_up():
                    self._work_off()
            finally:
                self._write()
            if self._pen.is_stuck:
                self._calls.hold(self._pen.free)
                if is_interrupted(self.state):
                    self._pen.give_up_soon()
                return  # the turn isn't over
            if self._away is not None and not self._done.done():
                self._away.send(self._pen.last)
                self._leave_if_idle()
            self._turn_is_due = False
            if self._inbox and not self._done.done():
                self._turn_is_due = True
                self._loop.call_soon(self._turn)
        except Exception as error:  # noqa: BLE001 - an unexpected exception in the core stops the run (law 4)
            self.fail(error)

    def _caught_up(self) -> bool:
        """What was kept back while nothing could be written comes first; False while that is still so."""
        self._write()
        if self._kept and not self._pen.is_stuck:
            commands, self._kept = self._kept, []
            self._hand_out(commands)
        return not self._pen.is_stuck

    def _work_off(self) -> None:
        for _ in range(TURNS_MAX):
            if not self._inbox or self._done.done():
                break
            events, self._inbox = self._inbox, []
            commands = self._decide(events)
            if self._pen.is_stuck:
                self._kept = commands
                break
            self._hand_out(commands)

    def _decide(self, events: Sequence[AnyEvent]) -> list[Command]:
        """What the events lead to; records that must be durable before that is done are written."""
        commands: list[Command] = []
        now_s = time.time()
        state = self.state
        for event in events:
            if self.evaluations.in_use:
                self.evaluations.state_moves()
            step = advance(state, event)
            self._pen.add(now_s, event, step.decisions)
            if self._mutating or self._away is not None or type(event) in REQUESTS:
                self._note_event(event)
            if step.commands:
                commands += step.commands
                self._note_commands(step.commands)
            if state.finished is not None and not state.finished.parked:
                break  # what came later came too late
        if self._pen.must_sync or state.finished is not None:
            self._write()
        return commands

    def _note_event(self, event: AnyEvent) -> None:
        """What became of a mutating call must be durable, and so must a request that will be forgotten."""
        if isinstance(event, _RETURNS) and event.call in self._mutating:
            self._mutating.discard(event.call)
            self._pen.must_sync = True
        elif self._is_kept_elsewhere(event):
            self._pen.must_sync = True

    def _is_kept_elsewhere(self, event: AnyEvent) -> bool:
        """It is forgotten there once the journal holds it."""
        return is_from_inbox(event) or (self._away is not None and self._away.brought(event))

    def _note_commands(self, commands: Sequence[Command]) -> None:
        """Names are taken hold of before the state moves on; the intent of a mutating call must be durable."""
        for command in commands:
            if type(command) is Evaluate:
                self.evaluations.ask(self.state, command, self.clock.now, self._answered)
            elif type(command) is StartCall and command.effects == "mutates":
                self._mutating.add(command.call)
                self._pen.must_sync = True
            elif type(command) is LetAttempt and command.durable:
                self._pen.must_sync = True

    def _write(self) -> None:
        """Append what has been decided since the last time; what is durable needn't be kept elsewhere any more."""
        durable = self._pen.write()
        if durable:
            self._requests.written(durable)
            if self._away is not None:
                self._away.written(durable)

    # --- commands

    def _hand_out(self, commands: Sequence[Command]) -> None:
        several = len(commands) > 1
        stopped = {each.call for each in commands if type(each) is StopCall} if several else ()
        for command in commands:
            if stopped and type(command) is StartCall and command.call in stopped:
                self._calls.refuse(command)
            else:
                _PERFORM[type(command)](self, command)
        if self.evaluations.in_use:
            self.evaluations.work()
        finished = self.state.finished
        if finished is None:
            if self._patience is not None:
                self._stop_waiting()
            if not self._inbox:
                self._check_alive()
        elif not finished.parked:
            self._finish()

    def _start_call(self, command: StartCall) -> None:
        if self._away is not None and self._away.takes(command):
            self._away.start(command)
        else:
            self._calls.start(command)

    def _let(self, command: LetAttempt) -> None:
        if self._away is None or not self._away.let(command):
            self._attempts.answer(command)

    def _stop_call(self, command: StopCall) -> None:
        if self._away is None or not self._away.stop(command.call):
            self._calls.stop(command.call)

    def _evaluate(self, command: Evaluate) -> None:
        """It was asked when its names were taken hold of."""

    def _answered(self, outcome: AnyEvent | BaseException) -> None:
        """The answers to a batch; or the sandbox can't be had, and the run stops with its story."""
        if isinstance(outcome, BaseException):
            self.fail(outcome)
        else:
            self.post(outcome)

    def _set_timer(self, command: SetTimer) -> None:
        wait_s = max(0.0, command.due_s - self.clock.now())
        self._timers[command.timer] = self._loop.call_later(wait_s, self._fire, command)

    def _fire(self, command: SetTimer) -> None:
        self._timers.pop(command.timer, None)
        self.post(TimerFired(at=max(self.clock.now(), command.due_s), timer=command.timer))

    def _clear_timer(self, command: ClearTimer) -> None:
        timer = self._timers.pop(command.timer, None)
        if timer is not None:
            timer.cancel()

    def _park_or_finish(self, command: FinishRun) -> None:
        """A parked run waits a while for an answer or a timer; then it is left as it is, in HOLD."""
        if command.parked and self._patience is None:
            self._requests.look()
            self._patience = self._loop.call_later(self.around.patience_s, self._out_of_patience)

    def _out_of_patience(self) -> None:
        self._patience = None
        if self.state.finished is not None and not self._inbox:
            self._finish()

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _finish(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def _may_leave(self) -> None:
        """The worker is to end: this run's trouble is none of those that hear of it, too."""
        if self._done.done():
            return
        try:
            self._leave_if_idle()
        except Exception as error:  # noqa: BLE001 - as in a turn
            self.fail(error)

    def _leave_if_idle(self) -> None:
        """Let another worker go on with the run, where this one is to end: calls elsewhere go on there."""
        assert self._away is not None
        leaving = self._away.leaving
        if leaving.now:
            self.fail(
                Interrupted(
                    f"the worker that had run {self.state.run_id} ended", advice="another one goes on"
                )
            )
        elif leaving.asked and not self._pen.is_stuck:
            for command in self._calls.recall(self._away.takes):
                self._away.start(command)
            self._away.send(self._pen.last)
            if not (len(self._calls) or self._inbox):
                self._finish()

    def _check_alive(self) -> None:
        """Nothing in flight, timed or queued, but not ended: stop loudly (core-notes.md 8)."""
        away = self._away is not None and len(self._away)
        if not (len(self._calls) or away or self.evaluations.in_use or self._timers or self._inbox):
            raise Bug(
                f"run {self.state.run_id} has nothing in flight but isn't over",
                advice="please report it with the run's journal",
            )


_PERFORM: dict[type, Callable[[RunLoop, Any], None]] = {
    StartCall: RunLoop._start_call,
    LetAttempt: RunLoop._let,
    StopCall: RunLoop._stop_call,
    Evaluate: RunLoop._evaluate,
    SetTimer: RunLoop._set_timer,
    ClearTimer: RunLoop._clear_timer,
    FinishRun: RunLoop._park_or_finish,
}
"""How each command is performed; an unknown one raises KeyError, which stops the run."""


def is_interrupted(state: State) -> bool:
    """Whether who was there with the run told it to end."""
    return state.interrupted and state.stopping in ("cancelled", "cancelled_hard")


def _away(loop: RunLoop, spread: Spread | None) -> Away | None:
    if spread is None:
        return None
    from gonogo.hosts.away import Away  # a run in one process does without

    around, journal = loop.around, loop.journal
    return Away(
        journal.run_id,
        loop.state,
        around.table,
        spread,
        loop.clock,
        loop.post,
        loop.fail,
        lambda: journal.at_once(journal.confirm),
        around.slots,
    )


def _nothing() -> None:
    """Where there is nothing to undo."""
