"""The items of a fan-out in index order."""

from __future__ import annotations

from gonogo.core.state import Node, State


def items_in_order(state: State, node: Node) -> list[Node | None]:
    """One entry per item; None where the item has not been looked at."""
    fan = node.fan
    if fan is None:
        return []
    scopes = state.nodes[node.step]
    return [scopes.get(fan.item(index)) for index in range(fan.total)]
