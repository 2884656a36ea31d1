"""`gonogo show RUN`: one run as it stands: running, waiting, over, or cut off by a crash."""

from __future__ import annotations

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session
from gonogo.errors import UsageError


@click.command("show")
@options.run_argument
@options.runs_dir
@click.option("--records", is_flag=True, help="Every decision as a sentence, with the values it was made on.")
@click.option(
    "--explain",
    metavar="FAULT",
    help="The story of a fault, from its detection to its end: its number, its step (step@scope), or all.",
)
@click.option(
    "--all-items", is_flag=True, help="All items of lists, not only the first ones that went wrong."
)
@click.option("--metrics", is_flag=True, help="Counters and sums for Prometheus; with --format json as data.")
@options.reports
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(  # noqa: N802 - what the group looks for
    session: Session,
    /,
    run: str,
    runs_dir: Place,
    records: bool,
    explain: str | None,
    metrics: bool,
    all_items: bool,
) -> int:
    """Show one run: steps, reasons, issues, what it waits for.

    RUN is an id, the beginning of one, or last. Ends with 0: the run's verdict is in the text.
    """
    from gonogo.app import Options
    from gonogo.app.looking import is_queued
    from gonogo.cli import stories
    from gonogo.cli.running import find, print_report

    _refuse_two(records=records, explain=explain is not None, metrics=metrics, all_items=all_items)
    run_id = find(session, runs_dir, run)
    if (records or metrics or explain is not None) and is_queued(run_id, Options(runs=runs_dir)):
        session.output.say(f"run {run_id} has no records yet")
        records = metrics = False
        explain = None
    if records:
        stories.print_records(session, runs_dir, run_id)
    elif explain is not None:
        stories.print_fault(session, runs_dir, run_id, explain)
    elif metrics:
        stories.print_metrics(session, runs_dir, run_id)
    else:
        print_report(session, runs_dir, run_id, every_item=all_items)
    return 0


def _refuse_two(*, all_items: bool, **others: bool) -> None:
    asked = [f"--{name}" for name, is_asked in others.items() if is_asked]
    if len(asked) > 1:
        raise UsageError(
            "--records, --explain and --metrics exclude each other", advice="ask for one after the other"
        )
    if asked and all_items:
        raise UsageError(
            f"--all-items is about the table of steps, not about {asked[0]}", advice="leave one of them out"
        )
