"""`gonogo worker`: carries runs that were given to an engine, until it is told to stop."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING, Any

import click

from gonogo.cli import options
from gonogo.cli.anew import Anew
from gonogo.cli.lines import speak
from gonogo.cli.session import Session
from gonogo.errors import UsageError

if TYPE_CHECKING:
    from gonogo.app.engines import Carrier, Limits

log = logging.getLogger("gonogo.worker")

LABEL = r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?"
"""As in `config/schema/base.py`, which takes long to import."""
LIFTED = "unlimited"
UNLIMITED = 0
"""As in `engines/base.py`."""
EVERYWHERE_MAX = 100_000
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
    metavar="N",
    help="Calls at once over all workers of a queue (DBOS only), or 'unlimited'; as it was set before if absent.",
)
@click.option(
    "--rate",
    metavar="N/SECONDS",
    help="So many calls of a queue in so many seconds, like 100/60, or 'unlimited'; DBOS keeps it, if absent.",
)
@click.option(
    "--drain", default="30s", metavar="TIME", help="How long to wait for calls when told to stop; 30s."
)
@options.verbose_worker
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

    if engine is None:
        raise UsageError("which engine?", advice="give --engine dbos or --engine temporal")
    options.check_where(engine, given["url"], given["queue"])
    limits = Limits(
        segments=given["runs"],
        calls=given["calls"],
        calls_everywhere=_everywhere(given["calls_everywhere"], engine),
        rate=_rate(given["rate"]),
        labels=tuple(_label(text) for text in given["labels"]),
        drain_s=options.seconds(given["drain"], "--drain"),
    )
    anew = Anew(os.environ, log.warning)
    carrier = Carrier(engine, given["url"], given["queue"])  # type: ignore[arg-type]
    speak(session.output, session.environment, session.secrets)

    def ready(name: str) -> None:
        anew.ready()
        log.info("worker %s takes work from %s%s: %s", name, engine, _where(carrier), _takes(limits))

    store = Options(runs=given["store"])
    anew.carry(lambda: serve(carrier, store, limits, ready=ready, fenced=anew.begin))
    return 0


def _where(carrier: Carrier) -> str:
    at = f" at {carrier.address}" if carrier.address else ""
    return f"{at}, queue {carrier.queue}" if carrier.queue else at


def _takes(limits: Limits) -> str:
    from gonogo.report.layout import count

    told = [f"{count(limits.segments, 'run')} and {count(limits.calls, 'call')} at once"]
    told += [f"labels {', '.join(limits.labels)}" if limits.labels else "no labels"]
    return "; ".join(told)


def _label(text: str) -> str:
    """What a file may say in `runs_on`: no call would ever come under another label. Raises UsageError."""
    if re.fullmatch(LABEL, text) is None:
        raise UsageError(
            f"{text[:80]!r} can't be a label", advice="use up to 40 small letters, digits and dashes within"
        )
    return text


def _everywhere(text: str | None, engine: str) -> int | None:
    if text is None or text == LIFTED:
        return None if text is None else UNLIMITED
    if engine == "temporal":
        raise UsageError(
            "Temporal knows no bound of calls over all workers",
            advice="bound each worker with --calls, or how many start with --rate",
        )
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:7]) <= EVERYWHERE_MAX):
        raise UsageError(
            f"--calls-everywhere takes 1 to {EVERYWHERE_MAX}, not {text[:80]!r}",
            advice=f"{LIFTED!r} lifts what was set before",
        )
    return int(text)


def _rate(text: str | None) -> tuple[int, float] | None:
    if text is None or text == LIFTED:
        return None if text is None else (UNLIMITED, 1.0)
    calls, _, seconds = text.partition("/")
    try:
        rate = int(calls), float(seconds)
    except ValueError:
        rate = 0, 0.0
    if not 1 <= rate[0] <= RATE_CALLS_MAX or not RATE_SECONDS_MIN <= rate[1] <= 86_400:
        raise UsageError(f"--rate takes CALLS/SECONDS, not {text!r}", advice="write it as 100/60")
    return rate
