"""`gonogo resume RUN`: goes on with a run after a crash, a failure or a hold; with --from, --set or --config also with
one that is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session, asker, destinations
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.app.again import Wish

_OUTPUT = ".output"


@click.command("resume")
@click.argument("run", metavar="RUN", required=False)
@click.option(
    "--due",
    is_flag=True,
    help="All runs whose timer fell due while nobody was there, instead of one; for cron.",
)
@options.runs_dir
@click.option(
    "--from",
    "steps",
    multiple=True,
    metavar="STEP",
    help="Run this step again, and what depends on it; repeatable. STEP@SCOPE for an item of a list.",
)
@click.option(
    "--set",
    "outputs",
    multiple=True,
    metavar="STEP.output=JSON",
    help="Give a step's output instead of running it; what depends on it runs again; repeatable.",
)
@click.option(
    "--config", type=options.PATH, metavar="FILE", help="Go on under this workflow, which may be changed."
)
@click.option("--by", metavar="NAME", help="Who asks, for the journal; your name here if not given.")
@click.option("--yes", is_flag=True, help="Steps behind may change something outside again.")
@click.option("--plan", "only_plan", is_flag=True, help="Show what would run again, and why; run nothing.")
@click.option(
    "-e", "--env", "env", multiple=True, metavar="K=V", help="Environment variable for the steps; repeatable."
)
@click.option("--message", metavar="TEXT", help="Answers the first question a step asks.")
@options.reports
@options.verbose
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(  # noqa: N802 - what the group looks for
    session: Session, /, run: str | None, due: bool, runs_dir: Place, **given: Any
) -> int:
    """Go on with a run after a crash, a failure or a hold.

    RUN is an id, the beginning of one, or last. What is done stays done; a run that is over stays as it is, unless
    steps are to run again (--from), are given an output (--set) or the workflow is changed (--config).

    With --due each run has a line of the result, whatever it comes to; what can't go on ends it with an error's code.
    """
    if run is None or due:
        return _wake_all(session, run, runs_dir, due=due, given=given)
    from gonogo.app import resume_run, run_again_from
    from gonogo.cli.carried import carried_on
    from gonogo.cli.running import find, hosted, over_already, print_report

    env = options.pairs(given["env"], "--env")
    session.secrets.update(env)
    run_id = find(session, runs_dir, run)
    wish = _wish(session, given)
    if given["only_plan"]:
        return _show(session, runs_dir, run_id, wish)
    over = None if wish.asks_for_something else over_already(session, runs_dir, run_id, unless_cancelled=True)
    if over is not None:
        session.output.say(f"to run a step of it again: gonogo resume {run_id} --from STEP")
        return int(over.exit_code)
    asked = wish if wish.asks_for_something else None
    code = carried_on(session, runs_dir, run_id, asked, env, given["message"])
    if code is not None:
        return code
    result = hosted(
        session,
        runs_dir,
        lambda chosen: (
            run_again_from(run_id, wish, chosen) if wish.asks_for_something else resume_run(run_id, chosen)
        ),
        env=env,
        message=given["message"],
    )
    return print_report(session, runs_dir, run_id, result.notes if result else (), result)


def _wake_all(session: Session, run: str | None, runs_dir: Place, *, due: bool, given: dict[str, Any]) -> int:
    if not due or run is not None:
        raise UsageError(
            "resume takes one RUN, or --due for all that are due", advice="'gonogo runs' lists the runs"
        )
    asked = [name for name, value in given.items() if value and name != "env"]
    if asked:
        raise UsageError(
            "--due goes on with runs as they are", advice="name one RUN to change something about it"
        )
    from gonogo.cli.waking import wake_all

    env = options.pairs(given["env"], "--env")
    session.secrets.update(env)
    return wake_all(session, runs_dir, env)


def _wish(session: Session, given: dict[str, Any]) -> Wish:
    from gonogo.app.again import Wish
    from gonogo.cli.loading import config_path

    return Wish(
        steps=given["steps"],
        outputs=_outputs(given["outputs"]),
        workflow=config_path(session, given["config"]) if given["config"] is not None else None,
        by=given["by"] or asker(session.environment),
        may_act_again=given["yes"],
    )


def _outputs(texts: tuple[str, ...]) -> dict[str, Any]:
    """The outputs by step. Raises UsageError, for two of one step, too."""
    outputs: dict[str, Any] = {}
    for step, value in map(_given, texts):
        if step in outputs:
            raise UsageError(
                f"--set gives {step[:80]} two outputs, and it has one", advice="give it the one that is meant"
            )
        outputs[step] = value
    return outputs


def _given(text: str) -> tuple[str, Any]:
    """`STEP.output=JSON` as the step and the value. Raises UsageError."""
    name, equals, value = text.partition("=")
    step = name.removesuffix(_OUTPUT)
    if not equals or step == name or not step:
        raise UsageError(f"--set takes STEP.output=JSON, not {text[:80]!r}")
    return step, options.output_given(value, f"the output of {step}", f"--set '{name}=\"text\"'")


def _show(session: Session, runs_dir: Place, run_id: str, wish: Wish) -> int:
    from gonogo.app import Options, foresee
    from gonogo.report import again
    from gonogo.report.formats import json_text

    if not wish.asks_for_something:
        raise UsageError(
            "--plan shows what --from, --set or --config would run again", advice="add one of them"
        )
    found = foresee(run_id, wish, Options(runs=runs_dir))
    style = session.output.style()
    if any(name == "json" for name, _ in destinations(session.arguments)):
        session.output.result(json_text(again.as_json(found.state, found.look), unicode=style.unicode))
    else:
        session.output.result(again.text(found.state, found.look, style))
    return 0
