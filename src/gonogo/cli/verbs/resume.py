"""`gonogo resume RUN`: goes on with a run after a crash, a failure or a hold."""

from __future__ import annotations

from typing import Any

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session


@click.command("resume")
@options.run_argument
@options.runs_dir
@click.option(
    "-e", "--env", "env", multiple=True, metavar="K=V", help="Environment variable for the steps; repeatable."
)
@click.option("--message", metavar="TEXT", help="Answers the first question a step asks.")
@options.reports
@options.verbose
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(session: Session, /, run: str, runs_dir: Place, **given: Any) -> int:  # noqa: N802
    """Go on with a run after a crash, a failure or a hold.

    RUN is an id, the beginning of one, or last. What is done stays done; a run that is over stays as it is.
    """
    from gonogo.app import resume_run
    from gonogo.cli.carried import carried_on
    from gonogo.cli.running import find, hosted, over_already, print_report

    env = options.pairs(given["env"], "--env")
    session.secrets.update(env)
    run_id = find(session, runs_dir, run)
    if (over := over_already(session, runs_dir, run_id, unless_cancelled=True)) is not None:
        return int(over.exit_code)
    if (code := carried_on(session, runs_dir, run_id)) is not None:
        return code
    result = hosted(
        session, runs_dir, lambda chosen: resume_run(run_id, chosen), env=env, message=given["message"]
    )
    return print_report(session, runs_dir, run_id, result.notes if result else (), result)
