"""`gonogo cancel RUN`: asks a run to stop; one that waits or lies still is ended here."""

from __future__ import annotations

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session, who


@click.command("cancel")
@options.run_argument
@options.runs_dir
@options.reports
@options.verbose
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(session: Session, /, run: str, runs_dir: Place) -> int:  # noqa: N802 - what the group looks for
    """Ask a run to stop.

    RUN is an id, the beginning of one, or last. A run in another process ends within two seconds, its cleanup aside;
    twice, and cleanup stops too. Ends with 0 when the run is told or ended; a run that was over before stays as it is,
    and its own exit code is this command's.
    """
    from gonogo.app import cancel_run
    from gonogo.cli.running import find, hosted, over_already, print_report

    run_id = find(session, runs_dir, run)
    if (over := over_already(session, runs_dir, run_id)) is not None:
        return 0 if over.cancelled else int(over.exit_code)
    result = hosted(session, runs_dir, lambda chosen: cancel_run(run_id, by=who(), options=chosen))
    if result is None:
        session.output.say("the process that runs it is told to stop")
    else:
        print_report(session, runs_dir, result.run_id, result.notes, result)
    return 0
