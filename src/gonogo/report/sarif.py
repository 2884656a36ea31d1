"""The report as SARIF 2.1.0 for code scanning: a rule for each rule id, and a step's name as logical location."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from gonogo.core.scope import step_at
from gonogo.report import words
from gonogo.report.findings import Finding
from gonogo.report.report import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RESULTS_MAX = 25_000
"""Code scanning refuses more in one run."""
_LEVELS = {"critical": "error", "error": "error", "warning": "warning", "info": "note"}


def sarif(report: Report, version: str) -> dict[str, Any]:
    """The log as plain data; `version` is gonogo's."""
    found = report.findings.all[:RESULTS_MAX]
    rules = {finding.issue.rule_id: index for index, finding in enumerate(_firsts(found))}
    driver = {
        "name": "gonogo",
        "semanticVersion": version,
        "rules": [_rule(finding) for finding in _firsts(found)],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": [_result(finding, rules[finding.issue.rule_id]) for finding in found],
        "properties": {"runId": report.view.run_id, "verdict": words.verdict_word(report.view)},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _firsts(found: tuple[Finding, ...]) -> list[Finding]:
    """The first finding of each rule id, in order."""
    return list({finding.issue.rule_id: finding for finding in reversed(found)}.values())[::-1]


def _rule(finding: Finding) -> dict[str, Any]:
    issue = finding.issue
    return {
        "id": issue.rule_id,
        "shortDescription": {"text": issue.rule_id},
        "defaultConfiguration": {"level": _LEVELS[issue.severity]},
        "properties": {"tags": [issue.category]},
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    issue = finding.issue
    location: dict[str, Any] = {}
    if finding.located:
        location["physicalLocation"] = _physical(finding)
    if finding.step:
        location["logicalLocations"] = [
            {
                "name": finding.step,
                "fullyQualifiedName": step_at(finding.step, issue.scope or ""),
                "kind": "member",
            }
        ]
    result: dict[str, Any] = {
        "ruleId": issue.rule_id,
        "ruleIndex": rule_index,
        "level": _LEVELS[issue.severity],
        "message": {"text": issue.message or issue.rule_id},
        "properties": {"severity": issue.severity, "engine": issue.engine},
    }
    if location:
        result["locations"] = [location]
    return result


def _physical(finding: Finding) -> dict[str, Any]:
    issue = finding.issue
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(issue.file)}}
    if issue.line >= 1:
        region = {"startLine": issue.line}
        if issue.end_line is not None and issue.end_line >= issue.line:
            region["endLine"] = issue.end_line
        physical["region"] = region
    return physical


def _uri(file: str) -> str:
    """A relative reference: a name with a colon or spaces stays a name."""
    text = file.encode("utf-8", "backslashreplace").decode()
    return quote(text.removeprefix("./"), safe="/")


def _invocation(report: Report) -> dict[str, Any]:
    view = report.view
    return {"executionSuccessful": view.verdict is not None, "exitCode": view.exit_code}
