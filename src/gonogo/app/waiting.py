"""Runs that wait for people: which do, whose timers fell due while nobody was there, and going on with those.

A parked run is data and nothing else, so somebody must look after its timers: `gonogo resume --due`, from cron or a
worker, finds them by the last record of each run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from gonogo.app.carried import carried_in, refuse_own
from gonogo.app.engines import hand_on
from gonogo.app.looking import list_runs, with_waits
from gonogo.app.options import Options, Summary, opened
from gonogo.app.places import Place, all_places
from gonogo.app.running import blocking, resume_run_async
from gonogo.core.approvals import in_short
from gonogo.core.decisions import Wait
from gonogo.errors import GonogoError, JournalError, RunLocked
from gonogo.hosts.base import RunResult


def waiting_runs(options: Options | None = None) -> list[Summary]:
    """The runs on HOLD, the newest last, those that other runs started among them. Raises JournalError."""
    with opened(options) as (runs, options):
        found = [one for one in list_runs(options) if one.verdict == "HOLD"]
        return [with_waits(runs, one) for one in found]


def with_questions_beneath(
    one: Summary, waiting: Mapping[str, Summary], options: Options | None = None
) -> Summary:
    """With the questions of runs beneath in place of the steps that wait for these, named as an answer names them.

    `waiting`: by id the runs on HOLD, those beneath among them. What can't be read stays as it is.
    """
    if all(other.parent != one.run_id for other in waiting.values()):
        return one
    try:
        with opened(options) as (runs, _):
            places = all_places(runs, one.run_id)
    except JournalError:
        return one
    waits = tuple(_seen_from(one, place, waiting.get(place.run_id, one)) for place in places)
    return replace(one, waits=waits or one.waits)


def _seen_from(one: Summary, place: Place, own: Summary) -> Wait:
    """A question of run `own`, with its times on the clock of the run around."""
    wait, later_s = in_short(place.node), own.zero_at - one.zero_at
    return replace(
        wait,
        place=place.label,
        since_s=wait.since_s + later_s if wait.since_s is not None else None,
        until_s=wait.until_s + later_s if wait.until_s is not None else None,
    )


def due_runs(waiting: Iterable[Summary], now: float | None = None) -> list[str]:
    """The runs to go on with because a timer of theirs fell due, or one of a run that they started.

    `now`: Unix time in seconds.
    """
    at = time.time() if now is None else now
    known = {one.run_id: one for one in waiting}
    return list(dict.fromkeys(_outermost(known, one) for one in known.values() if one.is_due(at)))


def _outermost(known: dict[str, Summary], one: Summary) -> str:
    """The run around all, as far as those around wait, too. A forged journal may name itself."""
    seen = {one.run_id}
    while one.parent is not None and one.parent in known and one.parent not in seen:
        one = known[one.parent]
        seen.add(one.run_id)
    return one.run_id


def wake_run(run_id: str, options: Options | None = None) -> RunResult | None:
    """Go on with one of them; None where an engine carries it, whose workers go on with it.

    Raises as `resume_run`, and UsageError for variables that wouldn't reach those workers.
    """
    return blocking(lambda: wake_run_async(run_id, options))


async def wake_run_async(run_id: str, options: Options | None = None) -> RunResult | None:
    """As `wake_run`."""
    with opened(options) as (runs, options):
        carried = carried_in(runs, run_id)
        if carried is None:
            return await resume_run_async(run_id, options)
        refuse_own(carried, options.env)
        await asyncio.to_thread(hand_on, carried.run_id, carried.carrier, options)
        return None


async def resume_due_async(options: Options | None = None) -> list[RunResult]:
    """Go on with every run whose timer fell due, one after the other, but those that somebody else has;
    those that an engine carries are handed to its workers.

    What one comes to is no matter of the others: what can't go on is told when all have been tried.

    Raises:
        JournalError: the place that keeps the runs can't be read.
        JournalError, SandboxError, Bug: the first of the runs that couldn't go on.
    """
    results: list[RunResult] = []
    problems: list[GonogoError] = []
    with opened(options) as (_, options):
        for run_id in due_runs(waiting_runs(options)):
            try:
                result = await wake_run_async(run_id, options)
                results += [result] if result is not None else []
            except RunLocked:
                continue  # it is in good hands
            except GonogoError as problem:
                problems.append(problem)
    if problems:
        raise problems[0]
    return results
