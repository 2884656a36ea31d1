"""Suppression: behind a failed critical step nothing changes the world until that step has passed (spec C.8).

What counts is the way through `depends_on`, whatever an edge lets pass: an OR group or `on_failure: continue` keeps a
report going, not a deployment. A step that `if: failure()` or `if: always()` starts was written for the failure; so was
what the failed step's own block runs. A run without failures of critical steps pays nothing for any of this.
"""

from __future__ import annotations

from gonogo.core.budgets import is_undoing
from gonogo.core.dependencies import BLOCKED
from gonogo.core.graph import Graph
from gonogo.core.parts import Part, Site
from gonogo.core.scope import prefix, within
from gonogo.core.state import Node, State


def suppressor(state: State, site: Site, scope: str, reader: Node | None) -> str | None:
    """The failed critical step behind which this one would act, or None. The latest run of each step counts."""
    if not site.part.acts or is_undoing(state, site.part.name):
        return None
    for guard, where in state.critical_failures:
        if reader is not None and reader.requester == (guard, where):
            continue
        if blocks(state.graph, guard, site.part) and _is_behind(
            state.graph, guard, where, site.part.name, scope
        ):
            return guard
    return None


def blocks(graph: Graph, guard: str, part: Part) -> bool:
    """external and internal steps keep back whatever mutates, policy steps what is external."""
    policy = graph.steps[guard].criticality == "policy"
    return part.acts and (part.step.criticality == "external" if policy else part.step.mutates)


def _is_behind(graph: Graph, guard: str, where: str, name: str, scope: str) -> bool:
    """Within the fan-outs that lie around the whole way from one to the other both are in the same item.

    A fan-out that failed before it began has failed for all its items.
    """
    shared = graph.behind(guard).get(name)
    return shared is not None and within(prefix(scope, shared), prefix(where, shared))


def kept_back_by(state: State, node: Node) -> tuple[tuple[str, str], ...]:
    """The steps a failure of this one kept from running, each with its scope."""
    places = (state.node(*place) for place in state.kept_back.get(node.step, ()))
    return tuple(
        (other.step, other.scope)
        for other in places
        if other is not None and _was_blocked_by(state.graph, other, node)
    )


def _was_blocked_by(graph: Graph, node: Node, guard: Node) -> bool:
    return (
        node.complete
        and node.outcome == "skipped"
        and node.reason in BLOCKED
        and node.because == guard.step
        and _is_behind(graph, guard.step, guard.scope, node.step, node.scope)
    )
