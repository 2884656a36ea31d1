"""`gonogo breakers`: the circuit breakers of outbound calls; take a target out, or let it in again."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import click

from gonogo.cli import options
from gonogo.cli.session import Place, Session, who
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.report.layout import Style

_COLOURS = {"closed": "green", "open": "red", "isolated": "red", "half-open": "yellow", "resting": "yellow"}
_ACTIONS = ("list", "isolate", "reset")
_KEY = re.compile("name=(.+?)/endpoint=(.+)")


@click.command("breakers")
@click.argument("action", type=click.Choice(_ACTIONS), default="list")
@click.argument("key", required=False)
@click.option("--reason", default="by hand", metavar="TEXT", help="Why it is isolated; others see it.")
@click.option(
    "--for", "duration", default="1h", metavar="TIME", help="How long: 30s, 10m, 1h, …; 1h if absent."
)
@options.runs_dir
@options.no_color
@options.format_option("table", "json")
@click.pass_obj
def COMMAND(  # noqa: N802 - what the group looks for
    session: Session,
    /,
    action: str,
    key: str | None,
    reason: str,
    duration: str,
    runs_dir: Place,
    format_name: str,
) -> int:
    """List the circuit breakers of outbound calls, isolate a target, or reset its breaker.

    KEY is a breaker's key, or a part of it that no other has. An isolated target gets no calls until its time is up or
    it is reset; all processes with these runs heed it. A breaker that a process has opened is advisory for the others:
    they go on until the target fails for them, too, or for most of them (breaker.shared, breaker.quorum of a policy).
    """
    from gonogo.app import Options, isolate_breaker, reset_breaker

    place = Options(runs=runs_dir)
    if action == "list":
        if key is not None:
            raise UsageError(f"list takes no key, found {key!r}")
    elif key is None:
        raise UsageError(f"{action} needs the breaker's key", advice="'gonogo breakers' lists them")
    elif action == "isolate":
        key = _key_of(key)
        whole = isolate_breaker(key, reason, by=who(), for_s=_seconds(duration), options=place)
        session.output.say(
            f"{_named(whole)} gets no calls for {duration}; "
            f"let it in again with: gonogo breakers reset {shlex.quote(key)}"
        )
    else:
        session.output.say(f"{_named(reset_breaker(_key_of(key), place))} is closed")
    _print(session, runs_dir, place, format_name)
    return 0


def _print(session: Session, runs_dir: Place, place: Any, format_name: str) -> None:
    from gonogo.app import list_breakers
    from gonogo.report.formats import json_text

    found = list_breakers(place)
    style = session.output.style()
    if format_name == "json":
        session.output.result(json_text([_json(one) for one in found], unicode=style.unicode))
    elif not found:
        session.output.say(f"no breaker has a record in {runs_dir}: no call went through one yet")
    else:
        session.output.result("\n".join(line for one in found for line in _row(one, style)) + "\n")


def _json(one: Any) -> dict[str, Any]:
    return {
        "key": one.key,
        "state": one.state,
        "failures": one.failures,
        "openings": one.openings,
        "left_s": None if one.until_s is None else round(one.until_s, 3),
        "reason": one.reason,
        "opened_by": one.opened_by or None,
        "shared": one.shared or None,
        "failing": one.failing,
        "processes": one.processes,
    }


def _row(one: Any, style: Style) -> list[str]:
    from gonogo.report.layout import cells, duration, plain
    from gonogo.report.text import beside

    state = style.paint(f"{one.state:9}", _COLOURS.get(one.state, "yellow"))
    told = [] if one.until_s is None else [f"for {duration(round(one.until_s * 1000))} more"]
    told += [plain(one.reason)] if one.reason else []
    told += [f"{one.failures} failures in a row"] if one.failures else []
    told += _opened(one)
    key = plain(_named(one.key))
    return beside(f"{state}  {style.paint(key, 'bold')}", 11 + cells(key), "; ".join(told), "dim", style)


def _named(key: str) -> str:
    """`shop at https://shop.example`, or the address alone where that is the name, too; another key as it is."""
    found = _KEY.fullmatch(key)
    if found is None:
        return key
    name, endpoint = found.groups()
    return str(name if name == endpoint else f"{name} at {endpoint}")


def _key_of(told: str) -> str:
    """The key that is told as `shop at https://shop.example`; anything else may be a key or a part of one."""
    name, at, endpoint = told.partition(" at ")
    return f"name={name}/endpoint={endpoint}" if at and "=" not in name else told


def _opened(one: Any) -> list[str]:
    """Who opened it, and whom that binds."""
    from gonogo.report.layout import plain

    if (
        not one.opened_by or one.state == "isolated"
    ):  # who isolated it is told with the reason, and it binds all
        return []
    binds = "for all" if one.shared == "strict" else "advisory"
    seen = f"{one.failing} of {one.processes} processes saw it fail lately" if one.processes else ""
    return [f"opened by {plain(one.opened_by)}, {binds}", *([seen] if seen else [])]


def _seconds(text: str) -> float:
    from gonogo.config.schema.base import limit_s

    try:
        return float(limit_s(text))
    except ValueError as problem:
        raise UsageError(f"--for: {problem}") from problem
