"""What a person's wish to run steps again changes in a run's state. Called by `apply.py` alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gonogo.core import attempt_deltas
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.changes import (
    drop_items,
    forget_node,
    forget_waits,
    hear_again,
    move,
    node_for,
    reopen,
    reopen_around,
    request,
)
from gonogo.core.faults import Effect, Issue
from gonogo.core.replays import forget
from gonogo.core.state import Node, State


def _rerun(state: State, decision: d.Rerun) -> None:
    """The run is open again, its limits count anew, and what is to run again waits for its start."""
    state.stopping = state.stopped_by = state.cleanup_timer = state.undone_for = None
    state.interrupted = False
    state.last_wave = max(state.last_wave, decision.wave)
    _forget_complaints(state, {step for step, _ in decision.members})
    _count_anew(state)
    for place in decision.unrouted:
        node = state.node(*place)
        if node is not None:  # an item goes with its list
            forget_node(state, node)
    for place in decision.asked:
        forget(state, *place)  # an answer kept by its key isn't what was asked for
    hear_again(state)
    for place in decision.members:
        state.undone.pop(place, None)
        state.escalated.pop(place, None)
        _ask_for(state, node_for(state, *place), decision, given=place in decision.given)


def _ask_for(state: State, node: Node, decision: d.Rerun, *, given: bool) -> None:
    node.wave = decision.wave
    node.requester = None
    if node.site.foreign:
        state.foreign.setdefault(node.step, {})[node.scope] = None
    if not given:
        if node.status == life.PAUSED and node.call is None:
            move(state, node, life.PENDING)  # its call was lost before, so it waits for no end
        request(state, node)
        return
    if node.status in (*life.CALLED, life.IN_DOUBT) and node.site.part.step.effects == "mutates":
        node.effect = "unknown"
    reopen(state, node)
    reopen_around(state, node)
    forget_waits(state, node)
    move(state, node, life.PENDING)
    drop_items(state, node)


def _forget_complaints(state: State, steps: set[str]) -> None:
    """What the run said about these steps, and about a budget that was used up: it will say so again if it must."""
    spent = {
        (issue.check_name or "", issue.scope or "") for issue in state.run_issues if _is_about_a_budget(issue)
    }
    state.breaches = [
        place for place in state.breaches if place[0] and place[0] not in steps and place not in spent
    ]
    state.run_issues = [
        issue for issue in state.run_issues if issue.check_name not in steps and not _is_about_a_budget(issue)
    ]


def _is_about_a_budget(issue: Issue) -> bool:
    return issue.engine and issue.rule_id.startswith("budget/")


def _count_anew(state: State) -> None:
    """Loops and runs are counted from here (law 2 holds for each time a person asks)."""
    state.loops.clear()
    state.trail.clear()
    state.reentries = 0
    for node in state.all_nodes():
        state.counted_from[node.step, node.scope] = node.execution
    for step, scopes in state.dropped.items():
        state.counted_from.update({(step, scope): execution for scope, execution in scopes.items()})


def _given(state: State, decision: d.Given) -> Node:
    node = state.existing(decision.step, decision.scope)
    # A call in doubt may have been done, and may have to be undone.
    effect: Effect = "done" if node.effect == "unknown" else "none"
    node.effect = effect
    move(state, node, life.RUNNING)
    node.execution = decision.execution
    node.attempt = 1
    node.retries = 0
    node.wave = decision.wave
    node.asked = 0
    node.call = None
    for call in [number for number, other in state.calls.items() if other is node]:
        del state.calls[call]  # lost in a crash; what became of it doesn't matter any more
        attempt_deltas.lost(state, node)
    node.gate = None
    node.requested = node.retrying = node.again = False
    node.init = None
    node.trigger = None
    node.started_at = state.at
    node.inputs = None
    node.result = e.CallDone(
        at=state.at, call=0, output=decision.output, meta={"set_by": decision.by}, effect=effect
    )
    return node


RERUN_DELTAS: dict[type, Callable[[State, Any], Node | None]] = {d.Rerun: _rerun, d.Given: _given}
