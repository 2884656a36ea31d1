"""Going on after a stop: calls that were lost, evaluations asked again, steps looked at anew.

What a cancel had undone counts as not done, so it is done again (semantics.md 20); not where the run has failed anyhow,
and would only undo it once more.
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
        _reopen(turn)
    turn.asks.extend(ask for ask in state.lost_asks if _still_asks(state, ask))
    turn.send_asks()
    for node in list(state.all_nodes()):
        _look_again(turn, node)
    turn.sweep = True


def _still_asks(state: State, ask: Ask) -> bool:
    """False for an item that is no more, or has begun anew."""
    node = state.node(ask.step, ask.scope)
    return node is not None and bool(node.asked)


def _reopen(turn: Turn) -> None:
    """Let run what the cancel ended, and, in a run that may still be GO, what it had undone."""
    state, cancelled = turn.state, _cancelled(turn)
    undone = () if _has_failed(state, cancelled) else _undone(state)
    cut_short = state.undoing if undone else None
    turn.decide(d.Reopened((*cancelled, *undone)))
    undoer = state.graph.steps[cut_short.step].compensate if cut_short is not None else None
    if cut_short is not None and undoer is not None:
        node = state.existing(undoer, cut_short.scope)
        scheduling.skip(turn, node.site, node.scope, "not_routed")


def _has_failed(state: State, cancelled: tuple[Place, ...]) -> bool:
    return bool(state.breaches) or any(
        is_failure(state, node) and (node.step, node.scope) not in cancelled for node in state.all_nodes()
    )


def _undone(state: State) -> tuple[Place, ...]:
    """What was undone, and what was being undone when a second cancel came; items that are no more aside."""
    under_way = () if state.undoing is None else ((state.undoing.step, state.undoing.scope),)
    return tuple(place for place in (*state.undone, *under_way) if state.node(*place) is not None)


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
    """True for what nothing has sent the run to: a remedy, an undoing. A resume sends it nowhere either."""
    return node.step in state.held_back and node.wave == 0


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


def _look_again(turn: Turn, node: Node) -> None:
    if node.fan is not None and node.status == life.EXPANDING:
        turn.expanded.append(node)
    elif node.status == life.HOLDING and node.hold is not None and "child" in node.hold.details:
        holds.repeat(turn, node)
    elif node.status == life.PAUSED and node.call is None:
        attempts.queue(turn.state, node)
    elif node.status in (life.PENDING, life.CLEARED) and turn.state.aggregate_of(node) is None:
        turn.routed.append((node.step, node.scope))


def may_be_lost(node: Node) -> bool:
    """True when a call may be made again whatever became of it."""
    return may_repeat(node.site.part.step) or (node.gate is not None and node.gate.nothing_done())


def lost(turn: Turn, node: Node) -> None:
    """A call nobody knows the end of is repeated when that is safe, else a person must say (semantics.md 6).

    It is safe where every attempt that its gate made is known to have done nothing.
    """
    safe = may_be_lost(node)
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
