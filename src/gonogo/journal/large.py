"""Large outputs in records: kept apart as blobs when a line is written, put back when it is read.

State, expressions, templates and fan-outs always have the whole value; only the line stays small. Which value was kept
apart is said by the record (`apart`), so that an output which merely looks like a reference stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, structs

from gonogo.core.events import CallDone, CallFailed
from gonogo.errors import Bug, JournalError
from gonogo.journal.blobs import BLOB_BYTES, is_reference, reference
from gonogo.journal.codec import encode_line
from gonogo.journal.handles import shortened
from gonogo.journal.normalise import to_json
from gonogo.journal.records import Record
from gonogo.journal.store import Blobs

OUTPUT = "output"


def lines_of(
    records: Sequence[Record], due: int | None, blobs: Blobs, run_id: str
) -> tuple[list[bytes], int | None]:
    """The lines of a batch, and the number due after it; `due` is that of its first record, None for any.

    Raises:
        Bug: a record isn't the one due, or holds what is no JSON.
        JournalError: a large output can't be kept.
    """
    lines: list[bytes] = []
    for record in records:
        if due is not None and record.seq != due:
            raise Bug(f"run {run_id}: record {record.seq} came where {due} was due")
        due = record.seq + 1
        try:
            lines.append(line_of(record, blobs))
        except (TypeError, ValueError, RecursionError) as error:
            raise Bug(f"run {run_id}: record {record.seq} was not normalised: {error}") from error
    return lines, due


def line_of(record: Record, blobs: Blobs) -> bytes:
    """The record's line; a long one has its output kept apart. Raises as `encode_line`, and JournalError."""
    line = encode_line(record)
    return line if len(line) <= BLOB_BYTES else encode_line(kept_apart(record, blobs))


def kept_apart(record: Record, blobs: Blobs) -> Record:
    """The record with a large output replaced by a reference to it."""
    event = record.event
    if not isinstance(event, CallDone | CallFailed) or event.output is UNSET:
        return record
    kept = blobs.put(event.output)
    if kept is event.output:
        return record
    return structs.replace(record, event=structs.replace(event, output=kept), apart=OUTPUT)


def put_back(record: Record, blobs: Blobs) -> Record:
    """The record as it was decided upon. Raises JournalError when what was kept apart is gone or changed."""
    event = record.event
    if record.apart != OUTPUT or not isinstance(event, CallDone | CallFailed):
        return record
    if not is_reference(event.output):
        raise JournalError(f"record {record.seq} says that its output is kept apart, but names no blob")
    return structs.replace(record, event=structs.replace(event, output=blobs.get(event.output)), apart="")


def all_put_back(records: Iterable[Record], blobs: Blobs) -> list[Record]:
    """Every record as it was decided upon. Raises JournalError."""
    return [put_back(record, blobs) if record.apart else record for record in records]


def shown(value: Any) -> Any:
    """A value for a report: a large one as its reference, with the first characters (cli.md); handles without tags."""
    value = shortened(value)
    data = to_json(value)
    return value if len(data) <= BLOB_BYTES else reference(value, data)
