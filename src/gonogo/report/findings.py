"""The issues of a run for a report: in order, by file, and without those that a comment in the file turns off.

A line with `gonogo-disable` within two lines of an issue, or `gonogo-disable-file` in the first five lines of its
file, hides the issue (spec D.7, 4; the older spelling `visor-disable` works too). What gonogo itself says is never
hidden, and a comment never turns a failed step into a passed one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from gonogo.core.faults import Issue
from gonogo.journal.view import RunView, StepView

LINES_AROUND = 2
LINES_AT_THE_TOP = 5

ReadLines = Callable[[str], Sequence[str] | None]
"""The lines of a file of the project; None when it can't or mayn't be read."""

_LINE = re.compile(r"\b(?:gonogo|visor)-disable\b(?!-file)", re.IGNORECASE)
_FILE = re.compile(r"\b(?:gonogo|visor)-disable-file\b", re.IGNORECASE)
_OWN_FILES = frozenset({"system", "contract", ""})


class Finding(Struct, frozen=True):
    """An issue and the step that reported it (empty for the run's own)."""

    step: str
    issue: Issue

    @property
    def located(self) -> bool:
        """True when the issue is about a file."""
        return self.issue.file not in _OWN_FILES


class Findings(Struct, frozen=True):
    """`located` by file in order of appearance, `engine` what is about no file; `hidden` were turned off."""

    located: dict[str, tuple[Finding, ...]]
    engine: tuple[Finding, ...]
    hidden: int = 0

    @property
    def all(self) -> tuple[Finding, ...]:
        """Every one that isn't hidden, those about files first."""
        return (*(finding for found in self.located.values() for finding in found), *self.engine)

    def by_step(self) -> dict[str, list[Finding]]:
        """All of them, by the step that reported them."""
        found: dict[str, list[Finding]] = {}
        for finding in self.all:
            found.setdefault(finding.step, []).append(finding)
        return found


def findings(view: RunView, read_lines: ReadLines = lambda _: None) -> Findings:
    """The findings of a run."""
    found = [Finding(step.name, issue) for step in view.steps.values() for issue in step.issues]
    found += [
        Finding(issue.check_name or "", issue) for issue in view.issues if issue.check_name not in view.steps
    ]
    sources: dict[str, Sequence[str] | None] = {}
    located: dict[str, list[Finding]] = {}
    engine: list[Finding] = []
    hidden = 0
    for finding in found:
        if not finding.located:
            engine.append(finding)
        elif _turned_off(finding.issue, sources, read_lines):
            hidden += 1
        else:
            located.setdefault(finding.issue.file, []).append(finding)
    by_line = {file: tuple(sorted(some, key=lambda one: one.issue.line)) for file, some in located.items()}
    return Findings(by_line, tuple(engine), hidden)


def _turned_off(issue: Issue, sources: dict[str, Sequence[str] | None], read_lines: ReadLines) -> bool:
    if issue.engine:
        return False
    if issue.file not in sources:
        sources[issue.file] = read_lines(issue.file)
    lines = sources[issue.file]
    if not lines:
        return False
    if any(_FILE.search(line) for line in lines[:LINES_AT_THE_TOP]):
        return True
    first = max(0, issue.line - 1 - LINES_AROUND)
    last = max(issue.line, issue.end_line or 0) + LINES_AROUND
    return issue.line > 0 and any(_LINE.search(line) for line in lines[first:last])


def without_faults(found: Iterable[Finding], steps: Mapping[str, StepView]) -> list[Finding]:
    """Those that don't just repeat why their step failed."""
    faults: dict[str, set[tuple[str, str]]] = {}
    kept = []
    for finding in found:
        if finding.step not in faults:
            faults[finding.step] = _faults(steps.get(finding.step))
        if (finding.issue.rule_id, finding.issue.message) not in faults[finding.step]:
            kept.append(finding)
    return kept


def _faults(step: StepView | None) -> set[tuple[str, str]]:
    """The rule and message of each fault of a step and its items."""
    nodes = step.nodes if step is not None else ()
    return {(node.fault.rule_id, node.fault.message) for node in nodes if node.fault is not None}
