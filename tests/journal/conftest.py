"""What the journal's tests share: small records, and the places that keep runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gonogo.core.commands import Ask, Command, Evaluate, SetTimer, StartCall
from gonogo.core.decisions import Ended
from gonogo.core.events import AnyEvent, CallDone, Evaluated, Event, RunStarted, TimerFired
from gonogo.core.machine import advance, begin
from gonogo.core.plan import Plan, Step
from gonogo.expressions.results import Failure, Value
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.records import Record
from gonogo.journal.store import Runs

MakeRecord = Callable[..., Record]


@pytest.fixture
def record() -> MakeRecord:
    """Record 0 starts a run, `r` if nothing else is said; each other ends a call with its number as output."""

    def make(seq: int, output: object = None, *, run_id: str = "r") -> Record:
        if seq == 0:
            plan = Plan("small", {"lint": Step("lint", "noop")})
            return Record(0, 0.0, RunStarted(run_id=run_id, plan=plan, started_at_ms=1))
        done = CallDone(at=float(seq), call=seq, output=seq if output is None else output)
        return Record(seq, 1000.5 + seq, done, (Ended(step="lint", outcome="passed"),))

    return make


@pytest.fixture
def disk(tmp_path: Path) -> JsonlRuns:
    """An empty folder of runs."""
    return JsonlRuns(tmp_path / "runs")


@pytest.fixture
def tables(database: str) -> Iterator[PostgresRuns]:
    """An empty database of runs."""
    place = PostgresRuns(database)
    yield place
    place.close()


@pytest.fixture(params=["memory", "disk", "postgres"])
def runs(request: pytest.FixtureRequest) -> Runs:
    """Every place that keeps runs, in turn."""
    if request.param == "memory":
        return MemoryRuns()
    place: Runs = request.getfixturevalue("disk" if request.param == "disk" else "tables")
    return place


@pytest.fixture
def drive() -> Callable[..., list[Record]]:
    """Runs a plan through the core with made-up results and gives the records; time goes on by 10 ms an event.

    `outcome(command)` is the event that ends a call, or the output of one that works; `value(ask)` what an
    expression gives.
    """
    return _drive


def _drive(
    plan: Plan,
    outcome: Callable[[StartCall], Any] = lambda command: None,
    value: Callable[[Ask], Any] = lambda ask: True,
    events: Sequence[AnyEvent] = (),
    **started: Any,
) -> list[Record]:
    start = RunStarted(plan=plan, started_at_ms=1_700_000_000_000, **{"run_id": "r", **started})
    state = begin(start)
    records: list[Record] = []
    waiting: deque[AnyEvent] = deque([start])
    more = deque(events)
    while waiting or more:
        event = waiting.popleft() if waiting else more.popleft()
        event = msgspec.structs.replace(event, at=max(event.at, len(records) / 100))
        step = advance(state, event)
        records.append(Record(len(records), 0.0, event, step.decisions))
        for command in step.commands:
            waiting.extend(_answer(command, outcome, value))
    return records


def _answer(command: Command, outcome: Callable[..., Any], value: Callable[..., Any]) -> list[AnyEvent]:
    if isinstance(command, StartCall):
        result = outcome(command)
        return [result if isinstance(result, Event) else CallDone(call=command.call, output=result)]
    if isinstance(command, Evaluate):
        results = tuple(value(ask) for ask in command.asks)
        return [Evaluated(batch=command.batch, results=tuple(map(as_result, results)))]
    if isinstance(command, SetTimer):
        return [TimerFired(at=command.due_s, timer=command.timer)]
    return []


def as_result(value: Any) -> Any:
    """A result as it is, or a value as a result."""
    return value if isinstance(value, Value | Failure) else Value(value)
