"""The items of a fan-out, and all else that runs there."""

from __future__ import annotations

from gonogo.core.scope import children, order_key
from gonogo.core.state import Fan, Node, State


def items_in_order(state: State, node: Node, fan: Fan) -> list[Node | None]:
    """One entry per item of a node's fan-out in index order; None where the item has not been looked at."""
    scopes = state.nodes[node.step]
    return [scopes.get(fan.item(index)) for index in range(fan.total)]


def all_within(state: State, node: Node, fan: Fan) -> list[Node]:
    """What goes with a fan-out: the step's items at all depths, and where a route, or a person, runs it in there."""
    items = children(node.scope, fan.parent)
    return [inner for scope, inner in state.nodes[node.step].items() if scope.startswith(items)]


def waiting_within(state: State, node: Node, fan: Fan, statuses: frozenset[str]) -> list[Node]:
    """Those of them that are in one of these states, outermost first, by index."""
    found = [inner for inner in all_within(state, node, fan) if inner.status in statuses]
    return sorted(found, key=lambda inner: (order_key(inner.scope), inner.scope))
