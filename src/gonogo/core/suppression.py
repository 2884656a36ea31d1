"""Suppression: behind a failed critical step nothing changes the world until that step has passed (spec C.8).

What counts is the way through `depends_on`, whatever an edge lets pass: an OR group or `on_failure: continue` keeps a
report going, not a deployment. A step that `if: failure()` or `if: always()` starts was written for the failure; so was
what the failed step's own block runs. A run without failures of critical steps pays nothing for any of this.
"""

from __future__ import annotations

from gonogo.core.budgets import is_undoing
from gonogo.core.dependencies import BLOCKED, nearest_scope
from gonogo.core.graph import Graph, edges
from gonogo.core.parts import Part, Site
from gonogo.core.scope import prefix, within
from gonogo.core.state import Node, State


def suppressor(state: State, site: Site, scope: str, reader: Node | None) -> str | None:
    """The failed critical step behind which this one would act, or None. The latest run of each step counts."""
    if is_undoing(state, site.part.name):
        return None
    for guard, where in state.critical_failures:
        if reader is not None and reader.requester == (guard, where):
            continue
        if not site.leaf and not _has_waited_for(state.graph, site, guard):
            continue
        if blocks(state.graph, guard, site.part) and _is_behind(state, guard, where, site, scope):
            return guard
    return None


def _has_waited_for(graph: Graph, site: Site, guard: str) -> bool:
    """Whether what is judged before a step fans out comes after the guard; else it would depend on who is first.

    Its items look again, when they have waited for the rest.
    """
    behind = graph.behind(guard)
    return any(edge.step == guard or edge.step in behind for need in site.needs for edge in need.any_of)


def blocks(graph: Graph, guard: str, part: Part) -> bool:
    """external and internal steps keep back whatever mutates, policy steps what is external."""
    policy = graph.steps[guard].criticality == "policy"
    return part.acts and (part.step.criticality == "external" if policy else part.step.mutates)


def _is_behind(state: State, guard: str, where: str, site: Site, scope: str) -> bool:
    """Within the fan-outs that lie around the whole way from one to the other both are in the same item.

    A fan-out that failed before it began has failed for all its items.
    """
    shared = state.graph.behind(guard).get(site.part.name)
    if shared is None:
        return False
    if site.foreign:
        return _leads_to(state, guard, where, site.part.name, scope)
    return within(prefix(scope, shared), prefix(where, shared))


def _leads_to(state: State, guard: str, where: str, name: str, scope: str) -> bool:
    """Follow what a step that a route runs inside an item waits for, which is what is nearest to it (law 5)."""
    looked_at = [(name, scope)]
    for step, inside in looked_at:
        for source in dict.fromkeys(
            (*(edge.step for edge in edges(state.graph.steps[step])), *state.graph.fans[step])
        ):
            around = nearest_scope(state, source, inside)
            if source == guard and (within(where, around) or within(around, where)):
                return True
            if (source, around) not in looked_at:
                looked_at.append((source, around))
    return False


def kept_back_by(state: State, node: Node) -> tuple[tuple[str, str], ...]:
    """The steps a failure of this one kept from running, each with its scope."""
    places = (state.node(*place) for place in state.kept_back.get(node.step, ()))
    return tuple(
        (other.step, other.scope)
        for other in places
        if other is not None and _was_blocked_by(state, other, node)
    )


def _was_blocked_by(state: State, node: Node, guard: Node) -> bool:
    return (
        node.complete
        and node.reason in BLOCKED
        and node.because == guard.step
        and _is_behind(state, guard.step, guard.scope, node.site, node.scope)
    )
