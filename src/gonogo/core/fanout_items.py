"""The items of a fan-out in index order."""

from __future__ import annotations

from gonogo.core.state import Fan, Node, State


def items_in_order(state: State, node: Node, fan: Fan) -> list[Node | None]:
    """One entry per item of a node's fan-out; None where the item has not been looked at."""
    scopes = state.nodes[node.step]
    return [scopes.get(fan.item(index)) for index in range(fan.total)]
