"""Is it over, and how: GO, NO-GO or HOLD (semantics.md 1 to 3)."""

from __future__ import annotations

from gonogo.core import approvals, compensation, initialising, routing, scheduling, spending, stopping
from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core.dependencies import is_superseded
from gonogo.core.scope import ROOT
from gonogo.core.state import Node, State
from gonogo.core.turn import Turn
from gonogo.errors import Bug

WAITS_MAX = 20
"""Questions that the verdict tells of; all of them are in the state."""


def end_when_over(turn: Turn) -> bool:
    """When nothing is in flight: let stuck waits go on, skip what nothing routed to, park or finish.

    True when something was decided that may set other steps free.
    """
    state = turn.state
    if turn.asks or turn.ready.waiting or state.finished is not None or not state.quiet:
        return False
    unfinished = [node for node in state.all_nodes() if not node.complete] if state.open_nodes else []
    waiting = [node for node in unfinished if node.status in (life.HOLDING, life.IN_DOUBT)]
    if _wake_stuck(turn) or (not waiting and _skip_unrouted(turn)) or _skip_unreachable(turn, unfinished):
        return True
    if waiting:
        spending.disarm(turn)
        turn.finish(_parked(state, waiting))
        return False
    _check_all_done(state, unfinished)
    because = tuple(failures(state))
    if compensation.go_on(turn, ends_well=not because):
        return True
    stopping.forget_cleanup(turn)
    spending.disarm(turn)
    turn.finish(d.Finished("NO-GO" if because else "GO", because))
    return False


def _wake_stuck(turn: Turn) -> bool:
    """A block that waits for runs which can't happen goes on without them; for people it waits on."""
    if any(node.status in (life.HOLDING, life.IN_DOUBT) for node in turn.state.all_nodes()):
        return False
    waiting = turn.remediating()
    inner = next((node for node in reversed(waiting) if node.status == life.INITIALISING), None)
    if inner is not None:
        initialising.go_on(turn, inner)
    elif waiting:
        routing.go_on(turn, waiting[0])
    return bool(waiting)


def _skip_unrouted(turn: Turn) -> bool:
    """Steps nothing routed to, and what waited only for them, are skipped at the end."""
    state = turn.state
    for name in turn.graph.steps if state.held_back else ():
        if name in state.held_back and state.node(name, ROOT) is None and _is_missed(turn, name):
            reason = scheduling.stop_reason(state) or "not_routed"
            scheduling.skip(turn, turn.graph.parts[name].root, ROOT, reason)
            return True
    return False


def _skip_unreachable(turn: Turn, unfinished: list[Node]) -> bool:
    """A step routed to inside an item waits in vain when what it depends on never runs in that item."""
    if any(node.status in (life.HOLDING, life.IN_DOUBT) for node in turn.state.all_nodes()):
        return False
    for node in unfinished:
        if node.status == life.PENDING and node.scope and _waits_in_vain(turn.state, node):
            because = node.requester[0] if node.requester is not None else None
            scheduling.skip(turn, node.site, node.scope, "unreachable", because)
            return True
    return False


def _waits_in_vain(state: State, node: Node) -> bool:
    """Asked for by a route, or an item of a fan-out that is no more."""
    aggregate = state.aggregate_of(node)
    gone = aggregate is None or aggregate.status != life.EXPANDING
    return gone or node.requester is not None or is_superseded(state, node.step, node.scope)


def _is_missed(turn: Turn, name: str) -> bool:
    """A step that ran inside items only is no skipped step, unless others wait for it outside."""
    return not turn.state.nodes[name] or bool(turn.graph.dependents[name])


def _check_all_done(state: State, unfinished: list[Node]) -> None:
    """Nothing queued, in flight or timed, but not ended: a bug of the core; stop loudly (core-notes.md 8)."""
    for name in state.graph.steps:
        node = state.node(name, ROOT)
        if name not in state.included or (node is None and state.nodes[name]):
            continue
        if node is None or not node.settled:
            where = "was never looked at" if node is None else f"is {node.status}"
            raise Bug(f"nothing is in flight, but step {name} {where}")
    for node in unfinished:
        raise Bug(f"nothing is in flight, but step {node.step} in scope {node.scope} is {node.status}")


def failures(state: State) -> list[str]:
    """What makes the run NO-GO: steps whose latest outcome is an untolerated failure, breaches, an early stop."""
    found = {node.step: None for node in state.all_nodes() if is_failure(state, node)}
    of_the_run = "budget" if state.stopping == "budget" else "plan"
    found.update((step or of_the_run, None) for step, _ in state.breaches)
    if state.stopping in ("cancelled", "cancelled_hard"):
        found["cancelled"] = None
    elif state.stopping == "budget":
        found["budget"] = None
    elif state.stopping == "halted":
        found[state.stopped_by or "halted"] = None
    if not found and state.undone_for is not None:
        found["undone"] = None  # what undid it may have been the very step that had failed
    return list(found)


def is_failure(state: State, node: Node) -> bool:
    """True for a failed or cancelled step, and for one skipped by an error, unless the step tolerates failure."""
    if node.outcome == "failed":
        return True
    if node.outcome == "cancelled":
        return state.stopping not in ("fail_fast", "halted", "budget")
    return node.outcome == "skipped" and bool(node.issues) and not state.step(node).continue_on_failure


def _parked(state: State, waiting: list[Node]) -> d.Finished:
    """HOLD, with the questions in short, the first few of them, and when the next timer is due."""
    waits = tuple(approvals.in_short(node) for node in waiting)
    wake_s = min((due_s for due_s, _ in state.timers.values()), default=None)
    return d.Finished("HOLD", tuple(wait.place for wait in waits), True, waits[:WAITS_MAX], wake_s)
