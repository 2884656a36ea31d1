"""A scenario and its run in words, for people who look for a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from gonogo.core.plan import Plan, Step
from gonogo.testing.behaviours import Behaviour
from gonogo.testing.broken import Broken
from gonogo.testing.judging import watchdog
from gonogo.testing.scenarios import Scenario
from gonogo.testing.shrinking import SHRINK_LIMIT_S
from gonogo.testing.simulated import Simulation


def describe(scenario: Scenario) -> str:
    """The plan, step by step, and what is done to the run."""
    plan = scenario.plan
    lines = [f"{plan.name}: {plan.limits}"]
    lines += [_step(plan, step, scenario.behaviours[step.name]) for step in plan.steps.values()]
    lines.append(f"  expressions {[expression.source for expression in plan.expressions]}")
    lines.append(f"  crashes {scenario.crashes}, cancels {scenario.cancels}, wishes {scenario.wishes}")
    lines.append(f"  fail_fast {plan.fail_fast}")
    return "\n".join(lines) + "\n"


def _step(plan: Plan, step: Step, behaviour: Behaviour) -> str:
    parts = [
        f"{field.name}={_short(value)}"
        for field, value in _changed(step)
        if field.name not in ("name", "type")
    ]
    changed = [
        f"{name}={getattr(behaviour, name)}" for name in Behaviour.__slots__ if getattr(behaviour, name)
    ]
    return f"  {step.name}: {' '.join(parts)}  calls: {' '.join(changed) or 'pass'}"


def _changed(step: msgspec.Struct) -> Iterator[tuple[msgspec.structs.FieldInfo, Any]]:
    for field in msgspec.structs.fields(step):
        value = getattr(step, field.name)
        if field.required or (value != field.default and value not in ({}, (), None)):
            yield field, value


def _short(value: Any) -> str:
    if isinstance(value, msgspec.Struct):
        return f"({' '.join(f'{field.name}={_short(inner)}' for field, inner in _changed(value))})"
    if isinstance(value, tuple):
        return f"[{', '.join(_short(item) for item in value)}]"
    return str(value)


def tell(scenario: Scenario, order: int) -> str:
    """Every record of a run, up to the law it breaks."""
    simulation = Simulation(scenario, order)
    lines: list[str] = []
    see, restart = simulation.watch.see, simulation.watch.restart

    def note(record: Any, commands: Any, state: Any) -> None:
        lines.append(f"{record.seq} {record.at:g} {_event(record.event)}")
        for decision in record.decisions:
            where = f"{getattr(decision, 'step', '')} {getattr(decision, 'scope', '')}".strip()
            lines.append(f"      {where} {decision.sentence()}")
        see(record, commands, state)

    def again(records: Any) -> None:
        lines.append(f"--- crash; {len(records)} records are left")
        restart(records)

    simulation.watch.see, simulation.watch.restart = note, again  # type: ignore[method-assign]
    try:
        with watchdog(SHRINK_LIMIT_S):
            simulation.run()
    except Broken as broken:
        lines.append(f"!!! {broken}")
    return "\n".join(lines) + "\n"


def _event(event: msgspec.Struct) -> str:
    shown = {
        field.name: getattr(event, field.name)
        for field in msgspec.structs.fields(event)
        if field.name in _SHOWN and not field.required
    }
    return f"{type(event).__name__} {getattr(event, 'call', '')} " + " ".join(
        f"{k}={v}" for k, v in shown.items() if v
    )


_SHOWN = frozenset(
    {"step", "scope", "text", "output", "fault", "effect", "results", "timer", "details", "timeout_s"}
)
