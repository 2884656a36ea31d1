"""When nothing is left to be tried for a failure: what the author chose, and who is told (spec C.9 R11, G27)."""

from __future__ import annotations

from typing import Any

from gonogo.core import decisions as d
from gonogo.core.dependencies import rest_at
from gonogo.core.plan import Retry
from gonogo.core.retries import is_worth_it
from gonogo.core.state import Node
from gonogo.core.turn import Turn

CHOICES = ("retry", "accept", "fail")
"""What a person may answer to `exhausted: hold`."""


def is_exhausted(node: Node, retry: Retry) -> bool:
    """True when a retry would be worth it, but the last one was made."""
    return is_worth_it(node, retry) and node.retries >= retry.max


def hold(turn: Turn, node: Node) -> None:
    """`exhausted: hold`: a person decides, one of those that the step takes answers from."""
    prompt = f"{node.step} has used up its retries: {node.failure.message}. {', '.join(CHOICES)}?"
    terms = turn.step(node).hold
    approvers = terms.approvers if terms is not None else ()
    details = {"choices": list(CHOICES)}
    turn.decide(d.Held(node.step, node.scope, prompt, details, since_s=turn.state.at, approvers=approvers))


def is_choice(node: Node) -> bool:
    """True when a node waits for one of the choices, not for an answer that becomes its output."""
    return node.hold is not None and node.hold.details.get("choices") == list(CHOICES)


def chosen(turn: Turn, node: Node, text: str, by: str) -> None:
    """A person's choice, one of CHOICES."""
    word = text.strip().lower()
    turn.decide(d.Chosen(node.step, node.scope, word, by))
    if word == "retry":
        state = turn.state
        timer = state.last_timer + 1
        turn.decide(d.Retrying(node.step, node.scope, node.retries + 1, 0.0, timer, state.at))
        turn.set_timer(timer, state.at)
    else:
        end(turn, node, "tolerated" if word == "accept" else "failed", f"{word} by {by or 'a person'}")


def end(turn: Turn, node: Node, outcome: str, reason: str) -> None:
    """The failure's outcome, without another word of the step's block."""
    rest = rest_at(turn.state, node.site, node.scope, node)
    turn.decide(d.Ended(node.step, node.scope, outcome, reason, node.fault, node.issues, rest))


def escalates(turn: Turn, node: Node) -> str | None:
    """The step to be told of a failure that stands; once per step, scope and run."""
    block = node.site.part.step.on_fail
    if block is None or node.trigger != "on_fail" or turn.state.stopping:
        return None
    return None if (node.step, node.scope) in turn.state.escalated else block.escalate


def told(node: Node) -> dict[str, Any]:
    """What the step that is told of a failure sees as `args`."""
    fault = node.failure
    about = {"kind": fault.kind, "class": fault.fault_class, "message": fault.message}
    return {"step": node.step, "scope": node.scope, "attempts": node.attempts, **about}
