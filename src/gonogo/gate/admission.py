"""What an attempt takes before it goes out and gives back afterwards: the breaker's leave, a retry's share, budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from gonogo.gate import commands as c
from gonogo.gate import events as e
from gonogo.gate.breaker import Change
from gonogo.gate.budgets import NOTHING, ONE, Amounts, Purse, spent
from gonogo.gate.nesting import Watch
from gonogo.gate.policy import Target
from gonogo.gate.signals import Classification

if TYPE_CHECKING:
    from gonogo.gate.calls import Call


class Flight:
    """One attempt: `key` names its breaker, `owner` its lease. Gates within it see it as their `Around`.

    `number` is its own, once a ledger has it.
    """

    __slots__ = ("call", "counted", "key", "leased", "number", "owner", "reserved", "target", "used")

    def __init__(self, call: Call, target: Target, owner: str) -> None:
        self.call = call
        self.target = target
        self.owner = owner
        self.key: str | None = None
        self.leased = False
        self.number = 0
        self.reserved: Amounts | None = None
        self.counted = False
        self.used = e.NOTHING_USED

    @property
    def call_id(self) -> str:
        """The call's id."""
        return self.call.record.call_id

    @property
    def deadline_at(self) -> float:
        """When the call's time is up."""
        return self.call.state.deadline_at

    @property
    def watch(self) -> Watch | None:
        """Who hears the call's decisions."""
        return self.call.gate.watch

    def purse(self) -> Purse:
        """The call's budget."""
        return self.call.purse()

    async def admit(self, command: c.Admit) -> e.AnyEvent:
        """Breaker, then retries, then budgets: what is refused later gives back what was taken before."""
        clock, change, advice = self.call.gate.clock, None, ""
        breakers = self.call.gate.breakers
        if breakers is not None:
            key = self.key = breakers.key(self.call.step.name, self.target)
            lease_s = self.call.policy.timers.attempt_s + breakers.policy.lease_margin_s
            asked = key, self.owner, lease_s, command.force
            if breakers.store.blocking:
                admission, change = await to_thread.run_sync(breakers.admit, *asked)
            else:
                admission, change = breakers.admit(*asked)
            if not admission.admitted:
                return e.Refused(clock.now(), "breaker", admission.reason, admission.until_s, change)
            self.leased, advice = admission.probe, admission.advice
        now = clock.now()
        refusal = self._afford(command, now)
        if refusal is None:
            self.call.flights.append(self)
            admitted, pen = e.Admitted(now, self.leased, change, advice), self.call.pen
            return admitted if pen is None else await pen.ask(self, admitted)
        await self.release()
        return e.Refused(clock.now(), refusal[0], refusal[1], 0.0, change)

    def _afford(self, command: c.Admit, now: float) -> tuple[str, str] | None:
        call = self.call
        retries, outer = call.gate.retries, call.around
        if not command.retry:
            if call.state.number == 0:
                retries.count_call(now)
        elif (crowded := retries.take(now)) is not None:
            return "ratio", crowded
        wanted = NOTHING if outer is not None and not outer.counted else ONE
        if call.step.estimate is not None:
            needs = call.asked("estimate", call.step.estimate, self.target)
            wanted = Amounts(wanted.attempts, needs.tokens, needs.cost_usd)
        if call.has_purse:
            short = call.purse().reserve(wanted)
            if short is not None:
                return "budget", short
            self.reserved = wanted
        if outer is not None:
            outer.counted = True  # the first attempt within is the outer attempt itself
        return None

    def settle(self, usage: e.Usage) -> None:
        """Turn what was set aside into what was used. What gates within used is settled already."""
        if self.reserved is not None:
            own = e.NOTHING_USED if usage is self.used else usage
            self.call.purse().settle(self.reserved, spent(self.reserved.attempts, own))
            self.reserved = None
        outer = self.call.around
        if outer is not None and usage is not e.NOTHING_USED:
            outer.used = outer.used + usage

    async def give_back(self) -> Change | None:
        """It isn't made after all: nothing was used."""
        if self.reserved is not None:
            self.call.purse().settle(self.reserved, NOTHING)
            self.reserved = None
        return await self.release()

    async def report(self, failure: Classification | None, latency_s: float) -> Change | None:
        """Tell the breaker how it ended, and whoever keeps count of latencies."""
        gate, breakers = self.call.gate, self.call.gate.breakers
        if gate.latencies is not None:
            seen = gate.clock.now(), latency_s, failure, gate.policy.timers.attempt_s
            gate.latencies.saw(self.call.step.name, self.target, *seen)
        if breakers is None or self.key is None:
            return None
        self.leased = False
        lasting = failure is not None and self._is_lasting(failure.kind)
        told = self.key, self.owner, failure, latency_s, lasting
        if breakers.store.blocking:
            return await to_thread.run_sync(breakers.report, *told)
        return breakers.report(*told)

    def _is_lasting(self, kind: str) -> bool:
        """Whether what is wrong belongs to what the breaker's key names: another credential or model has another."""
        return bool(self.target.model if kind == "not-found" else self.target.credential)

    async def release(self) -> Change | None:
        """Give back the right to probe, if it is still held."""
        breakers = self.call.gate.breakers
        if breakers is None or self.key is None or not self.leased:
            return None
        self.leased = False
        if breakers.store.blocking:
            return await to_thread.run_sync(breakers.release, self.key, self.owner)
        return breakers.release(self.key, self.owner)
