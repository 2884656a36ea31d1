"""What attempts change in a run's state: facts of events, and decisions. Called by `absorb.py` and `apply.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import gated as g
from gonogo.core import lifecycle as life
from gonogo.core.changes import move
from gonogo.core.state import Node, Spent, State
from gonogo.errors import Bug

# --- what events bring


def asked(state: State, event: e.AttemptAsked) -> None:
    """A wish is known from now on; what became of one that is never answered is found out after a resume."""
    node = state.returned = state.calls.get(event.call)
    if node is not None:
        _gate_of(node).wishes[event.ticket] = event


def ended(state: State, event: e.AttemptEnded) -> None:
    """What an attempt used is spent, what was set aside for it is free."""
    node = state.calls.get(event.call)
    wish = node.gate.flying.pop(event.ticket, None) if node is not None and node.gate is not None else None
    if node is None or node.gate is None or wish is None:
        return
    _free(state.spent, wish)
    tokens = max(0, event.input_tokens) + max(0, event.output_tokens)
    _spend(state.spent, node.gate.counted, tokens, max(0.0, event.money))
    if not wish.beneath:
        g.end(node.gate, wish, event)


def waits(state: State, event: e.GateWaits) -> None:
    """A long wait begins."""
    node = state.returned = state.calls.get(event.call)
    if node is not None:
        g.wait(_gate_of(node), event)


def over(state: State, event: e.GateEnded) -> None:
    """A request is over."""
    node = state.calls.get(event.call)
    if node is not None and node.gate is not None:
        node.gate.requests.pop(g.key_of(event), None)


def returned(state: State, node: Node) -> None:
    """A call is over, whatever its gate still waited for."""
    if node.gate is not None:
        for wish in node.gate.flying.values():
            _free(state.spent, wish)
        node.gate = None


def lost(state: State, node: Node) -> None:
    """Nobody knows what attempts under way used: what was set aside for them counts as spent."""
    if node.gate is not None:
        for wish in node.gate.flying.values():
            _free(state.spent, wish)
            _spend(state.spent, node.gate.counted, wish.tokens, wish.money)
        g.lose(node.gate, state.at)


# --- what is decided


def _started(state: State, decision: d.AttemptStarted) -> None:
    node, gated = _existing(state, decision)
    wish = gated.wishes.pop(decision.ticket)
    if node.status == life.PAUSED and not wish.beneath:
        move(state, node, life.RUNNING)
    if wish.calls:
        state.spent.calls += wish.calls
        gated.counted.calls += wish.calls
        return
    state.spent.tokens_kept += wish.tokens
    state.spent.money_kept += wish.money
    if g.start(gated, wish):
        count_further(state, node, 1)


def count_further(state: State, node: Node, attempts: int) -> None:
    """Further attempts within a call are retries of the run, and of the step unless counted apart (semantics.md 24)."""
    state.spent.retries += attempts
    block = node.site.part.step.on_fail
    if block is not None and block.retry is not None and not block.retry.separately:
        node.retries += attempts


def _refused(state: State, decision: d.AttemptRefused) -> None:
    _existing(state, decision)[1].wishes.pop(decision.ticket, None)


def _paused(state: State, decision: d.Paused) -> None:
    move(state, state.existing(decision.step, decision.scope), life.PAUSED)


def _stopping(state: State, decision: d.CallStopping) -> None:
    """No attempt goes out after it (law 7)."""
    _gate_of(state.existing(decision.step, decision.scope)).stopped = True


def _existing(state: State, decision: d.AttemptStarted | d.AttemptRefused) -> tuple[Node, g.Gated]:
    node = state.existing(decision.step, decision.scope)
    if node.gate is None or decision.ticket not in node.gate.wishes:
        raise Bug(f"step {node.step} has not asked for attempt {decision.ticket}")
    return node, node.gate


def _gate_of(node: Node) -> g.Gated:
    if node.gate is None:
        node.gate = g.Gated()
    return node.gate


def _free(spent: Spent, wish: e.AttemptAsked) -> None:
    spent.tokens_kept -= wish.tokens
    spent.money_kept -= wish.money
    if not spent.tokens_kept:
        spent.money_kept = max(0.0, spent.money_kept)


def _spend(spent: Spent, counted: g.Counted, tokens: int, money: float) -> None:
    spent.tokens += tokens
    spent.money += money
    counted.tokens += tokens
    counted.money += money


ATTEMPT_FACTS: dict[type, Callable[[State, Any], None]] = {
    e.AttemptAsked: asked,
    e.AttemptEnded: ended,
    e.GateWaits: waits,
    e.GateEnded: over,
}

ATTEMPT_DELTAS: dict[type, Callable[[State, Any], Node | None]] = {
    d.AttemptStarted: _started,
    d.AttemptRefused: _refused,
    d.Paused: _paused,
    d.CallStopping: _stopping,
}
