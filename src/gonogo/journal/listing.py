"""What `gonogo runs` lists, read from the first and last lines of the journals.

There is no index to build, trust, lock or repair: a few dozen microseconds a run are cheaper than a database
that has to be kept in step with the files. A journal that can't be read is listed with its reason instead of
being left out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gonogo.core.decisions import Finished, Wait
from gonogo.errors import JournalError
from gonogo.journal import files
from gonogo.journal.codec import LineDamaged, NewerFormat, check_format, decode_line, unsealed
from gonogo.journal.jsonl import JOURNAL, LOCK, JsonlRuns
from gonogo.journal.records import Record

__all__ = ["Summary", "finished_in", "in_ms", "queued", "summaries", "summary"]

_CHUNK_BYTES = 8192
_END_OF_TIME_S = 253_402_300_800
"""The year 10000, from which on calendars fail."""


class Summary(Struct, frozen=True):
    """A run in one line. Times are Unix time in milliseconds.

    `status`: GO, NO-GO, HOLD, running, interrupted (no verdict, and nobody writes it), queued (submitted, and nobody
    has begun with it) or unreadable (`note` says why).
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
    waits: tuple[Wait, ...] = ()
    wake_s: float | None = None
    zero_at: float = 0.0

    @property
    def ended_at_ms(self) -> int | None:
        return None if self.status == "running" else self.last_at_ms


class _Plan(Struct):
    name: str = ""


class _Start(Struct):
    """Of a first record, what a list shows; the rest of the plan is skipped without being built."""

    plan: _Plan
    started_at_ms: int = 0
    trigger: dict[str, Any] | None = None
    parent: dict[str, Any] | None = None


class _First(Struct):
    seq: int
    event: _Start


_decode_first = msgspec.json.Decoder(_First).decode


def summaries(runs: JsonlRuns) -> list[Summary]:
    """Every run in the folder, the latest first; runs that began in the same millisecond by id. Raises JournalError."""
    found = [summary(runs, run_id) for run_id in runs.ids()]
    return sorted(found, key=lambda one: (-one.started_at_ms, one.run_id))


def summary(runs: JsonlRuns, run_id: str) -> Summary:
    """One run; what can't be read is told in `note`."""
    home = runs.folder / run_id
    try:
        with files.system_errors("read", home / JOURNAL):
            first, last = _ends(home / JOURNAL)
        head = _decode_first(first)
    except (JournalError, LineDamaged, NewerFormat, msgspec.DecodeError) as error:
        return Summary(run_id, "unreadable", note=str(error))
    start, end = head.event, finished_in(last)
    return Summary(
        run_id,
        end.verdict if end is not None else "running" if files.is_held(home / LOCK) else "interrupted",
        start.plan.name,
        _text(start.trigger, "name"),
        start.started_at_ms,
        in_ms(last.at),
        last.seq - head.seq + 1,
        _text(start.parent, "run_id"),
        waits=end.waits if end is not None else (),
        wake_s=end.wake_s if end is not None else None,
        zero_at=last.at - last.event.at,
    )


def in_ms(at_s: float) -> int:
    """A Unix time in milliseconds; 0 for one that no calendar has, as a forged journal may name it."""
    return round(at_s * 1000) if 0 <= at_s < _END_OF_TIME_S else 0


def queued(run_id: str, event: bytes) -> Summary:
    """A run that nobody has begun with, from the event that will start it."""
    try:
        start = msgspec.json.decode(event, type=_Start)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Summary(run_id, "unreadable", note=f"run {run_id} can't be started: {error}")
    return Summary(
        run_id,
        "queued",
        start.plan.name,
        _text(start.trigger, "name"),
        start.started_at_ms,
        start.started_at_ms,
        parent=_text(start.parent, "run_id"),
    )


def finished_in(last: Record) -> Finished | None:
    """The verdict stands until another event is recorded, so it is in the last record or there is none."""
    return next((each for each in last.decisions if isinstance(each, Finished)), None)


def _text(mapping: dict[str, Any] | None, key: str) -> str | None:
    value = mapping.get(key) if mapping else None
    return value if isinstance(value, str) else None


def _ends(path: Path) -> tuple[bytes, Record]:
    """The first line's JSON and the last whole record. Raises OSError, LineDamaged, NewerFormat."""
    descriptor = files.open_file(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        first = _first_line(descriptor, size)
        check_format(first)
        return unsealed(first.removesuffix(b"\n")), decode_line(_last_line(descriptor, size))
    finally:
        os.close(descriptor)


def _first_line(descriptor: int, size: int) -> bytes:
    """The first line with its end; twice as much is read until it is there."""
    length = _CHUNK_BYTES
    while True:
        data = os.pread(descriptor, length, 0)
        end = data.find(b"\n")
        if end >= 0 or length >= size:
            return data[: end + 1] if end >= 0 else data
        length *= 2


def _last_line(descriptor: int, size: int) -> bytes:
    """The last line that has an end: what comes after it is torn, or being written."""
    length = _CHUNK_BYTES
    while True:
        data = os.pread(descriptor, length, max(0, size - length))
        end = data.rfind(b"\n")
        start = data.rfind(b"\n", 0, end) if end > 0 else -1
        if start >= 0 or length >= size:
            return data[start + 1 : end + 1] if end >= 0 else data
        length *= 2
