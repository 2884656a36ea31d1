"""Why: everything a gate call decides, in order. Together with the events it is the call's record (E.10, B5)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gonogo.core.faults import Effect
from gonogo.gate.breaker import Change
from gonogo.gate.events import NOTHING_USED, Usage
from gonogo.gate.rules import Entry, Read
from gonogo.gate.signals import Classification


class Decision(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Base; `offset_ms` counts from the call's start, on the monotonic clock."""

    offset_ms: float

    def sentence(self) -> str:
        """In words."""
        return type(self).__name__


class Budget(Struct, frozen=True, omit_defaults=True, array_like=True):
    """How much of the bounds is used: attempts, tokens, cost, elapsed seconds."""

    attempts: int
    tokens: int
    cost_usd: float
    elapsed_s: float


class AttemptStarted(Decision, frozen=True, tag="attempt_started"):
    """A target is called."""

    attempt: int
    target: str
    model: str = ""
    probe: bool = False
    feedback: bool = False
    resume: bool = False
    hedge: bool = False

    def sentence(self) -> str:
        beside = " (probe)" if self.probe else " beside it" if self.hedge else ""
        return f"attempt {self.attempt} on {self.target}{beside}"


class AttemptEnded(Decision, frozen=True, tag="attempt_ended"):
    """What came of it; every attempt is billed for itself (B23)."""

    attempt: int
    target: str
    latency_s: float
    failure: Classification | None = None
    usage: Usage = NOTHING_USED
    effect: Effect = "done"
    delivered: bool = False
    held: int = 0
    chunks: int = 0
    digest: str = ""
    validation: str | None = None
    integrity: str = "ok"

    def sentence(self) -> str:
        did = "failed" if self.failure else "answered"
        text = f"attempt {self.attempt} on {self.target} {did} after {self.latency_s:.2g} s"
        return text + (f": {_told(self.failure)}" if self.failure else "")


class RuleDecided(Decision, frozen=True, tag="rule_decided"):
    """One decision with all its evidence: what the rules (or the taxonomy) wanted, what was done, what was in the way.

    `phase`: before, after, admission. `rule` is the index of the one that spoke; None: the taxonomy's row did.
    `before` is what was used before the attempt that is decided about, `after` with it; of a decision before an attempt
    there is the first alone.
    """

    attempt: int
    phase: str
    wanted: str
    did: str
    rule: int | None = None
    label: str = ""
    kind: str = ""
    blocked_by: str | None = None
    entries: tuple[Entry, ...] = ()
    reads: tuple[Read, ...] = ()
    failure: Classification | None = None
    from_target: str | None = None
    to_target: str | None = None
    before: Budget | None = None
    after: Budget | None = None

    def sentence(self) -> str:
        who = f"rule {self.rule + 1} '{self.label}'" if self.rule is not None else "the taxonomy"
        text = f"{who} wanted {self.wanted}"
        if self.blocked_by:
            text += f"; {self.blocked_by}, so: {self.did}"
        return text + (
            f" → {self.to_target}" if self.to_target and self.to_target != self.from_target else ""
        )


class GuardBlocked(Decision, frozen=True, tag="guard_blocked"):
    """A hard guard overruled what was wanted."""

    guard: str
    wanted: str
    detail: str

    def sentence(self) -> str:
        return f"{self.guard} forbids {self.wanted}: {self.detail}"


class WaitStarted(Decision, frozen=True, tag="wait_started"):
    """Nothing happens for a while."""

    wait_s: float
    reason: str

    def sentence(self) -> str:
        return f"waits {self.wait_s:.3g} s: {self.reason}"


class WaitEnded(Decision, frozen=True, tag="wait_ended"):
    """The wait is over."""

    def sentence(self) -> str:
        return "goes on"


class TargetSkipped(Decision, frozen=True, tag="target_skipped"):
    """A target isn't called, and why; `until_ms` is when its breaker may be asked again."""

    target: str
    reason: str
    until_ms: float | None = None

    def sentence(self) -> str:
        return f"{self.target} is skipped: {self.reason}"


class TargetSwitched(Decision, frozen=True, tag="target_switched"):
    """On to another target."""

    source: str
    target: str
    reason: str

    def sentence(self) -> str:
        return f"on to {self.target}: {self.reason}"


class BreakerChanged(Decision, frozen=True, tag="breaker_changed"):
    """A breaker opened, half-opened or closed because of this call."""

    change: Change

    def sentence(self) -> str:
        return f"breaker {self.change.key}: {self.change.before} → {self.change.after} ({self.change.reason})"


class BreakerOverruled(Decision, frozen=True, tag="breaker_overruled"):
    """A target is called although other processes have opened its breaker, and why that doesn't bind this one."""

    target: str
    reason: str

    def sentence(self) -> str:
        return f"{self.target} is called all the same: its breaker is {self.reason}"


class FallbackStarted(Decision, frozen=True, tag="fallback_started"):
    """The fallback is called."""

    attempt: int

    def sentence(self) -> str:
        return "asks the fallback"


class FallbackEnded(Decision, frozen=True, tag="fallback_ended"):
    """What came of it."""

    attempt: int
    latency_s: float
    failure: Classification | None = None
    usage: Usage = NOTHING_USED

    def sentence(self) -> str:
        return f"the fallback failed: {_told(self.failure)}" if self.failure else "the fallback answered"


class StreamReset(Decision, frozen=True, tag="stream_reset"):
    """What the consumer got is void; it was told."""

    attempt: int
    discarded_chars: int
    reason: str

    def sentence(self) -> str:
        return f"withdraws {self.discarded_chars} characters of attempt {self.attempt}"


class GateEnded(Decision, frozen=True, tag="gate_ended"):
    """The last decision: ok, partial, failed or cancelled; totals are the sums of the attempts."""

    outcome: str
    attempts: int
    target: str | None = None
    kind: str = ""
    category: str = ""
    used: Usage = NOTHING_USED
    data: dict[str, Any] = {}

    def sentence(self) -> str:
        where = f" on {self.target}" if self.target else ""
        why = f": {self.kind}" if self.kind else ""
        return f"ended {self.outcome}{where} after {self.attempts} attempts{why}"


AnyDecision = (
    AttemptStarted
    | AttemptEnded
    | RuleDecided
    | GuardBlocked
    | WaitStarted
    | WaitEnded
    | TargetSkipped
    | TargetSwitched
    | BreakerChanged
    | BreakerOverruled
    | FallbackStarted
    | FallbackEnded
    | StreamReset
    | GateEnded
)


def _told(failure: Classification | None) -> str:
    if failure is None:
        return "well"
    status = f" ({failure.status})" if failure.status else ""
    wish = f", asks {failure.retry_after_s:.3g} s" if failure.retry_after_s is not None else ""
    return f"{failure.kind}{status}{wish}"
