"""Laws that compare runs of one plan: other orders of events, more slots, a crash, a broken item.

    order      with one slot, two orders of events give the same journal
    slots      outcomes and outputs agree between one slot and several, where the workflow fixes them (semantics.md 11)
    resume     outcomes and outputs are those of an uninterrupted run after crashes
    isolation  a failing item changes no other item (law 5)

They hold for calm scenarios: what people answer, and routes to steps that others share, may depend on who is first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from gonogo.core.plan import Block, Budget, Plan, Retry, Step
from gonogo.core.scope import parent_of, within
from gonogo.core.state import State
from gonogo.testing.broken import Broken
from gonogo.testing.gate import ancestors
from gonogo.testing.scenarios import Crash, Scenario
from gonogo.testing.simulated import Ended, Simulation

Outcomes = Mapping[tuple[str, str], tuple[Any, ...]]

DEFAULT_CRASHES = (
    Crash(2, "written"),
    Crash(5, "unwritten"),
    Crash(8, "half_performed"),
    Crash(12, "performed"),
)


def check(scenario: Scenario) -> None:
    """Check all of them on what is calm in a scenario. Raises Broken."""
    one_slot = with_slots(undisturbed(scenario), 1)
    check_order(replace(one_slot, timed=True))
    calm = replace(without_routes(one_slot), timed=True)
    plain = Simulation(calm).run()
    if plain.state.excluded:
        calm = without_suppression(calm)
        plain = Simulation(calm).run()
    several = Simulation(replace(with_slots(calm, 3), timed=False), order=1).run()
    _compare("slots", outcomes(plain.state), outcomes(several.state))
    check_isolation(calm, plain)
    ungated = _without_gates(calm)
    if ungated != calm:
        plain = Simulation(ungated).run()
    crashed = Simulation(replace(ungated, timed=False, crashes=scenario.crashes or DEFAULT_CRASHES)).run()
    if not crashed.doubted:
        _compare("resume", outcomes(plain.state), outcomes(crashed.state))


def check_order(scenario: Scenario) -> None:
    """Two orders of what is in flight at once, of which there is but one thing, give the same records."""
    one, other = Simulation(scenario, 1).run(), Simulation(scenario, 2).run()
    for mine, theirs in zip(one.records, other.records, strict=False):
        if mine != theirs:
            raise Broken("order", f"record {mine.seq}: {mine} or {theirs}")
    if len(one.records) != len(other.records):
        raise Broken("order", f"{len(one.records)} or {len(other.records)} records")


def check_isolation(scenario: Scenario, plain: Ended) -> None:
    """Break the first item of a fan-out that passed, and look at its neighbours."""
    place = next(
        (
            (node.step, node.scope)
            for node in plain.state.all_nodes()
            if node.outcome == "passed" and plain.state.aggregate_of(node) is not None and node.execution
        ),
        None,
    )
    if place is None:
        return
    step, scope = place
    behaviour = replace(scenario.behaviours[step], broken_scope=scope)
    broken = Simulation(replace(scenario, behaviours={**scenario.behaviours, step: behaviour})).run()
    around = scope[: scope.rindex("[") + 1]
    _compare("isolation", _neighbours(plain.state, around, scope), _neighbours(broken.state, around, scope))


def _neighbours(state: State, around: str, scope: str) -> Outcomes:
    """What other items of the list came to, where only steps of the same items are between.

    That nothing ran in an item is the same whether the step was skipped there or before it fanned out.
    """
    members = state.graph.members[parent_of(scope)]
    return {
        place: value
        for place, value in outcomes(state).items()
        if place[0] in members
        and place[1].startswith(around)
        and not within(place[1], scope)
        and value[1] not in ("dependency_failed", "suppressed")
    }


def outcomes(state: State) -> Outcomes:
    """What each step came to in each scope."""
    return {
        (node.step, node.scope): (node.outcome, node.reason, node.output, node.execution, node.attempt)
        for node in state.all_nodes()
    } | {("", ""): (state.finished.verdict if state.finished else None,)}


def _compare(law: str, one: Outcomes, other: Outcomes) -> None:
    for place in {**one, **other}:
        if one.get(place) != other.get(place):
            raise Broken(law, f"{place[0]} in {place[1] or '(run)'}: {one.get(place)} or {other.get(place)}")


# --- calmer scenarios


def with_slots(scenario: Scenario, count: int) -> Scenario:
    """The scenario with so many slots."""
    limits = msgspec.structs.replace(scenario.plan.limits, max_parallelism=count)
    return replace(scenario, plan=msgspec.structs.replace(scenario.plan, limits=limits))


def undisturbed(scenario: Scenario) -> Scenario:
    """Nobody answers, cancels or dies, and no call leaves a doubt."""
    behaviours = {
        name: replace(behaviour, parks=0, child=False, unknown=0)
        for name, behaviour in scenario.behaviours.items()
    }
    plan = scenario.plan
    budget = msgspec.structs.replace(plan.budget, time_s=None)
    steps = {name: _without_persons(step) for name, step in plan.steps.items()}
    plan = msgspec.structs.replace(plan, steps=steps, budget=budget)
    return replace(
        scenario, plan=plan, behaviours=behaviours, crashes=(), cancels=(), noise=0, goes_on=False, wishes=0
    )


def _without_gates(scenario: Scenario) -> Scenario:
    """An attempt that a crash cuts short counts for its call, but for no retry of the step, so outcomes may differ."""
    behaviours = {name: replace(behaviour, attempts=0) for name, behaviour in scenario.behaviours.items()}
    return replace(scenario, behaviours=behaviours)


def _without_persons(step: Step) -> Step:
    """Nobody decides what comes after the last retry."""
    block = step.on_fail
    if block is None or block.retry is None or block.retry.exhausted != "hold":
        return step
    retry = msgspec.structs.replace(block.retry, exhausted="fail")
    return msgspec.structs.replace(step, on_fail=msgspec.structs.replace(block, retry=retry))


def without_routes(scenario: Scenario) -> Scenario:
    """Nothing but retries sends the run anywhere, nothing stops it early, and conditions read what they depend on."""
    plan = scenario.plan
    steps = {name: _calm_step(plan, step) for name, step in plan.steps.items()}
    calm: Plan = msgspec.structs.replace(
        plan, steps=steps, fail_fast=False, fail_if=None, failure_conditions=(), budget=Budget()
    )
    behaviours = {name: replace(b, remembers=False, half_done=0) for name, b in scenario.behaviours.items()}
    return replace(scenario, plan=calm, behaviours=behaviours)


def without_suppression(scenario: Scenario) -> Scenario:
    """Nothing is kept back: behind a step that was left out that depends on who is first."""
    return replace(scenario, plan=msgspec.structs.replace(scenario.plan, safety="off"))


def _calm_step(plan: Plan, step: Step) -> Step:
    retry = _calm_retry(step.on_fail.retry) if step.on_fail is not None else None
    sources = ancestors(plan, step)

    def fixed(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number for number in numbers if _reads_only(plan.expressions[number].source, sources))

    return msgspec.structs.replace(
        step,
        on_init=(),
        on_init_js=None,
        on_success=None,
        on_finish=None,
        on_fail=Block(retry=retry) if retry is not None else None,
        start="auto",
        compensate=None,
        failure_conditions=(),
        assume=fixed(step.assume),
        guarantee=fixed(step.guarantee),
        fail_if=next(iter(fixed((step.fail_if,))), None) if step.fail_if is not None else None,
        if_condition=next(iter(fixed((step.if_condition,))), None) if step.if_condition is not None else None,
        always=step.always and bool(fixed((step.if_condition or 0,))),
    )


def _calm_retry(retry: Retry | None) -> Retry | None:
    return None if retry is None else msgspec.structs.replace(retry, exhausted="fail", exhausted_goto=None)


def _reads_only(source: str, steps: frozenset[str]) -> bool:
    words = source.split()
    if words[0] == "of":
        return words[1] in steps
    return words[0] not in ("runs", "remember", "loop")
