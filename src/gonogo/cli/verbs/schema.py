"""`gonogo schema`: the JSON schema of workflow files, for editors."""

from __future__ import annotations

import click

from gonogo.cli.session import Session


@click.command("schema")
@click.pass_obj
def COMMAND(session: Session) -> int:  # noqa: N802 - what the group looks for
    """Print the JSON schema of workflow files, for editors."""
    from gonogo.app.catalogue import workflow_schema
    from gonogo.report.formats import json_text

    session.output.result(json_text(workflow_schema(), unicode=session.output.style().unicode))
    return 0
