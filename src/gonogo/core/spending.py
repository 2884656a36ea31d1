"""What a run may spend in all: time, calls, retries, tokens and money (semantics.md 23, `budget:` of a workflow).

A breach stops the run: nothing new starts, and what is in flight is told to stop where time or money is what ran out.
The time a run is parked doesn't count. A run without a budget pays one look at a field.
"""

from __future__ import annotations

from typing import TypeVar

from gonogo.core import decisions as d
from gonogo.core import stopping
from gonogo.core.budgets import calls_left, has_a_reserve
from gonogo.core.faults import Issue
from gonogo.core.plan import Budget
from gonogo.core.state import Node, State
from gonogo.core.turn import Turn

Amount = TypeVar("Amount", int, float)
UNITS = {"time_s": "s", "calls": "calls", "retries": "retries", "tokens": "tokens", "money": ""}
STOPS_CALLS = frozenset({"time_s", "tokens", "money"})


def arm(turn: Turn) -> None:
    """Set the alarm for what is left of the run's time; a run that goes on after a wait gets the rest."""
    state, budget = turn.state, turn.graph.plan.budget
    if budget.time_s is None or state.budget_timer is not None or has_a_reserve(state):
        return
    timer = state.last_timer + 1
    due_s = state.at + max(0.0, budget.time_s - state.spent.time_s)
    turn.decide(d.TimeLimited(timer, due_s))
    turn.set_timer(timer, due_s)


def disarm(turn: Turn) -> None:
    """The run is parked or over: its time stands still."""
    if turn.state.budget_timer is not None:
        turn.forget_timer(turn.state.budget_timer)


def out_of_time(turn: Turn) -> None:
    """The alarm went off. A cancelled run has a grace of its own and stays cancelled (semantics.md 5)."""
    if stopping.is_cancelled(turn.state):
        disarm(turn)
        return
    allowed = turn.graph.plan.budget.time_s or 0.0
    breach(turn, "", "", "time_s", allowed, allowed)


def out_of_calls(turn: Turn) -> bool:
    """True when something waits for a call that the budget doesn't allow: the run stops then."""
    if not len(turn.ready) or calls_left(turn.state):
        return False
    breach_of_calls(turn)
    return True


def breach_of_calls(turn: Turn) -> None:
    """No call is left for what would start now."""
    breach(turn, "", "", "calls", turn.state.spent.calls, turn.graph.plan.budget.calls or 0)


def refuses_retry(turn: Turn, node: Node) -> bool:
    """True when the run has made all its retries; the failure stands then."""
    allowed, used = turn.graph.plan.budget.retries, turn.state.spent.retries
    if allowed is None or used < allowed:
        return False
    issue = _issue(node.step, node.scope, "retries", used, allowed)
    turn.decide(d.Refused(node.step, node.scope, node.step, "budget.retries", used, allowed, issue))
    return True


def look_at_usage(turn: Turn, node: Node) -> None:
    """After a call that told what it used: whether the run may go on. A run that ends anyway isn't stopped for it."""
    budget, spent = turn.graph.plan.budget, turn.state.spent
    for what, used, allowed in (
        ("tokens", spent.tokens, budget.tokens),
        ("money", spent.money, budget.money),
    ):
        if allowed is not None and used > allowed and not has_a_reserve(turn.state):
            breach(turn, node.step, node.scope, what, used, allowed)


def breach(turn: Turn, step: str, scope: str, what: str, used: float, allowed: float) -> None:
    """Say what ran out, and stop the run."""
    issue = _issue(step, scope, what, used, allowed)
    turn.decide(d.Refused(step, scope, step, f"budget.{what}", used, allowed, issue))
    stopping.stop(turn, "budget", step or None, at_once=what in STOPS_CALLS)


def _issue(step: str, scope: str, what: str, used: float, allowed: float) -> Issue:
    name = what.removesuffix("_s")
    unit = f" {UNITS[what]}" if UNITS[what] else ""
    return Issue(
        rule_id=f"budget/{name}_exceeded",
        message=f"the run has used {used:g}{unit} of its budget of {allowed:g} ({name})",
        check_name=step or None,
        scope=scope or None,
        engine=True,
    )


def budget_beneath(state: State, own: Budget) -> Budget:
    """What a run beneath this one may spend: its own budget, but no more than what is left of this one's.

    What a run that stops still runs, and what undoes things, has its own: they run though this one's is used up.
    """
    if has_a_reserve(state):
        return own
    budget, spent = state.graph.plan.budget, state.spent
    active_s = spent.time_s + (state.at - state.active_since)
    return Budget(
        time_s=_tighter(own.time_s, budget.time_s, active_s),
        calls=_tighter(own.calls, budget.calls, spent.calls),
        retries=_tighter(own.retries, budget.retries, spent.retries),
        tokens=_tighter(own.tokens, budget.tokens, spent.tokens),
        money=_tighter(own.money, budget.money, spent.money),
    )


def _tighter(own: Amount | None, allowed: Amount | None, used: Amount) -> Amount | None:
    if allowed is None:
        return own
    left = max(allowed - used, 0)
    return left if own is None else min(own, left)
