"""Rings of steps that wait for each other: a plan with one could never end, so none is run (law 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gonogo.core.graph import Graph, edges
from gonogo.core.plan import Plan


def cycle(plan: Plan) -> tuple[str, ...]:
    """The steps of one dependency cycle, first step repeated at the end; empty when there is none."""
    return _find_cycle(
        plan.steps, lambda name: [edge.step for edge in edges(plan.steps[name]) if edge.step in plan.steps]
    )


def cycle_through_lists(graph: Graph) -> tuple[str, ...]:
    """A ring of waits that goes through an on_finish: outside its fan-out a list is settled only when all inside is.

    Two lists whose inner steps wait for each other's list would never settle.
    """
    if not graph.any_on_finish:
        return ()
    ends = {f"on_finish of {name}": name for name in graph.members if graph.steps[name].on_finish is not None}

    def waits_for(name: str) -> list[str]:
        if name in ends:
            return [ends[name], *graph.members[ends[name]]]
        inside = graph.fans[name]
        found: list[str] = []
        for step in dict.fromkeys([*(edge.step for edge in edges(graph.steps[name])), *inside]):
            own = (step,) if f"on_finish of {step}" in ends else ()
            outside = [parent for parent in (*graph.parts[step].groups, *own) if parent not in inside]
            found += [f"on_finish of {parent}" for parent in outside] or [step]
        return found

    return _find_cycle(graph.steps, waits_for)


def _find_cycle(roots: Iterable[str], waits_for: Callable[[str], Sequence[str]]) -> tuple[str, ...]:
    """Depth first, without recursion; `state` is 1 for what is on the path, 2 for what is done with."""
    state: dict[str, int] = {}
    for root in roots:
        found = () if root in state else _cycle_from(root, waits_for, state)
        if found:
            return found
    return ()


def _cycle_from(
    root: str, waits_for: Callable[[str], Sequence[str]], state: dict[str, int]
) -> tuple[str, ...]:
    path = [root]
    state[root] = 1
    iterators = [iter(waits_for(root))]
    while iterators:
        name = next(iterators[-1], None)
        if name is None:
            state[path.pop()] = 2
            iterators.pop()
        elif state.get(name) == 1:
            return (*path[path.index(name) :], name)
        elif name not in state:
            state[name] = 1
            path.append(name)
            iterators.append(iter(waits_for(name)))
    return ()
