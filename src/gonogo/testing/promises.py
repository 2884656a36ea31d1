"""What fault management promises, checked on a simulated run from outside of the core, by plainer rules than its own.

suppression  nothing that acts starts behind a failed critical step (spec C.8)
safe         in safe mode nothing is done (spec G21)
spent        no more calls and retries than the run's budget
faults       each fault is detected, then has exactly one end (spec G16)
finish       an on_finish speaks once for an outcome of its list (semantics.md 8)
undone       what was done is undone in reverse, each time once, or kept (semantics.md 20)
one_shot     a step tagged one_shot runs once in a scope (spec C.15), and again only where a cancel cut that short;
             what undoes others runs for each
cancelled    a cancelled run isn't stopped for another reason (semantics.md 5)
routed       what waits for a route runs after one only (spec C.2 R4)
people       see people.py
lifted       nothing stays kept back by a step that has passed since (spec C.8)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.plan import Plan, Step
from gonogo.core.scope import within
from gonogo.core.state import State
from gonogo.testing.broken import Broken
from gonogo.testing.gate import ancestors
from gonogo.testing.people import People
from gonogo.testing.scenarios import Scenario

if TYPE_CHECKING:
    from gonogo.testing.outside import Outside

BLOCKED = ("suppressed", "dependency_failed")
CANCELLED = ("cancelled", "cancelled_hard")
ENDS = ("recovery.succeeded", "recovery.failed")
Done = tuple[str, str, int]


class Promises:
    """Follows the decisions of one run."""

    def __init__(self, scenario: Scenario) -> None:
        self.plan: Plan = scenario.plan
        self.safe_mode = scenario.safe_mode
        self.calls = 0
        self.retries = 0
        self.faults: dict[int, list[str]] = {}
        self.done: list[Done] = []
        self.undone: list[Done] = []
        self.undoing: Done | None = None
        self.chosen: dict[tuple[str, str], int] = {}
        self.taken_back: dict[tuple[str, str], int] = {}
        self.routed: set[str] = set()
        self.people = People(scenario.plan)
        self.asked: set[str] = set()
        self.finished: set[tuple[str, str]] = set()

    def see(self, state: State, decision: d.AnyDecision) -> None:
        """Judge one decision, before it is applied."""
        self.people.see(decision)
        self._finishes(state, decision)
        if isinstance(decision, d.Rerun):
            self.asked.update(step for step, _ in decision.asked)
            self.routed.update(step for step, _ in decision.members)
            self._take_back(state, [place for place in decision.members if place in state.undone])
        elif isinstance(decision, d.Started):
            self._started(state, decision)
        elif isinstance(decision, d.Retrying):
            self._retrying(state)
        elif isinstance(decision, d.FaultEvent):
            self._told(decision)
        elif isinstance(decision, d.Ended | d.Superseded):
            self._over(state, decision)
        elif isinstance(decision, d.Routed):
            self.routed.update(step for step, _ in decision.members)
            if decision.action == "compensate":
                self._begin_undoing(decision)
        elif isinstance(decision, d.Undone):
            self._undone(decision)
        elif isinstance(decision, d.Stopping):
            _check_cancelled(state, decision)
        elif isinstance(decision, d.Reopened):
            self._take_back(state, decision.members)
        elif isinstance(decision, d.Chosen) and decision.choice == "retry":
            place = (decision.step, decision.scope)
            self.chosen[place] = self.chosen.get(place, 0) + 1

    def _take_back(self, state: State, places: Iterable[tuple[str, str]]) -> None:
        """Going on with a run: what a cancel cut short, or what was undone, has not had its run."""
        for place in places:
            self.taken_back[place] = state.existing(*place).execution

    def _finishes(self, state: State, decision: d.AnyDecision) -> None:
        """on_finish begins to speak once for an outcome of its step, and may go on after what it has run."""
        if isinstance(decision, d.Ended):
            self.finished.discard((decision.step, decision.scope))
        elif isinstance(decision, d.Routing) and decision.trigger == "on_finish":
            place = (decision.step, decision.scope)
            goes_on = state.existing(*place).status == life.REMEDIATING
            if place in self.finished and not goes_on:
                raise Broken("finish", f"on_finish of {place[0]} in {place[1] or '(run)'} speaks again")
            self.finished.add(place)

    def at_the_end(self, state: State, outside: Outside) -> None:
        """What must hold when a run has ended or is parked."""
        if self.safe_mode and any(outside.acted.values()):
            raise Broken("safe", f"something was done: {dict(outside.acted)}")
        if state.finished is not None and not state.finished.parked:
            open_faults = [number for number, told in self.faults.items() if not set(told) & set(ENDS)]
            if open_faults:
                raise Broken("faults", f"the run is over, faults {open_faults} have no end")
            self._check_all_undone(state)
            _check_lifted(state)

    # --- starts

    def _started(self, state: State, decision: d.Started) -> None:
        step = self.plan.steps[decision.step]
        undoing = state.undoing is not None and self.plan.steps[state.undoing.step].compensate == step.name
        if decision.again:
            return
        if not state.stopping and not undoing:
            self.calls += 1
            allowed = self.plan.budget.calls
            if allowed is not None and self.calls > allowed:
                raise Broken("spent", f"call {self.calls} of {allowed}: {step.name}")
        if decision.attempt == 1 and not undoing:
            self._check_suppression(state, step, decision.scope)
        self._check_one_shot(state, step, decision)
        if step.name in state.held_back and step.name not in self.routed:
            raise Broken("routed", f"{step.name} runs, though nothing has sent the run to it")

    def _check_one_shot(self, state: State, step: Step, decision: d.Started) -> None:
        allowed = 1 + self.taken_back.get((decision.step, decision.scope), 0)
        if decision.execution > allowed and "one_shot" in step.tags and not self._may_run_again(state, step):
            raise Broken("one_shot", f"{step.name} runs again in {decision.scope or '(run)'}")

    def _may_run_again(self, state: State, step: Step) -> bool:
        """Somebody named it, or it undoes what was done again since."""
        return step.name in self.asked or (
            state.undoing is not None and self.plan.steps[state.undoing.step].compensate == step.name
        )

    def _check_suppression(self, state: State, step: Step, scope: str) -> None:
        acts = step.effects == "mutates" or step.criticality == "external"
        if step.always or not acts or self.plan.safety == "off":
            return
        node = state.node(step.name, scope)
        for name in ancestors(self.plan, step):
            guard = self.plan.steps[name]
            if guard.criticality == "info" or not _keeps_back(guard, step):
                continue
            for other in state.nodes[name].values():
                asked = node is not None and node.requester == (name, other.scope)
                # The plain cases only: the guard in the reader's own scope, around it, or the reader outside of all.
                related = within(scope, other.scope) or not scope
                if related and not asked and other.fan is None and other.complete and _failed(other.outcome):
                    raise Broken("suppression", f"{step.name} in {scope or '(run)'} acts behind {name}")

    # --- budgets, faults, undoing

    def _retrying(self, state: State) -> None:
        self.retries += 1
        allowed = self.plan.budget.retries
        by_hand = sum(self.chosen.values())
        undoing = state.undoing is not None
        if allowed is not None and self.retries > allowed + by_hand and not undoing:
            raise Broken("spent", f"retry {self.retries} of {allowed}")

    def _told(self, decision: d.FaultEvent) -> None:
        told = self.faults.setdefault(decision.fault, [])
        if decision.event in ("compensated", "escalated"):
            if not told:
                raise Broken("faults", f"fault {decision.fault} is {decision.event}, but was never detected")
            return
        if (decision.event == "detected") != (not told):
            raise Broken("faults", f"fault {decision.fault}: {decision.event} after {told}")
        if set(told) & set(ENDS):
            raise Broken("faults", f"fault {decision.fault} has ended, but is {decision.event}")
        told.append(decision.event)

    def _over(self, state: State, decision: d.Ended | d.Superseded) -> None:
        """A success is done; so is what a run did whose outcome doesn't count."""
        node = state.node(decision.step, decision.scope)
        if isinstance(decision, d.Ended):
            done = decision.outcome == "passed"
        else:
            done = node is not None and isinstance(node.result, e.CallDone)
        if done:
            self._acted(state, decision)

    def _acted(self, state: State, decision: d.Ended | d.Superseded) -> None:
        node = state.node(decision.step, decision.scope)
        step = self.plan.steps[decision.step]
        if step.compensate is None or self.safe_mode:
            return
        if node is not None and node.fan is None and node.effect != "none":
            self.done.append((decision.step, decision.scope, node.execution))

    def _begin_undoing(self, decision: d.Routed) -> None:
        last = self.done.pop() if self.done else None
        if self.undoing is not None or last is None or last[:2] != (decision.step, decision.scope):
            raise Broken("undone", f"{decision.step} is undone out of order: {last} is due")
        self.undoing = last

    def _undone(self, decision: d.Undone) -> None:
        key = (decision.step, decision.scope, decision.execution)
        if self.undoing != key:
            raise Broken("undone", f"{key} is undone where {self.undoing} was begun")
        self.undoing = None
        if decision.outcome == "passed":
            self.undone.append(key)

    def _check_all_undone(self, state: State) -> None:
        verdict = state.finished.verdict if state.finished is not None else ""
        cancelled = state.stopping in ("cancelled", "cancelled_hard")
        if verdict == "GO" and any(self._counts(state, *each) for each in self.undone):
            raise Broken("undone", f"the run is GO, but {self.undone} were undone")
        if verdict == "NO-GO" and not cancelled and self.done:
            raise Broken("undone", f"the run is NO-GO, but {self.done} were not undone")

    def _counts(self, state: State, step: str, scope: str, execution: int) -> bool:
        """What a cancel had undone is done again by a resume (semantics.md 20)."""
        node = state.node(step, scope)
        return node is not None and node.outcome == "passed" and node.execution == execution


def _check_cancelled(state: State, decision: d.Stopping) -> None:
    if state.stopping in CANCELLED and decision.reason not in CANCELLED:
        raise Broken("cancelled", f"the run is {state.stopping}, and stopped again: {decision.reason}")


def _check_lifted(state: State) -> None:
    """The plain cases only: a guard that gives no list and passed wherever it ran, in a run that ended by itself."""
    for node in () if state.stopping else state.all_nodes():
        if node.outcome != "skipped" or node.reason not in BLOCKED or node.because is None:
            continue
        guard = state.node(node.because, node.scope)
        if guard is None or guard.fan is not None or state.step(guard).for_each:
            continue
        if all(each.outcome == "passed" for each in state.nodes[guard.step].values()):
            raise Broken("lifted", f"{node.step} in {node.scope or '(run)'} is kept back by {guard.step}")


def _keeps_back(guard: Step, step: Step) -> bool:
    if guard.criticality == "policy":
        return step.criticality == "external"
    return step.effects == "mutates" or step.runs_mutators


def _failed(outcome: str | None) -> bool:
    return outcome in ("failed", "tolerated")
