"""`gonogo answer RUN STEP TEXT`: answers what a run waits for, and goes on with it."""

from __future__ import annotations

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session, who
from gonogo.errors import UsageError


@click.command("answer")
@options.run_argument
@click.argument("step", metavar="STEP")
@click.argument("text", metavar="TEXT")
@click.option(
    "--by", metavar="NAME", help="Who answers; the user, or in GitHub Actions the actor, if not given."
)
@options.runs_dir
@options.reports
@options.verbose
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(  # noqa: N802 - what the group looks for
    session: Session, /, run: str, step: str, text: str, by: str | None, runs_dir: Place
) -> int:
    """Answer what a run waits for, and go on.

    STEP is a step's name, name@scope for an item of a list, or child.step for a workflow within. For a call in doubt
    TEXT says what became of it: done, again or failed. An approval takes yes or no. TEXT - is read from standard input.
    An answer that isn't taken (another was first, it is too late, its giver isn't asked) ends with 2 and the reason.
    """
    from gonogo.app import answer_run
    from gonogo.cli.running import find, hosted, print_report

    run_id = find(session, runs_dir, run)
    name, _, scope = step.partition("@")
    given = _text(text)
    giver = by if by is not None else who(session.environment)
    result = hosted(
        session,
        runs_dir,
        lambda chosen: answer_run(run_id, name, given, scope=scope, by=giver, options=chosen),
    )
    if result is None:
        session.output.say("the answer is left with the run; the process that runs it takes it up")
        return 0
    return print_report(session, runs_dir, result.run_id, result.notes, result)


def _text(text: str) -> str:
    if text != "-":
        return text
    import sys

    if sys.stdin is None:
        raise UsageError("there is no standard input to read the answer from")
    return sys.stdin.buffer.read(1_000_000).decode("utf-8", "replace")
