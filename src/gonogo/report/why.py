"""Why a step didn't run: the stable reason, the expression with the values it saw, and the chain to the step at
the root of it. Taken from the records; nothing is guessed from texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from gonogo.core.plan import Plan, Step
from gonogo.journal.view import RunView, StepView
from gonogo.report.layout import brief

VALUES_SHOWN_MAX = 3
NAMES_SHOWN_MAX = 5
CHAIN_MAX = 20
"""Steps of a chain: the first ones and the root. Behind a step that fails each step of a long chain has its own."""
_STOPS = MappingProxyType(
    {
        "fail_fast": "the run stops at the first failure (fail_fast)",
        "halted": "the run was halted",
        "budget": "the run's budget is used up",
        "cancelled": "the run was cancelled",
        "cancelled_hard": "the run was cancelled",
    }
)


class Why(Struct, frozen=True):
    """`chain`: the steps from the next cause to the root of it (at most CHAIN_MAX), empty when the step itself is it.

    `values`: what the expression read, path → value as the journal has it (capped, secrets masked).
    """

    reason: str
    text: str
    chain: tuple[str, ...] = ()
    expression: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data for `--format json`."""
        return {
            "reason": self.reason,
            "text": self.text,
            "because": list(self.chain),
            "expression": self.expression,
            "values": self.values,
            "error": self.error,
        }


def whys(view: RunView) -> dict[str, Why]:
    """Why each step that was skipped or left out didn't run, in configuration order. Raises JournalError."""
    teller = _Teller(view)
    told = [*view.excluded, *(step.name for step in view.steps.values() if step.outcome == "skipped")]
    found = {name: why for name in told if (why := teller.why(name)) is not None}
    return {name: found[name] for name in view.plan.steps if name in found} if found else {}


class _Teller:
    """Knows one run. What a condition read is in its records alone, which are looked at only if one kept a step."""

    def __init__(self, view: RunView) -> None:
        self._view = view

    def why(self, name: str) -> Why | None:
        if name in self._view.excluded:
            event = (self._view.event or {}).get("name")
            return left_out(self._view.plan, name, self._view.excluded, event)
        step = self._view.steps.get(name)
        if step is None or step.outcome != "skipped":
            return None
        reason = step.reason or "skipped"
        if reason in ("if_condition", "assume"):
            return self._condition(name, reason)
        chain = self._chain(name)
        return Why(reason, self._text(reason, chain), chain)

    def _condition(self, name: str, reason: str) -> Why:
        construct = "if" if reason == "if_condition" else "assume"
        judged = self._view.counts.tally.conditions.get(name)
        if judged is None:
            return Why(reason, f"its {construct} doesn't hold")
        source = self._view.plan.expressions[judged.expression].source
        shown = brief(source, 80)
        if judged.error:
            text = f"its {construct} can't be evaluated: {brief(judged.error, 200)} ({shown})"
        else:
            seen = _seen(judged.evidence)
            text = f"its {construct} is false: {shown}{f', with {seen}' if seen else ''}"
        return Why(reason, text, (), source, dict(judged.evidence), judged.error)

    def _chain(self, name: str) -> tuple[str, ...]:
        """From the dependency in the way to the root; the root alone where the way isn't plain."""
        step = self._view.steps.get(name)
        root = step.because if step is not None else None
        chain: list[str] = []
        here = name
        while root is not None and here != root:
            here = (self._next(here, root) if len(chain) < CHAIN_MAX - 1 else None) or root
            chain.append(here)
        return tuple(chain)

    def _next(self, name: str, root: str) -> str | None:
        step = self._view.plan.steps.get(name)
        for edge in (edge for need in step.depends_on for edge in need.any_of) if step else ():
            before = self._view.steps.get(edge.step)
            if edge.step == root or (before is not None and before.because == root):
                return edge.step
        return None

    def _text(self, reason: str, chain: Sequence[str]) -> str:
        if reason in _STOPS:
            return _STOPS[reason] + (f" after {chain[-1]}" if chain else "")
        if reason == "forEach_empty":
            return f"{chain[-1] if chain else 'its list'} gave no items"
        if reason == "not_routed":
            return "nothing sent the run to it"
        if not chain:
            return reason.replace("_", " ")
        happened = f"{_way(chain)}, {self._what_happened(chain[-1])}"
        if reason == "suppressed":
            critical = self._view.plan.steps[chain[-1]].criticality
            return f"kept back: it acts behind the {critical} step {happened}"
        return f"needs {happened}"

    def _what_happened(self, root: str) -> str:
        step = self._view.steps.get(root)
        if step is None:
            return "which is left out"
        if step.outcome == "skipped":
            why = self.why(root)
            return f"which was skipped: {why.text}" if why else "which was skipped"
        return f"which {outcome_word(step)}"


def outcome_word(step: StepView) -> str:
    """`failed`, `passed`, `was cancelled`, …"""
    words = {
        "tolerated": "failed (tolerated)",
        "skipped": "was skipped",
        "cancelled": "was cancelled",
        "waiting": "is waiting",
        "in_doubt": "is in doubt",
    }
    return words.get(step.outcome, step.outcome)


def left_out(plan: Plan, name: str, excluded: Mapping[str, str], event: str | None) -> Why:
    """Why a step is no part of a run with this event (None: no event)."""
    step, reason = plan.steps[name], excluded[name]
    if reason == "event_filter":
        return Why(reason, f"not for {event or 'this event'} (on: {', '.join(step.on or ())})")
    if reason == "tag_filter":
        return Why(reason, _tag_text(plan, step))
    if reason == "dependency_excluded":
        chain = _excluded_chain(plan, name, excluded)
        root = chain[-1] if chain else None
        told = left_out(plan, root, excluded, event).text if root and root != name else ""
        return Why(reason, f"needs {_way(chain)}, which is left out" + (f": {told}" if told else ""), chain)
    if reason == "not_requested":
        return Why(reason, "not asked for (--step)")
    return Why(reason, reason.replace("_", " "))


def _tag_text(plan: Plan, step: Step) -> str:
    tags = ", ".join(step.tags)
    if set(step.tags) & set(plan.exclude_tags):
        return f"has an excluded tag (tags: {tags})"
    if plan.include_tags:
        return f"has none of the tags {', '.join(plan.include_tags)} (tags: {tags})"
    return f"runs only when --tags names one of: {tags}"


def _excluded_chain(plan: Plan, name: str, excluded: Mapping[str, str]) -> tuple[str, ...]:
    chain: list[str] = []
    here: str | None = name
    while here is not None and excluded.get(here) == "dependency_excluded" and len(chain) <= len(plan.steps):
        edges = (edge.step for need in plan.steps[here].depends_on for edge in need.any_of)
        here = next((step for step in edges if step in excluded), None)
        if here is not None:
            chain.append(here)
    return tuple(chain if len(chain) <= CHAIN_MAX else [*chain[: CHAIN_MAX - 1], chain[-1]])


def _way(chain: Sequence[str]) -> str:
    """`a → b → … → root`."""
    shown = chain if len(chain) <= NAMES_SHOWN_MAX else [*chain[: NAMES_SHOWN_MAX - 1], "…", chain[-1]]
    return " → ".join(shown)


def _seen(evidence: Mapping[str, Any]) -> str:
    """`filesCount = 0, env.CI = null`."""
    shown = [f"{path} = {_value(value)}" for path, value in list(evidence.items())[:VALUES_SHOWN_MAX]]
    more = len(evidence) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _value(value: Any) -> str:
    try:
        return brief(json.dumps(value, ensure_ascii=False), 40)
    except (TypeError, ValueError, RecursionError):
        return "(not shown)"
