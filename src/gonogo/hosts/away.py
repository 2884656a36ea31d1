"""Calls of a run that other workers perform: offered in a pool, and answered by what is left there.

A call may always be offered again, by whoever takes the run over after a crash: the pool knows whether it was offered,
taken or answered before.

While the pool is away nothing is offered and nothing heard; what is to be told there is told when it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from gonogo.core.commands import LetAttempt, StartCall
from gonogo.core.decisions import AttemptRefused, AttemptStarted
from gonogo.core.events import AnyEvent, AttemptAsked, CallDone, CallFailed, CallLost, CallParked, GateWaits
from gonogo.core.faults import Effect, Fault, cancellation
from gonogo.core.lifecycle import PAUSED
from gonogo.core.state import State
from gonogo.errors import JournalError
from gonogo.hosts.attempts import limits_attempts
from gonogo.hosts.clock import RunClock
from gonogo.hosts.pen import when_back
from gonogo.hosts.slots import Places
from gonogo.hosts.spread import Leaving, Spread, goes_away
from gonogo.journal.pool import Leave, Ticket
from gonogo.journal.records import Record
from gonogo.journal.store import StoreAway
from gonogo.providers.table import Table

UNCLAIMED_S = 3600.0
"""So long a call waits for a worker that takes it: with a label that no worker has it would wait for ever (law 2)."""
STOP_S = 5.0
"""So long a worker that was told to stop a call has to say what became of it (law 7 counts from there)."""
LOOK_S = 1.0
"""How often the pool is looked at when nobody rings."""

LAST = (CallDone, CallFailed, CallParked, CallLost)
"""What ends a call."""


class Away:
    """The calls of one run that are elsewhere."""

    def __init__(
        self,
        run_id: str,
        state: State,
        table: Table,
        spread: Spread,
        clock: RunClock,
        post: Callable[[AnyEvent], None],
        fail: Callable[[BaseException], None],
        confirm: Callable[[], object],
        tree: Places | None = None,
    ) -> None:
        """`confirm` raises JournalError when the run may be another host's by now. `tree`: the slots that the run
        shares with those above and beneath it.
        """
        self._tree = tree
        self._slots: dict[int, asyncio.Future[None]] = {}
        self._run_id = run_id
        self._state = state
        self._table = table
        self._spread = spread
        self._clock = clock
        self._post = post
        self._fail = fail
        self._confirm = confirm
        self._calls: dict[int, StartCall] = {}
        self._unwritten: list[StartCall] = []
        self._seq = -1
        self._alarms: dict[int, asyncio.TimerHandle] = {}
        self._said: dict[tuple[int, int], str | None] = {}
        self._posted: dict[int, tuple[AnyEvent, int]] = {}
        self._last_id = 0
        self._untold: list[Callable[[], object]] = []
        self._waits = False
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self._poll: asyncio.TimerHandle | None = None
        self._deaf = spread.listen(run_id, self.look)

    def __len__(self) -> int:
        return len(self._calls)

    def takes(self, command: StartCall) -> bool:
        """Whether this call is for any worker: the same for everybody who has the plan, and more before one leaves."""
        if self._state.safe_mode and command.effects == "mutates":
            return False
        if self._state.parent is not None and self._state.graph.limited:
            return False  # the runs above are asked before it spends, and only its own host reaches them
        step = self._state.graph.steps[command.step]
        return goes_away(step, command.scope, self._table, leaving=self._spread.leaving.asked)

    def let(self, command: LetAttempt) -> bool:
        """Tell a call elsewhere what was said to its wish; False when it isn't elsewhere."""
        if command.call not in self._calls:
            return False
        leave = Leave(self._run_id, command.call, command.ticket, command.refusal)
        if command.refusal or self._tree is None or command.call in self._slots:
            self._let(leave)
        else:
            self._ask(command.call, lambda: self._let(leave))
        return True

    def _let(self, leave: Leave) -> None:
        self._tell(lambda: self._spread.pool.let(leave))

    def take_up(self, command: StartCall, *, offered: bool) -> None:
        """Offer a call that an earlier host of this run had begun, and say to its wishes what that one said; those that
        it left open are this one's to answer.
        """
        self.start(command, offered=offered)
        for (call, ticket), refusal in self._said.items():
            if call == command.call and refusal is not None:
                self._tell(partial(self._spread.pool.let, Leave(self._run_id, call, ticket, refusal)))
        node = self._state.calls.get(command.call)
        for wish in tuple(node.gate.wishes.values()) if node is not None and node.gate is not None else ():
            self._post(replace(wish, at=self._clock.now()))

    def has_heard(self, records: Iterable[Record]) -> None:
        """Wishes that an earlier host wrote, and what it said. In the pool they may come once more, and its word may
        have reached nobody.
        """
        for record in records if limits_attempts(self._state) else ():
            if isinstance(record.event, AttemptAsked):
                self._said[record.event.call, record.event.ticket] = None
            for decision in record.decisions:
                if isinstance(decision, AttemptStarted | AttemptRefused):
                    refusal = decision.sentence() if isinstance(decision, AttemptRefused) else ""
                    self._said[decision.call, decision.ticket] = refusal

    def known(self) -> set[int]:
        """Calls of an earlier host of this run that the pool still knows of."""
        return self._spread.pool.open(self._run_id)

    def start(self, command: StartCall, *, offered: bool = False) -> None:
        """Offer a call, once the record that starts it is written (`send`) and it has its slot; one that was `offered`
        before may be under way, so it has.
        """
        self._calls[command.call] = command
        self._unwritten.append(command)
        if self._tree is not None and not offered:
            self._ask(command.call, lambda: self._has_slot(command))
        elif self._tree is not None and not self._is_paused(command.call):
            self._slots[command.call] = self._tree.seize()

    def send(self, seq: int) -> None:
        """Everything up to record `seq` is written: what was started by it may be performed now."""
        self._seq = seq
        if not self._unwritten:
            return
        commands, self._unwritten = self._unwritten, []
        waiting = {call for call, slot in self._slots.items() if not slot.done()}
        self._offer([each for each in commands if each.call not in waiting])

    def _ask(self, call: int, then: Callable[[], None]) -> None:
        """Ask for a slot of the whole tree; `then` is called once it is there, unless the call is over by that time."""
        assert self._tree is not None
        slot = self._slots[call] = self._tree.ask()

        def there(_: object) -> None:
            if self._slots.get(call) is slot:
                try:
                    then()
                except Exception as error:  # noqa: BLE001 - whatever waits would wait for ever (law 2)
                    self._fail(error)

        if slot.done():
            then()
        else:
            slot.add_done_callback(there)

    def _has_slot(self, command: StartCall) -> None:
        if command not in self._unwritten:
            self._offer([command])

    def _is_paused(self, call: int) -> bool:
        node = self._state.calls.get(call)
        return node is not None and node.status == PAUSED

    def _has_nothing_out(self, call: int) -> bool:
        node = self._state.calls.get(call)
        gate = node.gate if node is not None else None
        return gate is None or not (gate.flying or gate.wishes)

    def _offer(self, commands: Sequence[StartCall]) -> None:
        if not commands:
            return
        run_id, steps = self._run_id, self._state.graph.steps
        tickets = [Ticket(run_id, each, self._seq, steps[each.step].runs_on) for each in commands]
        self._tell(lambda: self._offered(tickets))
        for each in commands:
            self._alarms[each.call] = self._loop.call_later(UNCLAIMED_S, self._nobody_came, each)
        if self._poll is None:
            self._look_again()

    def _offered(self, tickets: Sequence[Ticket]) -> None:
        self._spread.pool.offer(tickets)
        self._spread.dispatch(tickets)

    def stop(self, call: int) -> bool:
        """Take a call back; False when it isn't elsewhere."""
        command = self._calls.get(call)
        if command is None:
            return False
        stopped = self._stopped(command, "none")
        if call not in self._alarms:  # not offered yet
            if command in self._unwritten:
                self._unwritten.remove(command)
            self._land(call, stopped)
        else:
            self._tell(lambda: self._spread.pool.withdraw(self._run_id, call, stopped))
            self._set_alarm(call, STOP_S, lambda: self._abandon(command))
        return True

    def look(self) -> None:
        """Take what was left for the run. What the journal knew before a crash is only forgotten here."""
        if self._is_over:
            return
        pool = self._spread.pool
        try:
            known: list[int] = []
            for number, event in pool.at_once(lambda: pool.take(self._run_id, self._last_id)):
                self._last_id = number
                call = getattr(event, "call", None)
                if isinstance(event, AttemptAsked) and (call, event.ticket) in self._said:
                    known.append(number)
                elif call in self._calls:
                    self._take(event, number)
                elif call is not None and call > self._state.last_call:
                    raise self._taken_over()
                else:
                    known.append(number)
            if known:
                self._tell(lambda: self._forget_unasked(known))
        except StoreAway as away:
            self._wait(away)
        except Exception as error:  # noqa: BLE001 - a run that hears nothing of its calls can't go on
            self._fail(error)

    def written(self, records: Iterable[Record]) -> None:
        """These records are durable: what they hold needs no other place."""
        known = [
            posted[1]
            for record in records
            if (posted := self._posted.pop(id(record.event), None)) is not None
        ]
        self._forget(known)

    def brought(self, event: AnyEvent) -> bool:
        """Whether an event came from elsewhere, and so has to be durable before it is forgotten there."""
        return id(event) in self._posted

    @property
    def leaving(self) -> Leaving:
        """Whether the run is to leave this worker."""
        return self._spread.leaving

    def hush(self) -> None:
        """Take nothing more: the run goes on elsewhere, and what is left for it is for its next host."""
        self._is_over = True

    def close(self) -> None:
        """Listen no more; the calls go on where they are."""
        self.hush()
        self._deaf()
        for alarm in (*self._alarms.values(), *([self._poll] if self._poll is not None else [])):
            alarm.cancel()
        self._alarms.clear()
        self._calls.clear()
        for call in tuple(self._slots):
            self._leave_slot(call)

    def _forget(self, known: Collection[int]) -> None:
        if known:
            self._tell(lambda: self._spread.pool.done(self._run_id, known))

    def _forget_unasked(self, known: Collection[int]) -> None:
        """What no record of this host has just confirmed: where the run is another's by now, that one may wait for it.
        Raises JournalError.
        """
        self._confirm()
        self._spread.pool.done(self._run_id, known)

    def _tell(self, what: Callable[[], object]) -> None:
        """Do it in the pool, behind what couldn't be done there yet."""
        self._untold.append(what)
        if not self._waits:
            self._tell_all()

    def _tell_all(self) -> None:
        try:
            while self._untold:
                self._spread.pool.at_once(self._untold[0])
                del self._untold[0]
        except StoreAway as away:
            self._wait(away)

    def _wait(self, away: StoreAway) -> None:
        if not self._waits:
            self._waits = True
            when_back(self._loop, away, self._is_back, self._fail)

    def _is_back(self) -> None:
        self._waits = False
        if self._is_over:
            return
        try:
            self._tell_all()
        except Exception as error:  # noqa: BLE001 - as when it is told at once
            self._fail(error)
        else:
            self.look()

    def _taken_over(self) -> JournalError:
        """Only another host of this run can have started a call that this one knows nothing of. What was left for that
        host isn't this one's to forget.
        """
        return JournalError(
            f"run {self._run_id} was taken over by another process; this one writes no more of it",
            advice="leave it to that process; 'gonogo show' tells how it goes on",
        )

    def _take(self, event: AnyEvent, number: int) -> None:
        event = replace(event, at=self._clock.now())
        self._posted[id(event)] = event, number
        if isinstance(event, LAST):
            self._land(event.call, event)
            return
        if isinstance(event, GateWaits) and self._has_nothing_out(event.call):
            self._leave_slot(event.call)
        self._post(event)

    def _land(self, call: int, event: AnyEvent) -> None:
        if self._calls.pop(call, None) is None:
            return
        alarm = self._alarms.pop(call, None)
        if alarm is not None:
            alarm.cancel()
        self._leave_slot(call)
        self._post(event)

    def _leave_slot(self, call: int) -> None:
        slot = self._slots.pop(call, None)
        if slot is not None and self._tree is not None:
            self._tree.withdraw(slot)

    def _look_again(self) -> None:
        """A bell may have been missed while a connection was down."""
        if not self._waits:
            self.look()
        self._poll = self._loop.call_later(LOOK_S, self._look_again) if self._calls else None

    def _set_alarm(self, call: int, wait_s: float, then: Callable[[], None]) -> None:
        alarm = self._alarms.pop(call, None)
        if alarm is not None:
            alarm.cancel()
        self._alarms[call] = self._loop.call_later(wait_s, then)

    def _nobody_came(self, command: StartCall) -> None:
        label = self._state.graph.steps[command.step].runs_on
        wanted = f"no worker with the label '{label}'" if label else "no worker"
        message = f"{wanted} took {command.step} within {UNCLAIMED_S:g} s"
        try:
            self._tell(lambda: self._unclaimed(command, message))
        except Exception as error:  # noqa: BLE001 - without this answer the call would wait for ever (law 2)
            self._fail(error)

    def _unclaimed(self, command: StartCall, message: str) -> None:
        """With why whoever saw it did nothing about it."""
        why = self._spread.pool.passed_over(self._run_id, command.call)
        told = f"{message}: {why}" if why else message
        fault = Fault("call.unclaimed", "transient", f"{command.step}/unclaimed", told)
        self._spread.pool.leave(
            self._run_id, command.call, CallFailed(call=command.call, fault=fault), before=-1
        )

    def _abandon(self, command: StartCall) -> None:
        """Its worker doesn't answer: the run goes on without it."""
        effect: Effect = "unknown" if command.effects == "mutates" else "none"
        self._land(command.call, self._stopped(command, effect))

    def _stopped(self, command: StartCall, effect: Effect) -> CallFailed:
        fault = cancellation(command.step, "stopped")
        return CallFailed(at=self._clock.now(), call=command.call, fault=fault, effect=effect)
