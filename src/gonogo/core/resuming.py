"""Going on after a stop: calls that were lost, evaluations asked again, steps looked at anew."""

from __future__ import annotations

from gonogo.core import decisions as d
from gonogo.core import holds, routing, scheduling, stopping
from gonogo.core import lifecycle as life
from gonogo.core.dependencies import BLOCKED
from gonogo.core.state import Node, State
from gonogo.core.turn import Turn


def resume(turn: Turn) -> None:
    """Find again what is derived, ask again what was asked, reopen what a cancel ended."""
    state = turn.state
    _forget_derived(state)
    if state.stopping in ("cancelled", "cancelled_hard"):
        stopping.forget_cleanup(turn)
        turn.decide(d.Reopened(_cancelled(turn)))
    turn.asks.extend(state.lost_asks)
    turn.send_asks()
    for node in list(state.all_nodes()):
        _look_again(turn, node)
    turn.sweep = True


def _cancelled(turn: Turn) -> tuple[tuple[str, str], ...]:
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
        if node.complete and (_was_cancelled(node) or (node.step in found and _was_skipped_for_want(node)))
    )


def _was_cancelled(node: Node) -> bool:
    return node.outcome == "cancelled" or node.reason in ("cancelled", "cancelled_hard")


def _was_skipped_for_want(node: Node) -> bool:
    return node.outcome == "skipped" and node.reason in (*BLOCKED, "forEach_empty", "not_routed")


def _forget_derived(state: State) -> None:
    state.ready.clear()
    for node in state.all_nodes():
        if node.fan is not None:
            node.fan.cursor = 0
            node.fan.ready = 0
            node.fan.queue.clear()
            node.fan.queued.clear()


def _look_again(turn: Turn, node: Node) -> None:
    if node.fan is not None and node.status == life.EXPANDING:
        turn.expanded.append(node)
    elif node.status == life.HOLDING and node.hold is not None and "child" in node.hold.details:
        holds.repeat(turn, node)
    elif node.status in (life.PENDING, life.CLEARED) and turn.state.aggregate_of(node) is None:
        turn.routed.append((node.step, node.scope))


def lost(turn: Turn, node: Node) -> None:
    """A call nobody knows the end of is repeated when that is safe, else a person must say (semantics.md 6)."""
    step = turn.step(node)
    if routing.may_repeat(step) and stopping.ends_now(turn, node) and turn.state.stopping != "fail_fast":
        stopping.end_waiting(turn, node, cancelled=True)
    elif routing.may_repeat(step):
        scheduling.call(turn, node.site, node.scope, node, again=True)
    else:
        holds.doubt(turn, node, "the run was interrupted during this call; nobody knows whether it was done")
