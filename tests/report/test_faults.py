"""What the formats for people say of faults, and when they say nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.report.conftest import Reporting

from gonogo.report.faults import LINES_MAX
from gonogo.report.formats import render
from gonogo.report.layout import Style
from gonogo.report.report import Report

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


DEPLOYMENT = """
switch: { type: command, mutates: true, exec: "echo 1", compensate: back }
check: { type: script, depends_on: switch, content: return 1, guarantee: "false" }
back: { type: command, start: routed, exec: UNDOING }
"""


@pytest.fixture
def deployed(reporting: Reporting) -> Callable[..., Report]:
    """A run that fails after something was done, which `back` undoes by a command."""
    return lambda undoing="echo undone": reporting(DEPLOYMENT.replace("UNDOING", undoing))


@pytest.mark.parametrize("name", ["table", "markdown", "github"])
def test_what_was_undone_is_told(deployed: Callable[..., Report], name: str) -> None:
    """Which step's doing, and by which step."""
    told = render(deployed(), name, Style())
    assert "switch: undone by back" in told.replace("\\", "")


def test_what_could_not_be_undone_is_told_with_the_reason(deployed: Callable[..., Report]) -> None:
    """Somebody has to do it by hand."""
    [told] = deployed("echo locked >&2; exit 1").faults
    assert told == "switch: not undone, back failed: locked"


def test_what_was_undone_is_in_the_json_report(deployed: Callable[..., Report]) -> None:
    """As data, and as an event that says which fault it was for."""
    whole = deployed().as_json()
    assert whole["undone"] == [{"step": "switch", "scope": "", "by": "back", "outcome": "passed"}]
    last = whole["fault_events"][-1]
    assert (last["event"], last["step"], last["fault"]) == ("fault.compensated", "switch", 1)
    assert whole["metrics"]["gonogo_compensations_total"] == [
        {"labels": {"step": "switch", "outcome": "passed"}, "value": 1}
    ]


STEPS = """
one: { type: noop }
two: { type: noop, depends_on: one }
three: { type: noop, depends_on: two }
"""


def test_a_run_that_its_budget_stopped_says_which(reporting: Reporting) -> None:
    """In the verdict's line, at what didn't run, among the issues, and as data."""
    report = reporting(STEPS, top="budget: { calls: 2 }\n")
    table = render(report, "table", Style())
    assert "NO-GO because the run has used 2 calls of its budget of 2 (calls)" in table
    assert "skipped: the run's budget is used up" in table
    assert "[budget/calls_exceeded]" in table
    whole = report.as_json()
    assert whole["budgets"]["run"] == {"calls": {"allowed": 2, "used": 2}}
    assert whole["metrics"]["gonogo_run_budget_breaches_total"] == [
        {"labels": {"budget": "calls"}, "value": 1}
    ]


def test_a_choice_is_shown_with_the_words_it_understands(reporting: Reporting) -> None:
    """`exhausted: hold`: not any text is an answer."""
    held = reporting(
        "a: { type: script, content: throw new Error('no'), on_fail: { retry: { max: 1, exhausted: hold } } }"
    )
    told = render(held, "table", Style())
    assert f"gonogo answer {held.view.run_id} a 'retry|accept|fail'" in told
    assert "; 1 retry; still open" in told


def test_what_is_written_for_a_failure_is_not_kept_from_it(reporting: Reporting) -> None:
    """A step with `if: always()` isn't told as one that the failure was isolated from."""
    report = reporting(
        """
check: { type: script, content: return 1, guarantee: "false" }
behind: { type: noop, depends_on: check }
clean: { type: noop, mutates: true, if: always(), depends_on: check }
"""
    )
    [isolated] = [one for one in report.as_json()["fault_events"] if one["event"] == "fault.isolated"]
    assert isolated["detail"] == {"gated": ["behind"]}
