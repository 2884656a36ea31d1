"""Issues in outputs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.provider import UNSET, Issue
from gonogo.providers._issues import taken_from


def test_E2_R9_only_a_key_issues_is_taken() -> None:
    """E.2 R9 D: the rest of the output stays."""
    output, issues = taken_from({"issues": [{"message": "m"}], "n": 1}, parse_issues=False)
    assert output == {"n": 1}
    assert issues == (Issue(rule_id="command", message="m", severity="warning"),)


@pytest.mark.parametrize(
    "output",
    [
        [],
        {"message": "m", "type": "logic"},
        [{"message": "m", "file": "f"}],
        {"issues": [{"no": "message"}]},
        {"issues": "text"},
        "text",
        None,
    ],
)
def test_E2_R9_nothing_else_is_touched(output: Any) -> None:
    """I.1 row 15: outputs that look like issues are outputs."""
    assert taken_from(output, parse_issues=False) == (output, ())


@pytest.mark.parametrize(
    ("output", "messages"),
    [
        ([{"message": "a"}, {"text": "b"}], ["a", "b"]),
        ([{"issues": [{"message": "a"}]}, {"issues": [{"message": "b"}]}], ["a", "b"]),
        ({"message": "a", "severity": "high"}, ["a"]),
    ],
)
def test_E2_R9_parse_issues_takes_lists_and_single_objects(output: Any, messages: list[str]) -> None:
    """On request the rest of the rule holds, and no output is left."""
    left, issues = taken_from(output, parse_issues=True)
    assert left is UNSET
    assert [issue.message for issue in issues] == messages


@pytest.mark.parametrize("output", [[], {"message": "no sign of an issue"}, 5])
def test_parse_issues_leaves_what_is_no_issue(output: Any) -> None:
    """An empty list is an empty list, a message alone is an object."""
    assert taken_from(output, parse_issues=True) == (output, ())


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("fatal", "error"),
        ("HIGH", "error"),
        ("medium", "warning"),
        ("moderate", "warning"),
        ("low", "info"),
        ("minor", "info"),
        ("critical", "critical"),
        ("odd", "warning"),
        (3, "warning"),
    ],
)
def test_E2_R10_severity_words(word: Any, severity: str) -> None:
    """E.2 R10."""
    _, issues = taken_from({"issues": [{"message": "m", "priority": word}]}, parse_issues=False)
    assert issues[0].severity == severity


def test_E2_R10_other_spellings() -> None:
    """File, line, rule and category by their other names."""
    item = {
        "description": "d",
        "path": "a.py",
        "lineNumber": "7",
        "rule": "r",
        "type": "SECURITY",
        "endLine": 9,
    }
    _, issues = taken_from({"issues": [item]}, parse_issues=False)
    assert issues == (Issue("r", "d", "warning", file="a.py", line=7, end_line=9, category="security"),)


KEYS = st.sampled_from(["message", "line", "severity", "file", "type", "endLine"])
ANYTHING = st.none() | st.integers() | st.text() | st.lists(st.integers()) | st.floats()


@given(st.dictionaries(KEYS, ANYTHING))
def test_any_values_make_an_issue_or_none(item: dict[str, Any]) -> None:
    """Wrong types everywhere: no exception."""
    taken_from({"issues": [item]}, parse_issues=True)
    taken_from(item, parse_issues=True)
