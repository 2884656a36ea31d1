"""Waits for a person, and calls nobody knows the end of (semantics.md 3, 6 and 16)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gonogo.core import approvals, contracts, exhaustion, reminders, scheduling, stopping
from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core.dependencies import rest_at
from gonogo.core.events import UNSET, AnswerGiven, CallParked
from gonogo.core.faults import Fault, issue_for
from gonogo.core.state import DOUBTED, Node
from gonogo.core.turn import Turn

GIVEN_UP = "unknown"
WORDS = ("done", "again", "failed", GIVEN_UP)
"""What a person may say of a call in doubt."""
SEALED = reminders.SEALED
SEALED_WORDS = ("again", "failed")
"""What a person may say of a call that wasn't made for want of a secret."""


def is_asked_anew(hold: d.Held, reopens: bool) -> bool:
    """Whether a resume looks again at what a step waits for: a run of its own, always; a secret that couldn't be read,
    unless the resume is there to bring an answer.
    """
    return "child" in hold.details or (reopens and SEALED in hold.details)


def hold(turn: Turn, node: Node, event: CallParked) -> None:
    """Park a step; its slot is free meanwhile. A run that stops waits for calls in doubt only (semantics.md 4)."""
    state = turn.state
    if stopping.ends_now(turn, node) and not event.details.get(DOUBTED):
        stopping.end_waiting(turn, node, cancelled=True)
        return
    held = d.Held(node.step, node.scope, event.prompt, event.details, default=event.default, since_s=state.at)
    if event.timeout_s is not None:
        held = replace(held, due_s=state.at + event.timeout_s)
    held = reminders.with_terms(held, turn.step(node).hold)
    if held.wake_s is not None:
        held = replace(held, timer=state.last_timer + 1)
    turn.decide(held)
    if held.timer is not None and held.wake_s is not None:
        turn.set_timer(held.timer, held.wake_s)


def doubt(turn: Turn, node: Node, message: str) -> None:
    """Nobody knows whether a mutating call was done: a person must say."""
    turn.decide(d.Doubted(node.step, node.scope, message))


def answered(turn: Turn, event: AnswerGiven) -> None:
    """A person's word reaches a hold or a doubt. What fell due before it comes before it: a late answer is late.

    A word that isn't taken is recorded with the reason; of a step that isn't there nothing is.
    """
    node = turn.state.nodes.get(event.step, {}).get(event.scope)
    if node is None:
        return
    if node.status == life.HOLDING and node.hold is not None and reminders.is_due(turn.state, node.hold):
        turn.clear_timer(node)
        woken(turn, node)
    if node.status in (life.IN_DOUBT, life.HOLDING) and event.start not in (0, node.attempts):
        not_taken(turn, node, event, "earlier")
    elif node.status == life.IN_DOUBT:
        settle_doubt(turn, node, event)
    elif node.status == life.HOLDING and node.hold is not None:
        reason = approvals.refusal(node.hold, event.by, event.text)
        if reason is None:
            take(turn, node, node.hold, event)
        else:
            not_taken(turn, node, event, reason)
    else:
        not_taken(turn, node, event, approvals.past(node))


def not_taken(turn: Turn, node: Node, event: AnswerGiven, reason: str) -> None:
    """Whoever gave the answer can find out what became of it."""
    turn.decide(d.NotTaken(node.step, node.scope, event.by, reason))


def becomes_output(node: Node) -> bool:
    """Whether an answer to a step is what it gives, and no word, vote or choice."""
    hold = node.hold if node.status == life.HOLDING else None
    return (
        hold is not None
        and hold.quorum is None
        and reminders.OWN.isdisjoint(hold.details)
        and not exhaustion.is_choice(node)
    )


def take(turn: Turn, node: Node, hold: d.Held, event: AnswerGiven) -> None:
    """An answer that counts: a choice, a vote, or what becomes the step's output."""
    if exhaustion.is_choice(node):
        if approvals.word(event.text) not in exhaustion.CHOICES:
            not_taken(turn, node, event, "words")
        else:
            turn.clear_timer(node)
            exhaustion.chosen(turn, node, event.text, event.by)
    elif "child" in hold.details:
        not_taken(turn, node, event, "child")
    elif SEALED in hold.details:
        settle_sealed(turn, node, event)
    elif hold.quorum is not None:
        vote(turn, node, event)
    else:
        turn.clear_timer(node)
        give(turn, node, event.text, event.by)


def settle_sealed(turn: Turn, node: Node, event: AnswerGiven) -> None:
    """again or failed: the call wasn't made, so nothing that a person says can be its output."""
    word = approvals.word(event.text)
    if word == "again":
        repeat(turn, node)
    elif word == "failed":
        fault = Fault("secret.unopened", "logical", "secret/unopened", "a secret that it needs can't be read")
        fail(turn, node, fault, event.by)
    else:
        not_taken(turn, node, event, "words")


def vote(turn: Turn, node: Node, event: AnswerGiven) -> None:
    """One more yes or no."""
    turn.decide(d.Voted(node.step, node.scope, approvals.word(event.text), event.by))
    give_when_decided(turn, node)


def give_when_decided(turn: Turn, node: Node) -> None:
    """The last vote that was needed answers."""
    hold = node.hold
    if hold is not None and hold.quorum is not None and approvals.count(hold).is_decided:
        turn.clear_timer(node)
        last = hold.votes[-1]
        give(turn, node, last.text, last.by, {"answers": approvals.answers_of(hold.votes)})


def give(turn: Turn, node: Node, text: str, by: str, more: dict[str, Any] | None = None) -> None:
    """An answer is the step's output; its contracts are judged as after any call."""
    turn.decide(d.Answered(node.step, node.scope, text, by, {"text": text, "by": by, **(more or {})}))
    contracts.check(turn, node)


def settle_doubt(turn: Turn, node: Node, event: AnswerGiven) -> None:
    """done, again, failed or unknown; other words leave the step in doubt."""
    word = approvals.word(event.text)
    if word == "again":
        turn.decide(d.Answered(node.step, node.scope, word, event.by))
        repeat(turn, node)
    elif word == "done":
        was_done(turn, node, event)
    elif word == "failed":
        fail(
            turn,
            node,
            Fault("call.lost", "lost", "call/lost", "a person said the call did not succeed"),
            event.by,
        )
    elif word == GIVEN_UP:
        give_up(turn, node, event.by)
    else:
        not_taken(turn, node, event, "words")


def was_done(turn: Turn, node: Node, event: AnswerGiven) -> None:
    """Its output is judged as after any call. Where nobody has it, the word of a person is all there is."""
    known = event.output is not UNSET
    turn.decide(d.Answered(node.step, node.scope, "done", event.by, event.output if known else None))
    if node.requested:
        turn.supersede(node)
    elif known:
        contracts.check(turn, node)
    else:
        contracts.conclude(turn, node, (), ())


def give_up(turn: Turn, node: Node, by: str) -> None:
    """Nobody will ever know. The step fails, and nothing that it has for failures comes: a retry or a remedy would act
    on what may have been done. To undo it, or not to, would be as blind.
    """
    text = f"nobody knows whether this call was done, and {by or 'a person'} gave it up"
    fault = Fault("call.given_up", "lost", "call/given_up", text)
    turn.decide(d.Answered(node.step, node.scope, GIVEN_UP, by, fault=fault, effect="unknown"))
    if node.requested:
        turn.supersede(node)
        return
    outcome = contracts.outcome_of(turn.step(node), fault)
    issue = issue_for(fault, node.step, node.scope, node.attempt)
    rest = rest_at(turn.state, node.site, node.scope, node)
    turn.decide(d.Ended(node.step, node.scope, outcome, None, fault, (issue,), rest))


def repeat(turn: Turn, node: Node) -> None:
    """Have a call that left its slot made again, when there is a slot; not when the run stops, but to look whether a
    doubt beneath it is settled.
    """
    stops = stopping.ends_now(turn, node)
    if stops and not (node.status == life.HOLDING and node.in_doubt):
        stopping.end_waiting(turn, node, cancelled=True)
        return
    turn.decide(d.Cleared(node.step, node.scope, again=True))
    if stops:
        scheduling.call(turn, node.site, node.scope, node, again=True)
    else:
        turn.routed.append((node.step, node.scope))


def woken(turn: Turn, node: Node) -> None:
    """A hold's timer fired: its time is over, or there is somebody to tell. A smaller quorum may have been reached."""
    hold = node.hold
    if hold is None or (hold.due_s is not None and turn.state.at >= hold.due_s):
        timed_out(turn, node)
    else:
        reminders.tell(turn, node, hold)
        give_when_decided(turn, node)


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
    """End a wait as a failed call. It gave nothing that a contract or a detector could judge."""
    turn.decide(d.Answered(node.step, node.scope, "failed", by, fault=fault))
    if node.requested:
        turn.supersede(node)
    else:
        contracts.conclude(turn, node, (), ())
