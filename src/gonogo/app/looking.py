"""Look at runs that are, or were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from gonogo.app.options import CARRIED, Options, Summary, opened, runs_in
from gonogo.core.events import RerunAsked, RunStarted
from gonogo.errors import JournalError, UsageError
from gonogo.journal.postgres.address import Address
from gonogo.journal.records import Record
from gonogo.journal.sharing import is_shared
from gonogo.journal.standing import standing
from gonogo.journal.store import Finds, Runs, Sums
from gonogo.journal.summary import finished_in

if TYPE_CHECKING:
    from gonogo.core.state import State
    from gonogo.journal.summary import Summary as Told
    from gonogo.journal.view import RunView, Waiting
    from gonogo.journal.wanted import Wanted


def open_run(run_id: str, options: Options | None = None) -> list[Record]:
    """The records of a run, running or not. Raises JournalError."""
    with opened(options) as (runs, _):
        return runs.read(run_id).records


def view_run(
    run_id: str, options: Options | None = None, state: State | None = None
) -> tuple[RunView, tuple[str, ...]]:
    """A run, running or not, for a report; and notes about its journal. `state`: of a run that just ended here, whose
    records then needn't be read, or only for what is counted.

    Raises JournalError, as the view does when it is asked for counts.
    """
    from gonogo.journal.questions import asked

    runs = runs_in(options or Options())
    view, notes = (_ended_here(runs, state), ()) if state is not None else _looked_at(runs, run_id)
    own = [_with_performer(view, one) for one in view.waiting]
    return replace(view, waiting=tuple(asked(runs, run_id, own))), notes


def _with_performer(view: RunView, waiting: Waiting) -> Waiting:
    """Who had a call in doubt: a person must go there and look. Other questions don't have the records read."""
    if not waiting.in_doubt:
        return waiting
    return replace(waiting, by=view.counts.tally.doubted.get((waiting.step, waiting.scope), ""))


def is_queued(run_id: str, options: Options | None = None) -> bool:
    """Whether nobody has begun with a run, so that it has no records. Raises JournalError."""
    with opened(options) as (runs, _):
        return is_shared(runs) and runs.submitted(run_id) is not None


def _looked_at(runs: Runs, run_id: str) -> tuple[RunView, tuple[str, ...]]:
    """Whether somebody has it is asked first: who ends it meanwhile leaves a verdict."""
    from gonogo.journal.jsonl import JsonlRuns

    if is_shared(runs) and (submitted := runs.submitted(run_id)) is not None:
        return _as_it_stands(_not_begun(submitted), _summary(runs, run_id)), ()
    told = _summary(runs, run_id) if isinstance(runs, Sums | JsonlRuns) else None
    view, notes = _read(runs, run_id)
    view = view if told is None else _as_it_stands(view, told)
    return replace(view, unclaimed=_unclaimed(runs, view)), notes


def _as_it_stands(view: RunView, told: Summary) -> RunView:
    carried = view.state.context.get(CARRIED)
    word = standing(
        view.verdict,
        interrupted=view.interrupted,
        running=told.running,
        queued=told.queued,
        aside=told.aside,
    )
    return replace(
        view,
        standing=word,
        aside=told.aside,
        carried=str(carried.get("name", "")) if isinstance(carried, Mapping) else "",
    )


def _unclaimed(runs: Runs, view: RunView) -> dict[int, str]:
    """Calls of a run under way that wait for a worker."""
    if not view.carried or view.standing != "RUNNING" or not view.state.calls or not is_shared(runs):
        return {}
    return dict(runs.pool.unclaimed(view.run_id))


def _not_begun(event: RunStarted) -> RunView:
    """A run that nobody has begun with: its steps as they are planned."""
    from gonogo.core.graph import Graph
    from gonogo.core.planning import plan_run
    from gonogo.journal.view import run_view

    planned = plan_run(Graph(event.plan), event)
    return run_view([Record(0, event.started_at_ms / 1000, event, (planned,))])


def _ended_here(runs: Runs, state: State) -> RunView:
    from gonogo.journal.view import view_of

    run_id = state.run_id
    return view_of(state, lambda: runs.glimpses(run_id), lambda: runs.fault_glimpses(run_id))


def _read(runs: Runs, run_id: str) -> tuple[RunView, tuple[str, ...]]:
    """What is written meanwhile isn't counted either."""
    from gonogo.journal.restoring import state_of
    from gonogo.journal.view import view_of

    reading = runs.records(run_id)
    state = state_of(reading)
    view = view_of(
        state,
        lambda: islice(runs.glimpses(run_id), reading.count),
        lambda: islice(runs.fault_glimpses(run_id), reading.count),
    )
    return view, reading.notes


def run_ids(options: Options | None = None) -> list[str]:
    """The ids of all runs, the newest last. Raises JournalError for the folder."""
    with opened(options) as (runs, _):
        return runs.ids()


def list_runs(options: Options | None = None, ids: Iterable[str] | None = None) -> list[Summary]:
    """All runs, the newest last, or those of these ids in their order; those that can't be read say why.

    Raises JournalError for the folder.
    """
    with opened(options) as (runs, _):
        ids = list(runs.ids() if ids is None else ids)
        if isinstance(runs, Sums):
            return [_as_listed(told) for told in runs.summaries(ids)]
        return [_summary(runs, run_id) for run_id in ids]


def find_runs(wanted: Wanted, limit: int, options: Options | None = None) -> list[Summary]:
    """The newest runs that are wanted, the newest first, with what they wait for; those that can't be read only where
    nothing is asked of them.

    Raises JournalError for the folder.
    """
    with opened(options) as (runs, _):
        if isinstance(runs, Finds):
            return [with_waits(runs, _as_listed(told)) for told in runs.find(wanted, limit)]
        told = (_summary(runs, run_id) for run_id in reversed(runs.ids()) if wanted.may_fit(run_id))
        fitting = (one for one in told if wanted.fits(one.standing, one.name, one.started_at * 1000))
        return list(islice(fitting, limit))


def export_run(run_id: str, folder: Path, options: Options | None = None) -> list[Path]:
    """Write a run and those that it started as local files, each in a folder of its own; where they are.

    Raises JournalError.
    """
    from gonogo.journal.export import export, with_children

    with opened(options) as (runs, _):
        return [export(runs, each, folder) for each in with_children(runs, run_id)]


def about_store(options: Options) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What a Postgres of runs says of itself, and doubts about it with what to do. Raises JournalError, UsageError."""
    runs_in(options)  # which says what is missing, if it is
    from gonogo.journal.postgres.health import about

    return about(options.runs if isinstance(options.runs, Address) else Address(str(options.runs)))


def has_ended(run_id: str, options: Options | None = None) -> bool:
    """Whether the last thing that is known of a run is its end, be it that it was cancelled, and nobody has asked for
    steps to run again since.
    """
    with opened(options) as (runs, _):
        if _summary(runs, run_id).verdict not in ("GO", "NO-GO"):
            return False
        return not any(isinstance(request, RerunAsked) for request in runs.inbox(run_id).take())


def find_run(name: str, options: Options | None = None) -> str:
    """The id of a run by its id, the beginning of it, or `last`. Raises UsageError when there is none or several."""
    ids = run_ids(options)
    if name in ids:
        return name
    own = [run_id for run_id in ids if "." not in run_id]
    found = own[-1:] if name == "last" else _beginning(ids, name)
    whole = [run_id for run_id in found if "." not in run_id] or found
    if not own and name == "last":
        raise UsageError("there are no runs yet", advice="'gonogo run' starts one")
    if len(whole) != 1:
        what = "there is no run" if not whole else f"{len(whole)} runs begin with"
        raise UsageError(f"{what} {name!r}", advice="'gonogo runs' lists the runs")
    return whole[0]


def _beginning(ids: list[str], name: str) -> list[str]:
    """An empty name, as an unset variable gives it, is the beginning of none."""
    return [run_id for run_id in ids if name and run_id.startswith(name)]


def _summary(runs: Runs, run_id: str) -> Summary:
    """From the ends of its journal; from all of it where those can't be understood, or where it is no file."""
    from gonogo.journal.jsonl import JsonlRuns
    from gonogo.journal.listing import summary

    if isinstance(runs, Sums):
        return _as_listed(runs.summaries([run_id])[0])
    told = summary(runs, run_id) if isinstance(runs, JsonlRuns) else None
    if told is None or told.status == "unreadable":
        return _summary_of_all(runs, run_id)
    return _as_listed(told)


def _as_listed(told: Told) -> Summary:
    if told.status == "unreadable":
        return Summary(told.run_id, problem=told.note)
    return Summary(
        told.run_id,
        verdict=told.status if told.status in ("GO", "NO-GO", "HOLD") else None,
        name=told.workflow,
        event=told.event,
        started_at=told.started_at_ms / 1000,
        last_at=told.last_at_ms / 1000,
        records=told.records,
        parent=told.parent,
        waits=told.waits,
        wake_at=told.zero_at + told.wake_s if told.wake_s is not None else None,
        zero_at=told.zero_at,
        queued=told.status == "queued",
        aside=told.aside,
        running=told.status == "running",
        interrupted=told.interrupted,
    )


def with_waits(runs: Runs, one: Summary) -> Summary:
    """With what a run on HOLD waits for, where the place that keeps it hasn't told: its last record does."""
    if one.verdict != "HOLD" or one.waits:
        return one
    try:
        last = _last(runs, one)
    except JournalError:
        return one
    end = finished_in(last) if last is not None else None
    if last is None or end is None:
        return one
    zero_at = last.at - last.event.at
    wake_at = zero_at + end.wake_s if end.wake_s is not None else None
    return structs.replace(one, waits=end.waits, wake_at=wake_at, zero_at=zero_at)


def _last(runs: Runs, one: Summary) -> Record | None:
    records = (
        runs.records_after(one.run_id, one.records - 2) if is_shared(runs) else runs.read(one.run_id).records
    )
    return max(records, key=lambda record: record.seq, default=None)


def _summary_of_all(runs: Runs, run_id: str) -> Summary:
    from gonogo.journal.summary import in_ms

    try:
        records = runs.read(run_id).records
    except JournalError as problem:
        return Summary(run_id, problem=problem.message)
    first, last = records[0].event, records[-1]
    assert isinstance(first, RunStarted)
    end = finished_in(last)
    zero_at = last.at - last.event.at
    return Summary(
        run_id,
        verdict=end.verdict if end is not None else None,
        name=first.plan.name,
        event=str(first.trigger.get("name")) if first.trigger else None,
        started_at=first.started_at_ms / 1000,
        last_at=in_ms(last.at) / 1000,
        records=len(records),
        parent=first.parent.get("run_id") if first.parent else None,
        waits=end.waits if end is not None else (),
        wake_at=zero_at + end.wake_s if end is not None and end.wake_s is not None else None,
        zero_at=zero_at,
    )
