"""What decisions about faults, budgets, people and undoing change in a run's state. Called by `apply.py` alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.changes import forget_waits, move, set_timer, tell_fault
from gonogo.core.fault_decisions import Vote
from gonogo.core.replays import forget
from gonogo.core.state import Node, State
from gonogo.errors import Bug


def _refused(state: State, decision: d.Refused) -> None:
    if decision.limit == "budget.time_s":
        state.budget_timer = None
        state.spent.time_s += state.at - state.active_since
    if decision.issue is not None:
        state.run_issues.append(decision.issue)
    if decision.fatal:
        state.breaches.append((decision.step, decision.scope))


def _flagged(state: State, decision: d.Flagged) -> None:
    if decision.issue is not None:
        state.run_issues.append(decision.issue)
    if decision.fatal:
        state.breaches.append((decision.step, decision.scope))


def _held(state: State, decision: d.Held) -> Node:
    node = state.existing(decision.step, decision.scope)
    move(state, node, life.HOLDING)
    node.hold = decision
    child = decision.details.get("child")
    if isinstance(child, str):
        state.known_children[child] = None
    wake_s = decision.wake_s if decision.wake_s is not None else decision.due_s
    if decision.timer is not None and wake_s is not None:
        set_timer(state, node, decision.timer, wake_s)
    return node


def _voted(state: State, decision: d.Voted) -> Node:
    node, hold = _on_hold(state, decision)
    node.hold = replace(hold, votes=(*hold.votes, Vote(decision.by, decision.text)))
    return node


def _reminded(state: State, decision: d.Reminded) -> Node:
    node, hold = _on_hold(state, decision)
    node.hold = replace(hold, reminders=decision.number, remind_s=decision.next_s)
    return node


def _handed_over(state: State, decision: d.HandedOver) -> Node:
    node, hold = _on_hold(state, decision)
    node.hold = replace(hold, approvers=decision.approvers, quorum=decision.quorum, escalate_s=None)
    return node


def _waits_on(state: State, decision: d.WaitsOn) -> Node:
    node, hold = _on_hold(state, decision)
    node.hold = replace(hold, timer=decision.timer, wake_s=decision.wake_s)
    if node.timer is not None:
        state.timers.pop(node.timer, None)  # it has fired; in a forged journal a stray one would keep the run
    node.timer = None
    if decision.timer is not None and decision.wake_s is not None:
        set_timer(state, node, decision.timer, decision.wake_s)
    return node


def _on_hold(state: State, decision: d.Voted | d.Reminded | d.HandedOver | d.WaitsOn) -> tuple[Node, d.Held]:
    node = state.existing(decision.step, decision.scope)
    if node.hold is None:
        raise Bug(f"step {node.step} in scope {node.scope or '(run)'} waits for nobody")
    return node, node.hold


def _doubted(state: State, decision: d.Doubted) -> Node:
    node = state.existing(decision.step, decision.scope)
    move(state, node, life.IN_DOUBT)
    node.reason = decision.message
    node.ended_at = state.at
    return node


def _answered(state: State, decision: d.Answered) -> Node:
    node = state.existing(decision.step, decision.scope)
    forget_waits(state, node)
    node.gate = None
    node.effect = decision.effect or ("none" if decision.fault is not None else "done")
    if decision.fault is not None:
        node.result = e.CallFailed(at=state.at, call=0, fault=decision.fault)
    else:
        node.result = e.CallDone(
            at=state.at, call=0, output=decision.output, meta={"answered_by": decision.by}
        )
    return node


def _chosen(state: State, decision: d.Chosen) -> Node:
    node = state.existing(decision.step, decision.scope)
    forget_waits(state, node)
    return node


def _time_limited(state: State, decision: d.TimeLimited) -> None:
    state.budget_timer = decision.timer
    state.active_since = state.at
    set_timer(state, None, decision.timer, decision.due_s)


def _undone(state: State, decision: d.Undone) -> None:
    state.undoing = None
    if decision.outcome == "passed":
        forget(state, decision.step, decision.scope)
        state.undone[decision.step, decision.scope] = decision.by


def _timer_cleared(state: State, decision: d.TimerCleared) -> None:
    if decision.timer == state.budget_timer:
        state.budget_timer = None
        state.spent.time_s += state.at - state.active_since
    _, node = state.timers.pop(decision.timer, (0.0, None))
    if node is not None:
        node.timer = None


def changes_nothing(state: State, decision: d.AnyDecision) -> None:
    """Decisions that only explain."""


FAULT_DELTAS: dict[type, Callable[[State, Any], Node | None]] = {
    d.Refused: _refused,
    d.Flagged: _flagged,
    d.FaultEvent: tell_fault,
    d.OneShotSkip: changes_nothing,
    d.Held: _held,
    d.Doubted: _doubted,
    d.Voted: _voted,
    d.NotTaken: changes_nothing,
    d.Reminded: _reminded,
    d.HandedOver: _handed_over,
    d.WaitsOn: _waits_on,
    d.Answered: _answered,
    d.Chosen: _chosen,
    d.TimeLimited: _time_limited,
    d.TimerCleared: _timer_cleared,
    d.Undone: _undone,
}
