"""What a run is doing right now, folded from its records as they come: for progress on a terminal and for logs.

Only what is under way is remembered, so watching a run of a hundred thousand items costs what its slots cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from gonogo.core import decisions as d
from gonogo.core.events import RunStarted
from gonogo.core.plan import Plan
from gonogo.core.scope import step_at
from gonogo.journal.records import Record
from gonogo.report.layout import brief

_TOLD = frozenset({
    d.Refusal, d.Skipped, d.Started, d.Ended, d.Expanded, d.Retrying, d.Routed, d.Refused, d.Flagged, d.Held, d.Doubted,
    d.Answered, d.Stopping, d.Reopened, d.Superseded, d.CallStopping, d.Voted, d.NotTaken, d.Reminded, d.HandedOver,
})  # fmt: skip
"""What is news to a person who reads a log; the rest only with `-v`."""
_LEFT_OUT_OF_ITEMS = frozenset({d.Started, d.Skipped, d.Expanded})


class Activity(Struct):
    """One step (in one scope) under way. `since_s` on the run's clock; `kind`: running, waiting or items."""

    step: str
    scope: str
    kind: str
    since_s: float
    text: str = ""
    done: int = 0
    failed: int = 0
    total: int = 0
    due_s: float | None = None

    @property
    def place(self) -> str:
        """`step`, or `step@scope`."""
        return step_at(self.step, self.scope)


class Watch:
    """The state of a run for people. Feed it each record once, in order."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.run_id = ""
        self.at_s = 0.0
        self.planned = 0
        self.settled = 0
        self.failed = 0
        self.active: dict[tuple[str, str], Activity] = {}
        self._final: dict[str, str] = {}

    def see(self, record: Record) -> None:
        """Take in one record."""
        self.at_s = max(self.at_s, record.event.at)
        if isinstance(record.event, RunStarted):
            self.plan = record.event.plan
            self.run_id = record.event.run_id
        for decision in record.decisions:
            handler = _HANDLERS.get(type(decision))
            if handler is not None:
                handler(self, decision)

    def note(self, step: str, scope: str, text: str) -> None:
        """What a call says it is doing now."""
        activity = self.active.get((step, scope))
        if activity is not None:
            activity.text = brief(text, 200)

    def _planned(self, decision: d.Planned) -> None:
        self.planned = len(decision.included)

    def _started(self, decision: d.Started) -> None:
        text = f"attempt {decision.attempt}" if decision.attempt > 1 else ""
        self._set(decision, "running", text)
        self._unsettle(decision)

    def _expanded(self, decision: d.Expanded) -> None:
        self._set(decision, "items")
        self.active[decision.step, decision.scope].total = decision.total
        self._unsettle(decision)

    def _ended(self, decision: d.Ended) -> None:
        self._leave(decision, decision.outcome)

    def _skipped(self, decision: d.Skipped) -> None:
        self._leave(decision, "skipped")

    def _retrying(self, decision: d.Retrying) -> None:
        self._set(decision, "waiting", f"retry {decision.retry}")
        self.active[decision.step, decision.scope].due_s = decision.due_s
        self._unsettle(decision)

    def _initialising(self, decision: d.Initialising) -> None:
        self._unsettle(decision)
        self._set(decision, "waiting", decision.sentence())

    def _remediating(self, decision: d.Remediating) -> None:
        self._set(decision, "waiting", decision.sentence())

    def _held(self, decision: d.Held) -> None:
        self._set(decision, "waiting", f"for a person: {brief(decision.prompt, 200)}")
        self.active[decision.step, decision.scope].due_s = decision.due_s

    def _doubted(self, decision: d.Doubted) -> None:
        self._set(decision, "waiting", f"in doubt: {brief(decision.message, 200)}")

    def _set(self, decision: d.About, kind: str, text: str = "") -> None:
        self.active[decision.step, decision.scope] = Activity(
            decision.step, decision.scope, kind, self.at_s, text
        )

    def _leave(self, decision: d.About, outcome: str) -> None:
        self.active.pop((decision.step, decision.scope), None)
        if not decision.scope:
            self._final[decision.step] = outcome
            self._count()
            return
        around = self._around(decision)
        if around is not None:
            around.done += 1
            around.failed += outcome in ("failed", "cancelled")

    def _around(self, decision: d.About) -> Activity | None:
        """The fan-out this is an item of: the same step in the scope around."""
        scope = decision.scope.rpartition("/")[0]
        return self.active.get((decision.step, scope))

    def _unsettle(self, decision: d.About) -> None:
        if not decision.scope and self._final.pop(decision.step, None) is not None:
            self._count()

    def _count(self) -> None:
        self.settled = len(self._final)
        self.failed = sum(outcome in ("failed", "cancelled") for outcome in self._final.values())


_HANDLERS: dict[type, Callable[[Watch, Any], None]] = {
    d.Planned: Watch._planned,
    d.Started: Watch._started,
    d.Expanded: Watch._expanded,
    d.Ended: Watch._ended,
    d.Skipped: Watch._skipped,
    d.Retrying: Watch._retrying,
    d.Initialising: Watch._initialising,
    d.Remediating: Watch._remediating,
    d.Held: Watch._held,
    d.Doubted: Watch._doubted,
}


def log_lines(record: Record, *, everything: bool) -> Iterator[tuple[str, str]]:
    """(place, sentence) for each decision that is news; with `everything`, for each one.

    Items that start, or that end well, are news only with `everything`: there may be very many.
    """
    for decision in record.decisions:
        if not everything and not _is_news(decision):
            continue
        step, scope = getattr(decision, "step", None) or "run", getattr(decision, "scope", "")
        yield step_at(step, scope), brief(decision.sentence(), 500)


def _is_news(decision: d.Decision) -> bool:
    if type(decision) not in _TOLD:
        return False
    if not isinstance(decision, d.About) or not decision.scope:
        return True
    if isinstance(decision, d.Ended):
        return decision.outcome != "passed"
    return type(decision) not in _LEFT_OUT_OF_ITEMS
