"""Questions to the person at hand."""

from __future__ import annotations

import asyncio
import os
import pty
import select
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, QUIET_ENVIRONMENT, write

from gonogo.cli import asking
from gonogo.cli.output import Output
from gonogo.cli.progress import Lines
from gonogo.hosts.base import Question


def answers(data: bytes, *questions: Question, close: bool = True) -> list[str | None]:
    """What a pipe with this in it answers."""
    reader, writer = os.pipe()
    os.write(writer, data)
    if close:
        os.close(writer)

    async def ask() -> list[str | None]:
        with os.fdopen(reader) as stdin:
            output = Output({})
            person = asking.Person(output, Lines(output, silent=True), stdin)
            return [await person(question) for question in questions]

    found = asyncio.run(ask())
    if not close:
        os.close(writer)
    return found


def question(*, multiline: bool = False) -> Question:
    """One question."""
    return Question("r", "s", "", "Go?", multiline)


def test_a_pipe_answers_a_line_at_a_time() -> None:
    """Then it is nobody; an empty line is an empty answer; the last line needs no end."""
    assert answers(b"yes\r\n\nlast", *[question()] * 4) == ["yes", "", "last", None]


def test_a_pipe_gives_all_to_a_question_of_several_lines() -> None:
    """Odd bytes are replaced."""
    assert answers(b"one\ntwo \xff\n", question(multiline=True), question()) == ["one\ntwo \ufffd", None]


def test_a_pipe_that_stays_silent_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """CI may leave one open for ever."""
    monkeypatch.setattr(asking, "PIPE_WAIT_S", 0.01)
    assert answers(b"", question(), close=False) == [None]


ASKING = """
a: {type: human-input, prompt: "Ship \\x1b[31mit?"}
b: {type: human-input, prompt: PIN, secret: true, depends_on: a}
"""


def test_on_a_terminal_a_person_is_asked(tmp_path: Path) -> None:
    """The prompt is shown, escapes in it too; the typed line is the answer; a secret isn't echoed."""
    write(tmp_path, ASKING)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execve(COMMAND, [COMMAND, "run", "--no-color"], {**QUIET_ENVIRONMENT, "TERM": "xterm"})
    try:
        said = _until(terminal, b"leaves it open", b"")
        os.write(terminal, b"yes\n")
        said = _until(terminal, b"asks: PIN\r\n> ", said)
        os.write(terminal, b"s3cr3t-value\n")
        said = _until(terminal, b"\nrun 2", said)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    assert b"s3cr3t-value" not in said
    assert b"\\x1b[31mit?" in said


def _until(handle: int, text: bytes, said: bytes) -> bytes:
    """Read until `text` was said since."""
    start = len(said)
    while text not in said[start:]:
        ready, _, _ = select.select([handle], [], [], 30)
        assert ready, said.decode(errors="replace")
        try:
            said += os.read(handle, 4096)
        except OSError:
            raise AssertionError(said.decode(errors="replace")) from None
    return said
