"""The record of one gate call: its events and decisions, and the questions they answer (E.10)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from gonogo.gate.decisions import (
    AnyDecision,
    AttemptEnded,
    FallbackEnded,
    GateEnded,
    RuleDecided,
    TargetSkipped,
)
from gonogo.gate.events import AnyEvent, Usage
from gonogo.gate.policy import Policy
from gonogo.gate.replaying import replay
from gonogo.gate.taxonomy import TAXONOMY_VERSION


class CallRecord(Struct):
    """Grows while the call runs. `notes` tell of a store or a watcher in trouble. Texts are redacted."""

    call_id: str
    step: str
    policy: Policy
    parent: str | None = None
    events: list[AnyEvent] = field(default_factory=list)
    decisions: list[AnyDecision] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    taxonomy_version: int = TAXONOMY_VERSION

    @property
    def policy_hash(self) -> str:
        """Names the policy that was in force."""
        return self.policy.digest()

    @property
    def attempts(self) -> tuple[AttemptEnded, ...]:
        """Every attempt in order; the fallback's comes last, without an effect of its own."""
        return tuple(self._attempts())

    def _attempts(self) -> Iterator[AttemptEnded]:
        for each in self.decisions:
            if isinstance(each, AttemptEnded):
                yield each
            elif isinstance(each, FallbackEnded):
                yield AttemptEnded(
                    each.offset_ms, each.attempt, "fallback", each.latency_s, each.failure, each.usage, "none"
                )

    @property
    def outcome(self) -> GateEnded | None:
        """How it ended; None while it runs."""
        last = self.decisions[-1] if self.decisions else None
        return last if isinstance(last, GateEnded) else None

    @property
    def used(self) -> Usage:
        """All that was used, failed attempts included."""
        total = Usage()
        for attempt in self._attempts():
            total = total + attempt.usage
        return total

    @property
    def wasted(self) -> Usage:
        """What failed attempts used."""
        total = Usage()
        for attempt in self._attempts():
            if attempt.failure is not None:
                total = total + attempt.usage
        return total

    def why_not(self, target: str) -> list[str]:
        """Why a target wasn't called, each time."""
        return [
            each.reason
            for each in self.decisions
            if isinstance(each, TargetSkipped) and each.target == target
        ]

    def decided(self) -> list[RuleDecided]:
        """The decisions of rules and taxonomy, with their evidence."""
        return [each for each in self.decisions if isinstance(each, RuleDecided)]

    def story(self) -> list[str]:
        """The call in sentences."""
        return [f"{each.offset_ms / 1000:.3f} s: {each.sentence()}" for each in self.decisions]

    def under(self, policy: Policy) -> list[tuple[AnyDecision | None, AnyDecision | None]]:
        """Where another policy would have decided otherwise: pairs of was and would be, from the first difference on.

        Nothing is called; past the first difference the recorded events may no longer fit, and the list ends.
        """
        would = replay(policy, self.events)
        length = max(len(would), len(self.decisions))
        was: list[AnyDecision | None] = [*self.decisions, *[None] * (length - len(self.decisions))]
        pairs = zip(was, [*would, *[None] * (length - len(would))], strict=True)
        return [pair for pair in pairs if pair[0] != pair[1]]
