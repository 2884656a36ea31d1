"""Counts of a run, folded from its records, with the names of the report (spec D.3).

A run of a step is one call and its verdict; items count one by one, a fan-out as a whole isn't a run. A skip
keeps what was counted before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from gonogo.core import decisions as d
from gonogo.core.events import CallFailed
from gonogo.core.faults import Fault, Issue
from gonogo.core.scope import order_key
from gonogo.core.state import Node, State
from gonogo.journal.records import Record

__all__ = ["Tally", "statistics"]

SEVERITIES = ("critical", "error", "warning", "info")
PREVIEW_ITEMS = 3
PREVIEW_CHARACTERS = 50


class _Count:
    """What is counted for one step."""

    __slots__ = ("durations", "failed", "retries", "runs", "skips")

    def __init__(self) -> None:
        self.runs = self.failed = self.skips = self.retries = 0
        self.durations: list[int] = []


class Tally:
    """One pass over the records: counts by step, every fault, every refusal of a budget."""

    def __init__(self, records: Iterable[Record], steps: Iterable[str]) -> None:
        self.counts = {name: _Count() for name in steps}
        self.faults: list[tuple[d.Ended, Fault, int]] = []
        self.refusals: list[d.Refused] = []
        self.conditions: dict[str, int] = {}
        self.suppressed = 0
        self._under_way: dict[tuple[str, str], tuple[float, int]] = {}
        for record in records:
            for decision in record.decisions:
                count = _COUNT.get(type(decision))
                if count is not None:
                    count(self, decision, record)

    def _started(self, decision: d.Started, record: Record) -> None:
        began = self._under_way.get((decision.step, decision.scope), (record.event.at, 0))[0]
        kept = began if decision.again else record.event.at
        self._under_way[decision.step, decision.scope] = (kept, decision.attempt)

    def _ended(self, decision: d.Ended, record: Record) -> None:
        attempt = self._end(decision, record, failed=decision.outcome != "passed")
        if decision.fault is not None:
            self.faults.append((decision, decision.fault, attempt))

    def _superseded(self, decision: d.Superseded, record: Record) -> None:
        self._end(decision, record, failed=isinstance(record.event, CallFailed))

    def _end(self, decision: d.Ended | d.Superseded, record: Record, *, failed: bool) -> int:
        """Count the run that ends here, if one was under way; the answer is its attempt's number."""
        under_way = self._under_way.pop((decision.step, decision.scope), None)
        if under_way is None:
            return 0
        began, attempt = under_way
        count = self.counts[decision.step]
        count.runs += 1
        count.failed += failed
        count.durations.append(milliseconds(record.event.at - began))
        return attempt

    def _skipped(self, decision: d.Skipped, record: Record) -> None:
        self.counts[decision.step].skips += 1
        self.suppressed += decision.reason.startswith("suppress")

    def _retrying(self, decision: d.Retrying, record: Record) -> None:
        self.counts[decision.step].retries += 1

    def _refused(self, decision: d.Refused, record: Record) -> None:
        self.refusals.append(decision)

    def _judged(self, decision: d.Judged, record: Record) -> None:
        if decision.construct in ("if", "assume") and not decision.result:
            self.conditions[decision.step] = decision.expression


_COUNT: dict[type, Any] = {
    d.Started: Tally._started,
    d.Ended: Tally._ended,
    d.Superseded: Tally._superseded,
    d.Skipped: Tally._skipped,
    d.Retrying: Tally._retrying,
    d.Refused: Tally._refused,
    d.Judged: Tally._judged,
}


def statistics(state: State, tally: Tally) -> dict[str, Any]:
    """The statistics object of the report; `checks` in configuration order."""
    checks = [_check(state, tally, name) for name in state.graph.steps if name in state.included]
    classes = [fault.fault_class for _, fault, _ in tally.faults]
    return {
        "totalChecksConfigured": len(state.graph.steps),
        "totalExecutions": sum(check["totalRuns"] for check in checks),
        "successfulExecutions": sum(check["successfulRuns"] for check in checks),
        "failedExecutions": sum(check["failedRuns"] for check in checks),
        "skippedChecks": sum(check["skipped"] for check in checks),
        "totalDuration": max((check["totalDuration"] for check in checks), default=0),
        "wallDuration": milliseconds(state.at),
        "retries": sum(count.retries for count in tally.counts.values()),
        "transientFailures": classes.count("transient"),
        "logicalFailures": classes.count("logical"),
        "loopBudgetHits": sum(refusal.limit == "max_loops" for refusal in tally.refusals),
        "suppressed": tally.suppressed,
        "checks": checks,
    }


def _check(state: State, tally: Tally, name: str) -> dict[str, Any]:
    count = tally.counts[name]
    node = state.node(name, "")
    faults = [one.fault for one in nodes_of(state, name) if one.fault is not None]
    skipped = node is not None and node.outcome == "skipped"
    issues = issues_of(state, name)
    return {
        "checkName": name,
        "totalRuns": count.runs,
        "successfulRuns": count.runs - count.failed,
        "failedRuns": count.failed,
        "skippedRuns": count.skips,
        "skipped": skipped,
        "skipReason": node.reason if node is not None and skipped else None,
        "skipCondition": _condition(state, tally, name, node) if skipped else None,
        "totalDuration": sum(count.durations),
        "perIterationDuration": count.durations,
        "issuesFound": len(issues),
        "issuesBySeverity": {
            severity: sum(issue.severity == severity for issue in issues) for severity in SEVERITIES
        },
        "outputsProduced": _outputs(state, name),
        "errorMessage": faults[0].message if faults else None,
        "forEachPreview": _preview(node),
    }


def issues_of(state: State, name: str) -> list[Issue]:
    """The issues of a step's latest run, those of its items after its own, then what the run said of it (a refused
    route, a workflow's own detector).
    """
    own = [issue for node in nodes_of(state, name) for issue in node.issues]
    return own + [issue for issue in state.run_issues if issue.check_name == name]


def nodes_of(state: State, name: str) -> list[Node]:
    """A step's nodes: the step itself, then its items in index order, each before what is within it."""
    scopes = state.nodes[name]
    return [scopes[scope] for scope in sorted(scopes, key=order_key)]


def milliseconds(seconds: float) -> int:
    """Whole milliseconds, never less than none."""
    return max(0, round(seconds * 1000))


def _condition(state: State, tally: Tally, name: str, node: Node | None) -> str | None:
    if node is None or node.reason not in ("if_condition", "assume") or name not in tally.conditions:
        return None
    return state.graph.expression(tally.conditions[name])


def _outputs(state: State, name: str) -> int:
    nodes = nodes_of(state, name)
    if nodes and nodes[0].items is not None:
        return len(nodes[0].items)
    return sum(node.output is not UNSET for node in nodes)


def _preview(node: Node | None) -> list[str] | None:
    """The first three items, 50 characters each, then how many more there are (spec D.3, 5)."""
    if node is None or node.items is None:
        return None
    texts = [item if isinstance(item, str) else json.dumps(item) for item in node.items[:PREVIEW_ITEMS]]
    shown = [text[:PREVIEW_CHARACTERS] for text in texts]
    more = len(node.items) - PREVIEW_ITEMS
    return [*shown, f"...{more} more"] if more > 0 else shown
