"""`gonogo plan`: what would run for this event and why; runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gonogo.cli import options
from gonogo.cli.loading import checked_steps, load, tell_warnings
from gonogo.cli.session import Session


@click.command("plan")
@options.config_argument
@options.about_the_event
@options.safety
@options.no_color
@options.quiet
@options.format_option("table", "json")
@click.pass_obj
def COMMAND(session: Session, /, config: Path | None, format_name: str, **given: Any) -> int:  # noqa: N802
    """Show what would run for this event and why, and what is left out; run nothing.

    Steps of one level can start together. Whether an `if` holds is known only when the run gets there.
    """
    from gonogo.app import with_limits
    from gonogo.cli.triggers import Asked, detect, for_plan
    from gonogo.report.formats import json_text
    from gonogo.report.planned import preview, text

    loaded = load(session, config, given["safety"])
    tell_warnings(session, loaded.problems)
    asked = Asked(given["event"], given["payload"], given["base"])
    detected = detect(asked, session.environment, Path.cwd())
    detected = for_plan(detected, asked, (step.renderer for step in loaded.plan.steps.values()))
    plan = with_limits(
        loaded.plan,
        include_tags=options.words(given["tags"]) or None,
        exclude_tags=options.words(given["exclude_tags"]) or None,
    )
    view = preview(plan, detected.trigger, checked_steps(given["steps"], loaded))
    style = session.output.style()
    shown = json_text(view.as_json(), unicode=style.unicode) if format_name == "json" else text(view, style)
    session.output.result(shown)
    return 2 if view.refusal else 0
