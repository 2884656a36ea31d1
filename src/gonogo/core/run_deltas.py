"""What decisions about a run as a whole change: what it includes, its stop, its going on, its end. Called by `apply.py`
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core.changes import hear_again, move, reopen, reopen_around, set_timer
from gonogo.core.state import Node, State


def _planned(state: State, decision: d.Planned) -> None:
    state.included = frozenset(decision.included)
    state.excluded = dict(decision.excluded)
    state.held_back = frozenset(decision.held_back)
    state.may_begin = state.included - state.held_back


def _refusal(state: State, decision: d.Refusal) -> None:
    state.run_issues.append(decision.issue)
    state.breaches.append(("", ""))


def _stopping(state: State, decision: d.Stopping) -> None:
    state.stopping = decision.reason
    state.stopped_by = decision.step
    if decision.timer is not None and decision.due_s is not None:
        state.cleanup_timer = decision.timer
        set_timer(state, None, decision.timer, decision.due_s)


def _reopened(state: State, decision: d.Reopened) -> None:
    state.stopping = None
    state.cleanup_timer = None
    for step, scope in decision.members:
        state.undone.pop((step, scope), None)
        if state.undoing is not None and (state.undoing.step, state.undoing.scope) == (step, scope):
            state.undoing = None
        node = state.existing(step, scope)
        node.init = None if node.fan is None else node.init
        # What was done until the cancel is in the run beneath: that one goes on.
        node.continues = node.outcome == "cancelled" and node.has_run_beneath
        reopen(state, node)
        reopen_around(state, node)
        if node.fan is None:
            move(state, node, life.PENDING)
        elif node.status != life.EXPANDING:  # as it is when one of its items was first
            move(state, node, life.EXPANDING)
    if state.undoing is None:
        state.undone_for = None
    hear_again(state)


def _finished(state: State, decision: d.Finished) -> None:
    state.finished = decision


RUN_DELTAS: dict[type, Callable[[State, Any], Node | None]] = {
    d.Planned: _planned,
    d.Refusal: _refusal,
    d.Stopping: _stopping,
    d.Reopened: _reopened,
    d.Finished: _finished,
}
