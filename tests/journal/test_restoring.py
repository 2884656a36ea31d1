"""Records are input: a forged journal is an error of the journal, not a bug (hostile input)."""

from __future__ import annotations

import pytest

from gonogo.core.decisions import Settled
from gonogo.core.events import RunStarted
from gonogo.core.plan import Plan, Step
from gonogo.errors import JournalError
from gonogo.journal.records import Record
from gonogo.journal.restoring import state_of


def test_records_that_dont_follow_from_each_other_are_refused() -> None:
    """The message says what was expected."""
    start = RunStarted(run_id="r", plan=Plan("p", {"a": Step("a", "noop")}), started_at_ms=0)
    with pytest.raises(JournalError, match="don't follow from each other"):
        state_of([Record(0, 0.0, start, (Settled("a"),))])
