"""One gate call under way: performs what the core commands, whatever face is around it, and turns results into events.

`calling.py` (answers) and `streaming.py` (pieces) are the faces; both are this same call over the same core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from msgspec import structs

from gonogo.core.faults import Effect
from gonogo.gate import commands as c
from gonogo.gate import events as e
from gonogo.gate.admission import Flight
from gonogo.gate.breaker import Change
from gonogo.gate.budgets import NOTHING, Purse, spent
from gonogo.gate.decisions import AnyDecision
from gonogo.gate.failures import CATEGORIES, GateError, Misconfigured
from gonogo.gate.judging import judge
from gonogo.gate.latencies import with_evidence
from gonogo.gate.ledger import Pen
from gonogo.gate.machine import advance, begin
from gonogo.gate.nesting import AROUND, Around, Watch
from gonogo.gate.observed import signal_of
from gonogo.gate.policy import Policy
from gonogo.gate.record import CallRecord
from gonogo.gate.signals import Classification, Signal, classify
from gonogo.gate.state import State
from gonogo.gate.step import Answer, Attempt, Step
from gonogo.gate.taxonomy import row_of
from gonogo.gate.telling import cleaned, hidden, priced

if TYPE_CHECKING:
    from gonogo.gate.gate import Gate

T = TypeVar("T")

Keep = Callable[[str, e.AnyEvent, list[AnyDecision]], None]
"""Writes down what happened in a call and what was decided, before it is done."""

CLOSE_S_MAX = 1.0
"""How long closing what is under way may take before it is left alone."""


class Call:
    """One call through a gate."""

    __slots__ = (
        "_outer", "_purse", "around", "error", "flights", "gate", "has_purse", "partial", "pen", "policy", "record",
        "rejected", "state", "step", "value", "watchers",
    )  # fmt: skip

    def __init__(self, gate: Gate, step: Step, *, streaming: bool) -> None:
        self.gate = gate
        self.step = step
        self.policy: Policy = gate.policy
        self.around = AROUND.get()
        self._purse: Purse | None = None
        self._outer = self.around.purse() if self.around is not None else gate.purse
        bounds = self.policy.bounds
        # Attempts are bounded by the core; a purse is for money, tokens, and whoever else is to be asked.
        self.has_purse = (
            self._outer is not None or bounds.tokens_max is not None or bounds.cost_usd_max is not None
        )
        self.watchers = () if self.around is None is gate.watch else _watchers(gate.watch, self.around)
        parent = self.around.call_id if self.around is not None else None
        self.record = CallRecord(gate.next_id(), step.name, self.policy, parent)
        ledger = gate.ledger(step) if gate.ledger is not None else None
        self.pen = Pen(self, ledger) if ledger is not None else None
        carried = step.carried or (ledger.carried if ledger is not None else None)
        self.state: State = begin(self.policy, self._began(streaming, carried))
        self.value: Any = None
        self.error: BaseException | None = None
        self.rejected: Any = None
        self.partial: str | None = None
        self.flights: list[Flight] = []

    def purse(self) -> Purse:
        """This call's budget, made when somebody asks; attempts made before count."""
        if self._purse is None:
            bounds = self.policy.bounds
            made = 0 if self.has_purse else self.state.number
            self.has_purse = True
            self._purse = Purse(
                attempts_max=bounds.attempts_max - made,
                tokens_max=bounds.tokens_max,
                cost_usd_max=bounds.cost_usd_max,
                parent=self._outer,
            )
        return self._purse

    # --- the core

    def _began(self, streaming: bool, carried: e.Carried | None) -> e.Began:
        gate, step = self.gate, self.step
        now = gate.clock.now()
        deadline_at = self._outer.deadline() if self._outer is not None else None
        if self.around is not None:
            outer_at = self.around.deadline_at
            deadline_at = outer_at if deadline_at is None else min(outer_at, deadline_at)
        began = e.Began(
            now,
            self.record.call_id,
            step.name,
            step.effects,
            step.key is not None,
            step.fallback is not None,
            streaming,
            self._unfit() if step.needs or step.unfit is not None else {},
            gate.first(now) if self.policy.sticky_s is not None else 0,
            deadline_at,
            int(gate.clock.wall() * 1000),
            carried,
        )
        if self.policy.order == "configured":
            return began
        return with_evidence(began, self.policy, step, gate.latencies)

    def _unfit(self) -> dict[str, str]:
        try:
            return {name: self.clean(why) for name, why in self.gate.unfit(self.step).items()}
        except Exception as error:
            raise self._broken("unfit", error) from error

    def begin(self) -> list[c.Command]:
        """The first commands."""
        return self.feed(self.state.began)

    def feed(self, event: e.AnyEvent) -> list[c.Command]:
        """An event into the core; its decisions into the record and to the watchers."""
        record = self.record
        record.events.append(event)
        step = advance(self.policy, self.state, event)
        record.decisions += step.decisions
        if self.gate.keep is not None:
            self.gate.keep(record.call_id, event, step.decisions)
        for watch in self.watchers:
            for decision in step.decisions:
                try:
                    watch(record.call_id, decision)
                except Exception as error:  # noqa: BLE001 - a watcher never disturbs a call; the record says so
                    self.note(f"a watcher failed: {type(error).__name__}: {error}")
        return step.commands

    def note(self, text: str) -> None:
        """Something that changes nothing about the call but should be known; once."""
        clean = self.clean(text)
        if clean not in self.record.notes:
            self.record.notes.append(clean)

    # --- commands

    async def answer(self, command: c.Command) -> e.AnyEvent:
        """Perform a command that every face performs alike."""
        if isinstance(command, c.Admit):
            return await self.flight(command).admit(command)
        if isinstance(command, c.Wait):
            clock = self.gate.clock
            if self.pen is not None:
                self.pen.waits(command.until_at - clock.now())
            while (left_s := command.until_at - clock.now()) > 0:
                await clock.sleep(left_s)
            return e.Waited(clock.now())
        assert isinstance(command, c.Judge)
        entries = await judge(self.policy, command, self.gate.evaluate, self.gate.predicates, self.clean)
        return e.Judged(self.gate.clock.now(), entries)

    def flight(self, command: c.Admit) -> Flight:
        """What asks for leave to call a target; it is among the call's flights when it has got it."""
        owner = self.record.call_id if not self.flights else f"{self.record.call_id}/hedge"
        return Flight(self, self.policy.targets[command.target], owner)

    # --- attempts

    def attempt(self, command: c.StartAttempt) -> Attempt:
        """What the step is called with."""
        return Attempt(
            command.number,
            self.policy.targets[command.target],
            command.limit_s,
            min(self.policy.timers.connect_s, command.limit_s),
            self.step.key,
            command.feedback,
            self.rejected if command.feedback is not None else None,
            self.partial if command.resume else None,
        )

    def failed(self, error: BaseException) -> Classification:
        """What an exception means; it is kept as the cause of the error that may come."""
        self.error = error
        if isinstance(error, GateError):
            return self._inner(error)
        gate = self.gate
        return classify(signal_of(error, gate.clock.wall(), gate.redact), self.step.tests)

    def classified(self, signal: Signal) -> Classification:
        """What a failure means that the step itself has seen."""
        redact = self.gate.redact
        return classify(signal if redact is None else hidden(signal, redact), self.step.tests)

    def _inner(self, error: GateError) -> Classification:
        """A gate within gave up: it has tried what was worth it, so this one doesn't try the same again."""
        kinds = {"budget-exceeded", "deadline", "side-effect-unsafe"}
        kind = error.kind if error.kind in kinds else "inner-gate"
        return Classification(
            kind,
            f"a gate within: {error.kind}",
            error.message,
            type=type(error).__name__,
            effect=error.effect,
        )

    def of_kind(self, kind: str, message: str) -> Classification:
        """A failure that the gate itself saw."""
        self.error = None
        return Classification(kind, "the gate saw it", message)

    def timed_out(self, command: c.StartAttempt, kind: str) -> Classification:
        """A limit ended the attempt: the call's own deadline, if that came first."""
        if command.deadline_first and kind == "timeout-total":
            return self.of_kind("deadline", "the call's time was up")
        return self.of_kind(kind, f"no more than {command.limit_s:.3g} s" if kind == "timeout-total" else "")

    def judged(self, value: Any) -> tuple[Classification | None, str | None]:
        """Whether an answer is one: what `inspect` and `validate` say of it, the latter's words apart."""
        step = self.step
        if step.inspect is not None:
            signal = self.asked("inspect", step.inspect, value)
            if signal is not None:
                self.error = None
                return self.classified(signal), None
        wrong = None if step.validate is None else self._validated(step.validate, value)
        if wrong is None:
            return None, None
        self.rejected = value
        self.error = None
        return Classification("schema-fail", "the validator says so", wrong), wrong

    def _validated(self, validate: Callable[[Any], str | None], value: Any) -> str | None:
        try:
            wrong = validate(value)
        except Exception as error:  # noqa: BLE001 - an answer that breaks its validator isn't valid
            wrong = f"the validator failed: {type(error).__name__}: {error}"
        return None if wrong is None else self.clean(wrong)[:2000]

    def clean(self, text: str) -> str:
        """A text without secrets."""
        return text if self.gate.redact is None else self.gate.redact(text)

    def view(self, value: Any) -> Any:
        """An answer as rules see it."""
        look = self.step.view
        return None if look is None else cleaned(self.asked("view", look, value), self.clean)

    def usage(self, value: Any, flight: Flight | None = None) -> e.Usage:
        """What an answer used; without a word from the step, what the gates within used."""
        if self.step.usage is not None:
            told = self.asked("usage", self.step.usage, value)
            return priced(told, flight.target if flight else self.state.target)
        return flight.used if flight is not None else e.NOTHING_USED

    def used_by_failure(self, flight: Flight) -> e.Usage:
        """What a failed attempt used: what its exception tells (`usage`), else what the gates within used."""
        told = getattr(self.error, "usage", None)
        if isinstance(told, e.Usage):
            return priced(told, flight.target)
        return flight.used

    async def ended(self, answered: e.Answered, latency_s: float, flight: Flight | None) -> list[c.Command]:
        """An attempt is over: settle its budget, tell its breaker, feed the core. `flight` None: the fallback."""
        failure = answered.failure
        effect: Effect = "done" if failure is None else failure.effect or row_of(failure.kind).effect
        change: Change | None = None
        if flight is not None:
            self.flights.remove(flight)
            flight.settle(answered.usage)
            change = await flight.report(failure, latency_s)
            if failure is None and self.policy.sticky_s is not None:
                self.gate.served(self.state.current, answered.at)
            if self.gate.breakers is not None and self.gate.breakers.trouble is not None:
                self.note(f"breaker store: {self.gate.breakers.trouble}")
        elif self.has_purse:
            self.purse().settle(
                NOTHING, spent(0, answered.usage)
            )  # a fallback isn't reserved for, but is paid
        if change is not None or effect != answered.effect:
            answered = structs.replace(answered, effect=effect, change=change)
        commands = self.feed(answered)
        if self.pen is not None:
            number = flight.number if flight is not None else self.state.number + 1
            self.pen.ended(*((number, answered.lost) if answered.lost else (number,)))
        return commands

    def asked(self, name: str, function: Callable[..., T], *arguments: Any) -> T:
        """What a function of the step says. Raises Misconfigured when it breaks: nothing is made of that (F17)."""
        try:
            return function(*arguments)
        except Exception as error:
            effect: Effect = "unknown" if self.flights else self._effect()
            raise self._broken(name, error, self.state.carried(self.gate.clock.now()), effect) from error

    def _broken(
        self, name: str, error: Exception, resume: e.Carried | None = None, effect: Effect = "none"
    ) -> Misconfigured:
        told = self.clean(f"{self.step.name}: {name} of the step failed: {type(error).__name__}: {error}")
        return Misconfigured(
            told,
            kind="step-error",
            phase="step",
            label=name,
            record=self.record,
            resume=resume,
            effect=effect,
        )

    async def cancelled(
        self,
        usage: e.Usage = e.NOTHING_USED,
        *,
        delivered: bool = False,
        held: int = 0,
        broken: str | None = None,
    ) -> None:
        """The caller is gone: the record ends, the probe is free again. Nothing is called any more (B21)."""
        if self.record.outcome is not None:
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_S_MAX):
            change: Change | None = None
            for flight in self.flights:
                change = await flight.release() or change
                flight.settle(usage)
            self.feed(e.Cancelled(self.gate.clock.now(), usage, delivered, held, change, broken))
            if self.pen is not None:
                self.pen.cancelled(self.flights, usage)

    # --- ends

    def returned(self, command: c.Return) -> Answer:
        """The answer that the core lets out."""
        if self.pen is not None:
            self.pen.over()
        ended = self.record.outcome
        name = ended.target if ended is not None and ended.target is not None else ""
        target = self.policy.targets[self.state.current]
        model = target.model if target.name == name else ""
        return Answer(self.value, name, model, self.record, command.partial)

    def raised(self, command: c.Raise) -> GateError:
        """The error that the core wants raised; `error` is its cause."""
        if self.pen is not None:
            self.pen.over()
        attempts = self.record.attempts
        last = attempts[-1].failure if attempts else None
        told = f"{self.step.name}: {command.kind}"
        if last is not None:
            made = max(self.state.number, len(attempts))  # an earlier part of the call made some, too
            told += f" after {made} attempt{'s' if made > 1 else ''}"
        if command.label:
            told += f" ({command.label})"
        if last is not None and last.message:
            told += f"; last: {last.message}"
        error = CATEGORIES[command.category](
            told,
            kind=command.kind,
            phase=command.phase,
            label=command.label,
            record=self.record,
            partial=self.partial or None,
            retry_after_s=command.retry_after_s,
            resume=self.state.carried(self.gate.clock.now()),
            effect=self._effect(),
        )
        error.__cause__ = self.error
        return error

    def _effect(self) -> Effect:
        """The most that any attempt may have done outside."""
        seen = {attempt.effect for attempt in self.record.attempts}
        return "unknown" if "unknown" in seen else "done" if "done" in seen else "none"


def _watchers(own: Watch | None, around: Around | None) -> tuple[Watch, ...]:
    outer = around.watch if around is not None else None
    if own is None:
        return () if outer is None else (outer,)
    return (own,) if outer is None or outer is own else (own, outer)
