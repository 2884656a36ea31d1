"""An oracle for gating, written apart from the core: may a step start here now (spec C.5, semantics.md 6)?"""

from __future__ import annotations

from gonogo.core.graph import edges
from gonogo.core.plan import Edge, Need, Plan, Step
from gonogo.core.scope import depth, outward, parents
from gonogo.core.state import Node, State


def why_not(state: State, step: Step, scope: str) -> str | None:
    """Why a step may not start or fan out; None when it may. What a route asked for is judged by settledness alone.

    A dependency is what it is nearest to the reader: one that a route ran inside the same item counts there.
    """
    node = state.nodes[step.name].get(scope)
    needs = [need for need in step.depends_on if _is_judged_at(state, step, need, scope)]
    for edge in (edge for need in needs for edge in need.any_of):
        reason = _unsettled(state, edge, scope, node)
        if reason is not None:
            return reason
    if step.always or _was_asked_for(state, step, scope):
        return None
    for need in needs:
        found = (nearest(state, edge.step, scope) for edge in need.any_of)
        if not any(_passes(state, edge, node) for edge, node in zip(need.any_of, found, strict=True)):
            return f"no dependency of {[edge.step for edge in need.any_of]} lets it pass"
    return None


def _is_judged_at(state: State, step: Step, need: Need, scope: str) -> bool:
    """Each entry is judged once: in the innermost fan-out that the step shares with it."""
    if parents(scope) != state.graph.fans[step.name][: depth(scope)]:
        return True
    return depth(scope) == max(state.graph.common(step.name, edge.step) for edge in need.any_of)


def _was_asked_for(state: State, step: Step, scope: str) -> bool:
    around = (state.nodes[step.name].get(outer) for outer in outward(scope))
    return any(node is not None and node.requester is not None for node in around)


def nearest(state: State, step: str, scope: str) -> Node | None:
    """The node a reader in `scope` means by a step."""
    return next(
        (node for outer in outward(scope) if (node := state.nodes[step].get(outer)) is not None), None
    )


def _unsettled(state: State, edge: Edge, scope: str, reader: Node | None) -> str | None:
    node = nearest(state, edge.step, scope)
    if node is None:
        return None if edge.step not in state.included else f"{edge.step} was never looked at"
    asked_for_it = reader is not None and reader.requester == (node.step, node.scope)
    return None if node.complete or asked_for_it else f"{edge.step} is {node.status}"


def _passes(state: State, edge: Edge, node: Node | None) -> bool:
    if node is None or node.outcome in ("passed", "tolerated"):
        return True
    if node.outcome == "failed":
        return edge.on_failure == "continue" or (node.fan is not None and node.reason == "partial")
    if node.outcome != "skipped":
        return False
    if node.reason in ("if_condition", "assume"):
        return state.graph.steps[node.step].continue_on_failure
    return node.reason == "forEach_empty" or (
        node.reason in ("dependency_failed", "suppressed") and edge.on_failure == "continue"
    )


def ancestors(plan: Plan, step: Step) -> frozenset[str]:
    """All steps that a step waits for."""
    found: dict[str, None] = {}
    waiting = [step.name]
    for name in waiting:
        for edge in edges(plan.steps[name]) if name in plan.steps else ():
            if edge.step not in found:
                found[edge.step] = None
                waiting.append(edge.step)
    return frozenset(found)
