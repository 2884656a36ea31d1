"""The run's own clock: seconds since the run started, on monotonic time, carried on over a resume, never set back."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gonogo.journal.records import Record

DECADE_S = 10 * 365 * 86_400.0


class RunClock:
    """Seconds on the clock of a run that stands at `start_s` now."""

    __slots__ = ("_zero_s",)

    def __init__(self, start_s: float = 0.0) -> None:
        self._zero_s = time.monotonic() - start_s

    def now(self) -> float:
        """Seconds, to the microsecond, so that records stay short."""
        return round(time.monotonic() - self._zero_s, 6)


def clock_after(records: Sequence[Record], idle_s: float | None = None) -> RunClock:
    """A clock that goes on after these records: the time since the last one was written has passed for the run too. It
    is `idle_s` where somebody knows: the last writer may have had another machine's clock.

    A wall clock set back meanwhile, or a journal "from the future", counts as no time (case TIM-2). Nor do decades: one
    of the two moments is from a clock that nobody had set yet.
    """
    last_s = max(record.event.at for record in records)
    passed_s = idle_s if idle_s is not None else time.time() - records[-1].at
    return RunClock(last_s + (passed_s if 0.0 < passed_s < DECADE_S else 0.0))
