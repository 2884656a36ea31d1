"""Counts of a run with the names of the report (spec D.3), from its tally and its steps' views."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET

from gonogo.core.state import Node, State
from gonogo.journal.durations import milliseconds
from gonogo.journal.lazily import Elements
from gonogo.journal.metrics import LOOP_LIMITS
from gonogo.journal.steps import StepView
from gonogo.journal.tally import Count, Tally

__all__ = ["statistics_of"]

SEVERITIES = ("critical", "error", "warning", "info")
PREVIEW_ITEMS = 3
PREVIEW_CHARACTERS = 50


def statistics_of(state: State, steps: Mapping[str, StepView], tally: Tally) -> dict[str, Any]:
    """The statistics object of the report; `checks`, in configuration order, are made while they are written."""
    counts = [count for name in steps if (count := tally.counts.get(name)) is not None]
    classes = [fault.fault_class for _, fault, _ in tally.faults]
    runs, failed = sum(count.runs for count in counts), sum(count.failed for count in counts)
    return {
        "totalChecksConfigured": len(state.graph.steps),
        "totalExecutions": runs,
        "successfulExecutions": runs - failed,
        "failedExecutions": failed,
        "skippedChecks": sum(_is_skipped(step.node) for step in steps.values()),
        "totalDuration": max((sum(count.durations) for count in counts), default=0),
        "wallDuration": milliseconds(state.at),
        "retries": sum(count.retries for count in tally.counts.values()),
        "transientFailures": classes.count("transient"),
        "logicalFailures": classes.count("logical"),
        "loopBudgetHits": sum(refusal.limit in LOOP_LIMITS for refusal in tally.refusals),
        "suppressed": tally.suppressed,
        "checks": Elements(lambda: _checks(state, steps, tally)),
    }


def _is_skipped(node: Node | None) -> bool:
    return node is not None and node.outcome == "skipped"


def _checks(state: State, steps: Mapping[str, StepView], tally: Tally) -> Iterator[dict[str, Any]]:
    never = Count()
    for step in steps.values():
        condition = tally.conditions.get(step.name)
        source = state.graph.expression(condition.expression) if condition is not None else None
        yield _check(step, tally.counts.get(step.name, never), source)


def _check(step: StepView, count: Count, condition: str | None) -> dict[str, Any]:
    """`condition` is the text of the last one of the step that didn't hold."""
    node = step.node
    reason = node.reason if node is not None and node.outcome == "skipped" else None
    severities: list[str] = [issue.severity for issue in step.issues]
    return {
        "checkName": step.name,
        "totalRuns": count.runs,
        "successfulRuns": count.runs - count.failed,
        "failedRuns": count.failed,
        "skippedRuns": count.skips,
        "skipped": _is_skipped(node),
        "skipReason": reason,
        "skipCondition": condition if reason in ("if_condition", "assume") else None,
        "totalDuration": sum(count.durations),
        "perIterationDuration": count.durations,
        "issuesFound": len(severities),
        "issuesBySeverity": {severity: severities.count(severity) for severity in SEVERITIES},
        "outputsProduced": _outputs(step),
        "errorMessage": step.fault.message if step.fault is not None else None,
        "forEachPreview": _preview(node),
    }


def _outputs(step: StepView) -> int:
    first = step.nodes[0] if step.nodes else None
    if first is not None and first.items is not None:
        return len(first.items)
    return sum(node.output is not UNSET for node in step.nodes)


def _preview(node: Node | None) -> list[str] | None:
    """The first three items, 50 characters each, then how many more there are (spec D.3, 5)."""
    if node is None or node.items is None:
        return None
    texts = [item if isinstance(item, str) else json.dumps(item) for item in node.items[:PREVIEW_ITEMS]]
    shown = [text[:PREVIEW_CHARACTERS] for text in texts]
    more = len(node.items) - PREVIEW_ITEMS
    return [*shown, f"...{more} more"] if more > 0 else shown
