"""Large outputs: whole in the state, small in the line (architecture.md 2.7, case BIG-1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from gonogo.core.events import (
    AnswerGiven,
    AnyEvent,
    CallDone,
    CallFailed,
    Evaluated,
    GivenOutput,
    RerunAsked,
    RunStarted,
)
from gonogo.core.faults import Fault
from gonogo.core.plan import Plan
from gonogo.errors import JournalError
from gonogo.expressions.results import MemoryOp, Value
from gonogo.journal.blobs import FileBlobs
from gonogo.journal.codec import decode_line, encode_line
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


LONG = "é" * 300_000
OPS = (MemoryOp("set", "small", 1), MemoryOp("set", "large", LONG))


@pytest.mark.parametrize(
    ("event", "paths"),
    [
        (CallDone(call=1, output="small", content=LONG), {"content"}),
        (CallDone(call=1, output=LONG, content=LONG[:-1]), {"output", "content"}),
        (CallDone(call=1, output=BIG, inputs=BIG, meta=BIG), {"output", "inputs", "meta"}),
        (CallDone(call=1, memory=OPS), {"memory.1.value"}),
        (CallFailed(call=1, fault=Fault("x", "logical", "x", "x"), content=LONG), {"content"}),
        (
            Evaluated(batch=1, results=(Value(1), Value([LONG], memory=OPS))),
            {"results.1.value", "results.1.memory.1.value"},
        ),
        (AnswerGiven(step="a", text=LONG, output=BIG), {"text", "output"}),
        (AnswerGiven(step="a", text="done", output=BIG), {"output"}),
        (RerunAsked(outputs=(GivenOutput("a", BIG),)), {"outputs.0.output"}),
    ],
)  # fmt: skip
def test_whatever_is_large_in_an_event_leaves_a_small_line_and_comes_back_whole(
    event: AnyEvent, paths: set[str]
) -> None:
    """Texts beside an output, memory, answers: they are blobs, each once."""
    blobs = MemoryBlobs()
    line = line_of(Record(3, 1.0, event), blobs)
    assert len(line) < 10_000
    read = decode_line(line)
    assert isinstance(read.apart, dict)
    assert read.apart.keys() == paths
    assert put_back(read, blobs) == Record(3, 1.0, event)


def test_a_line_of_before_whose_output_alone_was_kept_apart_is_read(tmp_path: Path) -> None:
    """Its reference stands where the output was, and the text beside it in full."""
    blobs = FileBlobs(tmp_path / "blobs")
    whole = Record(3, 1.0, CallDone(call=1, output=BIG, content=LONG))
    kept = replace(whole, event=replace(whole.event, output=blobs.put(BIG)), apart="output")
    assert put_back(decode_line(encode_line(kept)), blobs) == whole


@pytest.mark.parametrize(
    "apart",
    [
        {"content": "small"},
        {"none": None},
        {"none.0": None},
        {"output.0.x": None},
        {"issues.7": None},
        {"content": None},
    ],
)
def test_a_line_that_keeps_apart_what_it_does_not_have_is_an_error(apart: dict[str, object]) -> None:
    """It is damaged, or was made up."""
    blobs = MemoryBlobs()
    kept = blobs.put(BIG)
    apart = {path: value or kept for path, value in apart.items()}
    line = encode_line(Record(3, 1.0, CallDone(call=1, output="x"), apart=apart))
    with pytest.raises(JournalError, match="record 3 says that"):
        put_back(decode_line(line), blobs)


def test_an_output_said_to_be_kept_apart_in_what_is_no_call_is_an_error() -> None:
    """Its reference would else be taken for what a person gave."""
    blobs = MemoryBlobs()
    given = AnswerGiven(step="a", text="done", output=blobs.put(BIG))
    with pytest.raises(JournalError, match="record 3 says that"):
        put_back(decode_line(encode_line(Record(3, 1.0, given, apart="output"))), blobs)


def test_the_start_of_a_run_stays_in_its_line() -> None:
    """Lists read it without blobs."""
    start = Record(0, 1.0, RunStarted(run_id="r", plan=Plan("w", {}), started_at_ms=1, inputs={"a": LONG}))
    assert decode_line(line_of(start, MemoryBlobs())) == start


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
