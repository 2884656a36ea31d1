"""Which steps a run is about: request list, event filter, tags, dropped dependencies (spec C.2)."""

from __future__ import annotations

from typing import Any, Protocol

from gonogo.core.cycles import cycle, cycle_through_lists
from gonogo.core.decisions import Planned, Refusal
from gonogo.core.faults import Issue
from gonogo.core.graph import Graph, edges, topological
from gonogo.core.plan import Need, Plan, Step

RESERVED_TAGS = frozenset({"critical", "external", "internal", "info", "policy", "one_shot"})
"""Tags that say how a step is to be treated; they never leave it out (spec G34, C.15)."""


class About(Protocol):
    """What a run is about: the event that starts it, or its state later on."""

    @property
    def trigger(self) -> dict[str, Any] | None: ...
    @property
    def requested(self) -> tuple[str, ...]: ...


def plan_run(graph: Graph, event: About) -> Planned | Refusal:
    """The plan decision, or the reason why nothing can run."""
    plan = graph.plan
    impossible = _impossible(graph)
    if impossible is not None:
        return Refusal(impossible)
    name = str(event.trigger.get("name")) if event.trigger else None
    excluded = {
        step.name: reason
        for step in plan.steps.values()
        if (reason := _filtered(plan, step, name)) is not None
    }
    _drop_orphans(plan, excluded)
    wanted = _requested(plan, event.requested, excluded)
    if wanted is not None:
        left = (step for step in plan.steps if step not in wanted and step not in excluded)
        excluded.update(dict.fromkeys(left, "not_requested"))
    included = tuple(step for step in plan.steps if step not in excluded)
    held_back = tuple(step for step in included if step in graph.held_back and step not in event.requested)
    return Planned(included, excluded, held_back)


def _impossible(graph: Graph) -> Issue | None:
    plan, before = graph.plan, set()
    in_order = True
    for step in plan.steps.values():
        for edge in edges(step):
            if edge.step not in plan.steps:
                message = f"step {step.name} depends on {edge.step}, which isn't a step of this workflow"
                return Issue("system/error", message, check_name="system", engine=True)
            in_order = in_order and edge.step in before
        before.add(step.name)
    # Where each step stands behind all that it depends on, as in most files, none of them waits for itself.
    loop = (() if in_order else cycle(plan)) or cycle_through_lists(graph)
    if loop:
        return Issue(
            "system/error", f"steps wait for each other: {' → '.join(loop)}", check_name="system", engine=True
        )
    return None


def _filtered(plan: Plan, step: Step, event: str | None) -> str | None:
    if event is not None and step.on is not None and event not in step.on:
        return "event_filter"
    return None if passes_tags(plan, step) else "tag_filter"


def passes_tags(plan: Plan, step: Step) -> bool:
    """Without a filter every tagged step is out; with one, untagged steps stay (spec C.2 R3)."""
    if not step.tags:
        return True
    tags = set(step.tags) - RESERVED_TAGS
    if not plan.include_tags and not plan.exclude_tags:
        return not tags
    if set(step.tags) & set(plan.exclude_tags):
        return False
    return not plan.include_tags or not tags or bool(set(step.tags) & set(plan.include_tags))


def _drop_orphans(plan: Plan, excluded: dict[str, str]) -> None:
    """Without a tag filter, a step whose dependency was filtered out is dropped, with a reason (spec C.2 R7)."""
    if plan.include_tags or plan.exclude_tags or not excluded:
        return
    for name in topological(plan):
        if name not in excluded and any(_is_out(need, excluded) for need in plan.steps[name].depends_on):
            excluded[name] = "dependency_excluded"


def _is_out(need: Need, excluded: dict[str, str]) -> bool:
    return all(edge.step in excluded for edge in need.any_of)


def _requested(plan: Plan, names: tuple[str, ...], excluded: dict[str, str]) -> set[str] | None:
    """Requested steps with all they depend on; None when everything is wanted."""
    if not names:
        return None
    wanted = set(names)
    looked_at = list(names)
    for name in looked_at:
        excluded.pop(name, None) if name in names else None
        for edge in edges(plan.steps[name]):
            if edge.step not in wanted and edge.step not in excluded:
                wanted.add(edge.step)
                looked_at.append(edge.step)
    return wanted
