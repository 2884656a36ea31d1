"""Smaller scenarios that still break the same law: steps, constructs and disturbances are left out one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from gonogo.core.plan import Block, Need, Plan, Step
from gonogo.testing.behaviours import Behaviour
from gonogo.testing.judging import Failure, failure_of
from gonogo.testing.scenarios import Scenario

ORDERS = 6
"""Orders of events tried for each candidate, since another plan has another order."""


SHRINK_LIMIT_S = 1.0


def smallest(scenario: Scenario, failure: Failure) -> tuple[Scenario, int, Failure]:
    """The smallest scenario found that breaks the same law, the order that does it, and how it fails."""
    order, found = 0, True
    while found:
        found = False
        for candidate in _candidates(scenario):
            hit = _breaks(candidate, failure.law)
            if hit is not None:
                scenario, (order, failure), found = candidate, hit, True
                break
    return scenario, order, failure


def _breaks(scenario: Scenario, law: str) -> tuple[int, Failure] | None:
    for order in range(ORDERS):
        failure = failure_of(scenario, order, limit_s=SHRINK_LIMIT_S)
        if failure is not None and failure.law == law:
            return order, failure
    return None


def _candidates(scenario: Scenario) -> Iterator[Scenario]:
    for name in reversed(scenario.plan.steps):
        if len(scenario.plan.steps) > 1:
            yield without_step(scenario, name)
    for index in range(len(scenario.crashes)):
        yield replace(scenario, crashes=scenario.crashes[:index] + scenario.crashes[index + 1 :])
    yield from _calmer(scenario)
    for step in scenario.plan.steps.values():
        for plainer in _plainer(step):
            yield _with_step(scenario, plainer)
    for name, behaviour in scenario.behaviours.items():
        for field in Behaviour.__slots__:
            if getattr(behaviour, field) not in (0, False, None):
                changed = replace(behaviour, **{field: type(getattr(behaviour, field))()})
                if field != "items":
                    yield replace(scenario, behaviours={**scenario.behaviours, name: changed})


def _calmer(scenario: Scenario) -> Iterator[Scenario]:
    plan = scenario.plan
    calm: tuple[dict[str, Any], ...] = (
        {"cancels": ()},
        {"wishes": 0},
        {"noise": 0},
        {"requested": ()},
        {"trigger": None},
    )
    for changes in calm:
        if any(getattr(scenario, field) for field in changes):
            yield replace(scenario, **changes)
    for field, plain in (("fail_fast", False), ("fail_if", None), ("failure_conditions", ())):
        if getattr(plan, field) != plain:
            yield replace(scenario, plan=msgspec.structs.replace(plan, **{field: plain}))
    if plan.limits.max_parallelism > 1:
        limits = msgspec.structs.replace(plan.limits, max_parallelism=plan.limits.max_parallelism - 1)
        yield replace(scenario, plan=msgspec.structs.replace(plan, limits=limits))


def _plainer(step: Step) -> Iterator[Step]:
    """The step with one thing less."""
    for field in msgspec.structs.fields(Step):
        value = getattr(step, field.name)
        if (
            field.name in ("name", "type", "fanout", "depends_on")
            or field.required
            or value in ((), {})
            or value == field.default
        ):
            continue
        if isinstance(value, Block):
            for part in msgspec.structs.fields(Block):
                if getattr(value, part.name) != part.default:
                    yield msgspec.structs.replace(step, **{field.name: _drop(value, part.name, part.default)})
        yield msgspec.structs.replace(step, **{field.name: field.default})
    for index in range(len(step.depends_on)):
        yield msgspec.structs.replace(step, depends_on=step.depends_on[:index] + step.depends_on[index + 1 :])


def _drop(block: Block, name: str, default: Any) -> Block:
    return msgspec.structs.replace(block, **{name: default})


def _with_step(scenario: Scenario, step: Step) -> Scenario:
    plan = scenario.plan
    return replace(scenario, plan=msgspec.structs.replace(plan, steps={**plan.steps, step.name: step}))


def without_step(scenario: Scenario, name: str) -> Scenario:
    """The scenario without a step and all that names it."""
    plan = scenario.plan
    steps = {other: _forget(step, name) for other, step in plan.steps.items() if other != name}
    behaviours = {other: behaviour for other, behaviour in scenario.behaviours.items() if other != name}
    requested = tuple(other for other in scenario.requested if other != name)
    smaller: Plan = msgspec.structs.replace(plan, steps=steps)
    return replace(scenario, plan=smaller, behaviours=behaviours, requested=requested)


def _forget(step: Step, name: str) -> Step:
    needs = []
    for need in step.depends_on:
        kept = tuple(edge for edge in need.any_of if edge.step != name)
        if kept:
            needs.append(Need(kept))
    blocks = {
        key: _forget_in_block(block, name)
        for key in ("on_success", "on_fail", "on_finish")
        if (block := getattr(step, key)) is not None
    }
    on_init = tuple(target for target in step.on_init if target.step != name)
    return msgspec.structs.replace(step, depends_on=tuple(needs), on_init=on_init, **blocks)


def _forget_in_block(block: Block, name: str) -> Block:
    return msgspec.structs.replace(
        block,
        run=tuple(target for target in block.run if target.step != name),
        transitions=tuple(rule for rule in block.transitions if rule.to != name),
        goto=None if block.goto == name else block.goto,
    )
