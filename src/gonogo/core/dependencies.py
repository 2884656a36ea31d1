"""Whether the steps another one waits for are settled, and whether they let it pass (spec C.5, semantics.md 6)."""

from __future__ import annotations

from typing import NamedTuple

from gonogo.core import lifecycle as life
from gonogo.core.plan import Edge, Need, Step
from gonogo.core.scope import depth, enclosing, outward, parents
from gonogo.core.state import Node, State

OPENING_SKIPS = frozenset({"if_condition", "assume"})


class Refusal(NamedTuple):
    """A dependency that doesn't let the step pass, and the step at the root of that."""

    reason: str
    because: str


def needs_at(state: State, step: Step, scope: str) -> tuple[Need, ...]:
    """What is to be judged in this scope: each fan-out level has its own entries, and the source of the next items.

    A step with an `if` looks at all of depends_on before it fans out, since the condition may read any of them.
    """
    if not scope:
        return state.graph.first_needs[step.name]
    if is_foreign(state, step, scope):
        return step.depends_on
    return state.graph.needs[step.name][depth(scope)]


def is_foreign(state: State, step: Step, scope: str) -> bool:
    """True when a route runs the step inside an item of a fan-out that isn't its own."""
    if not scope:
        return False
    fan = state.graph.fans[step.name]
    if len(fan) == 1 and "/" not in scope:
        return scope[: scope.rindex("#")] != fan[0]
    return parents(scope) != fan[: depth(scope)]


def is_leaf(state: State, step: Step, scope: str) -> bool:
    """True when the step itself runs in this scope, false when it fans out further."""
    return depth(scope) >= len(state.graph.fans[step.name]) or is_foreign(state, step, scope)


def resolve(state: State, step: str, scope: str) -> Node | None:
    """The node a reader in `scope` means by a step: its own scope, else the nearest around it."""
    scopes = state.nodes[step]
    if not scope:
        return scopes.get("")
    for outer in outward(scope):
        node = scopes.get(outer)
        if node is not None:
            return node
    return None


def all_settled(state: State, step: Step, scope: str, reader: Node | None) -> bool:
    """True when every dependency to be judged here is settled."""
    for need in needs_at(state, step, scope):
        for edge in need.any_of:
            node = resolve(state, edge.step, scope)
            if node is None:
                if edge.step not in state.excluded:
                    return False
            elif not (node.settled or _settled_enough(state, node, step, reader)):
                return False
    return True


def _settled_enough(state: State, node: Node, step: Step, reader: Node | None) -> bool:
    """Steps of one fan-out see each other before its on_finish has spoken; what a route asked for sees who asked."""
    if reader is not None and reader.requester is not None:
        if (node.step, node.scope) == reader.requester:
            return node.status in (life.ROUTING, life.REMEDIATING, life.DONE)
        if node.complete:
            return True
    return node.complete and shares_group(state, node, step)


def shares_group(state: State, node: Node, step: Step) -> bool:
    """True when `step` runs inside the fan-out whose on_finish the node still waits for."""
    parent = group_parent(state, node)
    return parent is not None and parent.step in state.graph.fans[step.name]


def group_parent(state: State, node: Node) -> Node | None:
    """The forEach node whose on_finish decides whether this node is settled; None when there is none to come."""
    if not state.graph.any_on_finish:
        return None
    step = state.graph.steps[node.step]
    if step.for_each and step.on_finish is not None and node.fan is None and is_leaf(state, step, node.scope):
        return None if node.settled else node
    fan = state.graph.fans[node.step]
    level = depth(node.scope)
    if level >= len(fan) or fan[level] not in state.graph.groups[node.step]:
        return None
    parent = state.node(fan[level], node.scope)
    return parent if parent is not None and not parent.settled else None


def is_superseded(state: State, step: str, scope: str) -> bool:
    """True inside a fan-out that was sent round again: nothing more starts there, and nothing routes from there."""
    while scope:
        scope = enclosing(scope)
        aggregate = state.node(step, scope)
        if aggregate is not None and aggregate.fan is not None and aggregate.requested:
            return True
    return False


def first_refusal(state: State, step: Step, scope: str, reader: Node | None) -> Refusal | None:
    """The first entry of depends_on with no satisfied member, or None when all let the step pass."""
    for need in needs_at(state, step, scope):
        found = [_refusal(state, edge, scope, reader) for edge in need.any_of]
        if None not in found:
            return next(refusal for refusal in found if refusal is not None)
    return None


def _refusal(state: State, edge: Edge, scope: str, reader: Node | None) -> Refusal | None:
    node = resolve(state, edge.step, scope)
    if node is None or lets_pass(state, edge, node):
        return None
    if reader is not None and reader.requester == (node.step, node.scope):
        return None
    return Refusal("dependency_failed", node.because or node.step)


def lets_pass(state: State, edge: Edge, node: Node) -> bool:
    """Whether one settled dependency satisfies its edge."""
    if node.outcome in ("passed", "tolerated"):
        return True
    if node.outcome == "failed":
        return edge.on_failure == "continue" or partly_passed(state, node)
    if node.outcome == "skipped":
        return _skip_lets_pass(state, edge, node)
    return False


def _skip_lets_pass(state: State, edge: Edge, node: Node) -> bool:
    if node.reason == "forEach_empty":
        return True
    if node.reason in OPENING_SKIPS:
        return state.graph.steps[node.step].continue_on_failure
    return node.reason == "dependency_failed" and edge.on_failure == "continue"


def partly_passed(state: State, node: Node) -> bool:
    """A fan-out of which some items passed doesn't block what comes after it (spec C.13 R5)."""
    return node.fan is not None and node.reason == "partial"


def any_failed(state: State, step: Step, scope: str) -> bool:
    """Whether some dependency failed: what failure() says, and success() denies."""
    nodes = (resolve(state, edge.step, scope) for need in step.depends_on for edge in need.any_of)
    return any(node is not None and _is_failure(node) for node in nodes)


def _is_failure(node: Node) -> bool:
    return node.outcome == "failed" or (node.outcome == "skipped" and node.reason == "dependency_failed")
