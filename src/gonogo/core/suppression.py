"""Suppression: behind a failed critical step nothing changes the world until that step has passed (spec C.8).

What counts is the way through `depends_on`, whatever an edge lets pass: an OR group or `on_failure: continue` keeps a
report going, not a deployment. A step that `if: failure()` or `if: always()` starts was written for the failure; so was
what the failed step's own block runs. A run without failures of critical steps pays nothing for any of this.
"""

from __future__ import annotations

from gonogo.core import decisions as d
from gonogo.core.dependencies import BLOCKED
from gonogo.core.graph import Graph
from gonogo.core.parts import Site
from gonogo.core.scope import prefix
from gonogo.core.state import Node, State
from gonogo.core.turn import Turn


def suppressor(state: State, site: Site, scope: str, reader: Node | None) -> str | None:
    """The failed critical step behind which this one would act, or None. The latest run of each step counts."""
    if not site.part.acts:
        return None
    for guard, where in state.critical_failures:
        if reader is not None and reader.requester == (guard, where):
            continue
        if _blocks(state.graph, guard, site) and _is_behind(state.graph, guard, where, site.part.name, scope):
            return guard
    return None


def _blocks(graph: Graph, guard: str, site: Site) -> bool:
    """external and internal steps keep back whatever mutates, policy steps what is external."""
    step = site.part.step
    policy = graph.steps[guard].criticality == "policy"
    return step.criticality == "external" if policy else step.effects == "mutates"


def _is_behind(graph: Graph, guard: str, where: str, name: str, scope: str) -> bool:
    """Within the fan-outs that lie around the whole way from one to the other both are in the same item."""
    shared = graph.behind(guard).get(name)
    return shared is not None and prefix(where, shared) == prefix(scope, shared)


def lift(turn: Turn, node: Node) -> None:
    """A step that failed and has passed now: those it kept from running are looked at again (semantics.md 7)."""
    state = turn.state
    if state.stopping:
        return
    kept_back = (state.node(*place) for place in state.kept_back[node.step])
    found = tuple(
        (other.step, other.scope)
        for other in kept_back
        if other is not None and _was_blocked_by(turn.graph, other, node)
    )
    if found:
        place = (node.step, node.scope)
        turn.decide(d.Routed(*place, "passed", "lift", *place, state.last_wave + 1, found))
        turn.routed.extend(found)


def _was_blocked_by(graph: Graph, node: Node, guard: Node) -> bool:
    return (
        node.complete
        and node.outcome == "skipped"
        and node.reason in BLOCKED
        and node.because == guard.step
        and _is_behind(graph, guard.step, guard.scope, node.step, node.scope)
    )
