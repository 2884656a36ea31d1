"""What the formats for people say of faults, and when they say nothing."""

from __future__ import annotations

import pytest
from tests.report.conftest import Reporting

from gonogo.report.faults import LINES_MAX
from gonogo.report.formats import render
from gonogo.report.layout import Style

MENDED = """
get:
  type: script
  content: if (!outputs.fix) throw new Error('busy'); return 1
  on_fail: { run: [fix], retry: { max: 2 } }
fix: { type: script, start: routed, content: return 1 }
"""
SUPPRESSED = """
check: { type: script, criticality: internal, content: return 1, guarantee: "false", assume: "true" }
publish: { type: noop, mutates: true, depends_on: [{ step: check, on_failure: continue }] }
"""
PLAIN = """
check: { type: script, content: return 1, guarantee: "false" }
behind: { type: noop, depends_on: check }
"""
MANY = """
list: { type: script, content: "return [...Array(30).keys()]", forEach: true }
each: { type: script, depends_on: list, fanout: map, content: throw new Error('no'), on_fail: { retry: { max: 1 } } }
"""


@pytest.mark.parametrize("name", ["table", "markdown", "github"])
def test_a_mended_fault_is_told_in_one_line(reporting: Reporting, name: str) -> None:
    """The run is GO, and still nobody overlooks that it needed help."""
    told = render(reporting(MENDED), name, Style())
    [line] = [line for line in told.splitlines() if "recovered" in line]
    assert "get: busy" in line.replace("\\", "")
    assert "; ran fix; 1 retry; recovered" in line


def test_what_was_suppressed_is_told_with_the_fault(reporting: Reporting) -> None:
    """Which step was kept from acting by which."""
    [told] = reporting(SUPPRESSED).faults
    assert told.startswith("check: ")
    assert told.endswith("; suppressed publish; not recovered")


def test_a_fault_without_a_story_is_told_by_its_row_alone(reporting: Reporting) -> None:
    """A step that failed, with what needs it skipped, is in the rows already."""
    report = reporting(PLAIN)
    assert report.faults == ()
    assert "\nfaults\n" not in render(report, "table", Style())


def test_many_faults_are_counted(reporting: Reporting) -> None:
    """A screen full, then how many more."""
    told = reporting(MANY).faults
    assert len(told) == LINES_MAX + 1
    assert told[-1] == f"{30 - LINES_MAX} more faults (--format json has all)"


def test_a_message_cannot_break_out_of_its_line(reporting: Reporting) -> None:
    """Law 6: line ends and escape sequences of a message stay within the line."""
    steps = MENDED.replace("'busy'", r"'one\\n::error::two\\u001b[31m'")
    report = reporting(steps)
    assert all("\n" not in told and "\x1b" not in told for told in report.faults)
    assert "\n::error::two" not in render(report, "github", Style())
