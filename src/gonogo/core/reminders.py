"""While a step waits for people: who is reminded, who may answer after a while, and when its timer fires next.

A hold has one timer, for what comes first of reminder, handover and end. What fell due while nothing ran comes once:
the next reminder is counted from the one that was given. What a reminder runs is bounded by its own `max` and by the
step's `max_runs`, so it isn't counted as a loop; where it can't run, the reminder says so and nothing fails.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gonogo.core import approvals, routing
from gonogo.core import decisions as d
from gonogo.core.budgets import runs_refusal
from gonogo.core.plan import Hold
from gonogo.core.state import Node, State
from gonogo.core.turn import Turn

SEALED = "sealed"
"""Where a hold says which secret its call wasn't made for want of."""
OWN = frozenset({"child", SEALED})
"""What a hold's details say where it isn't the step itself that asks, but a run of its own, or the host."""


def with_terms(held: d.Held, terms: Hold | None) -> d.Held:
    """A hold as it begins under the terms of its step, if it is the step that asks."""
    if terms is not None and OWN.isdisjoint(held.details):
        since_s = held.since_s or 0.0
        remind, later = terms.remind, terms.escalate
        held = replace(
            held,
            approvers=terms.approvers,
            quorum=terms.quorum,
            remind_s=since_s + remind.every_s if remind is not None and remind.max > 0 else None,
            escalate_s=since_s + later.after_s if later is not None else None,
        )
    return replace(held, wake_s=next_s(held))


def next_s(held: d.Held) -> float | None:
    """When the timer of a hold fires; None when nothing is to come."""
    return min((at for at in (held.due_s, held.remind_s, held.escalate_s) if at is not None), default=None)


def is_due(state: State, held: d.Held) -> bool:
    """True when its timer should have fired."""
    wake_s = held.wake_s if held.wake_s is not None else held.due_s
    return wake_s is not None and state.at >= wake_s


def tell(turn: Turn, node: Node, hold: d.Held) -> None:
    """Hand over and remind, whichever is due, and wait on."""
    terms, now_s = turn.step(node).hold, turn.state.at
    send: list[tuple[str, str]] = []
    if terms is not None and terms.escalate is not None and _is_past(hold.escalate_s, now_s):
        step = terms.escalate.step
        unsent = _unsent(turn, node, step) if step is not None else ""
        approvers = (*hold.approvers, *terms.escalate.approvers) if hold.approvers else ()
        quorum = terms.escalate.quorum if terms.escalate.quorum is not None else hold.quorum
        turn.decide(d.HandedOver(node.step, node.scope, approvers, quorum, unsent))
        send += [("escalate", step)] if step is not None and not unsent else []
    if terms is not None and terms.remind is not None and _is_past(hold.remind_s, now_s):
        number = hold.reminders + 1
        unsent = _unsent(turn, node, terms.remind.step)
        again_s = now_s + terms.remind.every_s if number < terms.remind.max else None
        turn.decide(d.Reminded(node.step, node.scope, number, again_s, unsent))
        send += [("remind", terms.remind.step)] if not unsent else []
    _wait_on(turn, node)
    for why, step in send:
        routing.route(turn, node, "remind", step, node.scope, told(node, why), None, trigger=why)


def _is_past(at_s: float | None, now_s: float) -> bool:
    return at_s is not None and now_s >= at_s


def _wait_on(turn: Turn, node: Node) -> None:
    """Set the timer for what comes next, unless the votes so far are enough by now."""
    wake_s = next_s(node.hold) if node.hold is not None else None
    timer = turn.state.last_timer + 1 if wake_s is not None else None
    turn.decide(d.WaitsOn(node.step, node.scope, timer, wake_s))
    if timer is not None and wake_s is not None:
        turn.set_timer(timer, wake_s)


def _unsent(turn: Turn, node: Node, step: str) -> str:
    """Why a step can't be run for a reminder; empty when it can."""
    state = turn.state
    other = state.node(step, node.scope)
    if state.stopping:
        return "the run stops"
    if other is not None and not other.complete and (other.execution or other.requester is not None):
        return f"{step} is still under way"
    if turn.graph.parts[step].one_shot and state.runs_before(step, node.scope):
        return f"{step} is one_shot and has run"
    refused = runs_refusal(state, turn.graph.steps[step], node.scope, other)
    return f"{step} has used up its max_runs" if refused is not None else ""


def told(node: Node, why: str) -> dict[str, Any]:
    """What the step that reminds sees as `args`: where somebody is waited for, for what, and how far it is."""
    hold = node.hold
    about: dict[str, Any] = {"step": node.step, "scope": node.scope, "why": why}
    if hold is None:
        return about
    so_far = approvals.count(hold)
    return {
        **about,
        "prompt": hold.prompt,
        "reminder": hold.reminders,
        "approved": so_far.approved,
        "quorum": so_far.quorum,
        "approvers": list(hold.approvers),
    }
