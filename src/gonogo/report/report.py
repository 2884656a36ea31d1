"""One run, ready for any format: the view, the findings and why steps didn't run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gonogo.core.state import State
from gonogo.journal.records import Record
from gonogo.journal.view import RunView, run_view
from gonogo.report.findings import Findings, ReadLines, findings
from gonogo.report.why import Why, whys


@dataclass(frozen=True, slots=True)
class Report:
    """What every format is made from."""

    view: RunView
    whys: dict[str, Why]
    findings: Findings
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The object of `--format json`: the view's, with `why` at skipped steps, and what was left out."""
        whole = self.view.as_json()
        kept: dict[str, list[Any]] | None = (
            {name: [] for name in self.view.steps} if self.findings.hidden else None
        )
        if kept is not None:
            for finding in self.findings.all:
                kept.setdefault(finding.step, []).append(msgspec.to_builtins(finding.issue))
        for name, step in whole["steps"].items():
            if kept is not None:
                step["issues"] = kept[name]
            if name in self.whys:
                step["why"] = self.whys[name].as_json()
        left = {name: self.whys[name].as_json() for name in self.view.excluded if name in self.whys}
        return {**whole, "left_out": left, "hidden_issues": self.findings.hidden, "notes": list(self.notes)}


def report_of(
    records: Sequence[Record],
    *,
    state: State | None = None,
    read_lines: ReadLines = lambda _: None,
    notes: tuple[str, ...] = (),
) -> Report:
    """The report of the run these records tell of.

    `state` is their fold, where the caller has it; `notes` are about the journal itself (a torn line, say).
    """
    view = run_view(records, state)
    return Report(view, whys(records, view), findings(view, read_lines), notes)
