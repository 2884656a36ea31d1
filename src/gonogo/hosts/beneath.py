"""Whether a call in doubt lies beneath a call of a workflow step, as the journals there tell (law 3).

For whoever ends such a call without having heard from its child: told to stop before it began or while the child was
ending, out of time, refused.
"""

from __future__ import annotations

from gonogo.core.commands import StartCall
from gonogo.core.resuming import may_be_lost
from gonogo.core.state import Node, State
from gonogo.core.turn import intent
from gonogo.errors import JournalError
from gonogo.hosts.children import child_id
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Runs


def doubtful_child(runs: Runs, run_id: str, command: StartCall) -> str | None:
    """The child of a call of this run, where a call in doubt is in it or beneath it."""
    child = child_id(run_id, command)
    return child if _is_doubtful(runs, child) else None


def _is_doubtful(runs: Runs, run_id: str) -> bool:
    """A journal that can't be read may say anything."""
    try:
        state = state_of(runs.read(run_id).records)
    except JournalError:
        return run_id in runs.ids()
    if state.finished is not None and not state.finished.parked:
        return False
    return any(_hides_doubt(runs, state, node) for node in state.all_nodes() if not node.complete)


def _hides_doubt(runs: Runs, state: State, node: Node) -> bool:
    if node.has_run_beneath:
        return node.in_doubt or doubtful_child(runs, state.run_id, _call_of(state, node)) is not None
    return node.in_doubt or (node.call in state.calls and not may_be_lost(node))


def _call_of(state: State, node: Node) -> StartCall:
    name = intent(state.run_id, node.scope, node.step, node.execution)
    return StartCall(
        node.call or 0, node.step, node.scope, node.execution, node.attempt, name, state.step(node).effects
    )
