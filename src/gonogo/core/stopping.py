"""How a run stops early: fail_fast, halt, cancel and a budget that is used up (semantics.md 4 and 5)."""

from __future__ import annotations

from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core import scheduling
from gonogo.core.dependencies import rest_at
from gonogo.core.faults import cancellation
from gonogo.core.state import Node, State
from gonogo.core.turn import Turn

CANCELLED = frozenset({"cancelled", "cancelled_hard"})


def is_cancelled(state: State) -> bool:
    """True when somebody wants the run to end, or its cleanup took too long."""
    return state.stopping in CANCELLED


def stop(turn: Turn, reason: str, step: str | None = None, *, at_once: bool = True) -> None:
    """Nothing new starts; what runs is told to stop, unless it may end (`at_once` False, as for fail_fast).

    A cancelled run stays cancelled, whatever its cleanup comes to (semantics.md 5).
    """
    state = turn.state
    if is_cancelled(state) and reason not in CANCELLED:
        return
    if reason in ("cancelled", "budget") and any(other.always for other in turn.graph.steps.values()):
        forget_cleanup(turn)
        timer = state.last_timer + 1
        due_s = state.at + turn.graph.plan.limits.cleanup_grace_s
        turn.decide(d.Stopping(reason, step, timer, due_s))
        turn.set_timer(timer, due_s)
    else:
        turn.decide(d.Stopping(reason, step))
    for node in list(state.all_nodes()):
        if not node.complete and not scheduling.may_still_run(state, turn.step(node)):
            stop_node(turn, node, at_once=at_once)
    turn.sweep = True


def forget_cleanup(turn: Turn) -> None:
    """The grace for steps with always() is no longer needed."""
    timer = turn.state.cleanup_timer
    if timer is not None and timer in turn.state.timers:
        turn.forget_timer(timer)


def ends_now(turn: Turn, node: Node) -> bool:
    """True when the run stops in a way that leaves no room for a wait or a repeat of this step."""
    return bool(turn.state.stopping) and not scheduling.may_still_run(turn.state, turn.step(node))


def stop_node(turn: Turn, node: Node, *, at_once: bool) -> None:
    """End what waits, skip what hasn't started, tell what runs to stop when it must."""
    if node.status in life.CALLED and node.call is not None:
        if at_once:
            turn.stop_call(node)
    elif node.status in life.CALLED:
        if at_once:
            end_waiting(turn, node, cancelled=True)
    elif node.looks_again:  # for a doubt, and to stop that run
        scheduling.leave_queue(turn, node.step, node.scope)
        scheduling.call(turn, node.site, node.scope, node, again=True)
    elif node.in_doubt:
        return  # whatever stops the run, somebody has to say first what became of the call (law 3)
    elif node.status in (life.BACKING_OFF, life.REMEDIATING, life.HOLDING):
        turn.clear_timer(node)
        end_waiting(turn, node, cancelled=at_once or node.status == life.HOLDING)
    elif node.status in (life.PENDING, life.DECIDING, life.CLEARED, life.INITIALISING, life.ASSUMING):
        scheduling.leave_queue(turn, node.step, node.scope)
        reason = scheduling.stop_reason(turn.state)
        scheduling.skip(turn, node.site, node.scope, reason, turn.state.stopped_by)
    elif node.status == life.EXPANDING:
        turn.expanded.append(node)


def end_waiting(turn: Turn, node: Node, *, cancelled: bool) -> None:
    """A wait that is given up: the failure before it stands, or the step is cancelled."""
    rest = rest_at(turn.state, node.site, node.scope, node)
    if cancelled:
        reason = scheduling.stop_reason(turn.state)
        fault = cancellation(node.step, f"stopped while waiting: {reason}")
        turn.decide(d.Ended(node.step, node.scope, "cancelled", reason, fault, node.issues, rest))
    else:
        turn.decide((d.Settled if rest == "settled" else d.Completed)(node.step, node.scope))
