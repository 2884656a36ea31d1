"""What the journal's tests share: small records, and both places that keep runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gonogo.core.decisions import Ended
from gonogo.core.events import CallDone, RunStarted
from gonogo.core.plan import Plan, Step
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.records import Record
from gonogo.journal.store import Runs

MakeRecord = Callable[..., Record]


@pytest.fixture
def record() -> MakeRecord:
    """Record 0 starts a run; each other ends a call with its number as output."""

    def make(seq: int, output: object = None) -> Record:
        if seq == 0:
            plan = Plan("small", {"lint": Step("lint", "noop")})
            return Record(0, 0.0, RunStarted(run_id="r", plan=plan, started_at_ms=1))
        done = CallDone(at=float(seq), call=seq, output=seq if output is None else output)
        return Record(seq, 1000.5 + seq, done, (Ended(step="lint", outcome="passed"),))

    return make


@pytest.fixture
def disk(tmp_path: Path) -> JsonlRuns:
    """An empty folder of runs."""
    return JsonlRuns(tmp_path / "runs")


@pytest.fixture(params=["memory", "disk"])
def runs(request: pytest.FixtureRequest, disk: JsonlRuns) -> Runs:
    """Every place that keeps runs, in turn."""
    return MemoryRuns() if request.param == "memory" else disk
