"""Widths, wrapping, escapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.report.layout import Style, brief, cells, duration, plain, wrapped


@given(st.text())
def test_plain_text_holds_nothing_a_terminal_obeys(text: str) -> None:
    """No control characters, no line ends, no direction marks, no halves of characters."""
    shown = plain(text)
    assert all(sign.isprintable() or sign in "\u200c\u200d" for sign in shown)


def test_escape_sequences_are_shown() -> None:
    """Law 6: nothing reaches a terminal unescaped."""
    assert plain("a\x1b[31mb\r\u202ec\udce9") == "a\\x1b[31mb \\u202ec\\udce9"
    assert plain("👩\u200d👩 é") == "👩\u200d👩 é"


@given(st.text(alphabet="ab 日🙂e\u0301", max_size=80), st.integers(2, 20))
def test_wrapped_lines_fit_and_lose_nothing(text: str, width: int) -> None:
    """Except spaces at breaks."""
    lines = wrapped(text, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(st.text(), st.integers(1, 50))
def test_brief_texts_are_short_lines(text: str, length: int) -> None:
    """At most as long as asked."""
    assert len(brief(text, length)) <= max(1, length)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1234, "1.2 s"),
        (65_000, "65.0 s"),
        (185_000, "3 m 05 s"),
        (7_800_000, "2 h 10 m"),
    ],
)
def test_durations_have_the_unit_that_fits(milliseconds: int, text: str) -> None:
    """From milliseconds to hours."""
    assert duration(milliseconds) == text


def test_colours_only_where_allowed() -> None:
    """And symbols of ASCII where the stream has nothing else."""
    assert Style().paint("x", "red") == "x"
    assert Style(colour=True).paint("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"
    assert Style(unicode=False).symbol("passed") == "+"
