"""The clock of a run that is taken up again (TIM-2)."""

from __future__ import annotations

import time

import pytest

from gonogo.core.events import CallDone
from gonogo.hosts.clock import clock_after
from gonogo.journal.records import Record


@pytest.mark.parametrize(
    ("written_ago_s", "passed_s"),
    [(60.0, 60), (-60.0, 0), (56 * 365 * 86_400.0, 0)],
    ids=["a minute ago", "in the future", "by a clock nobody had set"],
)
def test_TIM_2_a_wall_clock_that_was_wrong_counts_as_no_time(written_ago_s: float, passed_s: int) -> None:
    """TIM-2: a machine that begins in 1970 and learns the time later has not waited for decades."""
    record = Record(3, time.time() - written_ago_s, CallDone(at=5.0, call=1))
    assert round(clock_after([record]).now()) == 5 + passed_s
