"""What is done about a failure that no rule speaks for: the taxonomy's row, read with the call's state. Pure (B15)."""

from __future__ import annotations

from gonogo.gate.guards import is_stuck
from gonogo.gate.state import State
from gonogo.gate.taxonomy import Row, row_of


def by_taxonomy(state: State) -> str:
    """The verb: ok without a failure, else what its row allows; the last resort is fail-fast."""
    failure = state.failure
    if failure is None:
        return "ok"
    row = row_of(failure.kind)
    if _same(state, row):
        return "retry"
    if row.other in ("yes", "larger") or (row.other == "opt-in" and failure.kind in state.policy.reroute):
        return "retry-other"
    return "fail-fast"


def category_of(state: State) -> str:
    """The error that a call without a way on ends with."""
    if state.failure is None:
        return "exhausted"
    if is_stuck(state):
        return "stuck"
    if state.failure.kind == "circuit-open":
        return "circuit"
    return "exhausted" if row_of(state.failure.kind).terminal == "no" else "not-retryable"


def _same(state: State, row: Row) -> bool:
    if row.same == "no" or state.made_on(state.current) >= state.policy.bounds.attempts_per_target:
        return False
    if row.same == "once":
        return state.kinds.get((state.current, row.kind), 0) <= 1
    return True
