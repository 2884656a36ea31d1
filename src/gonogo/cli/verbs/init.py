"""`gonogo init`: writes a working workflow file. The templates are package data and run as they are."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from types import MappingProxyType

import click

from gonogo.cli.session import Session
from gonogo.errors import UsageError

TEMPLATES = MappingProxyType(
    {
        "checks": "commands that must pass, with a retry and a detector",
        "pull-request": "checks that look at the changed files of a pull request",
        "agent": "an agent under contracts: checked output, bounded retries, a person before what lasts",
        "runbook": "an operations procedure: look, decide, act once, verify",
    }
)
FILE = Path("gonogo.yaml")


def template(name: str) -> str:
    """The text of a template."""
    return (resources.files("gonogo.cli") / "templates" / f"{name}.yaml").read_text("utf-8")


def _listed() -> str:
    return "\n".join(f"  {name:<13} {does}" for name, does in TEMPLATES.items())


@click.command(
    "init",
    help=f"Write a working {FILE} to start from.\n\n\b\nTemplates:\n{_listed()}",
    short_help="Write a working gonogo.yaml.",
)
@click.argument("template_name", metavar="[TEMPLATE]", default="checks", type=click.Choice(tuple(TEMPLATES)))
@click.pass_obj
def COMMAND(session: Session, template_name: str) -> int:  # noqa: N802 - what the group looks for
    """Refuses to overwrite."""
    try:
        with FILE.open("x", encoding="utf-8") as file:
            file.write(template(template_name))
    except FileExistsError:
        advice = "move it away, or edit it"
        raise UsageError(f"there is a {FILE} already; it stays as it is", advice=advice) from None
    except OSError as error:
        raise UsageError(f"{FILE} can't be written: {error.strerror or error}") from None
    session.output.result(f"{FILE}\n")
    session.output.say(f"wrote {FILE} ({template_name}); now: gonogo validate, then gonogo run")
    return 0
