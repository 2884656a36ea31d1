"""`gonogo runs`: the runs, newest first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.app import Summary
    from gonogo.report.layout import Style

_LOOKS = {"GO": ("passed", "green"), "NO-GO": ("failed", "red"), "HOLD": ("waiting", "yellow")}


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


def _list(session: Session, runs_dir: Place, limit: int, children: bool, format_name: str) -> int:
    from gonogo.app import Options, list_runs, run_ids
    from gonogo.report.formats import json_text

    place = Options(runs=runs_dir)
    newest = [run_id for run_id in reversed(run_ids(place)) if children or "." not in run_id]
    shown = list_runs(place, newest[:limit])
    style = session.output.style()
    if format_name == "json":
        session.output.result(json_text([_json(one) for one in shown], unicode=style.unicode))
        return 0
    if not shown:
        session.output.say(f"no runs in {runs_dir}; start one with: gonogo run")
        return 0
    session.output.result("\n".join(line for one in shown for line in _row(one, style)) + "\n")
    if len(newest) > limit:
        session.output.say(f"{len(newest) - limit} older runs: --limit {len(newest)}")
    return 0


def _json(one: Summary) -> dict[str, Any]:
    return {
        "run_id": one.run_id,
        "verdict": one.verdict,
        "name": one.name,
        "event": {"name": one.event} if one.event else None,
        "started_at": _utc(one.started_at) if one.started_at else None,
        "duration_ms": _duration_ms(one),
        "records": one.records,
        "parent": one.parent,
        "problem": one.problem,
    }


def _duration_ms(one: Summary) -> int:
    """From the start to the last record."""
    return max(0, round((one.last_at - one.started_at) * 1000))


def _utc(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def _row(one: Summary, style: Style) -> list[str]:
    from gonogo.report.layout import duration, plain
    from gonogo.report.text import beside

    if one.problem is not None:
        start = f"{style.symbol('failed')} {style.paint(one.run_id, 'bold')}"
        return beside(start, 2 + len(one.run_id), f"can't be read: {plain(one.problem)}", "red", style)
    symbol, colour = _LOOKS.get(one.verdict or "", ("running", "cyan"))
    verdict = style.paint(f"{one.verdict or 'no end':6}", colour)
    start = f"{style.symbol(symbol)} {verdict}  {style.paint(one.run_id, 'bold')}"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started_at))
    parts = [when, duration(_duration_ms(one)), plain(one.name), plain(one.event or "no event")]
    return beside(start, 2 + 6 + 2 + len(one.run_id), style.typography(" · ".join(parts)), "dim", style)
