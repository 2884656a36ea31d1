"""What follows when a step is complete: its fan-out, its group's on_finish, its dependents, whoever waits for it."""

from __future__ import annotations

from gonogo.core import decisions as d
from gonogo.core import fanout, initialising, routing, scheduling, stopping
from gonogo.core import lifecycle as life
from gonogo.core.dependencies import group_parent, is_superseded, resolve
from gonogo.core.parts import Part, Waiting
from gonogo.core.scope import children, enclosing, within
from gonogo.core.state import Node
from gonogo.core.suppression import kept_back_by
from gonogo.core.turn import Turn


def follow_up(turn: Turn, node: Node) -> None:
    """Let a complete step's consequences happen. Called again when it becomes settled."""
    if not node.complete:
        return
    if node.outcome == "failed" and not turn.state.stopping and turn.graph.plan.fail_fast:
        stopping.stop(turn, "fail_fast", node.step, at_once=False)
    parent = group_parent(turn.state, node)
    if parent is not None:
        finish_group(turn, parent)
    elif not node.settled:
        turn.decide(d.Settled(node.step, node.scope))
        return
    elif node.scope and node.site.part.groups and _counts_alone(turn, node):
        _finish_outer_groups(turn, node)
    tell_dependents(turn, node)
    if node.outcome == "passed" and node.settled and node.wave and node.step in turn.state.kept_back:
        lift(turn, node)
    if turn.state.remediating:
        wake_waiting(turn, node)
    if node.outcome == "skipped" or (node.fan is None and not node.site.leaf):
        _finish_inner_groups(turn, node)


def lift(turn: Turn, node: Node) -> None:
    """A step that failed has passed now: those it kept from running are looked at again (semantics.md 7)."""
    found = () if turn.state.stopping else kept_back_by(turn.state, node)
    if found:
        place = (node.step, node.scope)
        turn.decide(d.Routed(*place, "passed", "lift", *place, turn.state.last_wave + 1, found))
        turn.routed.extend(found)


def finish_group(turn: Turn, parent: Node) -> None:
    """on_finish speaks when a forEach step and all its map descendants in this scope are done (semantics.md 8).

    What runs over its items is complete, what a route has run there, too, and lists among that have had their own say.
    """
    if parent.settled or not parent.complete or not _group_complete(turn, parent):
        return
    if parent.trigger is not None:
        if parent.status == life.REMEDIATING and routing.runs_are_complete(turn, parent):
            routing.go_on(turn, parent)
    elif (
        parent.outcome == "skipped"
        or turn.state.stopping
        or is_superseded(turn.state, parent.step, parent.scope)
    ):
        routing.end_group(turn, parent)
    else:
        routing.begin(turn, parent, "on_finish")


def _finish_inner_groups(turn: Turn, node: Node) -> None:
    """A step skipped, or failed in its on_init, before it fanned out is missing in groups of fan-outs further in."""
    for name in node.site.part.groups:
        for parent in list(turn.state.nodes[name].values()):
            if parent.site.depth > node.site.depth and within(parent.scope, node.scope):
                finish_group(turn, parent)


def _counts_alone(turn: Turn, node: Node) -> bool:
    """True for a list that has had its say, and for what a route ran where no fan-out counts it."""
    return node.site.owns_group or turn.state.aggregate_of(node) is None


def _finish_outer_groups(turn: Turn, node: Node) -> None:
    """A list within an item has had its say, or what a route ran there is done: groups around it may have waited."""
    for name in reversed(node.site.part.groups):
        parent = resolve(turn.state, name, enclosing(node.scope))
        if parent is not None and parent.site.owns_group and not parent.settled:
            finish_group(turn, parent)


def _group_complete(turn: Turn, parent: Node) -> bool:
    members, state = turn.graph.members[parent.step], turn.state
    if not all(_member_complete(turn, name, parent.scope) for name in members):
        return False
    if any(step in members and within(scope, parent.scope) for step, scope in state.finishing):
        return False
    items = f"{children(parent.scope, parent.step)}{parent.execution}["
    return not any(step in members and scope.startswith(items) for step, scope in state.visits)


def _member_complete(turn: Turn, name: str, scope: str) -> bool:
    """A member skipped in a scope around this one has no node here."""
    node = resolve(turn.state, name, scope)
    if node is None:
        return name not in turn.state.included or name in turn.state.held_back
    return node.complete


def tell_dependents(turn: Turn, node: Node) -> None:
    """Look at every step that waits for this one, in the scope in which it waits."""
    site = node.site
    for waiting in site.part.waiting:
        if site.foreign or site.depth <= waiting.common:
            _tell(turn, waiting, node)
        if turn.state.foreign:
            _tell_inside(turn, waiting.part, node)


def _tell_inside(turn: Turn, part: Part, node: Node) -> None:
    """Routes may run the waiting step further in, too."""
    for scope in turn.state.foreign.get(part.name, ()):
        inner = turn.state.node(part.name, scope)
        if scope != node.scope and within(scope, node.scope) and inner is not None:
            reconsider(turn, inner)


def _tell(turn: Turn, waiting: Waiting, node: Node) -> None:
    part, scope = waiting.part, node.scope
    waiter = turn.state.nodes[part.name].get(scope)
    if waiter is not None:
        reconsider(turn, waiter)
    elif scope:
        fanout.item_may_open(turn, part, scope)
    else:
        scheduling.consider(turn, part, scope)
    if waiting.deepest > node.site.depth:
        _consider_deeper(turn, part, scope)


def _consider_deeper(turn: Turn, part: Part, scope: str) -> None:
    """A step that judges some dependencies per item looks again in each of its fan-outs under this scope."""
    for node in list(turn.state.nodes[part.name].values()):
        if node.fan is not None and node.status == life.EXPANDING and within(node.scope, scope):
            fanout.look_for_items(turn, node)


def reconsider(turn: Turn, node: Node) -> None:
    """Look again at a step that was asked for: an item by way of its fan-out's window, anything else directly."""
    aggregate = turn.state.aggregate_of(node) if node.scope else None
    if aggregate is not None:
        fanout.may_open(turn, aggregate, node.scope)
    else:
        scheduling.consider(turn, node.site.part, node.scope)


def go_on(turn: Turn, node: Node) -> None:
    """A wait is over: an item needs room in its fan-out's window again, and goes on at once where there is some.

    Where something was routed, or the run stops, more may have changed meanwhile.
    """
    state = turn.state
    aggregate = state.aggregate_of(node) if node.scope else None
    if aggregate is None or state.last_wave or state.stopping or not fanout.has_room(aggregate):
        reconsider(turn, node)
    else:
        scheduling.make_ready(turn, node.site, node.scope, node)


def wake_waiting(turn: Turn, node: Node) -> None:
    """Steps that wait for what they routed go on when the last of it is complete."""
    for waiting in list(turn.remediating()):
        if (node.step, node.scope) not in waiting.waits_for or not routing.runs_are_complete(turn, waiting):
            continue
        if waiting.status == life.INITIALISING:
            initialising.go_on(turn, waiting)
        # What on_finish ran may have sent its fan-out's members round again: it goes on when they are done, too.
        elif waiting.trigger != "on_finish" or _group_complete(turn, waiting):
            routing.go_on(turn, waiting)
