"""Issues by file, and comments that turn them off (spec D.7, 4)."""

from __future__ import annotations

import pytest
from tests.report.conftest import Reporting, with_issues

from gonogo.core.faults import Issue

CODE = ["one", "two", "three", "bad()  # gonogo-disable", "five", "six", "seven", "eight", "nine"]


def issue(line: int, *, file: str = "a.py", engine: bool = False) -> Issue:
    """A finding at a line."""
    return Issue("r", "m", file=file, line=line, engine=engine)


@pytest.mark.parametrize(("line", "hidden"), [(1, 0), (2, 1), (4, 1), (6, 1), (7, 0)])
def test_D_7_a_comment_within_two_lines_hides_an_issue(reporting: Reporting, line: int, hidden: int) -> None:
    """Two before to two after."""
    report = with_issues(reporting("a: {type: noop}"), "a", issue(line), read_lines=lambda _: CODE)
    assert report.findings.hidden == hidden


@pytest.mark.parametrize("comment", ["# GoNoGo-Disable-File", "// visor-disable-file"])
def test_D_7_a_comment_at_the_top_hides_all_of_a_file(reporting: Reporting, comment: str) -> None:
    """In the first five lines, in any case, in the older spelling too."""
    near = with_issues(
        reporting("a: {type: noop}"), "a", issue(90), read_lines=lambda _: ["", "", "", "", comment]
    )
    far = with_issues(
        reporting("a: {type: noop}"), "a", issue(90), read_lines=lambda _: ["", "", "", "", "", comment]
    )
    assert (near.findings.hidden, far.findings.hidden) == (1, 0)


def test_D_7_what_gonogo_says_is_never_hidden(reporting: Reporting) -> None:
    """Contract and engine issues."""
    found = (issue(4, engine=True), issue(0, file="system", engine=True))
    report = with_issues(reporting("a: {type: noop}"), "a", *found, read_lines=lambda _: CODE)
    assert report.findings.hidden == 0
    assert len(report.findings.engine) == 1


def test_files_come_in_order_and_lines_sorted(reporting: Reporting) -> None:
    """By first appearance, then by line."""
    found = [issue(3, file="b.py"), issue(9), issue(1, file="b.py")]
    located = with_issues(reporting("a: {type: noop}"), "a", *found).findings.located
    assert [(file, [one.issue.line for one in some]) for file, some in located.items()] == [
        ("b.py", [1, 3]),
        ("a.py", [9]),
    ]


def test_hidden_issues_leave_the_json_and_are_counted(reporting: Reporting) -> None:
    """So that a program sees what a person sees."""
    report = with_issues(reporting("a: {type: noop}"), "a", issue(4), issue(9), read_lines=lambda _: CODE)
    whole = report.as_json()
    assert [one["line"] for one in whole["steps"]["a"]["issues"]] == [9]
    assert whole["hidden_issues"] == 1
