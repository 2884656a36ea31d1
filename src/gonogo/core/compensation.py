"""Undoing what was done when a run doesn't end well (semantics.md 20, spec G12).

Each success of a step with `compensate` is undone by that step, the latest first, one after the other, in the scope in
which it was done. An undoing that fails is a failure of its own; the others go on, and the verdict stays. One that was
cut short is gone on with by a resume; until it is over, what it is for counts as done.
"""

from __future__ import annotations

from msgspec import UNSET

from gonogo.core import decisions as d
from gonogo.core import fault_events, spending, stopping
from gonogo.core.state import Node, State, Undoable
from gonogo.core.turn import Turn


def is_due(state: State) -> bool:
    """True when a run that ends NO-GO now has something to undo, and ends in a way for which it is undone."""
    if not state.undoable or state.undoing is not None:
        return False
    if state.stopping in ("cancelled", "cancelled_hard"):
        return state.stopping == "cancelled" and "cancelled" in state.graph.plan.compensate_on
    why = "halted" if state.stopping == "halted" else "no_go"
    return why in state.graph.plan.compensate_on


def go_on(turn: Turn, *, ends_well: bool) -> bool:
    """Note the end of the undoing under way, and begin the next where one is due; True when one begins."""
    state = turn.state
    if state.undoing is not None:
        _note_end(turn, state.undoing)
    if ends_well or not is_due(state):
        return False
    for event in fault_events.at_the_end(state):
        turn.decide(event)
    _begin(turn, state.undoable[-1])
    return True


def _begin(turn: Turn, done: Undoable) -> None:
    """Undoing has a reserve of its own: neither the run's time nor the grace for its cleanup ends it."""
    stopping.forget_cleanup(turn)
    spending.disarm(turn)
    undoer = _undoer(turn, done)
    output = None if done.output is UNSET else done.output
    arguments = {"step": done.step, "scope": done.scope, "output": output, "inputs": done.inputs}
    members = ((undoer, done.scope),)
    turn.decide(
        d.Routed(
            done.step,
            done.scope,
            "compensate",
            "compensate",
            undoer,
            done.scope,
            turn.state.last_wave + 1,
            members,
            arguments,
        )
    )
    turn.routed.extend(members)


def _undoer(turn: Turn, done: Undoable) -> str:
    return turn.graph.steps[done.step].compensate or ""


def _note_end(turn: Turn, done: Undoable) -> None:
    """What became of an undoing. One that a cancel cut short isn't over: a resume goes on with it."""
    undoer = _undoer(turn, done)
    node = turn.state.existing(undoer, done.scope)
    if stopping.is_cancelled(turn.state) and _was_cut_short(turn.state, node):
        return
    outcome = node.outcome or "skipped"
    turn.decide(d.Undone(done.step, done.scope, done.execution, undoer, outcome))
    if outcome == "passed" and turn.state.undone_for:
        detail = {"by": undoer, "execution": done.execution}
        turn.decide(d.FaultEvent(done.step, done.scope, "compensated", turn.state.undone_for, detail=detail))


def _was_cut_short(state: State, undoer: Node) -> bool:
    """The cancel came before the call, or before the call did anything; else it isn't made again (semantics.md 16)."""
    if undoer.outcome == "skipped":
        return undoer.reason == "cancelled"
    acted = undoer.effect == "done" and state.step(undoer).effects == "mutates"
    return undoer.outcome == "cancelled" and not acted
