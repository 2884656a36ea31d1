"""`gonogo cancel RUN`: asks a run to stop; one that waits or lies still is ended here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session, who

if TYPE_CHECKING:
    from gonogo.app.requests import Asked


@click.command("cancel")
@options.run_argument
@click.option(
    "--give-up",
    is_flag=True,
    help="Its calls in doubt, too: they end as failed, and nobody knows whether they were done.",
)
@options.runs_dir
@options.reports
@options.verbose
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(session: Session, /, run: str, give_up: bool, runs_dir: Place) -> int:  # noqa: N802 - what the group looks for
    """Ask a run to stop.

    RUN is an id, the beginning of one, or last. A run in another process ends within two seconds, its cleanup aside;
    twice, and cleanup stops too. A call in doubt, also of a run beneath, keeps the run on HOLD until somebody says what
    became of it, or gives it up. Ends with 0 when the run is told or ended, with 3 when it was cancelled before and
    nothing but calls in doubt keeps it; a run that was over before stays as it is, and its own exit code is this
    command's.
    """
    from gonogo.app import Options
    from gonogo.app.places import listed
    from gonogo.app.requests import doubts_of_cancelled, stop_async
    from gonogo.cli.asked import hosted_asking
    from gonogo.cli.running import find, over_already
    from gonogo.report.layout import count

    run_id = find(session, runs_dir, run)
    if (over := over_already(session, runs_dir, run_id)) is not None:
        return 0 if over.cancelled else int(over.exit_code)
    doubts = [] if give_up else doubts_of_cancelled(run_id, Options(runs=runs_dir))
    if doubts:
        session.output.complain(
            f"run {run_id} was cancelled already, and only {count(len(doubts), 'call')} in doubt keep it: "
            f"{listed(doubts)}\nsay what became of all: gonogo answer {run_id} '*' 'done|again|failed|unknown' --all\n"
            f"or give them up: gonogo cancel {run_id} --give-up"
        )
    by = who(session.environment)
    asked = hosted_asking(
        session, runs_dir, lambda chosen: stop_async(run_id, by=by, give_up=give_up, options=chosen)
    )
    _tell(session, runs_dir, asked)
    return 3 if doubts else 0


def _tell(session: Session, runs_dir: Place, asked: Asked) -> None:
    from gonogo.cli.asked import left_with
    from gonogo.cli.running import print_report
    from gonogo.report.layout import count

    if asked.places:
        session.output.say(f"gave up {count(len(asked.places), 'call')} in doubt: {asked.named}")
    if asked.lay_there:
        session.output.say("a cancel was left with the run before, which hadn't taken it up yet")
    if asked.result is not None:
        print_report(session, runs_dir, asked.result.run_id, asked.result.notes, asked.result)
    elif not (asked.carrier or asked.away or asked.places):
        session.output.say("the process that runs it is told to stop")
    elif not asked.lay_there or asked.places:
        left_with(session, asked, "the cancel")
    elif asked.away is not None:
        left_with(session, asked, "that")
