"""What a run waits for, with the questions of its child runs in place of "workflow … waits": who is asked should see
what is asked, and where the answer goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from gonogo.errors import JournalError, UsageError
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Runs
from gonogo.journal.view import Waiting, waiting_in

__all__ = ["asked"]


def asked(
    runs: Runs, run_id: str, waiting: Iterable[Waiting], seen: set[str] | None = None
) -> Iterator[Waiting]:
    """Everything that is asked of people: a step that waits for a child run gives way to what the child waits for.

    No run is looked into twice (`seen`): a journal can be forged to name itself as its child.
    """
    seen = {run_id} if seen is None else seen
    for one in waiting:
        child = _child_of(one.details)
        inner = _asked_in(runs, child, seen) if child is not None else ()
        yield from (_seen_from(one, question, str(child)) for question in inner)
        if not inner:
            yield one


def _child_of(details: Any) -> str | None:
    child = details.get("child") if isinstance(details, dict) else None
    return child if isinstance(child, str) else None


def _asked_in(runs: Runs, run_id: str, seen: set[str]) -> tuple[Waiting, ...]:
    """What a child waits for; nothing when its journal can't be read, which its parent's report can do without."""
    if run_id in seen:
        return ()
    seen.add(run_id)
    try:
        own = waiting_in(state_of(runs.records(run_id)))
        return tuple(asked(runs, run_id, own, seen))
    except (JournalError, UsageError):
        return ()


def _seen_from(outer: Waiting, question: Waiting, child: str) -> Waiting:
    """A child's question with its place in the run around it: `step.inner`; or, for an item within the child, which
    has no such name, the place in the child's own run.
    """
    if question.scope or question.run_id:
        return replace(question, run_id=question.run_id or child)
    return replace(question, step=f"{outer.step}.{question.step}", scope=outer.scope)
