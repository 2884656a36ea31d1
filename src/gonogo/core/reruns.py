"""Re-run sets: which steps a route runs, in which scopes, with which arguments (semantics.md 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gonogo.core.dependencies import resolve
from gonogo.core.graph import edges
from gonogo.core.plan import Step
from gonogo.core.scope import (
    child,
    depth,
    enclosing,
    execution_of,
    index_of,
    levels_shared,
    outward,
    parent_of,
    parents,
    prefix,
)
from gonogo.core.state import Node, State


def run_scopes(state: State, node: Node, target: str) -> list[str]:
    """Where a run target runs: in the scope of the step that asks, or once per item of it (spec C.10 R5).

    Per item means: the asking step is a fan-out or a forEach step, and the target says `fanout: map` itself without
    being a dependent of that fan-out. Items within items of the same list are not opened: each would have a loop
    budget of its own, and two lists that run each other would never end (law 2).
    """
    step = state.graph.steps[target]
    if not step.fanout_explicit or step.fanout != "map" or state.graph.fans[target]:
        return [node.scope]
    parent, execution, count = _items_asked_for(state, node)
    if parent is None or parent in parents(node.scope):
        return [node.scope]
    return [child(node.scope, parent, execution, index) for index in range(count)]


def _items_asked_for(state: State, node: Node) -> tuple[str | None, int, int]:
    if node.fan is not None:
        return node.fan.parent, node.fan.execution, node.fan.total
    if state.step(node).for_each and node.items is not None:
        return node.step, node.execution, len(node.items)
    return None, 0, 0


def arguments_for(state: State, arguments: dict[str, Any], scope: str) -> dict[str, Any]:
    """What the target sees as `args`: within an item also the item and its index (spec C.10 R6)."""
    if not scope:
        return arguments
    return {"item": item_of(state, scope), "index": index_of(scope), **arguments}


def item_of(state: State, scope: str) -> Any:
    """The item of the innermost level of a scope."""
    parent = resolve(state, parent_of(scope), enclosing(scope))
    lists = parent.lists if parent is not None else None
    items = lists.get(execution_of(scope)) if lists is not None else None
    index = index_of(scope)
    return items[index] if items is not None and index < len(items) else None


def skipped_by_if(state: State, scope: str) -> tuple[tuple[str, str], ...]:
    """The steps in a scope, other than forEach, that their `if` has skipped (spec C.14 R3)."""
    found = ((step, state.node(step.name, scope)) for step in state.graph.steps.values() if not step.for_each)
    return tuple(
        (step.name, scope)
        for step, node in found
        if node is not None and node.complete and node.reason == "if_condition"
    )


def goto_scope(state: State, node: Node, target: str) -> str:
    """A goto goes to the target's own place, within the fan-out levels it shares with the source."""
    if node.scope and state.node(target, node.scope) is not None:
        return node.scope
    return prefix(node.scope, levels_shared(parents(node.scope), state.graph.fans[target]))


def members(
    state: State, action: str, target: str, scope: str, event: str | None
) -> tuple[tuple[str, str], ...]:
    """The steps of a re-run set: the target, for a goto its transitive dependents, and dependencies that never ran."""
    found: dict[tuple[str, str], None] = {(target, scope): None}
    if action == "goto":
        _add_dependents(state, found, event)
    for step, where in list(found):
        add_never_run(state, found, step, where)
    return tuple(place for place in found if not (place[1] and _goes_with_its_list(state, found, *place)))


def _goes_with_its_list(state: State, found: dict[tuple[str, str], None], step: str, scope: str) -> bool:
    """True inside an item of a fan-out that runs again whole: other items take the place of this one."""
    for around in outward(enclosing(scope)):
        node = state.node(step, around) if (step, around) in found else None
        if node is not None and node.fan is not None and parents(scope)[depth(around)] == node.fan.parent:
            return True
    return False


def _add_dependents(state: State, found: dict[tuple[str, str], None], event: str | None) -> None:
    looked_at = list(found)
    for step, scope in looked_at:
        for place in dependents_of(state, step, scope):
            if place not in found and _takes_part(state, *place, event):
                found[place] = None
                looked_at.append(place)


def dependents_of(state: State, step: str, scope: str) -> Iterator[tuple[str, str]]:
    """The steps that wait for one in a scope, each where it waits; whether they take part in the run isn't asked."""
    for name in state.graph.dependents[step]:
        where = prefix(
            scope, min(levels_shared(parents(scope), state.graph.fans[name]), state.graph.common(step, name))
        )
        if scope and state.node(name, scope) is not None:
            where = scope
        yield name, where


def _takes_part(state: State, name: str, scope: str, event: str | None) -> bool:
    step = state.graph.steps[name]
    if event is not None and not _reacts_to(step, event):
        return False
    if state.node(name, scope) is not None:
        return True
    return name in state.included and name not in state.held_back


def _reacts_to(step: Step, event: str) -> bool:
    return not step.on or event in step.on


def add_never_run(state: State, found: dict[tuple[str, str], None], step: str, scope: str) -> None:
    """Take along what a step depends on and nothing has ever sent the run to (semantics.md 7)."""
    looked_at = [(step, scope)]
    for name, where in looked_at:
        for edge in edges(state.graph.steps[name]):
            dependency = edge.step
            if resolve(state, dependency, where) is not None or dependency not in state.held_back:
                continue
            place = prefix(where, levels_shared(parents(where), state.graph.fans[dependency]))
            if (dependency, place) not in found:
                found[dependency, place] = None
                looked_at.append((dependency, place))
