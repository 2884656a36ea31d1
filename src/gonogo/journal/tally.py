"""What only the records of a run know: how often each step ran and how long, every fault of every attempt, every
refusal, and what conditions read. The state keeps the latest of each only.

A run of a step is one call and its verdict; items count one by one, a fan-out as a whole isn't a run. A skip
keeps what was counted before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

from gonogo.core import decisions as d
from gonogo.core.events import CallLost, RerunAsked, Resumed, RunStarted
from gonogo.core.faults import Fault
from gonogo.journal.durations import milliseconds
from gonogo.journal.fault_log import FaultLog
from gonogo.journal.glimpse import Glimpse
from gonogo.journal.metrics import Meter

__all__ = ["Count", "Tally"]

_LOST, _RESUMED = str(CallLost.__struct_config__.tag), str(Resumed.__struct_config__.tag)
_BEGINNINGS = tuple(str(kind.__struct_config__.tag) for kind in (RunStarted, RerunAsked))


class Count:
    """What is counted for one step; `durations` in milliseconds, in the order the runs ended."""

    __slots__ = ("durations", "failed", "retries", "runs", "skips")

    def __init__(self) -> None:
        self.runs = self.failed = self.skips = self.retries = 0
        self.durations: list[int] = []


class Tally:
    """One pass over the records. `conditions`: the last `if` or `assume` of a step itself that didn't hold;
    `doubted`: who had a call that is in doubt, by step and scope, where that is known; `given`: how often a person gave
    the output of a step itself in place of a run; `meter` counts the same records for metrics, `fault_log` gathers what
    became of each fault.
    """

    def __init__(self, glimpses: Iterable[Glimpse]) -> None:
        self.counts: dict[str, Count] = defaultdict(Count)
        self.faults: list[tuple[d.Ended, Fault, int]] = []
        self.refusals: list[d.Refused] = []
        self.conditions: dict[str, d.Judged] = {}
        self.given: Counter[str] = Counter()
        self.doubted: dict[tuple[str, str], str] = {}
        self._host = ""
        self.suppressed = 0
        self.meter = Meter()
        self.fault_log = FaultLog()
        self._under_way: dict[tuple[str, str], tuple[float, int, str]] = {}
        self._latest: dict[tuple[str, str], Fault] = {}
        for glimpse in glimpses:
            self._host = _deciding(glimpse, self._host)
            self.meter.see(glimpse)
            self.fault_log.see(glimpse)
            for decision in glimpse.decisions:
                count = _COUNT.get(type(decision))
                if count is not None:
                    count(self, decision, glimpse)

    def _started(self, decision: d.Started, glimpse: Glimpse) -> None:
        began = self._under_way.get((decision.step, decision.scope), (glimpse.event.at,))[0]
        kept = began if decision.again else glimpse.event.at
        self._under_way[decision.step, decision.scope] = (kept, decision.attempt, self._host)

    def _doubted(self, decision: d.Doubted, glimpse: Glimpse) -> None:
        """A call that no worker is known to have had was made by the run's own host, as it was then."""
        place = decision.step, decision.scope
        worker = glimpse.event.by if glimpse.event.type == _LOST else ""
        self.doubted[place] = worker or self._under_way.get(place, (0, 0, ""))[2]

    def _ended(self, decision: d.Ended, glimpse: Glimpse) -> None:
        attempt = self._end(decision, glimpse, failed=decision.outcome != "passed")
        fault, place = decision.fault, (decision.step, decision.scope)
        if fault is None or (attempt == 0 and self._latest.get(place) == fault):
            return  # none, or the outcome of a failure that was told when its attempt ended
        self._latest[place] = fault
        self.faults.append((decision, fault, attempt))

    def _superseded(self, decision: d.Superseded, glimpse: Glimpse) -> None:
        self._end(decision, glimpse, failed=glimpse.event.failed)

    def _end(self, decision: d.Ended | d.Superseded, glimpse: Glimpse, *, failed: bool) -> int:
        """Count the run that ends here, if one was under way; the answer is its attempt's number."""
        under_way = self._under_way.pop((decision.step, decision.scope), None)
        if under_way is None:
            return 0
        began, attempt, _ = under_way
        count = self.counts[decision.step]
        count.runs += 1
        count.failed += failed
        count.durations.append(milliseconds(glimpse.event.at - began))
        return attempt

    def _skipped(self, decision: d.Skipped, glimpse: Glimpse) -> None:
        self.counts[decision.step].skips += 1
        self.suppressed += decision.reason.startswith("suppress")

    def _retrying(self, decision: d.Retrying, glimpse: Glimpse) -> None:
        self.counts[decision.step].retries += 1

    def _refused(self, decision: d.Refused, glimpse: Glimpse) -> None:
        self.refusals.append(decision)

    def _given(self, decision: d.Given, glimpse: Glimpse) -> None:
        self.given[decision.step] += not decision.scope

    def _judged(self, decision: d.Judged, glimpse: Glimpse) -> None:
        if decision.construct not in ("if", "assume") or decision.scope:
            return
        if decision.error or not decision.result:
            self.conditions[decision.step] = decision


def _deciding(glimpse: Glimpse, before: str) -> str:
    """Who decides from this record on: `process 17 on here`."""
    event = glimpse.event
    if event.type == _RESUMED:
        return event.by
    return event.host if event.type in _BEGINNINGS else before


_COUNT: MappingProxyType[type, Callable[[Tally, Any, Glimpse], None]] = MappingProxyType(
    {
        d.Started: Tally._started,
        d.Ended: Tally._ended,
        d.Superseded: Tally._superseded,
        d.Skipped: Tally._skipped,
        d.Retrying: Tally._retrying,
        d.Refused: Tally._refused,
        d.Judged: Tally._judged,
        d.Given: Tally._given,
        d.Doubted: Tally._doubted,
    }
)
