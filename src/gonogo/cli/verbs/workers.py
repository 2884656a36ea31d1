"""`gonogo workers`: the workers of a store, and what waits for one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from gonogo.cli import options
from gonogo.cli.session import Session

if TYPE_CHECKING:
    from gonogo.journal.postgres.address import Address
    from gonogo.journal.postgres.workers import Present, Waiting
    from gonogo.report.layout import Style


@click.command("workers")
@options.store
@options.no_color
@options.format_option("table", "json")
@click.pass_obj
def COMMAND(session: Session, /, store: Address, format_name: str) -> int:  # noqa: N802 - what the group looks for
    """List the workers that live, with what they have under way, and what waits for one.

    A worker is listed within two seconds of its start, and no longer once it was silent for seven. Ends with 0 whether
    or not there are any.
    """
    from gonogo.app import Options
    from gonogo.app.present import unserved, workers_in
    from gonogo.report.formats import json_text

    living, waiting = workers_in(Options(runs=store))
    found = living, waiting, unserved(living, waiting)
    style = session.output.style()
    if format_name == "json":
        session.output.result(json_text(as_json(*found), unicode=style.unicode))
    else:
        session.output.result("\n".join(table(*found, style)) + "\n")
    return 0


def as_json(living: list[Present], waiting: Waiting, unserved: list[str]) -> dict[str, Any]:
    """For programs: the same."""
    workers = [
        {
            "name": one.name,
            "engine": one.about.engine,
            "queue": one.about.queue or None,
            "machine": one.about.machine,
            "pid": one.about.pid,
            "labels": list(one.about.labels),
            "runs": {"now": one.runs, "most": one.about.runs},
            "calls": {"now": one.calls, "most": one.about.calls},
            "version": one.about.version,
            "since": one.since,
        }
        for one in living
    ]
    calls = [
        {"label": label, "calls": number, "served": label not in unserved}
        for label, number in sorted(waiting.calls.items())
    ]
    return {"workers": workers, "waiting": {"runs": waiting.runs, "calls": calls}}


def table(living: list[Present], waiting: Waiting, unserved: list[str], style: Style) -> list[str]:
    """For people: the workers, a line each, then what waits."""
    from gonogo.report.layout import count, plain

    lines = [_row(one, style) for one in living]
    if not living:
        lines.append("no worker lives; start one: gonogo worker --engine NAME")
    unlabelled = count(waiting.calls.get("", 0), "call")
    lines.append(f"waiting: {count(waiting.runs, 'run')}, {unlabelled} without a label")
    for label, number in sorted(waiting.calls.items()):
        if label:
            told = plain(f"waiting: {count(number, 'call')} for {label}")
            nobody = plain(f": no worker has --label {label}") if label in unserved else ""
            lines.append(style.paint(f"{told}{nobody}", "red") if nobody else told)
    return lines


def _row(one: Present, style: Style) -> str:
    from gonogo.report.layout import duration, plain

    about = one.about
    engine = f"{about.engine} queue {about.queue}" if about.queue else about.engine
    labels = f"labels {', '.join(about.labels)}" if about.labels else "no labels"
    for_s = max(0.0, time.time() - one.since)
    told = [
        engine,
        f"on {about.machine} (pid {about.pid})",
        labels,
        f"runs {one.runs}/{about.runs}",
        f"calls {one.calls}/{about.calls}",
        f"version {about.version}",
        f"for {duration(round(for_s * 1000))}",
    ]
    return f"{style.paint(plain(one.name), 'bold')}  {plain('  '.join(told))}"
