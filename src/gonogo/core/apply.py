"""The only code that changes a run's state: first what an event brings, then each decision. No choices are made here.

`fold` rebuilds a state from records: a parked run resumes under a newer version because decisions are complete
deltas (semantics.md 12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.absorb import absorb
from gonogo.core.attempt_deltas import ATTEMPT_DELTAS
from gonogo.core.beforehand import proceed
from gonogo.core.changes import (
    complete,
    count_items,
    drop_items,
    failed_again,
    forget_dropped,
    forget_waits,
    keep_in_mind,
    keep_result,
    keep_undoable,
    move,
    node_for,
    reopen,
    request,
    set_timer,
)
from gonogo.core.dependencies import BLOCKED
from gonogo.core.fault_deltas import FAULT_DELTAS, changes_nothing
from gonogo.core.graph import Graph
from gonogo.core.rerun_deltas import RERUN_DELTAS
from gonogo.core.run_deltas import RUN_DELTAS
from gonogo.core.state import Fan, Init, Node, State
from gonogo.errors import Bug


class Recorded(Protocol):
    """What a fold needs of a record."""

    @property
    def event(self) -> e.AnyEvent: ...
    @property
    def decisions(self) -> tuple[d.AnyDecision, ...]: ...


def fold(records: Iterable[Recorded]) -> State:
    """The state after these records. Raises Bug when the first one doesn't start a run."""
    state: State | None = None
    for record in records:
        if state is None:
            if not isinstance(record.event, e.RunStarted):
                raise Bug("the first record of a journal must start the run")
            state = State(Graph(record.event.plan))
        take_in(state, record)
    if state is None:
        raise Bug("a journal without records has no state")
    return state


def take_in(state: State, record: Recorded) -> None:
    """Change the state by one record, the next one."""
    absorb(state, record.event)
    for decision in record.decisions:
        apply(state, decision)


# --- what a decision changes


def apply(state: State, decision: d.AnyDecision) -> Node | None:
    """Change the state by one decision. Returns the node it was about, where it changed one."""
    return DELTAS[type(decision)](state, decision)


def _asked(state: State, decision: d.Asked) -> None:
    if decision.batch > state.last_batch:
        state.last_batch = decision.batch
    state.batches[decision.batch] = decision.asks
    state.lost_asks = ()
    for ask in decision.asks:
        node = node_for(state, ask.step, ask.scope)
        status = _ASKED_STATUS.get(ask.construct)
        if status is not None:
            move(state, node, status)
        node.asked = decision.batch


_ASKED_STATUS = {
    "if": life.DECIDING,
    "assume": life.ASSUMING,
    "guarantee": life.CHECKING,
    "fail_if": life.CHECKING,
    "condition": life.CHECKING,
    "global_fail_if": life.CHECKING,
    "global_condition": life.CHECKING,
}


def _cleared(state: State, decision: d.Cleared) -> Node:
    node = node_for(state, decision.step, decision.scope)
    if decision.again:
        forget_waits(state, node)
    move(state, node, life.CLEARED)
    node.again = decision.again
    return node


def _skipped(state: State, decision: d.Skipped) -> Node:
    node = node_for(state, decision.step, decision.scope)
    forget_waits(state, node)
    move(state, node, life.DONE)
    node.outcome = "skipped"
    node.asked = 0
    node.trigger = None
    node.reason = decision.reason
    node.because = decision.because
    node.issues = decision.issues
    node.fault = None
    node.requested = False
    node.again = False
    node.init = None
    node.result = None
    node.ended_at = state.at
    if decision.reason in BLOCKED and decision.because is not None:
        state.kept_back.setdefault(decision.because, {})[decision.step, decision.scope] = None
    drop_items(state, node)
    complete(state, node)
    node.settled = decision.rest == "settled"
    return node


def _initialising(state: State, decision: d.Initialising) -> Node:
    node = node_for(state, decision.step, decision.scope)
    forget_waits(state, node)
    move(state, node, life.INITIALISING)
    if decision.execution != node.execution:
        node.retries = 0
    node.execution = decision.execution
    node.attempt = decision.attempt
    node.wave = decision.wave
    node.effect = "none"
    node.requested = False
    node.init = Init(decision.targets or ())
    if node.started_at is None or decision.attempt == 1:
        node.started_at = state.at
    return node


def _initialised(state: State, decision: d.Initialised) -> Node:
    node = state.existing(decision.step, decision.scope)
    proceed(state, node, over=True)
    node.waits_for = ()
    move(state, node, life.CLEARED)
    return node


def _started(state: State, decision: d.Started) -> Node:
    node = node_for(state, decision.step, decision.scope)
    forget_waits(state, node)
    move(state, node, life.RUNNING)
    if decision.call > state.last_call:
        state.last_call = decision.call
    if decision.execution != node.execution:
        node.retries = 0
    node.execution = decision.execution
    node.attempt = decision.attempt
    node.attempts += 1
    node.wave = decision.wave
    node.call = decision.call
    node.asked = 0
    node.result = None
    node.requested = node.requested and decision.again and node.has_run_beneath
    node.retrying = False
    node.again = node.continues = False
    node.trigger = None
    if node.init is not None:
        node.init = node.init._replace(numbered=False)
    elif node.started_at is None or decision.attempt == 1:
        node.started_at = state.at
    state.calls[decision.call] = node
    if not decision.again:
        state.spent.calls += 1
        node.gate = None
    return node


def _ended(state: State, decision: d.Ended) -> Node:
    node = node_for(state, decision.step, decision.scope)
    forget_waits(state, node)
    if node.fan is None:
        keep_result(state, node)
    if node.init is not None:
        node.init = node.init._replace(numbered=False) if node.init.done else None
    node.outcome = decision.outcome
    node.trigger = None
    node.reason = decision.reason
    node.because = None
    node.fault = decision.fault
    node.issues = decision.issues
    node.ended_at = state.at
    if node.site.part.is_kept_in_mind and node.fan is None:
        keep_in_mind(state, node)
    if state.open_faults:
        failed_again(state, node)
    if decision.rest == "open":
        move(state, node, life.ROUTING)
        return node
    move(state, node, life.DONE)
    complete(state, node)
    node.settled = decision.rest == "settled"
    return node


def _completed(state: State, decision: d.Completed) -> Node:
    node = state.existing(decision.step, decision.scope)
    move(state, node, life.DONE)
    node.trigger = None
    node.waits_for = ()
    complete(state, node)
    return node


def _settled(state: State, decision: d.Settled) -> Node:
    node = state.existing(decision.step, decision.scope)
    move(state, node, life.DONE)
    complete(state, node)
    if state.stopping and node.trigger is None and node.site.owns_group:
        state.unspoken[node.step, node.scope] = None
    node.trigger = None
    node.waits_for = ()
    node.settled = True
    if state.finishing:
        state.finishing.pop((node.step, node.scope), None)
    return node


def _expanded(state: State, decision: d.Expanded) -> Node:
    node = node_for(state, decision.step, decision.scope)
    move(state, node, life.EXPANDING)
    node.requested = False
    node.retrying = False
    state.critical_failures.pop((node.step, node.scope), None)
    if node.init is not None:
        node.init = node.init._replace(numbered=False)
    else:
        node.execution += 1
        node.started_at = state.at
    node.fan = Fan(node.site.part, node.scope, decision.parent, decision.execution, decision.total)
    count_items(state, node, node.fan)
    forget_dropped(state, decision)
    return node


def _retrying(state: State, decision: d.Retrying) -> Node:
    node = state.existing(decision.step, decision.scope)
    move(state, node, life.BACKING_OFF)
    state.spent.retries += 1
    node.retries = decision.retry
    node.retrying = True
    set_timer(state, node, decision.timer, decision.due_s)
    return node


def _timed_out(state: State, decision: d.TimedOut) -> Node:
    node = state.existing(decision.step, decision.scope)
    node.timer = None
    if node.status == life.BACKING_OFF:
        move(state, node, life.CLEARED)
    return node


def _routed(state: State, decision: d.Routed) -> None:
    state.last_wave = max(state.last_wave, decision.wave)
    state.trail.append((decision.target_scope, decision.step, decision.target))
    if decision.action == "escalate":
        state.escalated[decision.step, decision.scope] = None
    if decision.action == "compensate":
        state.undoing = state.undoable.pop()
        if state.undone_for is None:
            state.undone_for = state.last_fault
    if decision.reentry:
        state.reentries += 1
        state.loops[decision.target_scope] = state.loops.get(decision.target_scope, 0) + 1
    if decision.action == "init":
        asking = state.existing(decision.step, decision.scope)
        proceed(state, asking, over=False)
        asking.waits_for = ((decision.target, decision.target_scope),)
    for step, scope in decision.members:
        node = node_for(state, step, scope)
        node.wave = decision.wave
        node.event = decision.event or node.event
        if node.site.foreign:
            state.foreign.setdefault(step, {})[scope] = None
        asked_for = step == decision.target or decision.action in ("run", "escalate", "init")
        node.requester = (decision.step, decision.scope) if asked_for else None
        if step == decision.target:
            node.arguments = {**(node.arguments or {}), **decision.arguments}
        request(state, node)


def _remediating(state: State, decision: d.Remediating) -> Node:
    node = state.existing(decision.step, decision.scope)
    move(state, node, life.REMEDIATING)
    node.waits_for = decision.waits_for
    return node


def _routing(state: State, decision: d.Routing) -> Node:
    node = state.existing(decision.step, decision.scope)
    if node.complete:
        move(state, node, life.DONE)
    elif node.status != life.ROUTING:
        move(state, node, life.ROUTING)
    node.trigger = decision.trigger
    if decision.trigger == "on_finish":
        state.finishing[node.step, node.scope] = None
    return node


def _superseded(state: State, decision: d.Superseded) -> Node:
    node = state.existing(decision.step, decision.scope)
    if node.result is not None:
        done = type(node.result) is e.CallDone
        keep_result(state, node)
        if done:
            keep_undoable(state, node)
    node.outcome = None
    node.trigger = None
    node.init = None
    reopen(state, node)
    move(state, node, life.PENDING)
    drop_items(state, node)
    node.requested = False
    return node


DELTAS: dict[type, Callable[[State, Any], Node | None]] = {
    d.Asked: _asked,
    d.Judged: changes_nothing,
    d.Cleared: _cleared,
    d.Skipped: _skipped,
    d.Initialising: _initialising,
    d.Initialised: _initialised,
    d.Started: _started,
    d.Ended: _ended,
    d.Completed: _completed,
    d.Settled: _settled,
    d.Expanded: _expanded,
    d.Retrying: _retrying,
    d.TimedOut: _timed_out,
    d.Routed: _routed,
    d.Remediating: _remediating,
    d.Routing: _routing,
    d.Superseded: _superseded,
    **ATTEMPT_DELTAS,
    **FAULT_DELTAS,
    **RERUN_DELTAS,
    **RUN_DELTAS,
}
"""What each kind of decision changes; gives the node it was about, where it changed one."""
