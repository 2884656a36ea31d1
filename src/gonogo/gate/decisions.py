"""Why: everything a gate call decides, in order. Together with the events it is the call's record (E.10, B5)."""

from __future__ import annotations

from msgspec import Struct

from gonogo.core.faults import Effect
from gonogo.gate.breaker import Change
from gonogo.gate.events import NOTHING_USED, Usage
from gonogo.gate.rules import Compared, Entry, Read
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


class TargetsOrdered(Decision, frozen=True, tag="targets_ordered"):
    """Which targets are asked first, and why: weights, or the latency seen of each (seconds)."""

    by: str
    order: tuple[str, ...]
    evidence: dict[str, float] = {}

    def sentence(self) -> str:
        unit, unknown = ("", "") if self.by == "weighted" else (" s", "not seen lately")
        told = (
            f"{name} ({self.evidence[name]:.3g}{unit})" if name in self.evidence else f"{name} ({unknown})"
            for name in self.order
        )
        return f"order is {self.by}: {', '.join(told)}"


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
        text = f"{who} wanted {self.wanted}{_since(self.entries, self.rule)}"
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
        left_ms = None if self.until_ms is None else self.until_ms - self.offset_ms
        again = "" if left_ms is None or left_ms <= 0 else f"; may be asked again in {left_ms / 1000:.3g} s"
        return f"{self.target} is skipped: {self.reason}{again}"


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
    wasted: Usage = NOTHING_USED

    def sentence(self) -> str:
        where = f" on {self.target}" if self.target else ""
        why = f": {self.kind}" if self.kind else ""
        count = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        return f"ended {self.outcome}{where} after {count}{why}{_spent(self.used, self.wasted)}"


AnyDecision = (
    TargetsOrdered
    | AttemptStarted
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


def _since(entries: tuple[Entry, ...], chosen: int | None) -> str:
    """The operands of the rule that spoke, with the values they had; and which rules before it didn't match."""
    spoke = next((each for each in entries if each.index == chosen), None)
    told = [] if spoke is None else [_compared(each) for each in spoke.conditions]
    told += [] if spoke is None else [f"{each.path} is {each.value}" for each in spoke.reads]
    others = [f"{each.index + 1} '{each.label}'" for each in entries if each.result == "no"]
    if others:
        told.append(f"no match: {', '.join(others)}")
    return f" ({'; '.join(told)})" if told else ""


def _compared(condition: Compared) -> str:
    """`attempt 1 lt 3`, `error_kind eq schema-fail`."""
    actual = "" if condition.op == "eq" else f"{condition.actual} "
    threshold = condition.threshold
    if isinstance(threshold, list | tuple):
        threshold = ", ".join(map(str, threshold[:10]))
    return f"{condition.path} {actual}{condition.op} {threshold}"


def _spent(used: Usage, wasted: Usage) -> str:
    """What it took, and how much of that failed attempts took."""
    if used == NOTHING_USED:
        return ""
    tokens = used.input_tokens + used.output_tokens
    lost = wasted.input_tokens + wasted.output_tokens
    money = f", cost {used.cost_usd:.6g}" if used.cost_usd else ""
    lost_money = f" and {wasted.cost_usd:.6g}" if wasted.cost_usd else ""
    of_that = f", of which {lost} tokens{lost_money} in failed attempts" if wasted != NOTHING_USED else ""
    return f"; used {tokens} tokens{money}{of_that}"


def _told(failure: Classification | None) -> str:
    if failure is None:
        return "well"
    status = f" ({failure.status})" if failure.status else ""
    wish = f", asks {failure.retry_after_s:.3g} s" if failure.retry_after_s is not None else ""
    return f"{failure.kind}{status}{wish}"
