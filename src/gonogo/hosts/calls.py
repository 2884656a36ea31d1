"""Calls in flight: each a task, under a time limit, that ends in exactly one event.

A call that is told to stop has `STOP_S` to obey; after that its task is left behind and the run goes on without it.
What the outcome means is the core's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any

from msgspec.structs import replace

from gonogo.core.commands import StartCall
from gonogo.core.events import AnyEvent, CallDone, CallFailed, CallParked, CancelAsked
from gonogo.core.faults import Effect, Fault, cancellation
from gonogo.core.plan import Step
from gonogo.core.state import CONTAINER, State
from gonogo.errors import GonogoError
from gonogo.hosts.clock import RunClock
from gonogo.hosts.evaluation import Answer
from gonogo.hosts.keys import Keys, Place
from gonogo.hosts.outcomes import Outcomes, bug_in
from gonogo.hosts.prepare import Card, Preparation, Prepared, Unprepared, key_of
from gonogo.hosts.slots import Slots
from gonogo.hosts.sure import Overtaken, Sure
from gonogo.hosts.vault import Unopened
from gonogo.provider import Context, Failed, Outcome

STOP_S = 4.0
"""A command's own ladder (TERM, two seconds, KILL) must fit in."""
BACKUP_GRACE_S = 5.0
"""How much later than a provider's own time limit the host steps in."""


class Flight:
    """One call under way: in a task of its own, or `running` without one between the answers of the sandbox.

    `begun`: its task runs; `called`: its provider does; `ending`: why it was told to end. `claim`: the key that it
    alone may use meanwhile.
    """

    __slots__ = (
        "alarm",
        "begun",
        "called",
        "claim",
        "command",
        "ending",
        "limit_s",
        "running",
        "step",
        "task",
    )

    def __init__(self, command: StartCall, step: Step) -> None:
        self.command = command
        self.step = step
        self.task: asyncio.Task[None] | None = None
        self.running: Generator[Any, Any, Outcome] | None = None
        self.alarm: asyncio.TimerHandle | None = None
        self.ending: str | None = None
        self.claim: Place | None = None
        self.begun = False
        self.called = False
        self.limit_s: float | None = None

    @property
    def effect(self) -> Effect:
        """What it did outside, where its provider doesn't say."""
        return "unknown" if self.called and self.command.effects == "mutates" else "none"


class Calls:
    """The calls of one run."""

    def __init__(
        self,
        state: State,
        preparation: Preparation,
        outcomes: Outcomes,
        clock: RunClock,
        context_for: Callable[[StartCall, Step, float | None], Context],
        slots: Slots,
        *,
        post: Callable[[AnyEvent], None],
        fail: Callable[[BaseException], None],
        may_call: Callable[[StartCall], Awaitable[Fault | None]] | None = None,
        sure: Sure | None = None,
        doubtful_child: Callable[[StartCall], str | None],
    ) -> None:
        """`doubtful_child`: the child of a call, where a call in doubt lies beneath (`beneath.py`). `may_call` asks the
        runs above for one more call, where there are any; a fault says no. `sure` is asked right before a call that
        mutates, and raises Overtaken or JournalError where that isn't ours to make any more.
        """
        self._doubtful_child = doubtful_child
        self._looking: dict[int, asyncio.Task[None]] = {}
        self._may_call = may_call
        self._sure = sure
        self._state = state
        self._preparation = preparation
        self._outcomes = outcomes
        self._clock = clock
        self._context_for = context_for
        self._slots = slots
        self._post = post
        self._fail = fail
        self._flights: dict[int, Flight] = {}
        self._keys = Keys(state)
        self._held: Callable[[], Awaitable[None]] | None = None
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._flights) + len(self._looking)

    def is_under_way(self, call: int) -> bool:
        """Whether the event that ends this call is still to come."""
        return call in self._flights or call in self._looking

    def hold(self, until: Callable[[], Awaitable[None]]) -> None:
        """Let no call begin that hasn't yet, until this returns."""
        self._held = until

    def start(self, command: StartCall) -> None:
        """Begin a call; its event will be posted, whatever happens."""
        flight = Flight(command, self._state.graph.steps[command.step])
        self._flights[command.call] = flight
        try:
            card = self._preparation.card(flight.step)
        except Exception as error:  # noqa: BLE001 - told apart there
            self._land_error(flight, error)
            return
        alone = self._may_call is None and self._slots.tree is None
        if card.provider.inline and alone and flight.step.idempotency_key is None:
            self._run_inline(flight, card)
        else:
            flight.task = self._loop.create_task(self._fly(flight, card))

    def refuse(self, command: StartCall) -> None:
        """A call that was told to stop before it was started never starts (law 7). A child that there is already is
        looked into, and only stopped (`children.py`).
        """
        if self._state.graph.steps[command.step].type == CONTAINER:
            self.start(command)
            return
        fault = cancellation(command.step, "stopped before it started")
        self._post(self._outcomes.failure(command.call, self._clock.now(), fault))

    def recall(self, may: Callable[[StartCall], bool]) -> list[StartCall]:
        """Those that still wait to begin, and `may` be performed elsewhere: none of them begins here any more."""
        waiting = [
            flight
            for call, flight in self._flights.items()
            if not flight.called and self._slots.is_waiting(call) and may(flight.command)
        ]
        for flight in waiting:
            del self._flights[flight.command.call]
            if flight.task is not None:
                flight.task.cancel()
        return [flight.command for flight in waiting]

    def stop(self, call: int) -> None:
        """Tell a call to stop; one that has returned meanwhile stays returned."""
        flight = self._flights.get(call)
        if flight is None:
            return
        if flight.task is None:
            self._give_up(flight, "stopped")
            return
        if not flight.begun:
            if flight.step.type != CONTAINER:  # that one begins, and hears of it where it looks for its child
                flight.task.cancel()
                self._land(flight, self._stopped(flight))
            return
        first = flight.ending != "stopped"
        flight.ending = "stopped"
        flight.task.cancel()
        if first:
            grace_s = self._state.graph.plan.limits.cleanup_grace_s if flight.step.type == CONTAINER else 0.0
            flight.alarm = self._loop.call_later(STOP_S + grace_s, self._abandon, flight)

    async def close(self) -> None:
        """End whatever is still under way, without events; the journal says that it was."""
        tasks = [flight.task for flight in self._flights.values() if flight.task is not None]
        tasks += self._looking.values()
        running = [flight.running for flight in self._flights.values() if flight.running is not None]
        self._flights.clear()
        for each in running:
            each.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_S)

    def _run_inline(self, flight: Flight, card: Card) -> None:
        """A provider that waits for nothing but the sandbox needs no task, which costs more than all the rest."""
        try:
            prepared = self._preparation.prepare(card, flight.step, flight.command)
            flight.called = True
            flight.running = card.provider.run(prepared.call, self._context(flight, prepared)).__await__()
            self._resume(flight, card, prepared)
        except BaseException as error:  # noqa: BLE001 - told apart there
            self._land_error(flight, error)

    def _resume(self, flight: Flight, card: Card, prepared: Prepared) -> None:
        """Run it up to the next expression it waits for, or to its end."""
        assert flight.running is not None
        try:
            waits_for = next(flight.running)
            if not isinstance(waits_for, Answer):
                flight.running.close()
                raise TypeError(f"the type {card.provider.name} is declared inline, but waits")
            if flight.alarm is None:
                self._set_alarm(flight, card, prepared)
            waits_for.then = partial(self._resume, flight, card, prepared)
        except StopIteration as ended:
            self._land_inline(flight, prepared, ended.value)
        except BaseException as error:  # noqa: BLE001 - told apart there
            self._land_error(flight, error)

    def _land_inline(self, flight: Flight, prepared: Prepared, outcome: Outcome) -> None:
        try:
            self._land(flight, self._event(flight, prepared, outcome))
        except BaseException as error:  # noqa: BLE001 - told apart there
            self._land_error(flight, error)

    def _give_up(self, flight: Flight, why: str) -> None:
        """End a call that has no task."""
        flight.ending = why
        if flight.running is not None:
            flight.running.close()
        self._land(flight, self._ended(flight))

    async def _fly(self, flight: Flight, card: Card) -> None:
        flight.begun = True
        try:
            if self._held is not None:
                await self._held()
            prepared = self._preparation.prepare(card, flight.step, flight.command)
            if prepared.key is not None and await self._is_replayed(flight, prepared, prepared.key):
                return
            self._land(flight, self._event(flight, prepared, await self._performed(flight, card, prepared)))
        except asyncio.CancelledError:
            if flight.ending is None:
                raise  # the host itself ends
            self._land(flight, self._ended(flight))
        except BaseException as error:  # noqa: BLE001 - told apart there
            self._land_error(flight, error)

    async def _is_replayed(self, flight: Flight, prepared: Prepared, key: str) -> bool:
        """Answer a call with what one under the same key gave; False when there was none."""
        place = flight.step.name, key_of(key)
        kept = await self._keys.claim(place)
        if kept is None:
            flight.claim = place
            return False
        inputs = self._outcomes.inputs(prepared.inputs) if prepared.inputs else None
        now_s = self._clock.now()
        self._land(flight, self._outcomes.replayed(flight.command.call, now_s, kept, key, inputs))
        return True

    def _land_error(self, flight: Flight, error: BaseException) -> None:
        event = self._event_of(flight, error)
        if event is not None:
            self._land(flight, event)

    def _event_of(self, flight: Flight, error: BaseException) -> AnyEvent | None:
        """What an exception means for the call; None when the run can't go on at all."""
        call = flight.command.call
        if isinstance(error, Unprepared):
            return self._outcomes.failure(call, self._clock.now(), error.fault)
        if isinstance(error, Overtaken):
            return self._overtaken(flight)
        if isinstance(error, Unopened):
            return self._outcomes.unopened(flight.step.name, call, self._clock.now(), error)
        if isinstance(error, GonogoError):
            # No fault of the step: the journal, the sandbox or gonogo itself can't go on.
            self._fail(error)
            return None
        if isinstance(error, KeyboardInterrupt | SystemExit):
            self._post(CancelAsked(at=self._clock.now(), by=flight.step.name, interrupted=True))
            return self._stopped(flight)
        if not isinstance(error, Exception):
            self._fail(error)
            return None
        # Architecture.md law 4: a fault of class bug, never silent.
        fault = bug_in(flight.step.name, error)
        return self._outcomes.failure(call, self._clock.now(), fault, effect=flight.effect)

    def _event(self, flight: Flight, prepared: Prepared, outcome: Outcome) -> AnyEvent:
        inputs = self._outcomes.inputs(prepared.inputs) if prepared.inputs else None
        event = self._outcomes.event(
            flight.step, flight.command.call, self._clock.now(), outcome, inputs, passes=prepared.passes
        )
        if prepared.key is not None and isinstance(event, CallDone):
            return replace(event, key=key_of(prepared.key))
        return event

    def _context(self, flight: Flight, prepared: Prepared) -> Context:
        context = self._context_for(flight.command, flight.step, prepared.call.timeout_s)
        for name in prepared.unset:
            context.log("warn", f"{name} is named, but isn't set; the text stays as written")
        return context

    async def _performed(self, flight: Flight, card: Card, prepared: Prepared) -> Outcome:
        context = self._context(flight, prepared)
        refusal = await self._may_call(flight.command) if self._may_call is not None else None
        if refusal is not None:
            return Failed(refusal)
        async with self._place(flight.command.call, card):
            if self._sure is not None and flight.command.effects == "mutates":
                await self._sure(flight.command)
            self._set_alarm(flight, card, prepared)
            flight.called = True
            return await card.provider.run(prepared.call, context)

    def _place(self, call: int, card: Card) -> AbstractAsyncContextManager[None]:
        """What it takes up. A worker's places are for what does something outside."""
        provider = card.provider
        if provider.name == CONTAINER:
            return nullcontext()  # its child's calls take their own (case CON-2)
        return self._slots.of(call, outside=not (provider.inline or provider.local_only))

    def _set_alarm(self, flight: Flight, card: Card, prepared: Prepared) -> None:
        limit_s = prepared.call.timeout_s
        if limit_s is not None:
            flight.limit_s = limit_s
            wait_s = limit_s + BACKUP_GRACE_S if card.provider.own_timeout else limit_s
            flight.alarm = self._loop.call_later(wait_s, self._out_of_time, flight)

    def _out_of_time(self, flight: Flight) -> None:
        if flight.task is None:
            self._give_up(flight, "timeout")
        elif flight.ending is None:
            flight.ending = "timeout"
            flight.task.cancel()
            flight.alarm = self._loop.call_later(STOP_S, self._abandon, flight)

    def _abandon(self, flight: Flight) -> None:
        """It doesn't stop: the run goes on without it."""
        if flight.command.call in self._flights:
            if flight.task is not None:
                flight.task.cancel()
            self._land(flight, self._ended(flight))

    def _land(self, flight: Flight, event: AnyEvent) -> None:
        if self._flights.pop(flight.command.call, None) is None:
            return  # given up before
        if flight.alarm is not None:
            flight.alarm.cancel()
        if flight.claim is not None:
            self._keys.release(flight.claim, event)
        self._end(flight.command, event)

    def _end(self, command: StartCall, event: AnyEvent) -> None:
        """A call is over; one that a child of its leaves in doubt waits, whatever else has ended it (law 3)."""
        if self._state.graph.steps[command.step].type == CONTAINER and not _tells_of_child(event):
            self._looking[command.call] = self._loop.create_task(self._look_beneath(command, event))
        else:
            self._post(event)

    async def _look_beneath(self, command: StartCall, event: AnyEvent) -> None:
        """In a thread: the store may take its time, and there may be many runs."""
        try:
            child = await asyncio.to_thread(self._doubtful_child, command)
        except Exception as error:  # noqa: BLE001 - else the run would wait for this call for ever
            self._fail(error)
            return
        if child is not None:
            event = self._outcomes.doubted(command.call, self._clock.now(), child)
        del self._looking[command.call]
        self._post(event)

    def _ended(self, flight: Flight) -> CallFailed:
        """The event of a call that was told to end."""
        return self._timed_out(flight) if flight.ending == "timeout" else self._stopped(flight)

    def _stopped(self, flight: Flight) -> CallFailed:
        fault = cancellation(flight.command.step, "stopped")
        return self._outcomes.failure(flight.command.call, self._clock.now(), fault, effect=flight.effect)

    def _overtaken(self, flight: Flight) -> CallFailed:
        step = flight.command.step
        message = f"another worker has taken over the call of {step}"
        fault = Fault("call.overtaken", "transient", f"{step}/overtaken", message)
        return self._outcomes.failure(flight.command.call, self._clock.now(), fault, effect=flight.effect)

    def _timed_out(self, flight: Flight) -> CallFailed:
        step = flight.command.step
        message = f"{step} took longer than its limit of {flight.limit_s:g} s"
        fault = Fault("step.timeout", "transient", f"{step}/timeout", message)
        return self._outcomes.failure(flight.command.call, self._clock.now(), fault, effect=flight.effect)


def _tells_of_child(event: AnyEvent) -> bool:
    """Done, or waiting with its child; a failure may come of what was never heard of that."""
    return isinstance(event, CallDone) or (isinstance(event, CallParked) and "child" in event.details)
