"""Going on after a stop: calls that were lost, evaluations asked again, steps looked at anew.

What a cancel had undone counts as not done, so it is done again (semantics.md 20); not where the run has failed anyhow,
and would only undo it once more. An undoing that was cut short comes to its end before anything else begins.
"""

from __future__ import annotations

from gonogo.core import attempts, holds, scheduling, stopping
from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core.commands import Ask
from gonogo.core.dependencies import BLOCKED
from gonogo.core.retries import may_repeat
from gonogo.core.state import Node, State
from gonogo.core.turn import Turn
from gonogo.core.verdict import is_failure

Place = tuple[str, str]
"""A step and its scope."""


def resume(turn: Turn, *, reopens: bool) -> None:
    """Find again what is derived, ask again what was asked, reopen what a cancel ended."""
    state = turn.state
    _forget_derived(state)
    if reopens and stopping.is_cancelled(state):
        stopping.forget_cleanup(turn)
        _take_back(turn)
    turn.asks.extend(ask for ask in state.lost_asks if _still_asks(state, ask))
    turn.send_asks()
    for node in list(state.all_nodes()):
        _look_again(turn, node, reopens=reopens)
    turn.sweep = True


def _still_asks(state: State, ask: Ask) -> bool:
    """False for an item that is no more, or has begun anew."""
    node = state.node(ask.step, ask.scope)
    return node is not None and bool(node.asked)


def _take_back(turn: Turn) -> None:
    """Let run what the cancel ended, and, in a run that may still be GO, what it had undone.

    An undoing that was begun comes to its end first, however often the run was cancelled; after that the cancel can be
    taken back.
    """
    state, cancelled = turn.state, _cancelled(turn)
    if _has_failed(state, cancelled):
        turn.decide(d.Reopened(cancelled))
    elif state.undoing is None:
        undone = tuple(place for place in state.undone if state.node(*place) is not None)
        turn.decide(d.Reopened((*cancelled, *undone)))
    else:
        undoer = (state.graph.steps[state.undoing.step].compensate, state.undoing.scope)
        if undoer in cancelled:
            turn.decide(d.Reopened((undoer,)))
        if state.stopping != "cancelled":
            turn.decide(d.Stopping("cancelled"))


def _has_failed(state: State, cancelled: tuple[Place, ...]) -> bool:
    return bool(state.breaches) or any(
        is_failure(state, node) and (node.step, node.scope) not in cancelled for node in state.all_nodes()
    )


def _cancelled(turn: Turn) -> tuple[Place, ...]:
    """What a cancel ended, and what depends on it and was skipped for want of it."""
    state = turn.state
    found = {node.step for node in state.all_nodes() if node.complete and _was_cancelled(node)}
    looked_at = list(found)
    for name in looked_at:
        for dependent in turn.graph.dependents[name]:
            if dependent not in found:
                found.add(dependent)
                looked_at.append(dependent)
    return tuple(
        (node.step, node.scope)
        for node in state.all_nodes()
        if node.complete
        and not _waits_for_a_route(state, node)
        and (_was_cancelled(node) or (node.step in found and _was_skipped_for_want(node)))
    )


def _waits_for_a_route(state: State, node: Node) -> bool:
    """True for what nothing has sent the run to: a remedy, an undoing. A resume sends it nowhere either.

    Nor does it to an undoing that was over when it was cancelled.
    """
    if node.step not in state.held_back:
        return False
    if node.requester is None:
        return node.wave == 0
    undoes = state.graph.steps[node.requester[0]].compensate == node.step
    return undoes and (state.undoing is None or (state.undoing.step, state.undoing.scope) != node.requester)


def _was_cancelled(node: Node) -> bool:
    return node.outcome == "cancelled" or node.reason in ("cancelled", "cancelled_hard")


def _was_skipped_for_want(node: Node) -> bool:
    return node.outcome == "skipped" and node.reason in (*BLOCKED, "forEach_empty", "not_routed")


def _forget_derived(state: State) -> None:
    state.ready.clear()
    state.returning.clear()
    for node in state.all_nodes():
        if node.fan is not None:
            node.fan.cursor = 0
            node.fan.ready = 0
            node.fan.queue.clear()


def _look_again(turn: Turn, node: Node, *, reopens: bool) -> None:
    if node.fan is not None and node.status == life.EXPANDING:
        turn.expanded.append(node)
    elif node.status == life.HOLDING and node.hold is not None and holds.is_asked_anew(node.hold, reopens):
        holds.repeat(turn, node)
    elif node.status == life.PAUSED and node.call is None:
        attempts.queue(turn.state, node)
    elif node.status in (life.PENDING, life.CLEARED) and turn.state.aggregate_of(node) is None:
        turn.routed.append((node.step, node.scope))
    elif node.complete and not node.settled and node.site.owns_group:
        turn.news.append(node)  # its on_finish has still to speak, and nothing else may come that asks it to


def may_be_lost(node: Node) -> bool:
    """True when a call may be made again whatever became of it."""
    return may_repeat(node.site.part.step) or (node.gate is not None and node.gate.nothing_done())


def lost(turn: Turn, node: Node) -> None:
    """A call nobody knows the end of is repeated when that is safe, else a person must say (semantics.md 6).

    It is safe where every attempt that its gate made is known to have done nothing. What was under way in a run beneath
    is found out there, also in a run that stops: the call stops that one, too.
    """
    safe = may_be_lost(node)
    if node.has_run_beneath:
        scheduling.call(turn, node.site, node.scope, node, again=True)
        return
    if safe and node.requested:
        turn.supersede(node)  # it is to run again anyhow, and what this call gave wouldn't count
    elif safe and stopping.ends_now(turn, node) and turn.state.stopping != "fail_fast":
        stopping.end_waiting(turn, node, cancelled=True)
    elif safe and node.status == life.PAUSED:
        attempts.queue(turn.state, node)
    elif safe:
        scheduling.call(turn, node.site, node.scope, node, again=True)
    else:
        holds.doubt(turn, node, "the run was interrupted during this call; nobody knows whether it was done")
