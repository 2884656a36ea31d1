"""`gonogo runs`: the runs, newest first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.app import Options, Summary


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
    session: Session, runs_dir: Place, limit: int, children: bool, waiting: bool, format_name: str
) -> int:
    from gonogo.app import Options
    from gonogo.cli.listing import as_json, rows
    from gonogo.report.formats import json_text

    find = _waiting if waiting else _all
    total, shown, due = find(Options(runs=runs_dir), limit, children)
    style = session.output.style()
    if format_name == "json":
        told = [as_json(one, due=one.run_id in due) for one in shown]
        session.output.result(json_text(told, unicode=style.unicode))
        return 0
    if not shown:
        what = "no run waits" if waiting else f"no runs in {runs_dir}; start one with: gonogo run"
        session.output.say(what)
        return 0
    lines = [line for one in shown for line in rows(one, style, due=one.run_id in due, questions=waiting)]
    session.output.result("\n".join(lines) + "\n")
    if total > limit:
        session.output.say(f"{total - limit} older runs: --limit {total}")
    if due:
        session.output.say(f"{len(due)} due: gonogo resume --due")
    return 0


def _waiting(place: Options, limit: int, children: bool) -> tuple[int, list[Summary], set[str]]:
    """How many there are, the newest of them, and which are due, those that aren't shown among them."""
    from gonogo.app import due_runs, waiting_runs

    every = waiting_runs(place)
    newest = [one for one in reversed(every) if children or "." not in one.run_id]
    return len(newest), newest[:limit], set(due_runs(every))


def _all(place: Options, limit: int, children: bool) -> tuple[int, list[Summary], set[str]]:
    """As `_waiting`; what isn't shown isn't read."""
    from gonogo.app import due_runs, list_runs, run_ids

    ids = [run_id for run_id in reversed(run_ids(place)) if children or "." not in run_id]
    shown = list_runs(place, ids[:limit])
    return len(ids), shown, set(due_runs(shown))
