"""The click group: each verb's module is imported when the verb is used."""

from __future__ import annotations

from importlib import import_module

import click

from gonogo import __version__
from gonogo.cli.verbs import VERBS, help_text


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"gonogo {__version__}")
        context.exit()


class Verbs(click.Group):
    """`gonogo VERB`; its help is the table's."""

    def __init__(self) -> None:
        option = click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version
        )
        super().__init__("gonogo", params=[option], no_args_is_help=True)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of `--help`."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command; None when there is none of this name."""
        if cmd_name not in VERBS:
            return None
        command = import_module(f"gonogo.cli.verbs.{cmd_name}").COMMAND
        assert isinstance(command, click.Command)
        return command

    def get_help(self, ctx: click.Context) -> str:
        """The same text that the quick way in `main.py` prints."""
        return help_text().rstrip("\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A verb that isn't there gets the nearest one named."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, VERBS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"there is no verb {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)
