"""What `gonogo runs` lists, read from the first and last lines of the journals.

There is no index to build, trust, lock or repair: a few dozen microseconds a run are cheaper than a database
that has to be kept in step with the files. A journal that can't be read is listed with its reason instead of
being left out.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from gonogo.errors import JournalError
from gonogo.journal import files
from gonogo.journal.codec import LineDamaged, NewerFormat, check_format, decode_line, unsealed
from gonogo.journal.jsonl import JOURNAL, LOCK, JsonlRuns
from gonogo.journal.records import Record
from gonogo.journal.summary import (
    CANCEL_MARK,
    Start,
    Summary,
    by_signal,
    finished_in,
    in_ms,
    text_of,
    was_cancelled,
)

__all__ = ["summaries", "summary"]

_CHUNK_BYTES = 8192


class _First(Struct):
    seq: int
    event: Start


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
        end = finished_in(last)
        interrupted = was_cancelled(end) and by_signal(_with_cancels(home / JOURNAL))
    except (JournalError, LineDamaged, NewerFormat, msgspec.DecodeError) as error:
        return Summary(run_id, "unreadable", note=str(error))
    start = head.event
    return Summary(
        run_id,
        end.verdict if end is not None else "running" if files.is_held(home / LOCK) else "interrupted",
        start.plan.name,
        text_of(start.trigger, "name"),
        start.started_at_ms,
        in_ms(last.at),
        last.seq - head.seq + 1,
        text_of(start.parent, "run_id"),
        waits=end.waits if end is not None else (),
        wake_s=end.wake_s if end is not None else None,
        zero_at=last.at - last.event.at,
        interrupted=interrupted,
    )


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


def _with_cancels(path: Path) -> Iterator[Record]:
    """The records with a cancel in them, and perhaps some without, the last first; a last line without an end is passed
    over. Raises as `_ends`.
    """
    descriptor = files.open_file(path, os.O_RDONLY)
    try:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as text:
            end = text.rfind(b"\n") + 1
            while (mark := text.rfind(CANCEL_MARK, 0, end)) >= 0:
                start = text.rfind(b"\n", 0, mark) + 1
                yield decode_line(text[start : text.find(b"\n", mark)])
                end = start
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
