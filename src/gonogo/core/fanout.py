"""Fan-outs: one step over the items of a forEach, in scopes of their own, with a window of open items.

Items are opened as room appears, so a fan-out over a hundred thousand items keeps no hundred thousand waiting steps.
Which items are open follows from the state and isn't recorded.
"""

from __future__ import annotations

import heapq
from collections import Counter

from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core import routing, scheduling
from gonogo.core.dependencies import all_settled, is_superseded, rest_at
from gonogo.core.fanout_items import items_in_order
from gonogo.core.parts import Part
from gonogo.core.scope import enclosing, index_of
from gonogo.core.state import CONTAINER, Fan, Node, State
from gonogo.core.turn import Turn


def look_for_items(turn: Turn, node: Node) -> None:
    """After the start of a fan-out or a resume: look at all of its items, and open what there is room for."""
    if node.fan is not None:  # else it has come to its end since
        node.fan.cursor = 0
        refill(turn, node)


def item_may_open(turn: Turn, part: Part, scope: str) -> None:
    """Something an item waits for has changed."""
    aggregate = turn.state.node(part.name, enclosing(scope))
    if aggregate is not None and aggregate.fan is not None and scope.startswith(aggregate.fan.site.items):
        may_open(turn, aggregate, scope)


def may_open(turn: Turn, aggregate: Node, scope: str) -> None:
    """As `item_may_open`, where the fan-out around the item is known: it looks again, if it has looked before."""
    fan, index = aggregate.fan_out, index_of(scope)
    if index < fan.cursor:
        heapq.heappush(fan.queue, index)
    turn.refills[aggregate] = None


def has_room(aggregate: Node) -> bool:
    """True while the window of a fan-out takes another item."""
    fan = aggregate.fan_out
    return fan.active + fan.ready < aggregate.site.part.step.concurrency


def refill(turn: Turn, node: Node) -> None:
    """Open items while there is room in the window, and end the fan-out when all are complete."""
    if node.status != life.EXPANDING:
        return
    fan = node.fan_out
    closed = is_closed(turn.state, node)
    if not closed:
        _fill(turn, node, fan)
    elif node.site.part.step.type == CONTAINER and not turn.state.stopping:
        _look_beneath(turn, node, fan)
    if fan.complete == fan.total or (closed and _nothing_under_way(turn.state, node, fan)):
        conclude(turn, node)


def is_closed(state: State, node: Node) -> bool:
    """True when no more items are opened: it, or a fan-out around it, is to run again, or the run stops."""
    if node.requested or (state.last_wave and is_superseded(state, node.step, node.scope)):
        return True
    return bool(state.stopping) and not scheduling.may_still_run(state, state.step(node))


def _fill(turn: Turn, node: Node, fan: Fan) -> None:
    step = node.site.part.step
    while fan.active + fan.ready < step.concurrency:
        scope = _next_item(turn.state, node, fan)
        if scope is None:
            break
        _open(turn, fan, scope)


def _look_beneath(turn: Turn, node: Node, fan: Fan) -> None:
    """A fan-out that is made again opens no more items but those whose run beneath may hide a doubt (law 3)."""
    for item in items_in_order(turn.state, node, fan):
        if not has_room(node):
            break
        if item is not None and item.looks_again:
            scheduling.make_ready(turn, item.site, item.scope, item)


def _next_item(state: State, node: Node, fan: Fan) -> str | None:
    """The first item that may be opened, in the order of the list. One that has begun is left alone."""
    items, needs = state.nodes[node.step], fan.site.needs
    while fan.queue or fan.cursor < fan.total:
        scope = fan.item(_next_index(fan))
        item = items.get(scope)
        if item is not None and item.status not in (life.PENDING, life.CLEARED):
            continue
        if not needs or all_settled(state, fan.site, scope, item):
            return scope
    return None


def _next_index(fan: Fan) -> int:
    if fan.queue and fan.queue[0] < fan.cursor:
        return heapq.heappop(fan.queue)
    fan.cursor += 1
    return fan.cursor - 1


def _open(turn: Turn, fan: Fan, scope: str) -> None:
    item = turn.state.node(fan.site.part.name, scope)
    if item is not None and item.status == life.CLEARED:
        scheduling.make_ready(turn, item.site, scope, item)
    else:
        scheduling.pass_gate(turn, fan.site, scope, item)


def _nothing_under_way(state: State, node: Node, fan: Fan) -> bool:
    """No item runs, has a slot in view, or waits for a person who must say what became of it, or to look beneath."""
    items = items_in_order(state, node, fan)
    waits = any(item is not None and (item.status in life.WAITING or item.looks_again) for item in items)
    return fan.active == 0 and fan.ready == 0 and not waits


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
    fan = node.fan_out
    items = [item for item in items_in_order(state, node, fan) if item is not None]
    counts = Counter(item.outcome for item in items)
    if counts["failed"]:
        return "failed", "all_items" if counts["failed"] == fan.total else "partial"
    if counts["cancelled"] or len(items) < fan.total:
        return "cancelled", state.stopping or "superseded"
    if counts["skipped"] == fan.total:
        return "skipped", "all_items"
    return ("tolerated", "items") if counts["tolerated"] else ("passed", None)
