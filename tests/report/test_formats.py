"""What every format says of the same runs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from tests.report.conftest import Reporting, with_issues

from gonogo.core.faults import Issue
from gonogo.report.formats import NAMES, render
from gonogo.report.layout import Style, cells

MIXED = """
good: {type: script, content: "return 1"}
bad: {type: script, content: "throw new Error('broken <b> & \\u001b[31m')"}
after: {type: noop, depends_on: bad}
soft: {type: script, criticality: info, content: "throw new Error('soft')"}
list: {type: script, forEach: true, content: "return [1, 2, 3]"}
each: {type: script, depends_on: list, fanout: map, content: "if (item === 2) throw new Error('two'); return item"}
"""
HOSTILE = (
    Issue(
        "r/1", "line one\n::error::injected % <script>|`@all", "error", file="src/a b.py", line=3, end_line=5
    ),
    Issue(
        "r/2",
        '\x00\x1b]0;title\x07\udce9 ]]> &amp; "quoted"',
        "warning",
        file="https://evil/x:1,2.py",
        line=0,
    ),
    Issue("r/2", "note", "info", file="src/a b.py", line=1, suggestion="do | this"),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unicode", [True, False])
def test_every_format_survives_hostile_texts(reporting: Reporting, name: str, unicode: bool) -> None:
    """Law 6: no escape codes, no control characters; machine formats parse."""
    report = with_issues(reporting(MIXED), "good", *HOSTILE)
    text = render(report, name, Style(unicode=unicode), "1.0")
    assert "\x1b" not in text
    assert "\x00" not in text
    assert text.endswith("\n")
    if name in ("json", "sarif"):
        json.loads(text)
    if name == "junit":
        ElementTree.fromstring(text)


def test_json_has_the_shape_of_the_contract(reporting: Reporting) -> None:
    """Keys of the run and of a step; items only for fanned-out steps, in index order."""
    whole = json.loads(render(reporting(MIXED), "json", Style()))
    assert {
        "run_id",
        "verdict",
        "exit_code",
        "event",
        "steps",
        "statistics",
        "faults",
        "budgets",
        "fault_events",
        "undone",
        "metrics",
    } <= whole.keys()
    assert list(whole["steps"]) == ["good", "bad", "after", "soft", "list", "each"]
    expected = {
        "outcome", "reason", "attempts", "runs", "output", "issues", "fault", "duration_ms", "criticality",
        "criticality_source",
    }  # fmt: skip
    assert whole["steps"]["good"].keys() == expected
    assert [item["index"] for item in whole["steps"]["each"]["items"]] == [0, 1, 2]
    assert [item["outcome"] for item in whole["steps"]["each"]["items"]] == ["passed", "failed", "passed"]
    assert whole["exit_code"] == 1


def test_the_table_says_it_in_words(reporting: Reporting) -> None:
    """A row a step, each with what there is to say; then the verdict."""
    lines = render(reporting(MIXED), "table", Style()).splitlines()
    rows = {line.split()[1]: line for line in lines[:6]}
    assert "broken" in rows["bad"]
    assert rows["after"].endswith("skipped: needs bad, which failed")
    assert "failed, tolerated" in rows["soft"]
    assert "2 of 3 items passed (#1 2)" in rows["each"]
    assert any(line.startswith("NO-GO because bad failed: ") for line in lines)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_table_fits_its_terminal(reporting: Reporting, width: int) -> None:
    """Every line, but for the commands that are to be copied."""
    report = with_issues(reporting(MIXED), "good", *HOSTILE)
    lines = render(report, "table", Style(width=width)).splitlines()
    wide = [
        line for line in lines if cells(line) > width and not line.startswith(("  gonogo", "run ", "https:"))
    ]
    assert wide == []


def test_the_table_shows_many_issues_and_says_how_many_more(reporting: Reporting) -> None:
    """At most two hundred."""
    many = [Issue("r", f"m{number}", file="a.py", line=number + 1) for number in range(250)]
    text = render(with_issues(reporting("a: {type: noop}"), "a", *many), "table", Style())
    assert text.count("[r]") == 200
    assert "50 more issues" in text


def test_a_hold_says_what_it_waits_for(reporting: Reporting) -> None:
    """With the command that answers; steps that haven't begun aren't waiting for a person."""
    text = render(
        reporting("a: {type: human-input, prompt: 'Go?'}\nb: {type: noop, depends_on: a}"), "table", Style()
    )
    assert "HOLD: waiting for a person at a: Go?" in text
    assert "gonogo answer " in text
    assert "1 waiting, 1 not started" in text


def test_sarif_has_a_rule_for_each_rule_id(reporting: Reporting) -> None:
    """D.7, 3: levels by severity; what is about no file has the step as logical location."""
    report = with_issues(reporting(MIXED), "good", *HOSTILE)
    [run] = json.loads(render(report, "sarif", Style(), "1.0"))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    by_message = {result["message"]["text"]: result for result in run["results"]}
    physical = by_message["note"]["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "src/a%20b.py"}, "region": {"startLine": 1}}
    assert by_message["note"]["level"] == "note"
    own = next(result for result in run["results"] if result["ruleId"].startswith("bad/"))
    assert own["locations"] == [
        {"logicalLocations": [{"name": "bad", "fullyQualifiedName": "bad", "kind": "member"}]}
    ]
    assert run["invocations"][0]["exitCode"] == 1


def test_junit_counts_what_it_lists(reporting: Reporting) -> None:
    """A case for each step and item; tolerated failures fail nothing, skips are skips."""
    root = ElementTree.fromstring(render(reporting(MIXED), "junit", Style()))
    [suite] = root
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert int(suite.get("tests", 0)) == len(cases) == 9
    assert cases["bad"].find("failure") is not None
    assert cases["after"].find("skipped") is not None
    assert cases["soft"].find("failure") is None
    assert int(suite.get("failures", 0)) == len(list(suite.iter("failure")))


def test_a_hold_is_an_error_in_junit(reporting: Reporting) -> None:
    """So that it never looks green."""
    root = ElementTree.fromstring(
        render(reporting("a: {type: human-input, prompt: 'Go?'}"), "junit", Style())
    )
    assert root.get("errors") == "1"


def test_workflow_commands_cannot_be_injected(reporting: Reporting) -> None:
    """One command a line, each our own; properties are escaped."""
    text = render(with_issues(reporting("good: {type: noop}"), "good", *HOSTILE), "github", Style())
    lines = text.splitlines()
    assert len(lines) == 4
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)
    assert "line one%0A::error::injected %25" in lines[0]
    assert "file=https%3A//evil/x%3A1%2C2.py" in lines[1]
    assert lines[-1] == "::notice title=gonogo::GO"


FILES = """
files: {type: script, forEach: true, content: "return ['src/a.py', 'src/b.py', 'src/c.py']"}
check: {type: script, depends_on: files, fanout: map, content: "return item", guarantee: "!output.endsWith('GOOD')"}
"""


@pytest.mark.parametrize("bad", [("b",), ("b", "c")])
def test_every_format_for_people_names_the_items_that_failed(
    reporting: Reporting, bad: tuple[str, ...]
) -> None:
    """Their place and what they are: the step's message alone doesn't say which file it is about."""
    good = "a" if len(bad) == 2 else "[ac]"
    report = reporting(FILES.replace("!output.endsWith('GOOD')", f"/{good}.py$/.test(output)"))
    for name in ("table", "junit", "github"):
        text = render(report, name, Style())
        assert all(
            f"{place} src/{letter}.py" in text for letter, place in zip(bad, ("#1", "#2"), strict=False)
        )
    assert f"{3 - len(bad)} of 3 items passed" in render(report, "markdown", Style())


def test_an_annotation_names_its_step(reporting: Reporting) -> None:
    """Also where the rule is the same for all steps; GitHub shows the title and little else."""
    text = render(
        reporting("lint: {type: script, content: 'return 1', guarantee: 'output > 1'}"), "github", Style()
    )
    assert "title=lint/contract/guarantee_failed::" in text


def test_a_tolerated_failure_is_a_warning_at_github(reporting: Reporting) -> None:
    """A run that is GO shows no error of gonogo's own; what the step found keeps its level."""
    report = reporting(
        "soft: {type: script, criticality: info, content: 'return 1', guarantee: 'output > 1'}"
    )
    found = Issue("lint/long", "too long", "error", file="a.py", line=1)
    lines = render(with_issues(report, "soft", found), "github", Style()).splitlines()
    assert [line.partition(" ")[0] for line in lines if "title=soft/" in line] == ["::error", "::warning"]
    assert lines[-1].startswith("::notice title=gonogo::GO")


@pytest.mark.parametrize(
    ("word", "level"),
    [("RUNNING", "notice"), ("QUEUED", "notice"), ("INTERRUPTED", "error"), ("SET ASIDE", "error")],
)
def test_a_run_that_is_well_and_has_no_verdict_yet_is_no_error_at_github(
    reporting: Reporting, word: str, level: str
) -> None:
    """Nothing is wrong with a run that waits for a worker, or has one."""
    report = reporting("good: {type: noop}")
    report = structs.replace(report, view=replace(report.view, verdict=None, standing=word))
    assert render(report, "github", Style()).splitlines()[-1].startswith(f"::{level} title=gonogo::{word}")


def test_markdown_is_text_only(reporting: Reporting) -> None:
    """No HTML, no mention, no broken table."""
    text = render(with_issues(reporting(MIXED), "good", *HOSTILE), "markdown", Style())
    assert "## ❌ NO-GO" in text
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "@all" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(line.replace("\\|", "").count("|") == 5 for line in rows)


def test_long_markdown_is_cut_with_a_word(reporting: Reporting) -> None:
    """A comment has a limit."""
    many = [Issue("r", "m" * 900, file="a.py", line=number + 1) for number in range(200)]
    text = render(with_issues(reporting("a: {type: noop}"), "a", *many), "markdown", Style())
    assert len(text) < 65_536
    assert "longer than fits here" in text


def test_every_name_of_the_json_report_is_in_its_page(reporting: Reporting) -> None:
    """docs/reference/json.md: of the run, of a step, of a fault's event, of a skip's reason."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "json.md").read_text()
    whole = reporting(MIXED, safe_mode=True).as_json()
    parts = [whole, *whole["steps"].values(), *whole["fault_events"], whole["faults"][0]]
    parts += [step["why"] for step in whole["steps"].values() if "why" in step]
    names = {name for part in parts for name in part}
    assert {name for name in names if f"`{name}`" not in text} == set()
