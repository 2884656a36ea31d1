"""Look at runs that are, or were."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from gonogo.app.options import Options, Summary, runs_in
from gonogo.core.decisions import Finished
from gonogo.core.events import RunStarted
from gonogo.errors import JournalError, UsageError
from gonogo.journal.records import Record
from gonogo.journal.store import Runs

if TYPE_CHECKING:
    from gonogo.core.state import State
    from gonogo.journal.view import RunView


def open_run(run_id: str, options: Options | None = None) -> list[Record]:
    """The records of a run, running or not. Raises JournalError."""
    return runs_in(options or Options()).read(run_id).records


def view_run(
    run_id: str, options: Options | None = None, state: State | None = None
) -> tuple[RunView, tuple[str, ...]]:
    """A run, running or not, for a report; and notes about its journal. `state`: of a run that just ended here, whose
    records then needn't be read, or only for what is counted.

    Raises JournalError, as the view does when it is asked for counts.
    """
    from gonogo.journal.restoring import state_of
    from gonogo.journal.view import view_of

    runs = runs_in(options or Options())
    if state is not None:
        return view_of(state, lambda: runs.glimpses(run_id)), ()
    reading = runs.records(run_id)
    state = state_of(reading)
    count = reading.count
    return view_of(state, lambda: islice(runs.glimpses(run_id), count)), reading.notes


def list_runs(options: Options | None = None) -> list[Summary]:
    """All runs, the newest last; those that can't be read say why. Raises JournalError for the folder."""
    runs = runs_in(options or Options())
    return [_summary(runs, run_id) for run_id in runs.ids()]


def find_run(name: str, options: Options | None = None) -> str:
    """The id of a run by its id, the beginning of it, or `last`. Raises UsageError when there is none or several."""
    ids = runs_in(options or Options()).ids()
    if name in ids:
        return name
    own = [run_id for run_id in ids if "." not in run_id]
    found = own[-1:] if name == "last" else _beginning(ids, name)
    whole = [run_id for run_id in found if "." not in run_id] or found
    if len(whole) != 1:
        what = "there is no run" if not whole else f"{len(whole)} runs begin with"
        raise UsageError(f"{what} {name!r}", advice="'gonogo runs' lists the runs")
    return whole[0]


def _beginning(ids: list[str], name: str) -> list[str]:
    """An empty name, as an unset variable gives it, is the beginning of none."""
    return [run_id for run_id in ids if name and run_id.startswith(name)]


def _summary(runs: Runs, run_id: str) -> Summary:
    try:
        records = runs.read(run_id).records
    except JournalError as problem:
        return Summary(run_id, problem=problem.message)
    first, last = records[0].event, records[-1]
    assert isinstance(first, RunStarted)
    verdicts = [decision.verdict for decision in last.decisions if isinstance(decision, Finished)]
    return Summary(
        run_id,
        verdict=verdicts[-1] if verdicts else None,
        name=first.plan.name,
        event=str(first.trigger.get("name")) if first.trigger else None,
        started_at=first.started_at_ms / 1000,
        last_at=last.at,
        records=len(records),
        parent=first.parent.get("run_id") if first.parent else None,
    )
