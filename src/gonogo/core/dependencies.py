"""Whether the steps another one waits for are settled, and whether they let it pass (spec C.5, semantics.md 6)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gonogo.core import lifecycle as life
from gonogo.core.parts import Part, Site
from gonogo.core.plan import Edge, Step
from gonogo.core.scope import ROOT, depth, enclosing, levels_shared, parents, prefix
from gonogo.core.state import Node, State

OPENING_SKIPS = frozenset({"if_condition", "assume"})
BLOCKED = frozenset({"dependency_failed", "suppressed"})
"""Reasons for which a step hasn't run that a later success of the step at their root takes away."""

Rest = Literal["settled", "complete"]


class Refusal(NamedTuple):
    """A dependency that doesn't let the step pass, and the step at the root of that."""

    reason: str
    because: str


def resolve(state: State, step: str, scope: str) -> Node | None:
    """The node a reader in `scope` means by a step: its own scope, else the nearest around it."""
    scopes = state.nodes[step]
    node = scopes.get(scope)
    while node is None and scope:
        scope = enclosing(scope)
        node = scopes.get(scope)
    return node


def nearest_scope(state: State, step: str, scope: str) -> str:
    """Where a reader in `scope` finds a step, whether or not it has been looked at there."""
    node = resolve(state, step, scope)
    own = prefix(scope, levels_shared(parents(scope), state.graph.fans[step]))
    return max(own, ROOT if node is None else node.scope, key=depth)


def all_settled(state: State, site: Site, scope: str, reader: Node | None) -> bool:
    """True when every dependency to be judged here is settled."""
    for need in site.needs:
        for edge in need.any_of:
            node = resolve(state, edge.step, scope)
            if node is None:
                if edge.step not in state.excluded:
                    return False
            elif not (node.settled or _settled_enough(state, node, site.part, reader)):
                return False
    return True


def _settled_enough(state: State, node: Node, part: Part, reader: Node | None) -> bool:
    """Steps of one fan-out see each other before its on_finish has spoken; what a route asked for sees who asked."""
    if reader is not None and reader.requester is not None:
        if (node.step, node.scope) == reader.requester:
            return node.status in (life.ROUTING, life.REMEDIATING, life.DONE)
        if node.complete:
            return True
    return node.complete and shares_group(state, node, part)


def shares_group(state: State, node: Node, part: Part) -> bool:
    """True when `part` runs inside the fan-out whose on_finish the node still waits for."""
    parent = group_parent(state, node)
    return parent is not None and parent.step in part.fan


def group_parent(state: State, node: Node) -> Node | None:
    """The forEach node whose on_finish decides whether this node is settled; None when there is none to come."""
    site = node.site
    if site.owns_group and node.fan is None:
        return None if node.settled else node
    return _group_around(state, site, node.scope) if site.group is not None else None


def _group_around(state: State, site: Site, scope: str) -> Node | None:
    parent = state.nodes[site.group].get(scope) if site.group is not None else None
    return parent if parent is not None and not parent.settled else None


def rest_at(state: State, site: Site, scope: str, node: Node | None) -> Rest:
    """How final an outcome is: a fan-out's on_finish may still send its steps round again."""
    if site.group is None and not site.owns_group:
        return "settled"
    if node is not None:
        grouped = group_parent(state, node) is not None
    else:
        grouped = site.owns_group or _group_around(state, site, scope) is not None
    return "complete" if grouped else "settled"


def is_superseded(state: State, step: str, scope: str) -> bool:
    """True inside a fan-out that was sent round again: nothing more starts there, and nothing routes from there."""
    if state.last_wave == 0:
        return False  # nothing was ever routed
    while scope:
        scope = enclosing(scope)
        aggregate = state.node(step, scope)
        if aggregate is not None and aggregate.fan is not None and aggregate.requested:
            return True
    return False


def first_refusal(state: State, site: Site, scope: str, reader: Node | None) -> Refusal | None:
    """The first entry of depends_on with no satisfied member, or None when all let the step pass."""
    for need in site.needs:
        refusal = None
        for edge in need.any_of:
            found = _refusal(state, edge, scope, reader)
            if found is None:
                break
            refusal = refusal or found
        else:
            if refusal is not None:
                return refusal
    return None


def _refusal(state: State, edge: Edge, scope: str, reader: Node | None) -> Refusal | None:
    node = resolve(state, edge.step, scope)
    if node is None or node.outcome == "passed" or lets_pass(edge, node):
        return None
    if reader is not None and reader.requester == (node.step, node.scope):
        return None
    return Refusal("dependency_failed", node.because or node.step)


def lets_pass(edge: Edge, node: Node) -> bool:
    """Whether one settled dependency satisfies its edge."""
    if node.outcome in ("passed", "tolerated"):
        return True
    if node.outcome == "failed":
        return edge.on_failure == "continue" or partly_passed(node)
    if node.outcome == "skipped":
        return _skip_lets_pass(edge, node)
    return False


def _skip_lets_pass(edge: Edge, node: Node) -> bool:
    if node.reason == "forEach_empty":
        return True
    if node.reason in OPENING_SKIPS:
        return node.site.part.step.continue_on_failure
    return node.reason in BLOCKED and edge.on_failure == "continue"


def partly_passed(node: Node) -> bool:
    """A fan-out of which some items passed doesn't block what comes after it (spec C.13 R5)."""
    return node.fan is not None and node.reason == "partial"


def any_failed(state: State, step: Step, scope: str) -> bool:
    """Whether some dependency failed: what failure() says, and success() denies."""
    nodes = (resolve(state, edge.step, scope) for need in step.depends_on for edge in need.any_of)
    return any(node is not None and _is_failure(node) for node in nodes)


def _is_failure(node: Node) -> bool:
    return node.outcome == "failed" or (node.outcome == "skipped" and node.reason in BLOCKED)
