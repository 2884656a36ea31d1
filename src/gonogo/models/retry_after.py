"""When the far side wants to be asked again, in every form that servers say it (reliability-gate.md B42). The one place
that reads it: for model servers, for HTTP and GitHub steps, and for the exceptions that any function raises in a gate.

Whether to wait that long is for others: a long wait is passed on as it was said (RET-4), only what makes no
sense is dropped, with a note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from gonogo.models.cleaning import named

WAIT_S_MAX = 31 * 24 * 3600.0
"""Longer waits make no sense even for a quota that is counted by months."""
_EPOCH_S_LEAST = 1e9
_EPOCH_MS_LEAST = 1e12
"""A reset from here on is a moment in seconds (since 2001) or milliseconds; below it is a number of seconds."""
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
_DURATION = re.compile(
    r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?"
)
_UNITS_S = (86400.0, 3600.0, 60.0, 1.0, 0.001)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = r"(?P<time>\d\d:\d\d:\d\d)"
_DATE = re.compile(
    rf"\w+, (?P<day>\d\d)[ -](?P<month>[A-Z][a-z][a-z])[ -](?P<year>\d\d(\d\d)?) {_TIME} (GMT|UTC|\+0000)",
    re.ASCII,
)
_ASCTIME = re.compile(rf"\w+ (?P<month>[A-Z][a-z][a-z]) +(?P<day>\d?\d) {_TIME} (?P<year>\d\d\d\d)", re.ASCII)
_WINDOW = re.compile(
    r"(?:x-)?ratelimit-reset(?P<of>-[\w-]+)?|(?P<vendor>anthropic)-ratelimit-(?P<window>[\w-]+)-reset"
)


class Wait(Struct, frozen=True, omit_defaults=True):
    """Seconds from the moment of the answer, where they stood (`from_`), and what was dropped on the way."""

    seconds: float | None = None
    from_: str = ""
    notes: tuple[str, ...] = ()


def retry_after(headers: Mapping[str, str], now_s: float, delay: object = None) -> Wait:
    """The wait that an answer asks for; the most exact form that can be read wins.

    Args:
        headers: Names in lower case.
        now_s: Seconds since 1970, for moments in an answer without a `Date` of its own.
        delay: A duration out of the body (`"34s"`), where the format has one.
    """
    notes: list[str] = []
    moment_s = _date_s(headers.get("date", "")) or now_s
    for source, seconds in _forms(headers, moment_s, delay):
        if seconds is not None and 0 <= seconds <= WAIT_S_MAX:
            return Wait(seconds, source, tuple(notes))
        notes.append(f"{source} makes no sense: {named(headers.get(source, delay)) or 'empty'}")
    return Wait(None, "", tuple(notes[:8]))


def _forms(headers: Mapping[str, str], moment_s: float, delay: object) -> Iterator[tuple[str, float | None]]:
    """Each form that is there, with its seconds; None when it can't be read."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):  # OpenAI's and Azure's
        if name in headers:
            milliseconds = _number(headers[name])
            yield name, None if milliseconds is None else milliseconds / 1000
    if "retry-after" in headers:
        yield "retry-after", _seconds_or_date(headers["retry-after"], moment_s)
    if delay is not None:
        yield "retryDelay", _duration(delay) if isinstance(delay, str) else None
    exhausted = _exhausted(headers, moment_s)
    if exhausted:
        # Several windows may be used up: asking before the last one is free again would be in vain.
        yield max(exhausted, key=lambda window: -1.0 if window[1] is None else window[1])


def _exhausted(headers: Mapping[str, str], moment_s: float) -> list[tuple[str, float | None]]:
    """Windows of a rate limit that say that nothing remains of them, with the seconds to their reset."""
    found = []
    for name in sorted(headers):
        matched = _WINDOW.fullmatch(name)
        if matched is not None and _number(headers.get(_remaining(name, matched), "")) == 0:
            found.append((name, _reset_s(headers[name], moment_s)))
    return found


def _remaining(name: str, matched: re.Match[str]) -> str:
    """The header that counts what is left of the window whose reset has this name."""
    if matched["vendor"]:
        return f"anthropic-ratelimit-{matched['window']}-remaining"
    return name.replace("ratelimit-reset", "ratelimit-remaining", 1)


def _reset_s(text: str, moment_s: float) -> float | None:
    """Seconds to a reset: a duration (`1m30s`), seconds, a moment in seconds or milliseconds, or RFC 3339."""
    number = _number(text)
    if number is None:
        seconds = _duration(text)
        return seconds if seconds is not None else _until(_rfc3339_s(text), moment_s)
    if number >= _EPOCH_MS_LEAST:
        return _until(number / 1000, moment_s)
    return _until(number, moment_s) if number >= _EPOCH_S_LEAST else number


def _seconds_or_date(text: str, moment_s: float) -> float | None:
    """Both forms of RFC 9110, 10.2.3; a fraction of a second, which some servers send, is understood."""
    number = _number(text)
    return number if number is not None else _until(_date_s(text), moment_s)


def _until(then_s: float | None, moment_s: float) -> float | None:
    """Seconds to a moment; one that has passed needs no wait."""
    return None if then_s is None else max(0.0, then_s - moment_s)


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if text.isascii() and _NUMBER.fullmatch(text) else None


def _duration(text: str) -> float | None:
    """`1h2m3.5s`, `6m0s`, `12ms`, `34s`."""
    matched = _DURATION.fullmatch(text.strip()) if len(text) <= 60 and text.isascii() else None
    if matched is None or not any(matched.groups()):
        return None
    return math.fsum(
        float(part) * unit for part, unit in zip(matched.groups(), _UNITS_S, strict=True) if part
    )


def _date_s(text: str) -> float | None:
    """A date of HTTP in any of its three spellings (RFC 9110, 5.6.7) as seconds since 1970."""
    text = text.strip() if len(text) <= 60 else ""
    matched = _DATE.fullmatch(text) or _ASCTIME.fullmatch(text)
    if matched is None:
        return None
    year = int(matched["year"])
    if year < 100:
        year += 2000 if year < 70 else 1900
    try:
        hour, minute, second = (int(part) for part in matched["time"].split(":"))
        # A leap second, which datetime doesn't know, is the second before it.
        return datetime(
            year,
            _MONTHS.index(matched["month"]) + 1,
            int(matched["day"]),
            hour,
            minute,
            min(second, 59),
            tzinfo=UTC,
        ).timestamp()
    except ValueError:
        return None


def _rfc3339_s(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip()) if len(text) <= 60 else None
    except ValueError:
        return None
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else None
