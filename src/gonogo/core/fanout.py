"""Fan-outs: one step over the items of a forEach, in scopes of their own, with a window of open items.

Items are opened as room appears, so a fan-out over a hundred thousand items keeps no hundred thousand waiting steps.
Which items are open follows from the state and isn't recorded.
"""

from __future__ import annotations

import heapq

from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core import routing, scheduling
from gonogo.core.dependencies import all_settled, is_superseded, rest_at
from gonogo.core.fanout_items import items_in_order
from gonogo.core.parts import Part
from gonogo.core.scope import enclosing, index_of
from gonogo.core.state import Fan, Node, State
from gonogo.core.turn import Turn


def waits_per_item(turn: Turn, node: Node) -> bool:
    """True when items wait for other steps of the same item, not just for room."""
    return (node.site.depth + 1) in node.site.part.levels


def look_for_items(turn: Turn, node: Node) -> None:
    """After the start of a fan-out or a resume: find the items that may be opened, and open what there is room for."""
    fan = node.fan
    if fan is None:
        return
    if waits_per_item(turn, node):
        fan.cursor = fan.total
        for index in range(fan.total):
            consider_item(turn, node, fan, index, fan.item(index))
    refill(turn, node)


def consider_item(turn: Turn, node: Node, fan: Fan, index: int, scope: str) -> None:
    """Queue an item for room once what it waits for is settled."""
    item = turn.state.nodes[node.step].get(scope)
    if item is not None and item.status not in (life.PENDING, life.CLEARED):
        return
    if index not in fan.queued and all_settled(turn.state, fan.site, scope, item):
        fan.queued.add(index)
        heapq.heappush(fan.queue, index)


def item_may_open(turn: Turn, part: Part, scope: str) -> None:
    """Something an item waits for has changed."""
    aggregate = turn.state.node(part.name, enclosing(scope))
    if aggregate is not None and aggregate.fan is not None and scope.startswith(aggregate.fan.site.items):
        may_open(turn, aggregate, scope)


def may_open(turn: Turn, aggregate: Node, scope: str) -> None:
    """As `item_may_open`, where the fan-out around the item is known."""
    if aggregate.fan is not None and aggregate.status == life.EXPANDING:
        consider_item(turn, aggregate, aggregate.fan, index_of(scope), scope)
        turn.refills[aggregate] = None


def refill(turn: Turn, node: Node) -> None:
    """Open items while there is room in the window, and end the fan-out when all are complete."""
    fan = node.fan
    if fan is None or node.status != life.EXPANDING:
        return
    closed = is_closed(turn.state, node)
    if not closed:
        _fill(turn, node, fan)
    if fan.complete == fan.total or (closed and _nothing_under_way(turn.state, node)):
        conclude(turn, node)


def is_closed(state: State, node: Node) -> bool:
    """True when no more items are opened: it, or a fan-out around it, is to run again, or the run stops."""
    if node.requested or is_superseded(state, node.step, node.scope):
        return True
    return bool(state.stopping) and not scheduling.may_still_run(state, state.step(node))


def _fill(turn: Turn, node: Node, fan: Fan) -> None:
    step = node.site.part.step
    while fan.active + fan.ready < step.concurrency:
        scope = _next_item(turn.state, node, fan)
        if scope is None:
            break
        _open(turn, fan, scope)


def _next_item(state: State, node: Node, fan: Fan) -> str | None:
    while fan.queue:
        index = heapq.heappop(fan.queue)
        fan.queued.discard(index)
        scope = fan.item(index)
        if _still_may_open(state, fan, scope):
            return scope
    items = state.nodes[node.step]
    while fan.cursor < fan.total:
        scope = fan.item(fan.cursor)
        fan.cursor += 1
        item = items.get(scope)
        if item is None or item.status in (life.PENDING, life.CLEARED):
            return scope
    return None


def _still_may_open(state: State, fan: Fan, scope: str) -> bool:
    """What an item waited for may have been sent round again while it waited for room."""
    item = state.node(fan.site.part.name, scope)
    if item is not None and (item.retrying or item.again):
        return True
    return all_settled(state, fan.site, scope, item)


def _open(turn: Turn, fan: Fan, scope: str) -> None:
    item = turn.state.nodes[fan.site.part.name].get(scope)
    if item is not None and item.status == life.CLEARED:
        scheduling.make_ready(turn, item.site, scope, item)
    elif item is None or item.status == life.PENDING:
        scheduling.pass_gate(turn, fan.site, scope, item)


def _nothing_under_way(state: State, node: Node) -> bool:
    fan = node.fan
    return fan is not None and fan.active == 0 and fan.ready == 0 and not _waiting_items(state, node)


def _waiting_items(state: State, node: Node) -> bool:
    inner = [
        item
        for item in state.nodes[node.step].values()
        if item is not node and enclosing(item.scope) == node.scope
    ]
    return any(item.status in life.WAITING for item in inner if item.scope)


def conclude(turn: Turn, node: Node) -> None:
    """All items are complete (or the run stops): what the fan-out as a whole came to (spec C.13 R5)."""
    if node.requested:
        turn.decide(d.Superseded(node.step, node.scope))
        scheduling.consider(turn, node.site.part, node.scope)
        return
    outcome, reason = _outcome(turn.state, node)
    step = turn.step(node)
    routes = outcome == "passed" and step.on_success is not None and not turn.state.stopping
    rest = "open" if routes else rest_at(turn.state, node.site, node.scope, node)
    turn.decide(d.Ended(node.step, node.scope, outcome, reason, rest=rest))
    if routes:
        routing.begin(turn, node, "on_success")


def _outcome(state: State, node: Node) -> tuple[str, str | None]:
    counts: dict[str, int] = {}
    for item in items_in_order(state, node):
        if item is not None:
            counts[item.outcome or ""] = counts.get(item.outcome or "", 0) + 1
    total = node.fan.total if node.fan else 0
    if counts.get("failed"):
        return "failed", "all_items" if counts["failed"] == total else "partial"
    if counts.get("cancelled") or sum(counts.values()) < total:
        return "cancelled", state.stopping or "superseded"
    if counts.get("skipped") == total:
        return "skipped", "all_items"
    return ("tolerated", "items") if counts.get("tolerated") else ("passed", None)
