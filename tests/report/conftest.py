"""Reports of real runs, kept in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gonogo.app import Options, Start, find_run, loads, start_run, view_run, with_limits
from gonogo.core.faults import Issue
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.view import RunView
from gonogo.report.findings import ReadLines, findings
from gonogo.report.report import Report, report_of

Reporting = Callable[..., Report]


@pytest.fixture
def reporting() -> Reporting:
    """`reporting(steps, event="manual", limits={"fail_fast": True})` runs the steps and reports."""

    def call(
        steps: str,
        *,
        top: str = "",
        event: str | None = None,
        limits: dict[str, Any] | None = None,
        read_lines: ReadLines = lambda _: None,
        **start: Any,
    ) -> Report:
        body = "\n".join(f"  {line}" for line in steps.strip("\n").splitlines())
        loaded = loads(f'version: "1.0"\n{top}steps:\n{body}\n')
        options = Options(runs=MemoryRuns())
        trigger = {"name": event, "event_name": event} if event else None
        start_run(with_limits(loaded.plan, **(limits or {})), Start(trigger=trigger, **start), options)
        return report_of(view_run(find_run("last", options), options)[0], read_lines=read_lines)

    return call


def with_issues(report: Report, step: str, *issues: Issue, read_lines: ReadLines = lambda _: None) -> Report:
    """The report as if a step had reported these issues, too."""
    steps = dict(report.view.steps)
    steps[step] = structs.replace(steps[step], issues=(*steps[step].issues, *issues))
    view: RunView = replace(report.view, steps=steps)
    return Report(view, report.whys, findings(view, read_lines))
