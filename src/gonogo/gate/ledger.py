"""What a gate's calls write down elsewhere before and after each attempt, so that they can go on after a crash.

Whoever keeps a ledger may also refuse an attempt: a budget that more than one process spends is asked there. A gate
without one keeps its record to itself. What was written comes back as `carried`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gonogo.core.plan import Effects
from gonogo.gate import events as e
from gonogo.gate.budgets import NOTHING, Amounts
from gonogo.gate.decisions import AnyDecision, AttemptEnded, AttemptStarted, WaitEnded

if TYPE_CHECKING:
    from gonogo.gate.admission import Flight
    from gonogo.gate.calls import Call
    from gonogo.gate.step import Step

LONG_WAIT_S = 1.0
"""Longer waits are written down: a crash amid one must not shorten it, and others may use what a waiting call holds."""

_UNTOLD = (AttemptStarted, WaitEnded)
"""What is asked for says it already."""

Told = Sequence[AnyDecision]
"""What the call has decided since it last wrote."""


class Wanted(Struct, frozen=True):
    """An attempt before it goes out: its number, its target's name, what it may do outside, and what it may use."""

    number: int
    target: str
    effects: Effects
    amounts: Amounts
    elapsed_s: float


class Ended(Struct, frozen=True):
    """What came of an attempt. `over`: the call ends with it. `out`: why its target serves the call no more.

    `next`: the target that the call goes on to.
    """

    attempt: AttemptEnded
    over: bool
    elapsed_s: float
    out: str = ""
    next: str = ""


class Ledger(Protocol):
    """Where one call writes. `carried`: what an earlier part of the call has used up, before a crash."""

    @property
    def carried(self) -> e.Carried | None:
        """None for a call that begins."""
        ...

    async def ask(self, wanted: Wanted, told: Told) -> str | None:
        """Write an attempt down before it goes out; None is leave, a text says why it may not go."""
        ...

    def ended(self, ended: Ended, told: Told) -> None:
        """An attempt that had leave is over."""
        ...

    def waits(self, wait_s: float, target: str, elapsed_s: float, told: Told) -> None:
        """The call waits for longer than LONG_WAIT_S, then asks for this target."""
        ...

    def over(self, told: Told) -> None:
        """The call is over without another attempt."""
        ...


class Opens(Protocol):
    """Makes the ledger of a call."""

    def __call__(self, step: Step) -> Ledger: ...


class Pen:
    """Writes a call's ledger as the call goes on."""

    __slots__ = ("_call", "_ledger", "_over", "_told")

    def __init__(self, call: Call, ledger: Ledger) -> None:
        self._call = call
        self._ledger = ledger
        self._told = 0
        self._over = False

    async def ask(self, flight: Flight, admitted: e.Admitted) -> e.AnyEvent:
        """Leave for an attempt that breaker and budgets of the gate have let through."""
        call = self._call
        number = call.state.number + 1
        needs = NOTHING if call.step.estimate is None else call.step.estimate(flight.target)
        wanted = Wanted(number, flight.target.name, call.step.effects, needs, self._elapsed_s())
        clock, by, refusal = call.gate.clock, "deadline", "nobody gave it leave in time"
        with clock.limit(max(0.0, call.state.deadline_at - clock.now())):
            asked = await self._ledger.ask(wanted, self._news())
            if asked is None:
                flight.number = number
                return replace(admitted, at=clock.now())
            by, refusal = "budget", asked
        call.flights.remove(flight)
        change = await flight.give_back() or admitted.change
        return e.Refused(clock.now(), by, refusal, 0.0, change)

    async def ask_fallback(self) -> str | None:
        """Leave for the fallback."""
        wanted = Wanted(
            self._call.state.number + 1, "fallback", self._call.step.effects, NOTHING, self._elapsed_s()
        )
        return await self._ledger.ask(wanted, self._news())

    def ended(self, *numbers: int) -> None:
        """Attempts are over, as the call's state has them."""
        state = self._call.state
        over = self._call.record.outcome is not None
        self._over = self._over or over
        for number in numbers:
            found = next((each for each in reversed(state.attempts) if each.attempt == number), None)
            if found is not None:
                out, then = state.out.get(found.target, ""), self._call.policy.targets[state.candidate].name
                ended = Ended(found, over, self._elapsed_s(), out, "" if over else then)
                self._ledger.ended(ended, self._news())

    def cancelled(self, flights: Sequence[Flight], usage: e.Usage) -> None:
        """The caller is gone; nobody knows what attempts under way have done."""
        self._over = True
        state = self._call.state
        for flight in flights:
            if flight.number:
                attempt = AttemptEnded(
                    state.offset_ms(self._call.gate.clock.now()),
                    flight.number,
                    flight.target.name,
                    0.0,
                    self._call.of_kind("cancelled", ""),
                    usage,
                    "unknown",
                )
                self._ledger.ended(Ended(attempt, True, self._elapsed_s()), self._news())
        self._tell_rest()

    def waits(self, wait_s: float) -> None:
        """A long wait begins."""
        if wait_s > LONG_WAIT_S:
            call = self._call
            target = call.policy.targets[call.state.candidate].name
            self._ledger.waits(wait_s, target, self._elapsed_s(), self._news())

    def over(self) -> None:
        """The call is over; said once."""
        if not self._over:
            self._over = True
            self._ledger.over(self._news())

    def _tell_rest(self) -> None:
        news = self._news()
        if news:
            self._ledger.over(news)

    def _news(self) -> Told:
        decisions = self._call.record.decisions
        news = [each for each in decisions[self._told :] if not isinstance(each, _UNTOLD)]
        self._told = len(decisions)
        return news

    def _elapsed_s(self) -> float:
        state = self._call.state
        return round(max(0.0, self._call.gate.clock.now() - state.start_at), 6)
