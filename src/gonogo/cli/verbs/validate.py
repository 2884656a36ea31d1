"""`gonogo validate`: every mistake in a workflow file at once, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gonogo.cli import options
from gonogo.cli.loading import load
from gonogo.cli.session import Session


@click.command("validate")
@options.config_argument
@options.safety
@click.option("--show", is_flag=True, help="Print what the file and all it extends come to.")
@options.no_color
@options.quiet
@options.format_option("table", "json")
@click.pass_obj
def COMMAND(  # noqa: N802 - what the group looks for
    session: Session, /, config: Path | None, safety: Any, show: bool, format_name: str
) -> int:
    """Find every mistake in a workflow file; run nothing.

    Each problem comes with file:line:column, the line and what to write instead. Ends with 2 when there are errors;
    --safety strict turns warnings into errors.
    """
    from gonogo.app import Ahead

    with Ahead() as ahead:
        loaded = load(session, config, safety, ahead)

    from gonogo.cli.problems import problems_text
    from gonogo.config.problems import data_of
    from gonogo.report.effective import effective
    from gonogo.report.formats import json_text

    merged = effective(loaded.plan) if show else None
    if format_name == "json":
        whole: dict[str, Any] = {
            "valid": True,
            "exit_code": 0,
            "file": str(loaded.files[0]),
            "files": [str(file) for file in loaded.files],
            "steps": len(loaded.plan.steps),
            "digest": loaded.plan.digest,
            "problems": data_of(loaded.problems),
        }
        if show:
            whole["effective"] = merged
        session.output.result(json_text(whole, unicode=session.output.style().unicode))
        return 0
    if loaded.problems:
        session.output.say(problems_text(loaded.problems, session.output.side_style()))
    if merged is not None:
        session.output.result(json_text(merged, unicode=session.output.style().unicode))
    else:
        session.output.result(_summary(session, loaded))
    return 0


def _summary(session: Session, loaded: Any) -> str:
    from gonogo.report.layout import count

    style = session.output.style()
    others = len(loaded.files) - 1
    also = f" (with {count(others, 'more file')})" if others else ""
    warnings = sum(problem.severity == "warning" for problem in loaded.problems)
    doubts = f", {count(warnings, 'warning')}" if warnings else ""
    steps = count(len(loaded.plan.steps), "step")
    return f"{style.symbol('passed')} {loaded.files[0].name}{also} is valid: {steps}{doubts}\n"
