"""Large values in records: kept apart as blobs when a line is written, put back when it is read.

State, expressions, templates and fan-outs always have the whole value; only the line stays small. Which values were
kept apart is said by the record (`apart`), so that an output which merely looks like a reference stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, structs

from gonogo.core.events import CallDone, CallFailed, RunStarted
from gonogo.core.plan import Plan
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
    """The record's line; a long one has its large values kept apart. Raises as `encode_line`, and JournalError."""
    line = encode_line(record)
    return line if len(line) <= BLOB_BYTES else encode_line(kept_apart(record, blobs))


def kept_apart(record: Record, blobs: Blobs) -> Record:
    """The record without the large values of its event, and with references to them."""
    found: dict[str, Any] = {}
    event = _without_large(record.event, "", blobs, found)
    if not found:
        return record
    if found.keys() == {OUTPUT} and isinstance(record.event, CallDone | CallFailed):
        return structs.replace(record, event=structs.replace(event, output=found[OUTPUT]), apart=OUTPUT)
    return structs.replace(record, event=event, apart=found)


def put_back(record: Record, blobs: Blobs) -> Record:
    """The record as it was decided upon. Raises JournalError when what was kept apart is gone or changed."""
    event, apart = record.event, record.apart
    if not apart:
        return record
    if isinstance(apart, dict):
        for path, kept in apart.items():
            event = _with(event, path, _kept(record, path, kept, blobs), record.seq)
    elif apart == OUTPUT and isinstance(event, CallDone | CallFailed):
        event = structs.replace(event, output=_kept(record, OUTPUT, event.output, blobs))
    else:
        raise _no_such_part(record.seq, apart)
    return structs.replace(record, event=event, apart="")


def _kept(record: Record, path: str, kept: Any, blobs: Blobs) -> Any:
    if not is_reference(kept):
        raise JournalError(f"record {record.seq} says that its {path} is kept apart, but names no blob")
    return blobs.get(kept)


def _without_large(value: Any, path: str, blobs: Blobs, found: dict[str, Any]) -> Any:
    """The value with an empty one of its kind wherever one is large; what is kept of these is `found` by their paths.
    A plan isn't looked into, nor is the start of a run, of which lists show parts.
    """
    if isinstance(value, Plan | RunStarted):
        return value
    if isinstance(value, Struct):
        parts = {name: getattr(value, name) for name in value.__struct_fields__}
        new = {name: _without_large(each, _below(path, name), blobs, found) for name, each in parts.items()}
        return structs.replace(value, **{name: each for name, each in new.items() if each is not parts[name]})
    if isinstance(value, tuple):
        return tuple(
            _without_large(each, _below(path, str(at)), blobs, found) for at, each in enumerate(value)
        )
    if not isinstance(value, str | list | dict) or (kept := blobs.put(value)) is value:
        return value
    found[path] = kept
    return type(value)()


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _with(whole: Any, path: str, value: Any, seq: int) -> Any:
    """With a value at a path (`memory.0.value`), where an empty one of its kind is. Raises JournalError."""
    try:
        return _set(whole, path.split(".") if path else [], value)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise _no_such_part(seq, path) from error


def _no_such_part(seq: int, path: str) -> JournalError:
    return JournalError(f"record {seq} says that its {path} is kept apart, and has no such part")


def _set(whole: Any, names: list[str], value: Any) -> Any:
    if not names:
        if type(whole) is not type(value):
            raise TypeError(type(whole))
        return value
    name, *rest = names
    if not isinstance(whole, tuple):
        return structs.replace(whole, **{name: _set(getattr(whole, name), rest, value)})
    parts, at = list(whole), int(name)
    parts[at] = _set(parts[at], rest, value)
    return tuple(parts)


def all_put_back(records: Iterable[Record], blobs: Blobs) -> list[Record]:
    """Every record as it was decided upon. Raises JournalError."""
    return [put_back(record, blobs) for record in records]


def shown(value: Any) -> Any:
    """A value for a report: a large one as its reference, with the first characters (cli.md); handles without tags."""
    value = shortened(value)
    data = to_json(value)
    return value if len(data) <= BLOB_BYTES else reference(value, data)
