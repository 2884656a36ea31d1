"""Large outputs: whole in the state, small in the line (architecture.md 2.7, case BIG-1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from gonogo.core.events import CallDone
from gonogo.errors import JournalError
from gonogo.journal.blobs import FileBlobs
from gonogo.journal.codec import decode_line
from gonogo.journal.large import line_of, put_back, shown
from gonogo.journal.memory import MemoryBlobs
from gonogo.journal.records import Record

BIG = {"rows": ["x" * 100] * 4_000}


def record(output: object) -> Record:
    """A call that returned `output`."""
    return Record(3, 1.0, CallDone(call=1, output=output))


def test_a_large_output_leaves_a_small_line_and_comes_back_whole() -> None:
    """The line has a reference, the record the value."""
    blobs = MemoryBlobs()
    line = line_of(record(BIG), blobs)
    assert len(line) < 5_000
    assert put_back(decode_line(line), blobs) == record(BIG)


def test_a_small_output_stays_in_its_line() -> None:
    """Nothing is kept apart that needn't be."""
    assert decode_line(line_of(record({"n": 1}), MemoryBlobs())) == record({"n": 1})


def test_an_output_that_looks_like_a_reference_stays_what_it_is() -> None:
    """A hostile output can't have another value put in its place."""
    fake = {"$blob": "sha256:" + "0" * 64, "bytes": 1, "preview": ""}
    blobs = MemoryBlobs()
    assert put_back(decode_line(line_of(record(fake), blobs)), blobs) == record(fake)


def test_a_missing_blob_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A run can't go on without a value it was decided upon."""
    line = line_of(record(BIG), FileBlobs(tmp_path / "blobs"))
    with pytest.raises(JournalError):
        put_back(decode_line(line), FileBlobs(tmp_path / "elsewhere"))


def test_a_report_shows_a_large_value_as_its_reference() -> None:
    """With size and first characters (cli.md)."""
    assert set(shown(BIG)) == {"$blob", "bytes", "preview"}
    assert shown([1]) == [1]
