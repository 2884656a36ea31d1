"""Loops and runs: counted and refused here, so that every run ends (law 2, semantics.md 21, spec C.12)."""

from __future__ import annotations

from gonogo.core.decisions import Refused
from gonogo.core.faults import Issue
from gonogo.core.plan import Step
from gonogo.core.state import Node, State

CRITICAL_LOOPS_MAX = 8
"""Re-entries that a critical step may ask for in a scope (semantics.md 21), where nothing else is said."""


def loops_refusal(state: State, node: Node, target: str, scope: str) -> Refused | None:
    """No when routed re-entries in the target's scope, or in the whole run, are used up.

    The target's scope, since that is where the loop goes round: an item that sends a whole list round again is another
    item each time.
    """
    used, allowed = state.loops.get(scope, 0), loops_allowed(state, state.step(node))
    if used >= allowed:
        where = f"this scope has used its {allowed} loops"
        return _loops_refused(state, node, target, scope, "max_loops", used, allowed, where)
    ceiling = state.graph.reentries_max
    if state.reentries >= ceiling:
        where = f"the run has used its {ceiling} loops"
        return _loops_refused(state, node, target, scope, "run_loops", state.reentries, ceiling, where)
    return None


def loops_allowed(state: State, step: Step) -> int:
    """The loops a step may ask for: its own budget, else `max_loops`, of which critical steps get 8 at the most."""
    plan = state.graph.plan
    if step.loop_budget is not None:
        return step.loop_budget
    critical = step.criticality != "info" and plan.safety != "off"
    return min(plan.limits.max_loops, CRITICAL_LOOPS_MAX) if critical else plan.limits.max_loops


def _loops_refused(
    state: State, node: Node, target: str, scope: str, limit: str, used: int, allowed: int, where: str
) -> Refused:
    path = " → ".join(cycle_through(state, scope, node.step, target))
    issue = Issue(
        rule_id=f"{node.step}/routing/loop_budget_exceeded",
        message=f"step {node.step} may not route to {target} again: {where} ({path})",
        check_name=node.step,
        scope=node.scope or None,
        engine=True,
    )
    fatal = state.graph.plan.safety == "strict" or not state.step(node).continue_on_failure
    return Refused(node.step, node.scope, target, limit, used, allowed, issue, fatal)


def runs_refusal(state: State, step: Step, scope: str, node: Node | None) -> Issue | None:
    """The issue when the step has run `max_runs` times in this scope; 0 or less means no limit (spec C.12 R6).

    What undoes others has its own reserve: a run for each of them. A person who has a step run again begins anew.
    """
    if node is not None and (node.retrying or (node.init is not None and node.init.numbered)):
        return None  # it has begun
    allowed = step.max_runs if step.max_runs is not None else state.graph.plan.limits.max_runs
    used = state.runs_before(step.name, scope)
    if state.counted_from:
        used -= state.counted_from.get((step.name, scope), 0)
    if allowed <= 0 or used < allowed or is_undoing(state, step.name):
        return None
    path = " → ".join(cycle_through(state, scope, step.name, step.name))
    return Issue(
        rule_id=f"{step.name}/limits/max_runs_exceeded",
        message=f"step {step.name} has run {used} times, max_runs allows {allowed} ({path})",
        check_name=step.name,
        scope=scope or None,
        engine=True,
    )


def is_undoing(state: State, step: str) -> bool:
    """True for the step that undoes something just now: it runs though the run stops, and routes nowhere."""
    return state.undoing is not None and state.graph.steps[state.undoing.step].compensate == step


def has_a_reserve(state: State) -> bool:
    """True for a run that stops or undoes things: what it still runs doesn't depend on what is left of its budget."""
    return bool(state.stopping) or state.undoing is not None


def calls_left(state: State) -> bool:
    """False when the run's budget of calls is used up."""
    allowed = state.graph.plan.budget.calls
    return allowed is None or state.spent.calls < allowed or has_a_reserve(state)


def cycle_through(state: State, scope: str, source: str, target: str) -> tuple[str, ...]:
    """The latest routes of a scope, back to where they came round: the loop in the words of a person."""
    hops = [(source_step, target_step) for where, source_step, target_step in state.trail if where == scope]
    path = [target, source] if target != source else [source]
    for source_step, target_step in reversed(hops):
        if target_step != path[-1]:
            continue
        if source_step in path:
            path.append(source_step)
            break
        path.append(source_step)
    return tuple(reversed(path))
