"""One run, ready for any format: the view, the findings and why steps didn't run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from gonogo.journal.lazily import Members, plain_data
from gonogo.journal.view import RunView, StepView
from gonogo.report.faults import fault_lines
from gonogo.report.findings import Finding, Findings, ReadLines, findings
from gonogo.report.why import Why, whys
from gonogo.report.withheld import notes_of, withheld_calls


class Report(Struct, frozen=True):
    """What every format is made from. `faults`: what became of them, where there is more to say than a step's row.
    `every_item`: whether a table shows all items of lists, not only the first ones that went wrong.
    """

    view: RunView
    whys: dict[str, Why]
    findings: Findings
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    every_item: bool = False

    def told(self) -> Members:
        """The object of `--format json`: the view's, with `why` at skipped steps, and what was left out."""
        return Members(self._members)

    def as_json(self) -> dict[str, Any]:
        """As `told`, as plain JSON data."""
        told: dict[str, Any] = plain_data(self.told())
        return told

    def _members(self) -> Iterator[tuple[str, Any]]:
        shown = self.findings.by_step() if self.findings.hidden else None
        yield from self.view.told(lambda step: self._step(step, shown))
        left = {name: self.whys[name].as_json() for name in self.view.excluded if name in self.whys}
        yield "left_out", left
        yield "hidden_issues", self.findings.hidden
        if self.view.state.safe_mode:
            yield "withheld", [call.as_json() for call in withheld_calls(self.view)]
        yield "notes", list(self.notes)

    def _step(self, step: StepView, shown: dict[str, list[Finding]] | None) -> Any:
        """`shown` are the issues that no comment turns off; None: all are."""
        issues = None if shown is None else [one.issue for one in shown.get(step.name, ())]
        why = self.whys.get(step.name)
        return step.told(issues) if why is None else step.told(issues, why=why.as_json())


def report_of(
    view: RunView,
    *,
    read_lines: ReadLines = lambda _: None,
    notes: tuple[str, ...] = (),
    every_item: bool = False,
) -> Report:
    """The report of a run; `notes` are about the journal itself (a torn line, say). Raises JournalError."""
    told = (*notes_of(view), *notes)
    return Report(view, whys(view), findings(view, read_lines), told, fault_lines(view), every_item)
