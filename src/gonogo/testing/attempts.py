"""Plays the gates of simulated calls: so many attempts that fail before one comes through, with waits between.

The far side is the same whoever asks it: what attempt number n comes to depends on the call and on n alone. A gate goes
on after a crash with what the state says that its call has used up, as one of `gonogo.gate` does.
"""

from __future__ import annotations

from dataclasses import dataclass

from gonogo.core import events as e
from gonogo.core.commands import LetAttempt, StartCall
from gonogo.core.faults import Effect, Fault
from gonogo.core.gated import Request
from gonogo.core.state import State
from gonogo.testing.behaviours import Behaviour, Reply, digest

ATTEMPTS_MAX = 3
TARGET = "far"


@dataclass(slots=True)
class Coming:
    """An event of a gate on its way: after how long, and whether the outside world has changed by then."""

    after_s: float
    event: e.AnyEvent
    acted: bool = False


class Gates:
    """Those of the calls in flight of one host. `known` tells which calls have one."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.gates: dict[int, _Gate] = {}

    def known(self, call: int) -> bool:
        """Whether the call goes through a gate, and isn't over."""
        return call in self.gates

    def command(self, call: int) -> StartCall | None:
        """The command of a call that goes through a gate."""
        gate = self.gates.get(call)
        return gate.command if gate is not None else None

    def start(
        self, command: StartCall, behaviour: Behaviour, reply: Reply, state: State, now: float
    ) -> Coming | None:
        """The first event of a call; None for one without a gate."""
        if (
            not behaviour.attempts
            or isinstance(reply.event, e.CallParked)
            or behaviour.broken_scope == command.scope
        ):
            return None
        node = state.calls.get(command.call)
        request = node.gate.requests.get(("", 1)) if node is not None and node.gate is not None else None
        gate = self.gates[command.call] = _Gate(self.seed, command, behaviour, reply)
        return gate.begin(request, now)

    def let(self, command: LetAttempt) -> Coming | None:
        """What comes of an attempt that may go, or may not; nothing for a call that is over."""
        gate = self.gates.get(command.call)
        return gate.let(command) if gate is not None else None

    def after(self, event: e.AnyEvent) -> Coming | None:
        """What follows when an event of a gate has come in."""
        gate = self.gates.get(getattr(event, "call", 0))
        if gate is None or not isinstance(event, e.AttemptEnded | e.GateWaits):
            return None
        return gate.after(event)

    def forget(self, call: int) -> None:
        """The call is over."""
        self.gates.pop(call, None)

    def clear(self) -> None:
        """The host has died."""
        self.gates.clear()


class _Gate:
    """One call's. `number` is that of its latest attempt."""

    def __init__(self, seed: int, command: StartCall, behaviour: Behaviour, reply: Reply) -> None:
        self.command = command
        self.behaviour = behaviour
        self.reply = reply
        self.number = 0
        self.chance = digest(
            seed, "attempts", command.step, command.scope, command.execution, command.attempt
        )
        self.failing = self.chance % (ATTEMPTS_MAX + 1) if behaviour.attempts > self.chance // 7 % 100 else 0

    def begin(self, request: Request | None, now: float) -> Coming:
        if request is None:
            return self._ask(0.25)
        self.number = request.number
        if request.lost is not None and self.number >= ATTEMPTS_MAX:
            self.number -= 1  # the last one is made again
        if self.number >= ATTEMPTS_MAX:
            return self._give_up()
        rest_s = 0.0 if request.wait_until is None else max(0.0, request.wait_until - now)
        return self._ask(rest_s)

    def let(self, command: LetAttempt) -> Coming:
        if command.refusal:
            fault = Fault("gate.budget-exceeded", "logical", "simulated/budget", command.refusal)
            return Coming(0.0, e.CallFailed(call=self.command.call, fault=fault))
        if self.number <= self.failing:
            return Coming(0.5, self._ended(command.ticket, "rate-limit", "none", over=self._is_last))
        event = self.reply.event
        effect: Effect = event.effect if isinstance(event, e.CallFailed) else "done"
        kind = "network" if effect == "unknown" else ""
        ended = self._ended(command.ticket, kind, effect, over=True)
        return Coming(self.reply.duration_s, ended, self.reply.acted)

    def after(self, event: e.AttemptEnded | e.GateWaits) -> Coming:
        if isinstance(event, e.GateWaits):
            return self._ask(event.wait_s)
        if self.number > self.failing:
            return Coming(0.0, self.reply.event)
        if self._is_last:
            return self._give_up()
        if self.chance // 100 % 3 == self.number % 3:
            wait_s = float(2 + self.chance // 300 % 20)
            return Coming(0.0, e.GateWaits(call=self.command.call, wait_s=wait_s, target=TARGET))
        return self._ask(0.25)

    @property
    def _is_last(self) -> bool:
        return self.number >= ATTEMPTS_MAX

    def _ask(self, after_s: float) -> Coming:
        self.number += 1
        asked = e.AttemptAsked(
            call=self.command.call,
            ticket=self.number,
            number=self.number,
            target=TARGET,
            effects=self.command.effects,
            tokens=self.behaviour.tokens,
        )
        return Coming(after_s, asked)

    def _ended(self, ticket: int, kind: str, effect: Effect, *, over: bool) -> e.AttemptEnded:
        used = self.behaviour.tokens // (2 if kind else 1)
        return e.AttemptEnded(
            call=self.command.call,
            ticket=ticket,
            kind=kind,
            effect=effect,
            output_tokens=used,
            money=used / 32,
            over=over,
        )

    def _give_up(self) -> Coming:
        fault = Fault("gate.exhausted", "transient", "simulated/exhausted", "every attempt failed")
        return Coming(0.0, e.CallFailed(call=self.command.call, fault=fault))
