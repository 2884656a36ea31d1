"""The lines of a worker: one for each thing, secrets masked, libraries kept short."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from io import StringIO

import pytest

from gonogo.cli.lines import ONCE_S, TAKEN, TEXT_MAX, Lines, speak
from gonogo.cli.output import Output
from gonogo.journal.redact import Redactor

SECRET = "hidden-word-1"


class Said:
    """What a handler wrote, by a clock of its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now_s = 0.0
        self.handler = Lines(self.lines.append, Redactor({"X": SECRET}), lambda: self.now_s)

    def say(self, name: str, text: str, level: int = logging.WARNING) -> None:
        """One record."""
        self.handler.handle(logging.LogRecord(name, level, __file__, 1, text, None, None))


def test_a_library_gets_one_masked_line_and_its_name() -> None:
    """Whatever it has to say."""
    said = Said()
    said.say(
        "dbos", f"(psycopg.OperationalError) {SECRET} is wrong\n[SQL: select *]\n(Background on this error)"
    )
    [line] = said.lines
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ WARNING dbos: \(psycopg.OperationalError\) \*\*\* is wrong", line
    )


def test_a_secret_is_masked_before_a_line_is_cut() -> None:
    """Else the beginning of one would stand at its end."""
    said = Said()
    said.say("dbos", "x" * (TEXT_MAX - 5) + SECRET)
    assert said.lines[0].endswith("x***")


def test_what_a_terminal_would_obey_is_escaped() -> None:
    """Names of runs and texts of servers come from anywhere. No second line looks like one of its own."""
    said = Said()
    said.say("gonogo.worker", "run \x1b]0;title\x07 is set aside\nbecause")
    assert "\x1b" not in said.lines[0]
    assert said.lines[0].endswith("is set aside\n  because")


def test_what_a_library_cannot_say_is_not_shown_unmasked(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does whoever said it fail."""
    said = Said()
    record = logging.LogRecord("dbos", logging.WARNING, __file__, 1, "%s and %s", (SECRET,), None)
    said.handler.handle(record)
    assert [line.partition("WARNING ")[2] for line in said.lines] == [
        "dbos: what it says can't be shown (TypeError)"
    ]
    assert SECRET not in capsys.readouterr().err


def test_what_is_said_again_at_once_is_said_once() -> None:
    """Later it is news again."""
    said = Said()
    for said.now_s in (0.0, 1.0, ONCE_S):
        said.say("gonogo.worker", "the store is away")
    said.say("gonogo.worker", "something else")
    assert [line.partition("WARNING ")[2] for line in said.lines] == [
        "the store is away",
        "the store is away",
        "something else",
    ]


@pytest.fixture
def loggers() -> Iterator[None]:
    """As they were before."""
    root, library = logging.getLogger(), logging.getLogger("dbos")
    leveled = [root, *map(logging.getLogger, ("gonogo", TAKEN, "sqlalchemy"))]
    handlers, levels = (root.handlers[:], library.handlers[:]), [each.level for each in leveled]
    yield
    root.handlers[:], library.handlers[:] = handlers
    for each, level in zip(leveled, levels, strict=True):
        each.setLevel(level)


@pytest.mark.usefixtures("loggers")
@pytest.mark.parametrize(
    ("quiet", "verbose", "told"), [(False, False, "aBC"), (False, True, "atbBC"), (True, False, "C")]
)
def test_how_much_is_said(quiet: bool, verbose: bool, told: str) -> None:
    """Ours is INFO, of libraries warnings; with -v more, and each run that is taken; with -q errors alone."""
    stream = StringIO()
    output = Output({}, StringIO(), stream)
    output.quiet, output.verbose = quiet, verbose
    logging.getLogger("sqlalchemy").setLevel(logging.WARNING)  # as it does itself, once it is imported
    speak(output, {"A_TOKEN": SECRET}, {})
    logging.getLogger("gonogo.worker").info("a")
    logging.getLogger(TAKEN).info("t")
    logging.getLogger("dbos").info("b")
    logging.getLogger("sqlalchemy.pool").warning("B")
    logging.getLogger("gonogo.worker").error("C")
    assert "".join(line[-1] for line in stream.getvalue().splitlines()) == told
