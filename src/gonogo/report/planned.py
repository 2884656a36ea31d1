"""What would run for an event and why, what is left out and why, in levels: what can start together stands
together. Asks the core; runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from typing import Any

from msgspec import Struct

from gonogo.core.decisions import Refusal
from gonogo.core.events import RunStarted
from gonogo.core.graph import Graph
from gonogo.core.plan import Need, Plan, Step
from gonogo.core.planning import plan_run
from gonogo.report.layout import Style, brief, cells, count, padded, plain, wrapped
from gonogo.report.text import beside
from gonogo.report.why import Why, left_out


class Preview(Struct, frozen=True):
    """`levels`: names of the steps that run, by what must come before them; `held_back`: those that only a route
    starts. `refusal` says why nothing can run at all.
    """

    plan: Plan
    event: str | None
    levels: tuple[tuple[str, ...], ...]
    held_back: tuple[str, ...]
    excluded: dict[str, Why]
    refusal: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data for `--format json`."""
        return {
            "event": {"name": self.event} if self.event else None,
            "steps": {name: _step_json(self.plan, name) for level in self.levels for name in level},
            "levels": [list(level) for level in self.levels],
            "held_back": list(self.held_back),
            "left_out": {name: why.as_json() for name, why in self.excluded.items()},
            "refusal": self.refusal,
        }


def preview(plan: Plan, trigger: Mapping[str, Any] | None, requested: tuple[str, ...]) -> Preview:
    """What a run of this plan would be about."""
    event = RunStarted(
        run_id="plan",
        plan=plan,
        started_at_ms=0,
        trigger=dict(trigger) if trigger else None,
        requested=requested,
    )
    name = str(trigger.get("name")) if trigger else None
    planned = plan_run(Graph(plan), event)
    if isinstance(planned, Refusal):
        return Preview(plan, name, (), (), {}, planned.issue.message)
    excluded = {
        step: left_out(plan, step, planned.excluded, name) for step in plan.steps if step in planned.excluded
    }
    started = [step for step in planned.included if step not in planned.held_back]
    return Preview(plan, name, _levels(plan, started), planned.held_back, excluded)


def _levels(plan: Plan, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """A step's level is one more than the highest among its dependencies that run."""
    running = set(names)
    before = {name: running.intersection(_before(plan, name)) for name in names}
    level: dict[str, int] = {}
    for name in TopologicalSorter(before).static_order():
        level[name] = 1 + max((level[one] for one in before[name]), default=-1)
    found: list[list[str]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    for name in names:
        found[level[name]].append(name)
    return tuple(map(tuple, found))


def _before(plan: Plan, name: str) -> list[str]:
    return [edge.step for need in plan.steps[name].depends_on for edge in need.any_of]


def _step_json(plan: Plan, name: str) -> dict[str, Any]:
    step = plan.steps[name]
    return {
        "type": step.type,
        "depends_on": [[edge.step for edge in need.any_of] for need in step.depends_on],
        "if": _source(plan, step.if_condition),
        "assume": [_source(plan, index) for index in step.assume],
        "criticality": step.criticality,
        "criticality_source": step.criticality_source,
        "effects": step.effects,
        "continue_on_failure": step.continue_on_failure,
        "compensate": step.compensate,
        "for_each": step.for_each,
        "on": list(step.on) if step.on is not None else None,
        "tags": list(step.tags),
        "runs_on": step.runs_on or None,
    }


def _source(plan: Plan, index: int | None) -> str | None:
    return None if index is None else plan.expressions[index].source


def text(view: Preview, style: Style) -> str:
    """For people, ending in a line end."""
    return "\n".join(_lines(view, style)) + "\n"


def _lines(view: Preview, style: Style) -> Iterator[str]:
    about = f"event {view.event}" if view.event else "no event (no step's `on` is looked at)"
    steps = sum(map(len, view.levels))
    head = f"{plain(view.plan.name)}: {about}, {count(steps, 'step')}, {view.plan.limits.max_parallelism} at once"
    yield from wrapped(head, style.width)
    if view.refusal is not None:
        yield from ("", f"nothing can run: {view.refusal}")
        return
    width = min(32, max((cells(plain(name)) for name in view.plan.steps), default=0))
    for number, level in enumerate(view.levels, 1):
        yield from ("", style.paint(f"level {number}", "bold"))
        for name in level:
            yield from _row(
                view.plan.steps[name], _told(view.plan, view.plan.steps[name]), width, "running", style
            )
    if view.held_back:
        yield from ("", style.paint("only when something routes to it", "bold"))
        for name in view.held_back:
            yield from _row(
                view.plan.steps[name], _told(view.plan, view.plan.steps[name]), width, "waiting", style
            )
    if view.excluded:
        yield from ("", style.paint("left out", "bold"))
        for name, why in view.excluded.items():
            yield from _row(view.plan.steps[name], why.text, width, "excluded", style)


def _row(step: Step, told: str, width: int, symbol: str, style: Style) -> list[str]:
    name = padded(plain(step.name), width)
    start = f"{style.symbol(symbol)} {style.paint(name, 'bold')}"
    return beside(start, 2 + cells(name), plain(style.typography(told)), "dim", style)


def _told(plan: Plan, step: Step) -> str:
    parts = [step.type]
    if step.depends_on:
        parts.append("after " + " and ".join(_need(need) for need in step.depends_on))
    if step.if_condition is not None:
        parts.append(f"if {brief(plan.expressions[step.if_condition].source, 80)}")
    if step.for_each:
        parts.append("one run of what follows for each item")
    if step.effects == "mutates":
        parts.append("changes something outside")
    if step.runs_on:
        parts.append(f"on a worker with --label {step.runs_on}")
    if step.continue_on_failure:
        parts.append("may fail")
    if step.criticality != "info" or step.criticality_source != "inferred":
        source = "" if step.criticality_source == "explicit" else f" ({step.criticality_source})"
        parts.append(f"{step.criticality}{source}")
    if step.compensate is not None:
        parts.append(f"undone by {step.compensate}")
    return ", ".join(parts)


def _need(need: Need) -> str:
    names = " or ".join(edge.step for edge in need.any_of)
    return f"({names})" if len(need.any_of) > 1 else names
