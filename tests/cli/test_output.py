"""Printing never fails."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from tests.cli.conftest import Terminal

from gonogo.cli.output import Output, write_file
from gonogo.errors import UsageError


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_UNI_1_what_a_stream_cannot_show_is_an_escape(encoding: str) -> None:
    """Halves of characters, symbols: never an exception."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    output = Output({}, stream, stream)
    output.result("é ✓ \udce9\n")
    assert raw.getvalue()
    assert output.style().unicode is (encoding == "utf-8")


class Broken(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_CLI_2_a_reader_that_left_is_no_error() -> None:
    """Nor is a stream that is closed or missing."""
    closed = io.StringIO()
    closed.close()
    for stream in (Broken(), closed):
        output = Output({}, stream, stream)
        output.result("x")
        output.say("x")


def test_a_terminal_has_a_width_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless told otherwise; a pipe has neither."""
    monkeypatch.setenv("COLUMNS", "55")
    assert Output({"TERM": "xterm"}, Terminal(), Terminal()).style().width == 55
    assert Output({"TERM": "xterm"}, Terminal(), Terminal()).style().colour
    assert not Output({"TERM": "xterm", "NO_COLOR": "1"}, Terminal(), Terminal()).style().colour
    assert Output({}, io.StringIO(), io.StringIO()).style().width is None


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Folders are made; nothing else is left beside it."""
    path = tmp_path / "a" / "b.json"
    write_file(path, ["one", " \udce9"])
    write_file(path, ["two"])
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["b.json"]
    with pytest.raises(UsageError, match="can't be written"):
        write_file(path / "c", ["x"])
    with pytest.raises(UsageError, match="can't be written"):
        write_file(tmp_path, ["x"])


class Gone(io.StringIO):
    """A terminal that hung up."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_hung_up_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for results nor for what is said about them."""
    monkeypatch.setattr("sys.stdout", Gone())
    monkeypatch.setattr("sys.stderr", Gone())
    output = Output({})
    output.result("x")
    output.complain("x")
