"""The errors a gate call can end with: one tree, each error with every attempt and a way to go on (F.5).

    GateError                   base, and what a rule's own fail-fast raises
    ├── PreCheckFailed          a rule before the attempt said no
    ├── Exhausted               every way was tried
    ├── NotRetryable            another attempt wouldn't help, or could do harm
    ├── BudgetExceeded          tokens, money, attempts or the share of retries
    ├── DeadlineExceeded        the call's time is up, or a needed wait would pass it
    ├── CircuitOpen             every target is refused by its breaker; `retry_after_s` says until when
    ├── ValidationStuck         the answer is wrong in the same way again
    └── Misconfigured           no target can serve the call, a rule can't be evaluated, or the step itself is broken

The original exception is the `__cause__`. A cancellation is never one of these: it is raised on, unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gonogo.core.faults import Effect, Fault, FaultClass
from gonogo.errors import GonogoError
from gonogo.gate.decisions import AttemptEnded, RuleDecided
from gonogo.gate.events import Carried, Usage

if TYPE_CHECKING:
    from gonogo.gate.record import CallRecord


class GateError(GonogoError):
    """A gate call failed. `kind` is the rule's, else that of the last failure; `phase` where it was decided.

    `attempts`: every one, the fallback's too. `decision`: the last one made by rules or taxonomy. `partial`: what a
    stream had given. `retry_after_s`: when asking again may help. `resume`: hand it to a later call to go on with its
    counters. `effect`: what may have happened outside.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "",
        phase: str = "",
        label: str = "",
        record: CallRecord | None = None,
        partial: Any = None,
        retry_after_s: float | None = None,
        resume: Carried | None = None,
        effect: Effect = "none",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.phase = phase
        self.label = label
        self.record = record
        self.partial = partial
        self.retry_after_s = retry_after_s
        self.resume = resume
        self.effect = effect

    @property
    def attempts(self) -> tuple[AttemptEnded, ...]:
        """Every attempt, in order."""
        return self.record.attempts if self.record else ()

    @property
    def decision(self) -> RuleDecided | None:
        """The last decision of rules or taxonomy, with its evidence."""
        found = (
            [each for each in self.record.decisions if isinstance(each, RuleDecided)] if self.record else []
        )
        return found[-1] if found else None

    def fault(self, rule_id: str) -> Fault:
        """The same as a step's fault. Never transient: the gate has tried what was worth it."""
        fault_class: FaultClass = (
            "lost" if self.effect == "unknown" and self.kind == "side-effect-unsafe" else "logical"
        )
        if isinstance(self, CircuitOpen | DeadlineExceeded | Exhausted):
            fault_class = "transient"
        elif isinstance(self, Misconfigured) and self.kind == "step-error":
            fault_class = "bug"
        return Fault(
            f"gate.{self.kind}", fault_class, rule_id, self.message, retry_after_s=self.retry_after_s
        )


class PreCheckFailed(GateError):
    """A rule before the attempt said no."""


class Exhausted(GateError):
    """Every target and the fallback were tried, as far as the bounds allow."""


class NotRetryable(GateError):
    """Another attempt wouldn't help, or could do harm."""


class BudgetExceeded(GateError):
    """Tokens, money, attempts or the share of retries are used up."""


class DeadlineExceeded(GateError):
    """The call's time is up, or the wait that was needed would pass it."""


class CircuitOpen(GateError):
    """Every target is refused by its breaker."""


class ValidationStuck(GateError):
    """The answer was wrong in the same way twice."""


class Misconfigured(GateError):
    """No target can serve the call, a rule can't be evaluated, or a function of the step raised."""


CATEGORIES: dict[str, type[GateError]] = {
    "failed": GateError,
    "pre-check": PreCheckFailed,
    "exhausted": Exhausted,
    "not-retryable": NotRetryable,
    "budget": BudgetExceeded,
    "deadline": DeadlineExceeded,
    "circuit": CircuitOpen,
    "stuck": ValidationStuck,
    "misconfigured": Misconfigured,
}


class StepFailed(Exception):
    """What a step raises when it knows what went wrong: its kind, what that did outside, what it used."""

    def __init__(
        self,
        kind: str | None,
        message: str = "",
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
        effect: Effect | None = None,
        request_id: str | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message or kind or "failed")
        self.kind = kind
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s
        self.effect = effect
        self.request_id = request_id
        self.usage = usage
