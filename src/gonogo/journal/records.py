"""What one line of a journal says: an event, and everything that was decided because of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gonogo.core.decisions import AnyDecision
from gonogo.core.events import AnyEvent, RunStarted

__all__ = ["FORMAT_VERSION", "AnyDecision", "AnyEvent", "Record", "format_version"]

FORMAT_VERSION = 1
"""Rises when an older gonogo could misread what a newer one writes. New optional fields don't raise it.

`RunStarted.format_version` is left out of a line when it is its default, so that default stays 1 for ever: a
writer of version 2 must set the field.
"""


class Record(Struct, frozen=True, omit_defaults=True):
    """One event with its decisions. `seq` counts from the first record of the run without gaps.

    `at` is Unix time in seconds when the record was made: for people. Nothing decides by it; the run's clock
    is `event.at`. `apart`: what of the event a line holds as references to blobs (large.py). Either `output` (of a
    call), whose reference stands in its place, or references by path (`memory.0.value`), with an empty value in each
    place: one that an older gonogo would take for what was there, so its type is one that such a gonogo refuses.
    """

    seq: int
    at: float
    event: AnyEvent
    decisions: tuple[AnyDecision, ...] = ()
    apart: str | dict[str, Any] = ""


def format_version(record: Record) -> int | None:
    """The version a journal's first record states; None when it isn't the start of a run."""
    return record.event.format_version if isinstance(record.event, RunStarted) else None
