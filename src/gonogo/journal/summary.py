"""A run in one line, as lists show it, wherever it is kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from gonogo.core.decisions import Finished, Wait
from gonogo.core.events import CancelAsked
from gonogo.journal.records import Record
from gonogo.journal.standing import VERDICTS, standing

__all__ = [
    "CANCEL_MARK", "Start", "Summary", "by_signal", "finished_in", "in_ms", "queued", "text_of", "was_cancelled",
]  # fmt: skip

_END_OF_TIME_S = 253_402_300_800
"""The year 10000, from which on calendars fail."""


class Summary(Struct, frozen=True):
    """A run in one line. Times are Unix time in milliseconds.

    `status`: GO, NO-GO, HOLD, running, interrupted (no verdict, and nobody writes it), queued (submitted, and nobody
    has begun with it) or unreadable (`note` says why).
    `interrupted`: the verdict is that of a run that a signal stopped. `aside`: why no worker goes on with it until
    somebody asks for that.
    `last_at_ms` is when the last record was made, `ended_at_ms` the same, but None while the run is running. Of a run
    on HOLD `waits` are its questions, `wake_s` is when its next timer is due, on its clock, whose zero was at `zero_at`
    (Unix time in seconds).
    """

    run_id: str
    status: str
    workflow: str = ""
    event: str | None = None
    started_at_ms: int = 0
    last_at_ms: int = 0
    records: int = 0
    parent: str | None = None
    note: str | None = None
    aside: str | None = None
    waits: tuple[Wait, ...] = ()
    wake_s: float | None = None
    zero_at: float = 0.0
    interrupted: bool = False

    @property
    def standing(self) -> str | None:
        """How it stands in one word (`standing.WORDS`); None when it can't be read."""
        if self.status == "unreadable":
            return None
        return standing(
            self.status if self.status in VERDICTS else None,
            interrupted=self.interrupted,
            running=self.status == "running",
            queued=self.status == "queued",
            aside=self.aside,
        )

    @property
    def ended_at_ms(self) -> int | None:
        return None if self.status == "running" else self.last_at_ms


class _Plan(Struct):
    name: str = ""


class Start(Struct):
    """Of a first record, what a list shows; the rest of the plan is skipped without being built."""

    plan: _Plan
    started_at_ms: int = 0
    trigger: dict[str, Any] | None = None
    parent: dict[str, Any] | None = None


def in_ms(at_s: float) -> int:
    """A Unix time in milliseconds; 0 for one that no calendar has, as a forged journal may name it."""
    return round(at_s * 1000) if 0 <= at_s < _END_OF_TIME_S else 0


def queued(run_id: str, event: bytes) -> Summary:
    """A run that nobody has begun with, from the event that will start it."""
    try:
        start = msgspec.json.decode(event, type=Start)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Summary(run_id, "unreadable", note=f"run {run_id} can't be started: {error}")
    return Summary(
        run_id,
        "queued",
        start.plan.name,
        text_of(start.trigger, "name"),
        start.started_at_ms,
        start.started_at_ms,
        parent=text_of(start.parent, "run_id"),
    )


def finished_in(last: Record) -> Finished | None:
    """The verdict stands until another event is recorded, so it is in the last record or there is none."""
    return next((each for each in last.decisions if isinstance(each, Finished)), None)


CANCEL_MARK = f'"type":"{CancelAsked.__struct_config__.tag}"'.encode()
"""In every line that holds a cancel, and in few others."""


def was_cancelled(end: Finished | None) -> bool:
    """Whether a run ended because somebody, or a signal, stopped it."""
    return end is not None and "cancelled" in end.because


def by_signal(backwards: Iterable[Record]) -> bool:
    """Whether it was a signal, from the records of a run that was cancelled, the last first."""
    cancels = (record.event for record in backwards if isinstance(record.event, CancelAsked))
    cancel = next(cancels, None)
    return cancel is not None and cancel.interrupted


def text_of(mapping: dict[str, Any] | None, key: str) -> str | None:
    """A text in a mapping that may be forged, or missing."""
    value = mapping.get(key) if mapping else None
    return value if isinstance(value, str) else None
