"""`gonogo providers`: the step types, their keys and what their calls do outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from gonogo.cli import options
from gonogo.cli.session import Session
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.app.catalogue import StepType
    from gonogo.report.layout import Style


@click.command("providers")
@click.argument("name", required=False)
@options.no_color
@options.format_option("table", "json")
@click.pass_obj
def COMMAND(session: Session, name: str | None, format_name: str) -> int:  # noqa: N802 - what the group looks for
    """List the step types; with a NAME, all keys of one.

    Effects say what a call does outside: reads and idempotent calls may be repeated, mutates may not.
    """
    from gonogo.app.catalogue import step_types
    from gonogo.report.formats import json_text

    found = [one for one in step_types() if name is None or name in (one.name, *one.aliases)]
    if not found:
        raise UsageError(f"there is no step type {name!r}", advice="`gonogo providers` lists them")
    if format_name == "json":
        text = json_text(to_builtins(found), unicode=session.output.style().unicode)
    else:
        style = session.output.style()
        lines = _one(found[0], style) if name is not None else _list(found, style)
        text = "\n".join(lines) + "\n"
    session.output.result(text)
    return 0


def _list(found: list[StepType], style: Style) -> Iterator[str]:
    from gonogo.report.layout import cells, padded
    from gonogo.report.text import beside

    width = max(cells(one.name) for one in found)
    for one in found:
        name = style.paint(padded(one.name, width), "bold")
        start = f"{name}  {style.paint(padded(_effects(one), 10), 'cyan')}"
        yield from beside(
            start, width + 12, one.problem or one.summary, "red" if one.problem else "dim", style
        )
        keys = ", ".join(key.name for key in one.keys)
        yield from beside(" " * width, width, f"keys: {keys}" if keys else "no keys of its own", "dim", style)


def _one(one: StepType, style: Style) -> Iterator[str]:
    from gonogo.report.layout import cells, padded
    from gonogo.report.text import beside

    also = f" (also: {', '.join(one.aliases)})" if one.aliases else ""
    yield style.paint(one.name, "bold") + also
    yield from beside("", 0, one.problem or one.summary, "dim", style)
    yield from beside("", 0, f"effects: {_effects(one)}", "cyan", style)
    yield ""
    width = max((cells(key.name) for key in one.keys), default=0)
    for key in one.keys:
        marks = [mark for mark, on in (("required", key.required), ("template", key.template)) if on]
        told = key.description + (f" ({', '.join(marks)})" if marks else "")
        yield from beside(f"  {style.paint(padded(key.name, width), 'bold')}", width + 2, told, "dim", style)


def _effects(one: StepType) -> str:
    return one.effects or ("unknown" if one.problem else "depends")
