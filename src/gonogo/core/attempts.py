"""Attempts that calls make through their gates: may one go out, is there budget, is there a slot (semantics.md 23).

What a gate does between two attempts is its own affair; here is what the whole run has a say in. Runs without gates pay
one look at an empty list.
"""

from __future__ import annotations

from bisect import insort

from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core import scheduling, stopping
from gonogo.core.budgets import has_a_reserve
from gonogo.core.commands import LetAttempt
from gonogo.core.events import AttemptAsked, GateWaits
from gonogo.core.gated import Gated, key_of
from gonogo.core.scope import order_key
from gonogo.core.state import Node, State
from gonogo.core.turn import Turn

_TINY = 1e-9
"""Money is a sum of floats."""
NO_CALL = "the call is over"


def asked(turn: Turn, event: AttemptAsked) -> None:
    """Let an attempt go, refuse it, or have it wait for the slot that its call gave up."""
    node = turn.state.returned
    if node is None or node.gate is None:
        turn.commands.append(LetAttempt(event.call, event.ticket, NO_CALL))
    elif node.status == life.PAUSED and not event.beneath and not node.gate.stopped:
        queue(turn.state, node)
    else:
        _answer(turn, node, node.gate, event)


def waits(turn: Turn, event: GateWaits) -> None:
    """A call waits: others may have its slot, unless something of it is under way all the same."""
    node = turn.state.returned
    if node is None or node.status != life.RUNNING or node.gate is None:
        return
    if not node.gate.flying and not node.gate.wishes:
        turn.decide(d.Paused(node.step, node.scope, event.call, event.wait_s))


def queue(state: State, node: Node) -> None:
    """A call wants its slot back."""
    place = (node.site.part.order, order_key(node.scope), node.step, node.scope)
    if place not in state.returning:
        insort(state.returning, place)


def take_up(turn: Turn) -> bool:
    """Give slots to calls that want theirs back, in configuration order, before anything new starts.

    They hold connections and have deadlines. True when something was decided.
    """
    state = turn.state
    worked = False
    while state.returning and state.slots < state.limit_of_slots:
        if state.limit_of_slots == 1 and (state.batches or turn.asks):
            break
        *_, step, scope = state.returning.pop(0)
        node = state.node(step, scope)
        if node is not None and node.status == life.PAUSED:
            _return(turn, node)
            worked = True
    return worked


def _return(turn: Turn, node: Node) -> None:
    if node.call is None:
        if stopping.ends_now(turn, node) and turn.state.stopping != "fail_fast":
            stopping.end_waiting(turn, node, cancelled=True)
        else:
            scheduling.call(turn, node.site, node.scope, node, again=True)
    elif node.gate is not None:
        for wish in list(node.gate.wishes.values()):
            _answer(turn, node, node.gate, wish)


def _answer(turn: Turn, node: Node, gated: Gated, wish: AttemptAsked) -> None:
    place = (node.step, node.scope, wish.call, wish.ticket)
    short = None if gated.stopped else _short(turn.state, node, wish)
    if gated.stopped or short is not None:
        limit, used, allowed = short or ("", 0, 0)
        refused = d.AttemptRefused(*place, wish.target, limit, used, allowed, wish.beneath)
        turn.decide(refused)
        turn.commands.append(LetAttempt(wish.call, wish.ticket, refused.sentence()))
        return
    durable = gated.tried and wish.effects == "mutates" and turn.step(node).effects == "mutates"
    turn.decide(d.AttemptStarted(*place, wish.number, wish.target, wish.beneath))
    turn.commands.append(LetAttempt(wish.call, wish.ticket, durable=durable))


def _short(state: State, node: Node, wish: AttemptAsked) -> tuple[str, int | float, int | float] | None:
    """The budget of the run that the attempt would pass: its name, what is used or set aside, and what is allowed."""
    if not state.graph.limited or has_a_reserve(state):
        return None
    budget, spent = state.graph.plan.budget, state.spent
    if budget.calls is not None and wish.calls and spent.calls + wish.calls > budget.calls:
        return "budget.calls", spent.calls, budget.calls
    if budget.retries is not None and _is_further(node, wish) and spent.retries >= budget.retries:
        return "budget.retries", spent.retries, budget.retries
    if wish.calls:
        return None
    tokens, money = spent.tokens + spent.tokens_kept, spent.money + spent.money_kept
    if budget.tokens is not None and _passes(tokens, wish.tokens, budget.tokens):
        return "budget.tokens", tokens, budget.tokens
    if budget.money is not None and _passes(money, wish.money, budget.money + _TINY):
        return "budget.money", money, budget.money
    return None


def _is_further(node: Node, wish: AttemptAsked) -> bool:
    request = node.gate.requests.get(key_of(wish)) if node.gate is not None else None
    return not wish.beneath and request is not None and request.goes_on


def _passes(used: float, wanted: float, allowed: float) -> bool:
    """What says nothing of its needs may go out while anything is left."""
    return used + wanted > allowed or (not wanted and used >= allowed)
