"""Two states compared, less what is derived: ready queue and windows of fan-outs are found again after a resume."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from gonogo.core.state import Fan, Node, Spent, State

_NODE_FIELDS = tuple(name for name in Node.__slots__ if name not in ("fan", "site"))
_FAN_FIELDS = ("active", "complete", "execution", "parent", "total")
_RUN_FIELDS = (
    "run_id", "seed", "at", "started_at_ms", "trigger", "context", "inputs", "env", "arguments",
    "requested", "parent", "safe_mode", "included", "excluded", "held_back", "batches", "slots",
    "open_nodes", "last_call", "last_batch", "last_timer", "last_wave", "loops", "trail", "breaches",
    "foreign", "dropped", "critical_failures", "open_faults", "last_fault", "escalated", "reentries", "budget_timer",
    "active_since", "undoable", "undoing", "undone", "undone_for", "answers", "kept_back", "run_issues",
    "memory", "history", "stopping", "stopped_by", "finishing", "visits", "unspoken",
    "cleanup_timer", "interrupted", "finished", "counted_from", "known_children",
)  # fmt: skip
_PLACES = ("calls", "timers", "remediating")
_node_values = attrgetter(*_NODE_FIELDS)
_fan_values = attrgetter(*_FAN_FIELDS)
_run_values = attrgetter(*_RUN_FIELDS)
_spent_values = attrgetter(*Spent.__slots__)


def difference(one: State, other: State) -> str | None:
    """The first thing that differs, in words; None when the states are equal."""
    found = _differs("the run", _RUN_FIELDS, _run_values(one), _run_values(other)) or _differs(
        "what was spent", Spent.__slots__, _spent_values(one.spent), _spent_values(other.spent)
    )
    return found or _nodes_differ(one, other) or _places_differ(one, other)


def _differs(what: str, names: tuple[str, ...], one: tuple[Any, ...], other: tuple[Any, ...]) -> str | None:
    if one == other:
        return None
    name, mine, theirs = next(row for row in zip(names, one, other, strict=True) if row[1] != row[2])
    return f"{name} of {what}: {mine!r} by the records, {theirs!r} in the state"


def _nodes_differ(one: State, other: State) -> str | None:
    for step, mine in one.nodes.items():
        theirs = other.nodes[step]
        if mine.keys() != theirs.keys():
            return f"scopes of {step}: {sorted(mine)} by the records, {sorted(theirs)} in the state"
        for scope, node in mine.items():
            found = _node_differs(node, theirs[scope])
            if found is not None:
                return found
    return None


def _node_differs(one: Node, other: Node) -> str | None:
    what = f"{one.step} in {one.scope or '(run)'}"
    return _differs(what, _NODE_FIELDS, _node_values(one), _node_values(other)) or _fans_differ(
        what, one.fan, other.fan
    )


def _fans_differ(what: str, one: Fan | None, other: Fan | None) -> str | None:
    if one is None or other is None:
        return None if one is other else f"the fan-out of {what} is there once only"
    return _differs(f"the fan-out of {what}", _FAN_FIELDS, _fan_values(one), _fan_values(other))


def _places_differ(one: State, other: State) -> str | None:
    """Tables that point at nodes: the same keys, pointing at the same places."""
    for name in _PLACES:
        mine, theirs = _pointers(getattr(one, name)), _pointers(getattr(other, name))
        if mine != theirs:
            return f"{name}: {mine} by the records, {theirs} in the state"
    return None


def _pointers(table: dict[Any, Any]) -> dict[Any, Any]:
    return {key: _place(value) for key, value in table.items()}


def _place(value: Any) -> Any:
    if isinstance(value, Node):
        return value.step, value.scope
    return (value[0], _place(value[1])) if isinstance(value, tuple) else value
