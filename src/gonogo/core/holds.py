"""Waits for a person, and calls nobody knows the end of (semantics.md 3, 6 and 16)."""

from __future__ import annotations

from gonogo.core import contracts, exhaustion, stopping
from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core.events import AnswerGiven, CallParked
from gonogo.core.faults import Fault
from gonogo.core.state import Node
from gonogo.core.turn import Turn

WORDS = ("done", "again", "failed")
"""What a person may say of a call in doubt."""


def hold(turn: Turn, node: Node, event: CallParked) -> None:
    """Park a step; its slot is free meanwhile. A run that stops doesn't wait (semantics.md 4)."""
    state = turn.state
    if stopping.ends_now(turn, node):
        stopping.end_waiting(turn, node, cancelled=True)
        return
    timer = due_s = None
    if event.timeout_s is not None:
        timer, due_s = state.last_timer + 1, state.at + event.timeout_s
    turn.decide(d.Held(node.step, node.scope, event.prompt, event.details, timer, due_s, event.default))
    if timer is not None and due_s is not None:
        turn.set_timer(timer, due_s)


def doubt(turn: Turn, node: Node, message: str) -> None:
    """Nobody knows whether a mutating call was done: a person must say."""
    turn.decide(d.Doubted(node.step, node.scope, message))


def answered(turn: Turn, event: AnswerGiven) -> None:
    """A person's word reaches a hold or a doubt; a step that waits for nothing ignores it."""
    node = turn.state.nodes.get(event.step, {}).get(event.scope)
    if node is None:
        return
    if node.status == life.IN_DOUBT:
        settle_doubt(turn, node, event)
    elif node.status == life.HOLDING:
        turn.clear_timer(node)
        if exhaustion.is_choice(node):
            exhaustion.chosen(turn, node, event.text, event.by)
        else:
            give(turn, node, event.text, event.by)


def give(turn: Turn, node: Node, text: str, by: str) -> None:
    """An answer is the step's output; its contracts are judged as after any call."""
    turn.decide(d.Answered(node.step, node.scope, text, by, {"text": text, "by": by}))
    contracts.check(turn, node)


def settle_doubt(turn: Turn, node: Node, event: AnswerGiven) -> None:
    """done, again or failed; other words leave the step in doubt."""
    word = event.text.strip().lower()
    if word == "again":
        turn.decide(d.Answered(node.step, node.scope, word, event.by))
        repeat(turn, node)
    elif word == "done":
        # Nobody has its output, so nothing can be judged about it: the word of a person is what there is.
        turn.decide(d.Answered(node.step, node.scope, word, event.by))
        if node.requested:
            turn.supersede(node)
        else:
            contracts.conclude(turn, node, (), ())
    elif word == "failed":
        fail(
            turn,
            node,
            Fault("call.lost", "lost", "call/lost", "a person said the call did not succeed"),
            event.by,
        )


def repeat(turn: Turn, node: Node) -> None:
    """Have a call that left its slot made again, when there is a slot; not when the run stops."""
    if stopping.ends_now(turn, node):
        stopping.end_waiting(turn, node, cancelled=True)
    else:
        turn.decide(d.Cleared(node.step, node.scope, again=True))
        turn.routed.append((node.step, node.scope))


def timed_out(turn: Turn, node: Node) -> None:
    """The time for an answer is over: the default answers, else the step fails."""
    default = node.hold.default if node.hold is not None else None
    turn.decide(d.TimedOut(node.step, node.scope))
    if default is not None:
        give(turn, node, default, "default")
    else:
        fault = Fault("human_input.timeout", "logical", "human-input/timeout", "no answer came in time")
        fail(turn, node, fault, "timeout")


def fail(turn: Turn, node: Node, fault: Fault, by: str) -> None:
    """End a wait as a failed call."""
    turn.decide(d.Answered(node.step, node.scope, "failed", by, fault=fault))
    if node.requested:
        turn.supersede(node)
    else:
        contracts.check(turn, node)
