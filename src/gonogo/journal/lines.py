"""Reads a journal file as far as it can be trusted.

A last line without its end is what a crash leaves: it is left out and reported (`show` works on a run that is
being written, too). Anything else that isn't as it was written is refused with its line number: a record that
others build on may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from gonogo.core.events import RunStarted
from gonogo.errors import JournalError
from gonogo.journal.codec import LineDamaged, NewerFormat, check_format, decode_line
from gonogo.journal.records import Record

__all__ = ["Parsed", "parse"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """The records of a journal; `whole_bytes` is where they end, `torn` what follows: part of a line, or nothing."""

    records: list[Record]
    whole_bytes: int
    torn: bytes
    unended: bool = False
    """True when the last record is whole and only its newline is missing."""


CLOCK_S_MAX = 1e9
"""No run is older than thirty years; a clock beyond that is damage, or a forgery."""


def parse(data: bytes, path: Path) -> Parsed:
    """The records in `data`, the content of the journal at `path`.

    Raises:
        JournalError: it holds no record, is damaged before its last line, or is of a newer format.
    """
    lines = BytesIO(data).readlines()
    torn = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
    records = _records(lines, path)
    if torn and (last := _unended(torn, records)):
        return Parsed([*records, last], len(data), b"", unended=True)
    if not records:
        raise JournalError(
            f"{path} holds no whole record: the run ended before it began", advice="start it again"
        )
    return Parsed(records, len(data) - len(torn), torn)


def _records(lines: list[bytes], path: Path) -> list[Record]:
    records: list[Record] = []
    number = 0
    try:
        if lines:
            number = 1
            check_format(lines[0])
        for number, line in enumerate(lines, 1):  # noqa: B007 - the number is for the error below
            records.append(decode_line(line))
    except LineDamaged as error:
        raise _damaged(path, number, str(error)) from error
    except NewerFormat as error:
        raise JournalError(
            f"{path}, line {number}: a newer gonogo wrote this: {error}", advice="update gonogo to read it"
        ) from error
    _check_order(records, path)
    return records


def _check_order(records: list[Record], path: Path) -> None:
    """A line taken out or doubled leaves a gap in the numbers."""
    if not records:
        return
    if not isinstance(records[0].event, RunStarted):
        raise _damaged(path, 1, "the start of the run is missing")
    first = records[0].seq
    for position, record in enumerate(records):
        if record.seq != first + position:
            raise _damaged(path, position + 1, f"expected record {first + position}, found {record.seq}")
        if not 0 <= record.event.at < CLOCK_S_MAX:
            raise _damaged(path, position + 1, f"its clock says {record.event.at:g} seconds")


def _unended(torn: bytes, records: list[Record]) -> Record | None:
    """The record of a last line that lacks nothing but its newline."""
    try:
        if not records:
            check_format(torn)
        record = decode_line(torn)
    except (LineDamaged, NewerFormat):
        return None
    expected = records[-1].seq + 1 if records else record.seq
    return record if record.seq == expected else None


def _damaged(path: Path, number: int, what: str) -> JournalError:
    return JournalError(
        f"{path}, line {number} is damaged: {what}",
        advice="restore the file from a copy; or cut it before that line, and what came after is unknown",
    )
