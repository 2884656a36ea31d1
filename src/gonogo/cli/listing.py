"""A run in one line, with what it asks below it, and the same as data: for verbs that tell of many runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gonogo.journal.standing import WORDS

if TYPE_CHECKING:
    from gonogo.app import Summary, Wait
    from gonogo.report.layout import Style

_LOOKS = MappingProxyType(
    {
        "GO": ("passed", "green"),
        "NO-GO": ("failed", "red"),
        "HOLD": ("waiting", "yellow"),
        "QUEUED": ("excluded", "dim"),
        "INTERRUPTED": ("cancelled", "red"),
        "SET ASIDE": ("cancelled", "red"),
    }
)
_WORD_WIDTH = max(map(len, WORDS))


def as_json(one: Summary, *, due: bool = False) -> dict[str, Any]:
    """The run as data. `due`: a timer of it fell due while nobody was there."""
    return {
        "run_id": one.run_id,
        "verdict": one.verdict,
        "standing": one.standing,
        "name": one.name,
        "event": {"name": one.event} if one.event else None,
        "started_at": _utc(one.started_at) if one.started_at else None,
        "duration_ms": _duration_ms(one),
        "records": one.records,
        "parent": one.parent,
        "problem": one.problem,
        "waiting": [_question(one, wait) for wait in one.waits],
        "wake_at": _utc(one.wake_at) if one.wake_at is not None else None,
        "due": due,
        "queued": one.queued,
        "running": one.running,
        "aside": one.aside,
    }


def _question(one: Summary, wait: Wait) -> dict[str, Any]:
    return {
        "place": wait.place,
        "prompt": wait.prompt,
        "since": _at(one, wait.since_s),
        "until": _at(one, wait.until_s),
        "approved": wait.approved,
        "quorum": wait.quorum or None,
    }


def _at(one: Summary, run_s: float | None) -> str | None:
    return _utc(one.zero_at + run_s) if run_s is not None else None


def _duration_ms(one: Summary) -> int:
    """From the start to the last record."""
    return max(0, round((one.last_at - one.started_at) * 1000))


def _utc(at_s: float) -> str | None:
    """None for a time that no calendar has."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
    except (OverflowError, OSError, ValueError):
        return None


def rows(one: Summary, style: Style, *, due: bool = False, questions: bool = False) -> Iterator[str]:
    """The run's line or lines; with `questions` what it asks, too."""
    yield from _row(one, style, due)
    if one.aside is not None:
        yield from _aside(one.run_id, one.aside, style)
    if questions:
        for wait in one.waits:
            yield from _asks(one, wait, style)


def _row(one: Summary, style: Style, due: bool) -> list[str]:
    from gonogo.report.layout import duration, plain
    from gonogo.report.text import beside

    if one.problem is not None:
        start = f"{style.symbol('failed')} {style.paint(one.run_id, 'bold')}"
        return beside(start, 2 + len(one.run_id), f"can't be read: {plain(one.problem)}", "red", style)
    symbol, colour = _LOOKS.get(str(one.standing), ("running", "cyan"))
    verdict = style.paint(f"{one.standing:{_WORD_WIDTH}}", colour)
    start = f"{style.symbol(symbol)} {verdict}  {style.paint(one.run_id, 'bold')}"
    parts = [
        _local(one.started_at),
        duration(_duration_ms(one)),
        plain(one.name),
        plain(one.event or "no event"),
    ]
    if due:
        parts.insert(0, "due")
    return beside(
        start, 2 + _WORD_WIDTH + 2 + len(one.run_id), style.typography(" · ".join(parts)), "dim", style
    )


def _aside(run_id: str, why: str, style: Style) -> list[str]:
    from gonogo.report.layout import plain
    from gonogo.report.text import beside
    from gonogo.report.words import open_end

    told = open_end("SET ASIDE", run_id, aside=why)
    return beside("   ", 4, plain(told), "red", style)


def _asks(one: Summary, wait: Wait, style: Style) -> list[str]:
    from gonogo.report.layout import brief, cells, plain
    from gonogo.report.text import beside

    place = plain(wait.place)
    parts = [
        f"since {_local(one.zero_at + wait.since_s)}" if wait.since_s is not None else "",
        f"until {_local(one.zero_at + wait.until_s)}" if wait.until_s is not None else "",
        f"approved {wait.approved} of {wait.quorum}" if wait.quorum else "",
        brief(wait.prompt, 120),
    ]
    told = style.typography(" · ".join(part for part in parts if part))
    return beside(f"    {style.paint(place, 'bold')}", 4 + cells(place), told, "dim", style)


def _local(at_s: float) -> str:
    """A forged journal may name a time that no calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))
    except (OverflowError, OSError, ValueError):
        return "?"
