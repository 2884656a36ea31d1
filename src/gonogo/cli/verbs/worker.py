"""`gonogo worker`: carries runs that were given to an engine, until it is told to stop."""

from __future__ import annotations

import logging
import os
import re
from typing import Any

import click

from gonogo.cli import options
from gonogo.cli.anew import Anew
from gonogo.cli.session import Session
from gonogo.errors import UsageError

LABEL = r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?"
"""As in `config/schema/base.py`, which takes long to import."""
RATE_CALLS_MAX = 1_000_000
RATE_SECONDS_MIN = 0.001
"""Engines keep these as numbers of their own; what is far from any use may not fit."""


@click.command("worker")
@options.engine
@options.store
@click.option(
    "--label", "labels", multiple=True, metavar="LABEL", help="Take calls with this runs_on, too; repeatable."
)
@click.option("--runs", type=click.IntRange(1, 10_000), default=100, metavar="N", help="Runs at once; 100.")
@click.option("--calls", type=click.IntRange(1, 1_000), default=16, metavar="N", help="Calls at once; 16.")
@click.option(
    "--calls-everywhere",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Calls at once over all workers of a queue (DBOS only).",
)
@click.option("--rate", metavar="N/SECONDS", help="So many calls of a queue in so many seconds, like 100/60.")
@click.option(
    "--drain", default="30s", metavar="TIME", help="How long to wait for calls when told to stop; 30s."
)
@options.verbose
@options.quiet
@options.no_color
@click.pass_obj
def COMMAND(session: Session, /, engine: str | None, **given: Any) -> int:  # noqa: N802 - what the group looks for
    """Carry runs that were given to an engine, until told to stop.

    Runs are in the store that all workers share; the engine gives each worker its part, and that of a dead worker to
    another. SIGTERM takes nothing new, lets calls end, and leaves runs to others.
    """
    from gonogo.app import Options
    from gonogo.app.engines import Carrier, Limits, serve

    limits = Limits(
        segments=given["runs"],
        calls=given["calls"],
        calls_everywhere=given["calls_everywhere"],
        rate=_rate(given["rate"]),
        labels=tuple(_label(text) for text in given["labels"]),
        drain_s=options.seconds(given["drain"], "--drain"),
    )
    if engine is None:
        raise UsageError("which engine?", advice="give --engine dbos or --engine temporal")
    anew = Anew(os.environ)
    carrier = Carrier(engine, given["url"], given["queue"])  # type: ignore[arg-type]
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=_level(session))

    def ready(name: str) -> None:
        anew.ready()
        session.output.say(f"worker {name} takes work from {engine}; stop it with Ctrl-C")

    store = Options(runs=given["store"])
    anew.carry(lambda: serve(carrier, store, limits, ready=ready, fenced=anew.begin), session.output.complain)
    session.output.say("the worker has ended; its runs go on with others")
    return 0


def _level(session: Session) -> int:
    if session.output.quiet:
        return logging.ERROR
    return logging.INFO if session.output.verbose else logging.WARNING


def _label(text: str) -> str:
    """What a file may say in `runs_on`: no call would ever come under another label. Raises UsageError."""
    if re.fullmatch(LABEL, text) is None:
        raise UsageError(
            f"{text[:80]!r} can't be a label", advice="use up to 40 small letters, digits and dashes within"
        )
    return text


def _rate(text: str | None) -> tuple[int, float] | None:
    if text is None:
        return None
    calls, _, seconds = text.partition("/")
    try:
        rate = int(calls), float(seconds)
    except ValueError:
        rate = 0, 0.0
    if not 1 <= rate[0] <= RATE_CALLS_MAX or not RATE_SECONDS_MIN <= rate[1] <= 86_400:
        raise UsageError(f"--rate takes CALLS/SECONDS, not {text!r}", advice="write it as 100/60")
    return rate
