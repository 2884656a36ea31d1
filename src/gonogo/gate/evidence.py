"""A decision with what it stands on: rules with their operands and values, and what was used by then (E.10). Pure."""

from __future__ import annotations

from gonogo.gate import decisions as d
from gonogo.gate.rules import Entry
from gonogo.gate.scopes import reads_of
from gonogo.gate.state import Turn


def decided(
    turn: Turn,
    phase: str,
    entries: tuple[Entry, ...],
    chosen: int | None,
    wanted: str,
    did: str,
    blocked_by: str | None = None,
    to: int | None = None,
) -> None:
    """Tell it: what was wanted, what is done, and what was in the way."""
    state, policy = turn.state, turn.policy
    rules = policy.before if phase == "before" else policy.after
    rule = None if chosen is None else rules[chosen]
    index = state.candidate if phase == "before" else state.current
    now = state.budget(turn.at)
    turn.decisions.append(
        d.RuleDecided(
            turn.offset_ms,
            state.number,
            phase,
            wanted,
            did,
            chosen,
            rule.named if rule else "",
            rule.kind if rule else "",
            blocked_by,
            entries,
            reads_of(state, entries) if entries else (),
            state.failure,
            policy.targets[index].name,
            None if to is None else policy.targets[to].name,
            state.budget_before() if phase == "after" else now,
            now if phase == "after" else None,
        )
    )
