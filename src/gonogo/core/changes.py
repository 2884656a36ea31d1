"""Changes of one node, shared by the decisions that mean them: moving, ending, reopening, waiting, dropping items.

Called by `apply.py` alone; which decision changes what is said there.
"""

from __future__ import annotations

from msgspec.structs import replace

from gonogo.core import lifecycle as life
from gonogo.core.decisions import Expanded, FaultEvent
from gonogo.core.fanout_items import all_within
from gonogo.core.items import items_of
from gonogo.core.scope import children, depth, prefix
from gonogo.core.state import Fan, Node, OpenFault, State, Undoable
from gonogo.errors import Bug


def move(state: State, node: Node, status: str) -> None:
    """Change a node's status, holding the table of moves and the count of slots."""
    before = node.status
    effect = life.EFFECTS[before].get(status)
    if effect is None:
        raise Bug(f"step {node.step} in scope {node.scope or '(run)'} can't go from {before} to {status}")
    node.status = status
    slots, room, waits = effect
    state.slots += slots
    if room and node.scope:
        aggregate = state.aggregate_of(node)
        if aggregate is not None and aggregate.fan is not None:
            aggregate.fan.active += room
    if waits:
        state.remediating.pop((node.step, node.scope), None)
        if status in life.AWAITS_RUNS:
            state.remediating[node.step, node.scope] = node


def node_for(state: State, step: str, scope: str) -> Node:
    """The node of a step in a scope, made when it is first decided about."""
    scopes = state.nodes[step]
    node = scopes.get(scope)
    if node is None:
        site = state.site(state.graph.parts[step], scope)
        node = scopes[scope] = Node(site, scope)
        state.open_nodes += 1
        if step in state.dropped:
            node.execution = state.dropped[step].pop(scope, 0)
    return node


def keep_result(state: State, node: Node) -> None:
    """What a call brought becomes what others see of the step."""
    result = node.result
    if result is not None:
        node.output = result.output
        node.meta = result.meta or None
        node.content = result.content
        node.inputs = result.inputs
        node.result = None
        _remember(state, node)
    if node.site.part.step.for_each:
        node.items = items_of(node.output)
        node.lists = {**(node.lists or {}), node.execution: node.items}


def _remember(state: State, node: Node) -> None:
    history = state.history.get(node.step)
    if history is None:
        state.history[node.step] = [(node.wave, node.output)]
        return
    history.append((node.wave, node.output))
    if len(history) > state.graph.plan.limits.history_max:
        del history[0]


def complete(state: State, node: Node) -> None:
    """The outcome is final, and counted in the fan-out around it."""
    if not node.complete:
        node.complete = True
        state.open_nodes -= 1
        if node.scope:
            if state.visits:
                state.visits.pop((node.step, node.scope), None)
            aggregate = state.aggregate_of(node)
            if aggregate is not None and aggregate.fan is not None:
                aggregate.fan.complete += 1


def reopen(state: State, node: Node) -> None:
    """The outcome is final no more."""
    node.settled = False
    if node.scope and state.aggregate_of(node) is None:
        state.visits[node.step, node.scope] = None
    if state.finishing:
        state.finishing.pop((node.step, node.scope), None)
    if node.complete:
        node.complete = False
        state.open_nodes += 1
        aggregate = state.aggregate_of(node)
        if aggregate is not None and aggregate.fan is not None:
            aggregate.fan.complete -= 1


def keep_in_mind(state: State, node: Node) -> None:
    """A critical step has failed until a later run of it passes (spec C.8); what was done may have to be undone."""
    part = node.site.part
    if node.outcome == "passed":
        state.critical_failures.pop((node.step, node.scope), None)
        keep_undoable(state, node)
    elif part.guards and node.outcome in ("failed", "tolerated"):
        state.critical_failures[node.step, node.scope] = None


def keep_undoable(state: State, node: Node) -> None:
    """A call that did something, and that another step can undo."""
    if node.site.part.step.compensate is not None and not state.safe_mode and node.effect != "none":
        state.undoable.append(Undoable(node.step, node.scope, node.execution, node.output, node.inputs))


def tell_fault(state: State, decision: FaultEvent) -> None:
    """A fault opens, is worked on, or comes to its one end (spec G16)."""
    place = (decision.step, decision.scope)
    if decision.event == "detected":
        fault = state.existing(*place).fault
        if fault is None:
            raise Bug(f"step {decision.step} has no fault to tell of")
        if decision.fault > state.last_fault:
            state.last_fault = decision.fault
        state.open_faults[place] = OpenFault(decision.fault, fault, decision.attempt)
    elif decision.event == "recovery.attempted":
        sent = decision.detail.get("action") != "retry"
        if sent is not state.open_faults[place].sent:
            state.open_faults[place] = replace(state.open_faults[place], sent=sent)
    elif decision.event in ("recovery.succeeded", "recovery.failed"):
        state.open_faults.pop(place, None)


def failed_again(state: State, node: Node) -> None:
    """What the block of an earlier failure of the same fault tried has not helped."""
    open_fault = state.open_faults.get((node.step, node.scope))
    if open_fault is not None and open_fault.sent:
        state.open_faults[node.step, node.scope] = replace(open_fault, sent=False)


def drop_items(state: State, node: Node) -> None:
    """Items of an older run of a fan-out are history: out of the state, not out of the journal.

    Only how often each has run is kept, since the same items may come again and no intent may. What is under way there
    (a route, or a person, runs the step in an item) stays until it has come to its own end: it holds a slot, a call, a
    timer or a doubt. What goes holds a place in the queue at most.
    """
    if node.fan is None:
        return
    dropped = [
        item for item in all_within(state, node, node.fan) if item.complete or item.status in life.NOT_BEGUN
    ]
    node.fan = None
    for item in dropped:
        scope = item.scope
        del state.nodes[node.step][scope]
        state.ready.discard(node.step, scope)
        state.remediating.pop((node.step, scope), None)
        state.finishing.pop((node.step, scope), None)
        state.visits.pop((node.step, scope), None)
        state.unspoken.pop((node.step, scope), None)
        state.critical_failures.pop((node.step, scope), None)
        if not item.complete:
            state.open_nodes -= 1
        if item.execution:
            state.dropped.setdefault(node.step, {})[scope] = item.execution


def count_items(state: State, node: Node, fan: Fan) -> None:
    """Routes may have run items before the fan-out began."""
    scopes = state.nodes[node.step]
    if len(scopes) == 1:
        return
    for index in range(fan.total):
        item = scopes.get(fan.item(index))
        if item is not None:
            fan.complete += item.complete
            fan.active += item.status in life.BUSY


def forget_dropped(state: State, decision: Expanded) -> None:
    """Items of an older execution of the parent never come again, but where some step is left that may route there."""
    dropped = state.dropped.get(decision.step)
    if not dropped:
        return
    items = children(decision.scope, decision.parent)
    same = f"{items}{decision.execution}["
    older = [scope for scope in dropped if scope.startswith(items) and not scope.startswith(same)]
    levels = depth(items)
    visited = {prefix(scope, levels) for scopes in state.foreign.values() for scope in scopes}
    for scope in older:
        item = prefix(scope, levels)
        if item not in visited and not any(item in scopes for scopes in state.nodes.values()):
            del dropped[scope]


def forget_node(state: State, node: Node) -> None:
    """A step waits for a route again, as if it had never run here; only how often it did is kept."""
    drop_items(state, node)
    forget_waits(state, node)
    del state.nodes[node.step][node.scope]
    state.critical_failures.pop((node.step, node.scope), None)
    state.visits.pop((node.step, node.scope), None)
    state.open_nodes -= not node.complete
    if node.execution:
        state.dropped.setdefault(node.step, {})[node.scope] = node.execution


def set_timer(state: State, node: Node | None, timer: int, due_s: float) -> None:
    """A wait begins."""
    if timer > state.last_timer:
        state.last_timer = timer
    state.timers[timer] = (due_s, node)
    if node is not None:
        node.timer = timer


def request(state: State, node: Node) -> None:
    """A route asks for another run: at once where nothing is under way, else after it."""
    reopen(state, node)
    reopen_around(state, node)
    if (
        node.status in life.ACTIVE
        or node.status in (life.PAUSED, life.EXPANDING)
        or node.in_doubt
        or node.looks_again
    ):
        node.requested = True
        return
    forget_waits(state, node)
    node.retrying = False
    node.again = node.continues = False
    node.init = None
    node.asked = 0
    if node.status != life.PENDING:
        move(state, node, life.PENDING)
        drop_items(state, node)


def hear_again(state: State) -> None:
    """Lists whose on_finish had nothing to say in a run that stopped are settled no more, nor is what waits for it."""
    for parent, scope in state.unspoken:
        for name in (parent, *state.graph.members[parent]):
            node = state.node(name, scope)
            if node is not None and (name == parent or not node.site.owns_group):
                node.settled = False
    state.unspoken.clear()


def reopen_around(state: State, node: Node) -> None:
    """A fan-out whose item runs again is under way again, and so is the one around it; blocks speak after that."""
    aggregate = state.aggregate_of(node)
    while aggregate is not None and aggregate.status != life.EXPANDING:
        reopen(state, aggregate)
        forget_waits(state, aggregate)
        aggregate.trigger = None
        aggregate.asked = 0
        move(state, aggregate, life.EXPANDING)
        aggregate = state.aggregate_of(aggregate)


def forget_waits(state: State, node: Node) -> None:
    """Timers, holds and runs waited for are given up."""
    if node.timer is not None:
        state.timers.pop(node.timer, None)
        node.timer = None
    node.hold = None
    node.waits_for = ()
