"""A scenario: a plan, how its calls go, and what people and machines do to the run. Frozen, and made from a seed alone.

`features` says which constructs a scenario has, so that a campaign can show that all pairs of them met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gonogo.core.graph import blocks
from gonogo.core.plan import Budget, Plan, Step
from gonogo.testing.behaviours import Behaviour
from gonogo.testing.gate import ancestors

FEATURES = (
    "if", "assume", "guarantee", "fail_if", "or_group", "for_each", "nested_for_each", "retry", "run", "goto",
    "transition", "on_finish", "hold", "child", "fail_fast", "cancel", "crash", "critical", "mutates", "suppression",
    "budget", "attempts", "compensation", "escalate", "exhausted", "safe_mode", "approval", "on_init",
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
    it. `wishes`: how often somebody has steps run again, and gives outputs or another workflow. `timed`: replies come
    after fixed times instead of in any order. `safe_mode`: mutating calls aren't made.
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
    wishes: int = 0
    timed: bool = False
    safe_mode: bool = False


def features(scenario: Scenario) -> frozenset[str]:
    """The constructs of a scenario, by the names of FEATURES."""
    found = {feature for step in scenario.plan.steps.values() for feature in _of_step(scenario.plan, step)}
    behaviours = scenario.behaviours.values()
    if any(behaviour.parks for behaviour in behaviours):
        found.add("hold")
    if any(behaviour.child for behaviour in behaviours):
        found.add("child")
    if any(behaviour.attempts for behaviour in behaviours):
        found.add("attempts")
    if scenario.plan.fail_fast:
        found.add("fail_fast")
    if scenario.plan.budget != Budget():
        found.add("budget")
    if scenario.safe_mode:
        found.add("safe_mode")
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
        "on_init": bool(step.on_init) or step.on_init_js is not None,
        "critical": step.criticality != "info",
        "mutates": step.effects == "mutates",
        "suppression": step.effects == "mutates" and _is_behind_a_guard(plan, step),
        "compensation": step.compensate is not None,
        "escalate": any(block.escalate for block in blocks(step)),
        "approval": step.hold is not None,
        "exhausted": any(block.retry and block.retry.exhausted != "fail" for block in blocks(step)),
    }
    return {name for name, present in found.items() if present}


def _is_behind_a_guard(plan: Plan, step: Step) -> bool:
    return any(plan.steps[name].criticality in ("external", "internal") for name in ancestors(plan, step))


def _maps_over_a_list(plan: Plan, step: Step) -> bool:
    sources = (plan.steps.get(edge.step) for need in step.depends_on for edge in need.any_of)
    return step.fanout == "map" and any(source is not None and source.for_each for source in sources)
