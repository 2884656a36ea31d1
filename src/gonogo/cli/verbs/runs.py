"""`gonogo runs`: the runs, newest first."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session
from gonogo.errors import UsageError
from gonogo.journal.standing import WORDS

if TYPE_CHECKING:
    from gonogo.app import Options, Summary
    from gonogo.journal.wanted import Wanted


@click.command("runs")
@click.argument("action", type=click.Choice(("list", "export")), default="list")
@click.argument("run", required=False)
@options.runs_dir
@click.option(
    "--limit", type=click.IntRange(1), default=50, metavar="N", help="At most so many; 50 if not given."
)
@click.option("--children", is_flag=True, help="Runs that other runs started, too.")
@click.option(
    "-o",
    "--out",
    "folder",
    type=options.PATH,
    default=Path(),
    metavar="DIR",
    help="Where export puts it; here if absent.",
)
@click.option(
    "--verdict",
    "verdicts",
    type=click.Choice([word.lower().replace(" ", "-") for word in WORDS]),
    multiple=True,
    help="Only runs that stand so; repeatable.",
)
@click.option(
    "-w", "--workflow", default="", metavar="NAME", help="Only runs of the workflow with this name."
)
@click.option(
    "--since",
    metavar="TIME",
    help="Only runs that started then or later: 30m, 12h, 7d ago, or 2026-03-01, 2026-03-01T09:30Z.",
)
@click.option(
    "--waiting", is_flag=True, help="Only runs on HOLD, with what they ask, since when and until when."
)
@options.no_color
@options.format_option("table", "json")
@click.pass_obj
def COMMAND(  # noqa: N802 - what the group looks for
    session: Session, /, action: str, run: str | None, folder: Path, **given: Any
) -> int:
    """List the runs, newest first; or export one.

    Export writes RUN, and the runs it started, as local files in a folder DIR/RUN. Read them with: gonogo show RUN
    --runs-dir DIR
    """
    if action == "list":
        if run is not None:
            raise UsageError(f"list takes no run, found {run!r}", advice="'gonogo show' shows one run")
        return _list(session, **given)
    if run is None:
        raise UsageError("export needs a run", advice="'gonogo runs' lists the runs")
    return _export(session, given["runs_dir"], run, folder)


def _export(session: Session, runs_dir: Place, run: str, folder: Path) -> int:
    from gonogo.app import Options, find_run
    from gonogo.app.looking import export_run

    place = Options(runs=runs_dir)
    for path in export_run(find_run(run, place), folder, place):
        session.output.say(f"wrote {path}")
    return 0


def _list(
    session: Session, runs_dir: Place, limit: int, waiting: bool, format_name: str, **asked: Any
) -> int:
    from gonogo.app import Options
    from gonogo.cli.listing import as_json, rows
    from gonogo.report.formats import json_text

    find = _waiting if waiting else _all
    wanted = _wanted(**asked)
    more, shown, due = find(Options(runs=runs_dir), limit, wanted)
    style = session.output.style()
    if format_name == "json":
        told = [as_json(one, due=one.run_id in due) for one in shown]
        session.output.result(json_text(told, unicode=style.unicode))
        return 0
    if not shown:
        session.output.say(_none(runs_dir, wanted, waiting=waiting))
        return 0
    lines = [line for one in shown for line in rows(one, style, due=one.run_id in due, questions=waiting)]
    session.output.result("\n".join(lines) + "\n")
    _say_more(session, shown, limit if more else None, due)
    return 0


def _say_more(session: Session, shown: list[Summary], limit: int | None, due: set[str]) -> None:
    """What the rows leave open. `limit`: what kept further runs out."""
    from gonogo.report.words import open_end

    if limit is not None:
        session.output.say(f"there are more: --limit {2 * limit}")
    if due:
        session.output.say(f"{len(due)} due: gonogo resume --due")
    if any(one.standing == "QUEUED" for one in shown):
        session.output.say(f"QUEUED: {open_end('QUEUED', 'RUN')}")


def _none(runs_dir: Place, wanted: Wanted, *, waiting: bool) -> str:
    if wanted.standings or wanted.workflow or wanted.since_s is not None:
        return f"no such run in {runs_dir}"
    return "no run waits" if waiting else f"no runs in {runs_dir}; start one with: gonogo run"


def _wanted(children: bool, verdicts: tuple[str, ...], workflow: str, since: str | None) -> Wanted:
    from gonogo.journal.wanted import Wanted

    standings = tuple(verdict.upper() for verdict in verdicts)
    return Wanted(
        tuple(word for word in WORDS if word.replace(" ", "-") in standings),
        workflow,
        _since_s(since) if since is not None else None,
        children,
    )


def _since_s(text: str) -> float:
    """Unix time of `12h` ago, or of a date or time, which is local where it doesn't say. Raises UsageError."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        pass
    try:
        return time.time() - options.seconds(text, "--since")
    except UsageError as problem:
        raise UsageError(
            f"--since {text!r} is no time", advice="give 30m, 12h, 7d, or a date like 2026-03-01T09:30Z"
        ) from problem


def _waiting(place: Options, limit: int, wanted: Wanted) -> tuple[bool, list[Summary], set[str]]:
    """Whether there are more, the newest of them, and which are due, those that aren't shown among them."""
    from gonogo.app import due_runs, waiting_runs
    from gonogo.app.waiting import with_questions_beneath

    every = waiting_runs(place)
    known = {one.run_id: one for one in every}
    newest = [
        one
        for one in reversed(every)
        if wanted.may_fit(one.run_id) and wanted.fits(one.standing, one.name, one.started_at * 1000)
    ]
    shown = [with_questions_beneath(one, known, place) for one in newest[:limit]]
    return len(newest) > limit, shown, set(due_runs(every))


def _all(place: Options, limit: int, wanted: Wanted) -> tuple[bool, list[Summary], set[str]]:
    """As `_waiting`; what can't be shown isn't read."""
    from gonogo.app import due_runs
    from gonogo.app.looking import find_runs

    found = find_runs(wanted, limit + 1, place)
    return len(found) > limit, found[:limit], set(due_runs(found[:limit]))
