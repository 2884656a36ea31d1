"""Metrics of a run: counters and sums with labels, folded from its records in one pass.

Names and labels are stable: a dashboard may rely on them. What they look like as text is for others
(`report/exposition.py`). A run of a step is one call and its verdict, as in `tally.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from gonogo.core import decisions as d
from gonogo.core.faults import Fault
from gonogo.journal.glimpse import Glimpse, Moment

__all__ = ["FAMILIES", "About", "Family", "Meter", "Metric", "Sample", "as_json"]


class Family(Struct, frozen=True):
    """What one name counts. `kind`: counter, or gauge for what isn't a count; `labels` in the order they are shown."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    kind: str = "counter"


class Sample(Struct, frozen=True):
    """A value and the labels' values, in the order of the family's labels."""

    values: tuple[str, ...]
    value: float


class About(Struct, frozen=True):
    """Which run it is and what it came to, as `gonogo_run_info` tells it; `duration_s` on the run's own clock."""

    run_id: str
    workflow: str
    event: str
    verdict: str
    duration_s: float


class Metric(Struct, frozen=True):
    """A family with its samples, in the order in which they first came up. None of them is zero."""

    family: Family
    samples: tuple[Sample, ...]


_RUNS = Family(
    "gonogo_step_runs_total",
    "Runs of steps that came to an end, with all their attempts, by outcome: passed, failed, tolerated, cancelled or "
    "superseded.",
    ("step", "outcome"),
)
_SECONDS = Family(
    "gonogo_step_duration_seconds_total",
    "Time of these runs from the call to its verdict; waits for a person count, waits between attempts don't.",
    ("step",),
)
_CALLS = Family("gonogo_calls_total", "Calls made, those of retries and items included.", ("step",))
_ATTEMPTS = Family(
    "gonogo_attempts_total",
    "Attempts that calls made through their gates, by target; a fallback is one, too.",
    ("step", "target"),
)
_ATTEMPT_FAILURES = Family(
    "gonogo_attempt_failures_total",
    "Attempts that failed, by the kind of their failure.",
    ("step", "target", "kind"),
)
_SKIPS = Family("gonogo_skips_total", "Times a step or item was skipped, by reason.", ("step", "reason"))
_SUPPRESSED = Family(
    "gonogo_suppressed_total", "Mutating steps held back because of a failure before them.", ("step",)
)
_RETRIES = Family(
    "gonogo_retries_total", "Attempts after the first, by the class of the fault before.", ("step", "class")
)
_FAULTS = Family(
    "gonogo_faults_total", "Attempts that ended in a fault, by kind and class.", ("step", "kind", "class")
)
_VIOLATIONS = Family(
    "gonogo_contract_violations_total",
    "Contracts that didn't hold or couldn't be evaluated: assume, guarantee or schema.",
    ("step", "kind"),
)
_LOOPS = Family(
    "gonogo_loop_budget_hits_total", "Routes that a loop budget refused, by scope.", ("step", "scope")
)
_BREACHES = Family(
    "gonogo_run_budget_breaches_total",
    "Times the run's own budget said no, by what ran out: time_s, calls, retries, tokens or money.",
    ("budget",),
)
_UNDONE = Family(
    "gonogo_compensations_total",
    "Successes that were to be undone at the end, by the outcome of the step that undoes them.",
    ("step", "outcome"),
)
_HOLDS = Family(
    "gonogo_holds_total",
    "Waits for a person: for an answer, or for a word on a call in doubt.",
    ("step", "kind"),
)
_EVENTS = Family(
    "gonogo_fault_events_total",
    "What became of faults, a fault being one failure with all attempts at it: detected, isolated, "
    "recovery.attempted, recovery.succeeded, recovery.failed, compensated or escalated.",
    ("step", "event"),
)
_RUN_SECONDS = Family(
    "gonogo_run_duration_seconds", "The run's own time up to its latest record.", (), "gauge"
)
_INFO = Family(
    "gonogo_run_info",
    "Always 1; its labels tell which run this is and what it came to (none: it has no verdict yet).",
    ("run_id", "workflow", "event", "verdict"),
    "gauge",
)

FAMILIES = (
    _INFO, _RUN_SECONDS, _RUNS, _SECONDS, _CALLS, _ATTEMPTS, _ATTEMPT_FAILURES, _RETRIES, _FAULTS, _EVENTS,
    _VIOLATIONS, _LOOPS, _SKIPS, _SUPPRESSED, _BREACHES, _UNDONE, _HOLDS,
)  # fmt: skip
"""Every family, in the order in which they are told."""

LOOP_LIMITS = frozenset({"max_loops", "run_loops"})
"""Names of the budgets that bound loops: of a scope, and of the whole run."""
RUN_BUDGET = "budget."
"""How the names of the run's own budgets begin."""
_CONTRACTS = frozenset({"assume", "guarantee"})
_SCHEMA_RULE = "contract/schema_validation_failed"


def as_json(metrics: Iterable[Metric]) -> dict[str, Any]:
    """The same as plain data: name → list of {labels, value}."""
    return {
        metric.family.name: [
            {"labels": dict(zip(metric.family.labels, sample.values, strict=True)), "value": sample.value}
            for sample in metric.samples
        ]
        for metric in metrics
    }


class Meter:
    """Counts a run's records, one after the other."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {family.name: {} for family in FAMILIES}
        self._began: dict[tuple[str, str], float] = {}
        # Where the latest run hasn't passed: its outcome as counted, and its fault. Another attempt changes both.
        self._ends: dict[tuple[str, str], tuple[str, Fault | None]] = {}
        self._classes: dict[tuple[str, str], str] = {}
        self._flying: dict[tuple[int, int], tuple[str, str]] = {}
        self._at = 0.0

    def see(self, glimpse: Glimpse) -> None:
        """Count a record."""
        self._at = glimpse.event.at
        if glimpse.event.ticket:
            self._attempt_over(glimpse.event)
        for decision in glimpse.decisions:
            count = _COUNT.get(type(decision))
            if count is not None:
                count(self, decision)

    def metrics(self, about: About) -> tuple[Metric, ...]:
        """Every family in turn with what was counted, also those that nothing was counted for."""
        info = (about.run_id, about.workflow, about.event, about.verdict)
        values = dict(self._values)
        values[_INFO.name] = {info: 1}
        values[_RUN_SECONDS.name] = {(): about.duration_s}
        return tuple(
            Metric(
                family, tuple(Sample(labels, _told(value)) for labels, value in values[family.name].items())
            )
            for family in FAMILIES
        )

    def _add(self, family: Family, *values: str, by: float = 1) -> None:
        counts = self._values[family.name]
        counts[values] = counts.get(values, 0) + by
        if by < 0 and counts[values] == 0:
            del counts[values]

    def started(self, decision: d.Started) -> None:
        """A call; one that is repeated because it was lost goes on with the same run."""
        self._add(_CALLS, decision.step)
        if not decision.again:
            self._began[decision.step, decision.scope] = self._at
        if decision.attempt == 1:
            self._ends.pop((decision.step, decision.scope), None)

    def attempted(self, decision: d.AttemptStarted) -> None:
        """An attempt of the run's own; what a run beneath makes is counted there."""
        if not decision.beneath:
            self._add(_ATTEMPTS, decision.step, decision.target)
            self._flying[decision.call, decision.ticket] = (decision.step, decision.target)

    def _attempt_over(self, moment: Moment) -> None:
        place = self._flying.pop((moment.call, moment.ticket), None)
        if place is not None and moment.kind:
            self._add(_ATTEMPT_FAILURES, *place, moment.kind)

    def attempt_refused(self, decision: d.AttemptRefused) -> None:
        """A budget's no to an attempt."""
        if decision.limit:
            self._add(_BREACHES, decision.limit.removeprefix(RUN_BUDGET))

    def ended(self, decision: d.Ended) -> None:
        """The end of an attempt, of a whole fan-out, or of what never ran; or another outcome for the same failure."""
        fault, place = decision.fault, (decision.step, decision.scope)
        before = self._ends.get(place)
        again = place not in self._began and before is not None and before[1] == fault
        self._end(decision, decision.outcome, fault, again=again)
        if fault is not None and not again:
            self._classes[decision.step, decision.scope] = fault.fault_class
            self._add(_FAULTS, decision.step, fault.kind, fault.fault_class)
        if any(issue.engine and issue.rule_id == _SCHEMA_RULE for issue in decision.issues):
            self._add(_VIOLATIONS, decision.step, "schema")

    def superseded(self, decision: d.Superseded) -> None:
        """The end of a run that doesn't count."""
        self._end(decision, "superseded")

    def _end(
        self,
        decision: d.Ended | d.Superseded,
        outcome: str,
        fault: Fault | None = None,
        *,
        again: bool = False,
    ) -> None:
        place = (decision.step, decision.scope)
        began = self._began.pop(place, None)
        if began is not None:
            self._add(_SECONDS, decision.step, by=max(0.0, self._at - began))
        elif not again:
            return
        before = self._ends.pop(place, None)
        if before is not None:
            self._add(_RUNS, decision.step, before[0], by=-1)
        self._add(_RUNS, decision.step, outcome)
        if outcome != "passed":
            self._ends[place] = (outcome, fault)

    def skipped(self, decision: d.Skipped) -> None:
        """A skip; what was suppressed has a count of its own, too."""
        self._add(_SKIPS, decision.step, decision.reason)
        if decision.reason == "suppressed":
            self._add(_SUPPRESSED, decision.step)

    def retrying(self, decision: d.Retrying) -> None:
        """Another attempt at what failed before."""
        self._add(_RETRIES, decision.step, self._classes.get((decision.step, decision.scope), "transient"))

    def judged(self, decision: d.Judged) -> None:
        """A contract that was judged."""
        if decision.construct in _CONTRACTS and (decision.error is not None or not decision.result):
            self._add(_VIOLATIONS, decision.step, decision.construct)

    def refused(self, decision: d.Refused) -> None:
        """A budget's no."""
        if decision.limit in LOOP_LIMITS:
            self._add(_LOOPS, decision.step, decision.scope)
        elif decision.limit.startswith(RUN_BUDGET):
            self._add(_BREACHES, decision.limit.removeprefix(RUN_BUDGET))

    def fault(self, decision: d.FaultEvent) -> None:
        """A turn in a fault's life."""
        self._add(_EVENTS, decision.step, decision.event)

    def undone(self, decision: d.Undone) -> None:
        """An undoing, well or not."""
        self._add(_UNDONE, decision.step, decision.outcome)

    def held(self, decision: d.Held) -> None:
        """A wait for an answer."""
        self._add(_HOLDS, decision.step, "person")

    def doubted(self, decision: d.Doubted) -> None:
        """A wait for a word on what became of a call."""
        self._add(_HOLDS, decision.step, "in_doubt")


def _told(value: float) -> float:
    """Microseconds are enough: sums of floats have tails that mean nothing. Whole numbers are told as such."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded


_COUNT: MappingProxyType[type, Callable[[Meter, Any], None]] = MappingProxyType(
    {
        d.Started: Meter.started,
        d.AttemptStarted: Meter.attempted,
        d.AttemptRefused: Meter.attempt_refused,
        d.Ended: Meter.ended,
        d.Superseded: Meter.superseded,
        d.Skipped: Meter.skipped,
        d.Retrying: Meter.retrying,
        d.Judged: Meter.judged,
        d.Refused: Meter.refused,
        d.FaultEvent: Meter.fault,
        d.Undone: Meter.undone,
        d.Held: Meter.held,
        d.Doubted: Meter.doubted,
    }
)
