"""A scenario: a plan, how its calls go, and what people and machines do to the run. Frozen, and made from a seed alone.

`features` says which constructs a scenario has, so that a campaign can show that all pairs of them met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gonogo.core.graph import blocks
from gonogo.core.plan import Plan, Step
from gonogo.testing.behaviours import Behaviour

FEATURES = (
    "if", "assume", "guarantee", "fail_if", "or_group", "for_each", "nested_for_each", "retry", "run", "goto",
    "transition", "on_finish", "hold", "child", "fail_fast", "cancel", "crash",
)  # fmt: skip

Moment = Literal["unwritten", "written", "half_performed", "performed"]


@dataclass(frozen=True, slots=True)
class Crash:
    """The host dies at the `turn`-th event it handles.

    `moment`: before the record is written; after it, with no command performed; with half of them; with all of them.
    """

    turn: int
    moment: Moment


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything about one simulated run but the order of events, which has a seed of its own.

    `cancels`: turns at which someone cancels. `goes_on`: a cancelled run is taken up again. `noise`: how often,
    in hundredths, somebody answers at random. `patience`: how many answers people give a parked run before they leave
    it. `timed`: replies come after fixed times instead of in any order.
    """

    seed: int
    plan: Plan
    behaviours: Mapping[str, Behaviour]
    trigger: dict[str, Any] | None = None
    requested: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()
    cancels: tuple[int, ...] = ()
    goes_on: bool = False
    noise: int = 0
    patience: int = 12
    timed: bool = False


def features(scenario: Scenario) -> frozenset[str]:
    """The constructs of a scenario, by the names of FEATURES."""
    found = {feature for step in scenario.plan.steps.values() for feature in _of_step(scenario.plan, step)}
    behaviours = scenario.behaviours.values()
    if any(behaviour.parks for behaviour in behaviours):
        found.add("hold")
    if any(behaviour.child for behaviour in behaviours):
        found.add("child")
    if scenario.plan.fail_fast:
        found.add("fail_fast")
    if scenario.cancels:
        found.add("cancel")
    if scenario.crashes:
        found.add("crash")
    return frozenset(found)


def _of_step(plan: Plan, step: Step) -> set[str]:
    found = {
        "if": step.if_condition is not None,
        "assume": bool(step.assume),
        "guarantee": bool(step.guarantee),
        "fail_if": step.fail_if is not None,
        "or_group": any(len(need.any_of) > 1 for need in step.depends_on),
        "for_each": step.for_each,
        "nested_for_each": step.for_each and _maps_over_a_list(plan, step),
        "on_finish": step.on_finish is not None,
        "retry": any(block.retry for block in blocks(step)),
        "run": any(block.run or block.run_js is not None for block in blocks(step)),
        "goto": any(block.goto or block.goto_js is not None for block in blocks(step)),
        "transition": any(block.transitions for block in blocks(step)),
    }
    return {name for name, present in found.items() if present}


def _maps_over_a_list(plan: Plan, step: Step) -> bool:
    sources = (plan.steps.get(edge.step) for need in step.depends_on for edge in need.any_of)
    return step.fanout == "map" and any(source is not None and source.for_each for source in sources)
