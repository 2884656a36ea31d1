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
@click.option("--all", "every", is_flag=True, help="All that fit STEP, if several wait, get this answer.")
@click.option(
    "--output", "given", metavar="JSON", help="What a call in doubt gave that was done, for those behind it."
)
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
    session: Session,
    /,
    run: str,
    step: str,
    text: str,
    every: bool,
    given: str | None,
    by: str | None,
    runs_dir: Place,
) -> int:
    """Answer what a run waits for, and go on.

    STEP is a step's name, name@scope for an item of a list, or child.step for a workflow within; a name alone stands
    for whatever of the step waits, and * in it for any text, so that '*' with --all is everything. For a call in doubt
    TEXT says what became of it: done, again, failed, or unknown if nobody will ever know. An approval takes yes or no.
    TEXT - is read from standard input.

    Ends with the run's exit code where the run goes on here, and with 0 where the answer is left with it: for the
    process that runs it, or for its engine's workers, which hear of it by themselves when the engine was away. An
    answer that isn't taken (another was first, it is too late, its giver isn't asked) ends with 2 and the reason.
    """
    from msgspec import UNSET

    from gonogo.app.requests import Answer, give_async
    from gonogo.cli.asked import hosted_asking, left_with
    from gonogo.cli.running import find, print_report

    run_id = find(session, runs_dir, run)
    name, _, scope = step.partition("@")
    example = """--output '"text"'"""
    output = UNSET if given is None else options.output_given(given, "the output", example)
    answer = Answer(_text(text), by if by is not None else who(session.environment), output)
    asked = hosted_asking(
        session,
        runs_dir,
        lambda chosen: give_async(run_id, name, answer, scope=scope, every=every, options=chosen),
    )
    if every:
        session.output.say(f"answered {len(asked.places)}: {asked.named}")
    if asked.result is None:
        left_with(session, asked, "the answer")
        return 0
    return print_report(session, runs_dir, asked.result.run_id, asked.result.notes, asked.result)


def _text(text: str) -> str:
    if text != "-":
        return text
    import sys

    if sys.stdin is None:
        raise UsageError("there is no standard input to read the answer from")
    return sys.stdin.buffer.read(1_000_000).decode("utf-8", "replace")
