"""config/problems.py: problems as text and as data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.config.problems import LINE_CHARS_MAX, data_of, excerpt, one_text, text_of
from gonogo.errors import Place, Problem


def problem(line: str = "  fail_iff: x", column: int = 3, **more: Any) -> Problem:
    """A problem at a line."""
    return Problem(
        "key.unknown", "unknown key 'fail_iff'", "steps.a.fail_iff", Place("a.yaml", 7, column), line, **more
    )


def test_a_problem_shows_place_line_caret_and_suggestion() -> None:
    """cli.md: file:line:column, the line, a caret, a suggestion."""
    assert one_text(problem(suggestion="did you mean fail_if?")) == (
        "a.yaml:7:3: error: unknown key 'fail_iff' [key.unknown]\n"
        "      fail_iff: x\n"
        "      ^\n"
        "  did you mean fail_if?"
    )


def test_a_problem_without_a_place_is_one_line() -> None:
    """Some have none."""
    assert one_text(Problem("a.b", "no place")) == "error: no place [a.b]"


def test_many_problems_end_with_their_count() -> None:
    """By severity."""
    listed = [problem(), problem(), problem(severity="warning"), problem(severity="info")]
    assert text_of(listed).splitlines()[-1] == "2 errors, 1 warning, 1 note"
    assert text_of([]) == ""


@pytest.mark.parametrize("column", [1, 50, 51, 500, 9_950, 10_000, 10_001])
def test_long_lines_are_cut_around_the_caret(column: int) -> None:
    """A line of 10,000 characters still shows the place."""
    line = "".join(chr(ord("a") + at % 26) for at in range(10_000))
    shown, caret = excerpt(line, column)
    assert len(shown) <= LINE_CHARS_MAX + 2
    if column <= len(line):
        assert shown[caret] == line[column - 1]


@pytest.mark.parametrize(
    ("line", "column", "shown", "caret"),
    [
        ("a\tb", 3, "a b", 2),
        ("\x1b[31mred", 6, "\\x1b[31mred", 8),
        ("日本x", 3, "日本x", 4),
        ("e\u0301x", 3, "e\u0301x", 1),
        ("a\u202eb", 3, "a\\u202eb", 7),
        ("abc", 99, "abc", 3),
    ],
)
def test_control_characters_are_escaped_and_the_caret_follows(
    line: str, column: int, shown: str, caret: int
) -> None:
    """A file is hostile input, and terminals obey escapes; wide characters take two cells."""
    assert excerpt(line, column) == (shown, caret)


@given(st.text(), st.integers(-5, 500))
def test_nothing_unprintable_comes_out(line: str, column: int) -> None:
    """Whatever is in the file."""
    shown, caret = excerpt(line, column)
    assert shown.isprintable()
    assert caret >= 0


@given(st.text(), st.text(), st.text())
def test_one_problem_is_at_most_four_lines(message: str, file: str, suggestion: str) -> None:
    """Messages may quote the file."""
    made = Problem("a.b", message, "p", Place(file, 1, 1), "line", suggestion or None)
    assert len(one_text(made).split("\n")) == (4 if suggestion else 3)


def test_data_is_json() -> None:
    """For --format json."""
    (data,) = json.loads(json.dumps(data_of([problem()])))
    assert data == {
        "severity": "error",
        "code": "key.unknown",
        "message": "unknown key 'fail_iff'",
        "path": "steps.a.fail_iff",
        "file": "a.yaml",
        "line": 7,
        "column": 3,
        "suggestion": None,
    }
