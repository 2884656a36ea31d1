"""What an event brings into a run's state, before anything is decided about it: facts only, no choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import structs

from gonogo.core import attempt_deltas
from gonogo.core import events as e
from gonogo.core.commands import Ask
from gonogo.core.gated import Counted
from gonogo.core.memory import apply_operation
from gonogo.core.replays import keep
from gonogo.core.revising import take_plan
from gonogo.core.state import Node, Spent, State
from gonogo.expressions.results import MemoryOp, Value


def absorb(state: State, event: e.AnyEvent) -> None:
    """Take in the facts of an event, before anything is decided about them."""
    kind = type(event)
    if kind in _TAKES_UP:
        # The time between a host's death and the resume isn't spent.
        state.spent.time_s += state.at - state.active_since if state.budget_timer is not None else 0.0
        state.active_since = max(event.at, state.at)
    if event.at > state.at:
        state.at = event.at
    state.finished = None
    take = _ABSORB.get(kind)
    if take is not None:
        take(state, event)


_TAKES_UP = frozenset({e.Resumed, e.RerunAsked})


def _start(state: State, event: e.RunStarted) -> None:
    state.run_id = event.run_id
    state.seed = event.seed or event.run_id
    state.started_at_ms = event.started_at_ms
    state.trigger = event.trigger
    state.context = event.context
    state.inputs = event.inputs
    state.env = event.env
    state.arguments = event.arguments
    state.requested = event.requested
    state.parent = event.parent
    state.safe_mode = event.safe_mode
    # What a file says of its memory are settings; what a plan made elsewhere gives are spaces with values.
    spaces = state.graph.plan.memory.items()
    state.memory = {space: dict(values) for space, values in spaces if isinstance(values, dict)}


def _evaluated(state: State, event: e.Evaluated) -> None:
    state.asks = state.batches.pop(event.batch, ())
    for result in event.results:
        if isinstance(result, Value):
            _remember_operations(state, result.memory)


def _remember_operations(state: State, operations: Iterable[MemoryOp]) -> Any:
    result = None
    for operation in operations:
        result = apply_operation(state.memory, operation)
    return result


def _returned(state: State, event: e.CallDone | e.CallFailed) -> None:
    node = state.returned = state.calls.pop(event.call, None)
    if node is None:
        return
    node.call = None
    result = _remember_operations(state, event.memory) if event.memory else None
    if isinstance(event, e.CallDone) and event.yields_memory:
        event = structs.replace(event, output=result)
    node.result = event
    node.effect = event.effect
    if type(event) is e.CallDone and event.key is not None:
        keep(state, node.step, node.scope, event)
    if event.meta:
        if "usage" in event.meta:
            _spend(state.spent, event.meta["usage"], node.gate.counted if node.gate is not None else None)
        if "gate" in event.meta:
            _count_attempts(state, node, event.meta["gate"])
    if node.gate is not None:
        attempt_deltas.returned(state, node)


def _count_attempts(state: State, node: Node, gate: Any) -> None:
    """Attempts of a call whose journal doesn't hold them one by one.

    A call of several requests (`calls`: a model that used tools) needs an attempt for each of them.
    """
    attempts = gate.get("attempts") if isinstance(gate, dict) else None
    requests = gate.get("calls", 1) if isinstance(gate, dict) else 1
    if not isinstance(attempts, list | tuple) or not isinstance(requests, int) or len(attempts) <= requests:
        return
    if node.gate is None or not node.gate.began:
        attempt_deltas.count_further(state, node, len(attempts) - max(requests, 1))


def _spend(spent: Spent, usage: Any, counted: Counted | None) -> None:
    """What a call says it used, and the runs beneath it, without what its attempts have been counted for.

    What isn't a sensible number counts as none.
    """
    if isinstance(usage, dict):
        before = counted if counted is not None else Counted()
        spent.tokens += max(0, int(_amount(usage.get("tokens"))) - before.tokens)
        spent.money += max(0.0, _amount(usage.get("cost")) - before.money)
        spent.calls += max(0, int(_amount(usage.get("calls"))) - before.calls)
        spent.retries += int(_amount(usage.get("retries")))


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return 0.0
    return float(value)


def _left(state: State, event: e.CallParked | e.CallLost) -> None:
    node = state.returned = state.calls.pop(event.call, None)
    if node is not None:
        node.call = None
        if type(event) is e.CallLost:
            attempt_deltas.lost(state, node)


def _fired(state: State, event: e.TimerFired) -> None:
    _, state.fired = state.timers.pop(event.timer, (0.0, None))


def _resumed(state: State, event: e.Resumed | e.RerunAsked) -> None:
    """Evaluations in flight are asked again: they are pure. Calls are not: a CallLost for each will follow."""
    state.lost_asks = tuple(
        ask for batch, asks in state.batches.items() for ask in asks if _still_waits(state, ask, batch)
    )
    state.batches.clear()


def _rerun_asked(state: State, event: e.RerunAsked) -> None:
    _resumed(state, event)
    state.plan_before = None
    if event.plan is not None:
        state.plan_before = state.graph.plan
        take_plan(state, event.plan)


def _still_waits(state: State, ask: Ask, batch: int) -> bool:
    node = state.node(ask.step, ask.scope)
    return node is not None and node.asked == batch


def _cancel(state: State, event: e.CancelAsked) -> None:
    state.interrupted = event.interrupted


_ABSORB: dict[type, Callable[[State, Any], None]] = {
    e.RunStarted: _start,
    e.Evaluated: _evaluated,
    e.CallDone: _returned,
    e.CallFailed: _returned,
    e.CallParked: _left,
    e.CallLost: _left,
    e.TimerFired: _fired,
    e.CancelAsked: _cancel,
    e.Resumed: _resumed,
    e.RerunAsked: _rerun_asked,
    **attempt_deltas.ATTEMPT_FACTS,
}
