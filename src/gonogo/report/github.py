"""The report as GitHub's workflow commands: annotations beside the lines they are about, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from gonogo.report import words
from gonogo.report.findings import Finding
from gonogo.report.layout import plain
from gonogo.report.report import Report

ANNOTATIONS_MAX = 50
"""GitHub shows ten of a kind in a step and fifty in a job."""
_LEVELS = {"critical": "error", "error": "error", "warning": "warning", "info": "notice"}
_VERDICT_LEVELS = {"GO": "notice", "RUNNING": "notice", "QUEUED": "notice", "HOLD": "warning"}
"""All else is an error."""


def github(report: Report) -> str:
    """The commands, one a line."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    found = sorted(report.findings.all, key=lambda one: list(_LEVELS).index(_severity(one, report)))
    yield from (_annotation(finding, report) for finding in found[:ANNOTATIONS_MAX])
    yield from (f"::warning title=gonogo::{_data(told)}" for told in report.notes)
    yield from (f"::notice title=gonogo fault::{_data(told)}" for told in report.faults)
    word = words.verdict_word(report.view)
    level = _VERDICT_LEVELS.get(word, "error")
    told = " ".join(part for part in (word, words.cause(report.view, report.whys)) if part)
    if move := words.next_move(report.view):
        told += f"\nanswer with: {move}"
    yield f"::{level} title=gonogo::{_data(told)}"


def _severity(finding: Finding, report: Report) -> str:
    """Its own; that a step failed is no error where that is tolerated. What a step found keeps the step's word."""
    issue, step = finding.issue, report.view.steps.get(finding.step)
    tolerated = issue.engine and step is not None and step.outcome == "tolerated"
    return "warning" if tolerated and _LEVELS[issue.severity] == "error" else issue.severity


def _annotation(finding: Finding, report: Report) -> str:
    issue = finding.issue
    properties = {"title": plain(_title(finding, report))}
    if finding.located:
        properties |= {"file": issue.file}
        if issue.line >= 1:
            properties["line"] = str(issue.line)
        if issue.end_line is not None and issue.end_line >= issue.line >= 1:
            properties["endLine"] = str(issue.end_line)
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_LEVELS[_severity(finding, report)]} {told}::{_data(issue.message)}"


def _title(finding: Finding, report: Report) -> str:
    """The rule; with its step where the rule's name is the same for all, and the item where there are several."""
    rule = finding.issue.rule_id
    title = rule if rule.startswith(finding.step) else f"{finding.step}/{rule}"
    step = report.view.steps.get(finding.step)
    item = step.items.at(finding.issue.scope or "") if step is not None and step.items is not None else None
    return title if item is None else f"{title} {words.item_name(item)}"


def _data(text: str) -> str:
    """As the runner reads it; a line end that isn't escaped would start a command of the text's choice."""
    kept = "\n".join(plain(line) for line in text.replace("%", "%25").splitlines())
    return kept.replace("\n", "%0A")


def _property(text: str) -> str:
    return plain(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
