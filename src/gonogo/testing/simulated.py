"""A simulated host over the real core: a virtual clock, scripted calls, and crashes at any record.

It does what a host must (write a record before its commands are performed, send `Resumed` and a `CallLost` for each
call in flight after a crash) and lets a `Watch` judge every record. What is checked is in `checks.py`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gonogo.core import commands as c
from gonogo.core import events as e
from gonogo.core import machine
from gonogo.core.apply import fold
from gonogo.core.faults import Effect, Fault
from gonogo.core.state import State
from gonogo.core.values import names_for
from gonogo.errors import Bug
from gonogo.journal.codec import decode_line, encode_line
from gonogo.journal.records import Record
from gonogo.testing.attempts import Coming, Gates
from gonogo.testing.broken import Broken
from gonogo.testing.checks import Watch
from gonogo.testing.formulas import evaluate
from gonogo.testing.outside import Outside
from gonogo.testing.scenarios import Crash, Scenario
from gonogo.testing.wishes import Wishes

EVENTS_MAX = 6000
STOPPING_S = 1 / 64
"""How long a gated call takes to stop: it holds no slot, so what comes at the same moment has no order with it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a run came to. `records` are those of its journal."""

    records: list[Record]
    state: State
    outside: Outside
    crashed: int
    doubted: bool


@dataclass(slots=True)
class _Waiting:
    """An event on its way: `due_s` on the virtual clock, `command` the call behind it."""

    due_s: float
    event: e.AnyEvent
    command: c.StartCall | None = None
    acted: bool = False


class Simulation:
    """One run of a scenario; `order` seeds the order of events.

    Raises Broken, with the name of the law, as soon as one doesn't hold.
    """

    def __init__(self, scenario: Scenario, order: int = 0) -> None:
        self.scenario = scenario
        self.rng = random.Random(f"{scenario.seed}/{order}")  # noqa: S311 - a simulation must be repeatable
        self.outside = Outside(scenario)
        self.watch = Watch(scenario, self.outside)
        self.lines: list[bytes] = []
        self.unwritten: list[tuple[Record, tuple[c.Command, ...]]] = []
        self.waiting: list[_Waiting] = []
        self.timers: dict[int, float] = {}
        self.urgent: list[e.AnyEvent] = []
        self.now = 0.0
        self.turn = 0
        self.crashes = list(scenario.crashes)
        self.cancels = list(scenario.cancels)
        self.wishes = Wishes(f"{scenario.seed}/{order}/wishes", scenario.wishes)
        self.gates = Gates(scenario.seed)
        self.crashed = 0
        self.went_on = False
        self.state = self._start()

    def run(self) -> Ended:
        """Run to the end, or until people leave it parked."""
        while (event := self._next_event()) is not None:
            self._take(event)
        self._write()
        self.watch.at_the_end(self.state, self.timers, [waiting.event for waiting in self.waiting])
        records = [decode_line(line) for line in self.lines]
        return Ended(records, self.state, self.outside, self.crashed, self.watch.doubted)

    # --- events

    def _start(self) -> State:
        plan = self.scenario.plan
        event = e.RunStarted(
            run_id="run",
            plan=plan,
            started_at_ms=0,
            seed=str(self.scenario.seed),
            trigger=self.scenario.trigger,
            requested=self.scenario.requested,
            safe_mode=self.scenario.safe_mode,
        )
        self.urgent = [event]
        return machine.begin(event)

    def _next_event(self) -> e.AnyEvent | None:
        if self.turn > EVENTS_MAX:
            raise Broken("ends", f"more than {EVENTS_MAX} events")
        if self.urgent:
            return self.urgent.pop(0)
        if self.cancels and self.turn >= self.cancels[0]:
            self.cancels.pop(0)
            if self.state.finished is None or self.state.finished.parked:
                return e.CancelAsked(by="ann")
        if self.state.finished is not None:
            self._write()
            return self._after_the_end()
        if self.scenario.noise and self.rng.randrange(100) < self.scenario.noise:
            return self._noise()
        return self._arrival()

    def _noise(self) -> e.AnyEvent | None:
        """People don't wait to be asked."""
        return self.outside.answer(self.state, self.rng) or self.outside.wrong_answer(self.state, self.rng)

    def _arrival(self) -> e.AnyEvent | None:
        """The next thing that comes in: any reply, or the timer that is due first."""
        if not self.waiting:
            self._write()
        timers = sorted((due_s, timer) for timer, due_s in self.timers.items())[:1]
        if not self.waiting and not timers:
            raise Broken("stuck", "nothing is in flight, but the run has not ended")
        if self.scenario.timed:
            return self._earliest(timers)
        pick = self.rng.randrange(len(self.waiting) + len(timers))
        if pick < len(self.waiting):
            return self._deliver(self.waiting[pick])
        return self._fire(*timers[0])

    def _earliest(self, timers: list[tuple[float, int]]) -> e.AnyEvent:
        due_s = min((waiting.due_s for waiting in self.waiting), default=float("inf"))
        if timers and timers[0][0] < due_s:
            return self._fire(*timers[0])
        first = [waiting for waiting in self.waiting if waiting.due_s == due_s]
        return self._deliver(self.rng.choice(first))

    def _deliver(self, waiting: _Waiting) -> e.AnyEvent:
        self.waiting.remove(waiting)
        self.now = max(self.now, waiting.due_s) if self.scenario.timed else self.now + 0.125
        if waiting.acted and waiting.command is not None:
            self.outside.act(waiting.command)
        if waiting.command is not None and self.gates.known(waiting.command.call):
            self._go_on(waiting.command, self.gates.after(waiting.event))
        return waiting.event

    def _go_on(self, command: c.StartCall, coming: Coming | None) -> None:
        """What a call's gate does next."""
        if coming is None:
            return
        if isinstance(coming.event, e.CallDone | e.CallFailed):
            self.gates.forget(command.call)
        self.waiting.append(_Waiting(self.now + coming.after_s, coming.event, command, coming.acted))

    def _fire(self, due_s: float, timer: int) -> e.AnyEvent:
        del self.timers[timer]
        self.now = max(self.now, due_s)
        return e.TimerFired(timer=timer)

    def _after_the_end(self) -> e.AnyEvent | None:
        """A parked run waits for people, or for its timers; a cancelled one may be taken up again."""
        finished = self.state.finished
        assert finished is not None
        self.watch.when_idle(self.state, self.timers)
        wish = self.wishes.next([decode_line(line) for line in self.lines], self.now)
        if wish is not None:
            return wish
        if not finished.parked:
            if self.state.stopping == "cancelled" and self.scenario.goes_on and not self.went_on:
                self.went_on = True
                return e.Resumed(by="ann")
            return None
        if self.outside.answers >= self.scenario.patience:
            return (
                self._fire(*min((due_s, timer) for timer, due_s in self.timers.items()))
                if self.timers
                else None
            )
        if self.timers and self.rng.randrange(3) == 0:
            return self._fire(*min((due_s, timer) for timer, due_s in self.timers.items()))
        if self.outside.end_a_child(self.state, self.rng):
            return e.Resumed(by="child")
        return self.outside.answer(self.state, self.rng)

    # --- turns

    def _take(self, event: e.AnyEvent) -> None:
        """One event through the core, its record to the journal, its commands to the world."""
        self.turn += 1
        event = msgspec.structs.replace(event, at=self.now)
        crash = self._crash_due()
        try:
            step = machine.advance(self.state, event)
        except Bug as error:
            raise Broken("bug", f"{error} (at {type(event).__name__})") from error
        number = len(self.lines) + len(self.unwritten)
        record = Record(number, self.now, event, step.decisions)
        if crash is not None and crash.moment == "unwritten":
            self._crash()
            return
        self.watch.see(record, step.commands, self.state)
        self.unwritten.append((record, step.commands))
        if crash is not None:
            self._write(self._commands_before(crash))
            self._crash()
        elif not self._drains_on(step.commands):
            self._write()

    def _crash_due(self) -> Crash | None:
        return self.crashes.pop(0) if self.crashes and self.turn >= self.crashes[0].turn else None

    def _commands_before(self, crash: Crash) -> int | None:
        """How many commands are performed before the host dies; None for all."""
        count = sum(len(commands) for _, commands in self.unwritten)
        return {"written": 0, "half_performed": count // 2}.get(crash.moment)

    def _drains_on(self, commands: Sequence[c.Command]) -> bool:
        """A host may take several events before it writes; never before an evaluation, which sees its record."""
        if self.scenario.timed or self.urgent or any(isinstance(command, c.Evaluate) for command in commands):
            return False
        return self.rng.randrange(4) == 0

    def _write(self, most: int | None = None) -> None:
        """Write what was decided, then perform it, or the first `most` commands of it."""
        batch, self.unwritten = self.unwritten, []
        self.lines += [encode_line(record) for record, _ in batch]
        todo = [command for _, commands in batch for command in commands]
        for command in todo if most is None else todo[:most]:
            self._perform(command)

    def _perform(self, command: c.Command) -> None:
        if isinstance(command, c.StartCall):
            self._start_call(command)
        elif isinstance(command, c.LetAttempt):
            started = self.gates.command(command.call)
            if started is not None:
                self._go_on(started, self.gates.let(command))
        elif isinstance(command, c.Evaluate):
            self.waiting.append(_Waiting(self.now, self._evaluated(command)))
        elif isinstance(command, c.StopCall):
            self._stop(command.call)
        elif isinstance(command, c.SetTimer):
            self.timers[command.timer] = command.due_s
        elif isinstance(command, c.ClearTimer):
            self.timers.pop(command.timer, None)

    def _start_call(self, command: c.StartCall) -> None:
        reply = self.outside.reply(command)
        behaviour = self.outside.behaviour(command.step)
        first = self.gates.start(command, behaviour, reply, self.state, self.now)
        if first is not None:
            self._go_on(command, first)
        else:
            self.waiting.append(_Waiting(self.now + reply.duration_s, reply.event, command, reply.acted))

    def _evaluated(self, command: c.Evaluate) -> e.Evaluated:
        results = tuple(
            evaluate(self.state.graph.expression(ask.expression), names_for(self.state, ask.step, ask.scope))
            for ask in command.asks
        )
        return e.Evaluated(batch=command.batch, results=results)

    def _stop(self, call: int) -> None:
        """A call told to stop ends as cancelled, unless it was faster."""
        command = self.gates.command(call)
        if command is not None:
            self._stop_gated(command)
            return
        for waiting in self.waiting:
            if waiting.command is not None and waiting.command.call == call and self.rng.randrange(4):
                acted = waiting.command.effects == "mutates" and waiting.acted and self.rng.randrange(2) == 0
                fault = Fault("run.cancelled", "cancelled", "cancelled", "told to stop")
                effect = (
                    "unknown" if waiting.command.effects == "mutates" and self.rng.randrange(2) else "none"
                )
                waiting.event = e.CallFailed(call=call, fault=fault, effect="unknown" if acted else effect)  # type: ignore[arg-type]
                waiting.acted = acted

    def _stop_gated(self, command: c.StartCall) -> None:
        """Its gate asks for nothing any more; an attempt under way may have acted."""
        mine = [
            each for each in self.waiting if each.command is not None and each.command.call == command.call
        ]
        self.waiting = [each for each in self.waiting if each not in mine]
        flying = any(isinstance(each.event, e.AttemptEnded) for each in mine)
        acted = any(each.acted for each in mine) and self.rng.randrange(2) == 0
        fault = Fault("run.cancelled", "cancelled", "cancelled", "told to stop")
        effect: Effect = "unknown" if flying and command.effects == "mutates" else "none"
        self.gates.forget(command.call)
        event = e.CallFailed(call=command.call, fault=fault, effect=effect)
        self.waiting.append(_Waiting(self.now + STOPPING_S, event, command, acted))

    # --- crashes

    def _crash(self) -> None:
        """What was in memory is lost. Calls in flight may or may not have had their effect."""
        self.crashed += 1
        for waiting in self.waiting:
            if waiting.command is not None and waiting.acted and self.rng.randrange(2):
                self.outside.act(waiting.command)
        self.waiting, self.unwritten, self.urgent = [], [], []
        self.gates.clear()
        self.timers = {}
        if not self.lines:
            self.state = self._start()
            self.watch.restart([])
            return
        records = [decode_line(line) for line in self.lines]
        self.state = fold(records)
        self.watch.restart(records)
        self._resume()

    def _resume(self) -> None:
        finished = self.state.finished
        if finished is not None and (not finished.parked or self.rng.randrange(2)):
            self.timers = {
                command.timer: command.due_s
                for command in machine.outstanding(self.state)
                if isinstance(command, c.SetTimer)
            }
            return
        lost = list(self.state.calls)
        self.timers = {
            command.timer: command.due_s
            for command in machine.outstanding(self.state)
            if isinstance(command, c.SetTimer)
        }
        # A wish takes the place of the resume, since who asks for it goes on with the run.
        wish = self.wishes.next([decode_line(line) for line in self.lines], self.now)
        self.urgent = [wish or e.Resumed(by="host"), *(e.CallLost(call=call) for call in lost)]
