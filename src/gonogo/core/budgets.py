"""Loops and runs: counted and refused here, so that every run ends (law 2, semantics.md 21, spec C.12)."""

from __future__ import annotations

from gonogo.core.decisions import Refused
from gonogo.core.faults import Issue
from gonogo.core.plan import Step
from gonogo.core.state import Node, State


def loops_refusal(state: State, node: Node, target: str, scope: str) -> Refused | None:
    """No when routed re-entries in the target's scope have used up `max_loops`.

    The target's scope, since that is where the loop goes round: an item that sends a whole list round again is another
    item each time.
    """
    used, allowed = state.loops.get(scope, 0), state.graph.plan.limits.max_loops
    if used < allowed:
        return None
    path = " → ".join(cycle_through(state, scope, node.step, target))
    issue = Issue(
        rule_id=f"{node.step}/routing/loop_budget_exceeded",
        message=f"step {node.step} may not route to {target} again: this scope has used its {allowed} loops ({path})",
        check_name=node.step,
        scope=node.scope or None,
        engine=True,
    )
    return Refused(
        node.step,
        node.scope,
        target,
        "max_loops",
        used,
        allowed,
        issue,
        not state.step(node).continue_on_failure,
    )


def runs_refusal(state: State, step: Step, scope: str, node: Node | None) -> Refused | None:
    """No when the step has run `max_runs` times in this scope; 0 or less means no limit (spec C.12 R6)."""
    allowed = step.max_runs if step.max_runs is not None else state.graph.plan.limits.max_runs
    used = node.execution if node is not None else state.runs_before(step.name, scope)
    if allowed <= 0 or used < allowed or (node is not None and node.retrying):
        return None
    path = " → ".join(cycle_through(state, scope, step.name, step.name))
    issue = Issue(
        rule_id=f"{step.name}/limits/max_runs_exceeded",
        message=f"step {step.name} has run {used} times, max_runs allows {allowed} ({path})",
        check_name=step.name,
        scope=scope or None,
        engine=True,
    )
    return Refused(
        step.name, scope, step.name, "max_runs", used, allowed, issue, not step.continue_on_failure
    )


def cycle_through(state: State, scope: str, source: str, target: str) -> tuple[str, ...]:
    """The latest routes of a scope, back to where they came round: the loop in the words of a person."""
    hops = [(source_step, target_step) for where, source_step, target_step in state.trail if where == scope]
    path = [target, source] if target != source else [source]
    for source_step, target_step in reversed(hops):
        if target_step != path[-1] and source_step == path[-1]:
            continue
        if source_step in path:
            path.append(source_step)
            break
        path.append(source_step)
    return tuple(reversed(path))
