"""Decides recorded calls again, and takes up calls that were broken off. Pure: nothing is called."""

from __future__ import annotations

from collections.abc import Iterable

from gonogo.gate import commands as c
from gonogo.gate import decisions as d
from gonogo.gate import events as e
from gonogo.gate import lifecycle
from gonogo.gate.machine import advance, begin
from gonogo.gate.policy import Policy
from gonogo.gate.state import State


def replay(policy: Policy, events: Iterable[e.AnyEvent]) -> list[d.AnyDecision]:
    """Decide a recorded call again, with this policy or another one; stops where the events no longer fit.

    Under the recorded policy the decisions are the recorded ones. Under another policy the first decision that
    differs tells what would have been otherwise.
    """
    state: State | None = None
    decisions: list[d.AnyDecision] = []
    expected: tuple[type, ...] = (e.Began,)
    for event in events:
        if not isinstance(event, (*expected, e.Cancelled)):
            break
        if state is None:
            assert isinstance(event, e.Began)
            state = begin(policy, event)
        step = advance(policy, state, event)
        decisions += step.decisions
        # Without a command the other of two attempts is waited for.
        expected = _ANSWERS[type(step.commands[-1])] if step.commands else (e.Answered,)
    return decisions


def carried_after(policy: Policy, events: Iterable[e.AnyEvent]) -> e.Carried | None:
    """What a call has used up that was broken off after these events, say by a crash; None if it hadn't begun.

    An attempt without its end counts as made. If the call changes something, what became of it is unclear.
    """
    state: State | None = None
    at = 0.0
    for event in events:
        if state is None:
            assert isinstance(event, e.Began)
            state = begin(policy, event)
        at = event.at
        advance(policy, state, event)
    if state is None:
        return None
    if state.status == lifecycle.CALLING and state.began.effects == "mutates":
        state.unclear = state.current
    return state.carried(at)


_ANSWERS: dict[type, tuple[type, ...]] = {
    c.Judge: (e.Judged,),
    c.Admit: (e.Admitted, e.Refused),
    c.StartAttempt: (e.Answered, e.Slow),
    c.StartFallback: (e.Answered,),
    c.Wait: (e.Waited,),
    c.Return: (),
    c.Raise: (),
}
