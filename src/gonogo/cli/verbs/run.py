"""`gonogo run`: runs the workflow, shows progress on stderr, prints the verdict on stdout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gonogo.cli import options
from gonogo.cli.loading import checked_steps, load, tell_warnings
from gonogo.cli.session import Session
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.app import Ahead, RunResult, Start
    from gonogo.cli.triggers import Detected
    from gonogo.config import Loaded

_JSON_TYPES = frozenset({"integer", "number", "boolean", "array", "object", "null"})


@click.command("run")
@options.config_argument
@options.about_the_event
@click.option("-j", "--max-parallelism", type=click.IntRange(1, 10_000), metavar="N", help="Steps at once.")
@click.option("--fail-fast", is_flag=True, help="Start nothing new after the first failure.")
@click.option(
    "--safe-mode", is_flag=True, help="Show what would change the world outside instead of doing it."
)
@options.safety
@click.option("--seed", metavar="TEXT", help="What jitter is made from; the run's id if not given.")
@options.runs_dir
@click.option(
    "--durability",
    type=click.Choice(("effects", "every", "none")),
    default="effects",
    help="When the journal must be on disk: around calls with consequences, always, or when the system likes.",
)
@click.option(
    "-e", "--env", "env", multiple=True, metavar="K=V", help="Environment variable for the steps; repeatable."
)
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="K=V", help="Input of the workflow; repeatable."
)
@click.option("--message", metavar="TEXT", help="Answers the first question a step asks.")
@options.engine
@click.option(
    "--detach", is_flag=True, help="With --engine: hand the run over, print its name, and don't follow it."
)
@options.reports
@options.verbose
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(session: Session, /, config: Path | None, **given: Any) -> int:  # noqa: N802 - what the group looks for
    """Run the workflow and print the verdict.

    CONFIG is the workflow file; without it, gonogo.yaml is looked for here and above. Ends with 0 for GO, 1 for
    NO-GO, 3 for HOLD.
    """
    from gonogo.app import Ahead
    from gonogo.cli.background import Background
    from gonogo.cli.running import print_report
    from gonogo.cli.triggers import Asked, detect, for_plan

    _check_engine(given)
    asked = Asked(given["event"], given["payload"], given["base"])
    detecting = Background(lambda: detect(asked, session.environment, Path.cwd()))
    session.secrets.update(options.pairs(given["env"], "--env"))
    with Ahead() as ahead:
        loaded = load(session, config, given["safety"], ahead)
        tell_warnings(session, loaded.problems)
        detected = for_plan(detecting.result(), asked, (step.renderer for step in loaded.plan.steps.values()))
        start = _start(session, loaded, detected, given)
        if given["engine"] is not None:
            return _carried(session, _changed(loaded, given), start, given, detected.notes)
        result = _run(session, _changed(loaded, given), start, ahead, given)
    return print_report(session, given["runs_dir"], result.run_id, (*detected.notes, *result.notes), result)


def _check_engine(given: dict[str, Any]) -> None:
    """What only an engine heeds is refused without one, and the other way round. Raises UsageError."""
    options.check_where(given["engine"], given["url"], given["queue"])
    if given["engine"] is not None:
        if given["message"] is not None:
            raise UsageError(
                "--message is for a run in this process",
                advice="answer when the run asks: gonogo answer RUN STEP TEXT",
            )
    elif useless := [name for name in ("detach", "url", "queue") if given[name]]:
        raise UsageError(
            f"--{useless[0]} is for a run that an engine carries",
            advice="give --engine dbos or --engine temporal, too"
            if useless[0] == "detach"
            else "give --engine temporal, too",
        )


def _run(session: Session, loaded: Loaded, start: Start, ahead: Ahead, given: dict[str, Any]) -> RunResult:
    from gonogo.app import start_run
    from gonogo.cli.running import hosted

    result = hosted(
        session,
        given["runs_dir"],
        lambda chosen: start_run(loaded, start, chosen),
        durability=given["durability"],
        message=given["message"],
        env=options.pairs(given["env"], "--env"),
        ahead=ahead,
    )
    assert result is not None
    return result


def _carried(
    session: Session, loaded: Loaded, start: Start, given: dict[str, Any], notes: tuple[str, ...]
) -> int:
    """Have an engine's workers run it; follow it unless that isn't wanted."""
    from gonogo.app import Options
    from gonogo.app.engines import Carrier, submit_run
    from gonogo.cli.carried import followed

    carrier = Carrier(given["engine"], given["url"], given["queue"])
    place = Options(runs=given["runs_dir"], env=options.pairs(given["env"], "--env"))
    run_id = submit_run(loaded.plan, start, place, carrier)
    if given["detach"]:
        _print_where(session, run_id, carrier.name)
        return 0
    session.output.say(f"run {run_id} is with {carrier.name}")
    return followed(session, given["runs_dir"], run_id, notes)


def _print_where(session: Session, run_id: str, engine: str) -> None:
    """All the result there is: scripts need the name of the run."""
    told = json.dumps({"run_id": run_id, "engine": engine})
    session.output.result(f"{told if session.wants_json else f'run {run_id} is with {engine}'}\n")


def _start(session: Session, loaded: Loaded, detected: Detected, given: dict[str, Any]) -> Start:
    from gonogo.app import Start

    return Start(
        trigger=detected.trigger,
        context=detected.context,
        inputs=_inputs(loaded.plan.inputs, options.pairs(given["inputs"], "--input")),
        requested=checked_steps(given["steps"], loaded),
        seed=given["seed"],
        safe_mode=given["safe_mode"],
    )


def _inputs(declared: Mapping[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    """Texts as what the workflow declares: JSON where it wants a number, a list and the like, else the text."""
    return {name: _input(declared.get(name), text) for name, text in texts.items()}


def _input(declared: Any, text: str) -> Any:
    schema = declared.get("schema") if isinstance(declared, dict) else None
    kind = schema.get("type") if isinstance(schema, dict) else None
    kinds = set(kind) if isinstance(kind, list) else {kind}
    if not kinds & _JSON_TYPES:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text  # the check against the schema says what is wrong with it


def _changed(loaded: Loaded, given: dict[str, Any]) -> Loaded:
    """The plan with what the command line says instead, so that the journal has it."""
    from gonogo.app import with_limits

    plan = with_limits(
        loaded.plan,
        max_parallelism=given["max_parallelism"],
        fail_fast=True if given["fail_fast"] else None,
        include_tags=options.words(given["tags"]) or None,
        exclude_tags=options.words(given["exclude_tags"]) or None,
    )
    return msgspec.structs.replace(loaded, plan=plan)
