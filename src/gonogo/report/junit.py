"""The report as JUnit's XML: a test case for each step, and for each item of a fan-out.

A failure that the run tolerates is no failure here: what the file says as a whole is what the verdict says.
What waits for a person is an error, so that a HOLD never looks green.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from gonogo.journal.view import ItemView, StepView
from gonogo.report import words
from gonogo.report.findings import Finding, without_faults
from gonogo.report.report import Report

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {
    "failed": "failure",
    "cancelled": "error",
    "waiting": "error",
    "in_doubt": "error",
    "skipped": "skipped",
}


def junit(report: Report) -> str:
    """The whole document, ending in a line end."""
    view = report.view
    found = report.findings.by_step()
    cases = [case for step in view.steps.values() for case in _cases(report, step, found.get(step.name, ()))]
    counts = {
        "tests": len(cases),
        "failures": sum("<failure" in case for case in cases),
        "errors": sum("<error" in case for case in cases),
        "skipped": sum("<skipped" in case for case in cases),
    }
    told = " ".join(f'{name}="{number}"' for name, number in counts.items())
    seconds = f"{view.statistics.get('wallDuration', 0) / 1000:.3f}"
    name = _attribute(view.plan.name)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name={_attribute("gonogo")} {told} time="{seconds}">',
        f'<testsuite name={name} {told} time="{seconds}">',
        "<properties>",
        f'<property name="verdict" value={_attribute(words.verdict_word(view))}/>',
        f'<property name="run" value={_attribute(view.run_id)}/>',
        "</properties>",
        *cases,
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _cases(report: Report, step: StepView, found: Sequence[Finding]) -> Iterator[str]:
    note = words.note(step, report.whys.get(step.name), report.view)
    suite = report.view.plan.name
    rule = step.fault.rule_id if step.fault else ""
    yield _case(suite, step.name, step.outcome, note, rule, step.duration_ms, _found(report, found))
    for item in step.items or ():
        yield _item_case(suite, step, item)


def _item_case(suite: str, step: StepView, item: ItemView) -> str:
    note = f"{words.item_name(item)}: {item.fault.message}" if item.fault else (item.reason or "")
    name = f"{step.name} [{item.scope}]"
    # An item that failed in a tolerated or partly passed step fails nothing by itself.
    outcome = item.outcome if step.outcome == "failed" or item.outcome != "failed" else "tolerated"
    return _case(suite, name, outcome, note, item.fault.rule_id if item.fault else "", 0)


def _found(report: Report, found: Sequence[Finding]) -> str:
    """What a step found, one a line: none is dropped because the step passed."""
    return "\n".join(
        f"{one.issue.severity} {one.issue.file}:{one.issue.line} {one.issue.message}"
        for one in without_faults(found, report.view.steps)
    )


def _case(
    suite: str, name: str, outcome: str, note: str, rule: str, duration_ms: int, found: str = ""
) -> str:
    start = f'<testcase classname={_attribute(suite)} name={_attribute(name)} time="{duration_ms / 1000:.3f}"'
    element = _ELEMENTS.get(outcome)
    if element is None:
        told = "\n".join(filter(None, (note, found)))
        return f"{start}>{_output(told)}</testcase>" if told else f"{start}/>"
    kind = f" type={_attribute(rule or outcome)}" if element != "skipped" else ""
    return f"{start}><{element} message={_attribute(note or outcome)}{kind}/>{_output(found)}</testcase>"


def _output(text: str) -> str:
    return f"<system-out>{_text(text)}</system-out>" if text else ""


def _attribute(text: str) -> str:
    return quoteattr(_allowed(text))


def _text(text: str) -> str:
    return escape(_allowed(text))


def _allowed(text: str) -> str:
    """XML 1.0 has no room for control characters and halves of characters, escaped or not."""
    return _FORBIDDEN.sub("\ufffd", text)
