"""What stops a run that can't go on, and what is left running when it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gonogo import app
from gonogo.errors import Bug
from gonogo.expressions import sandbox
from gonogo.expressions.process import Child
from gonogo.hosts.base import RunResult
from gonogo.journal.memory import MemoryInbox, MemoryJournal, MemoryRuns
from gonogo.journal.records import Record

Go = Callable[..., RunResult]


def broken(*_: Any, **__: Any) -> Any:
    """What nobody expected."""
    raise RuntimeError("odd")


def test_an_evaluation_that_breaks_is_a_bug_and_no_bare_exception(
    go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 4: what isn't expected stops the run with its story; those who embed gonogo catch one base class."""
    monkeypatch.setattr(sandbox.Sandbox, "begin", broken)
    with pytest.raises(Bug, match="the engine failed: RuntimeError: odd"):
        go("steps:\n  a: {type: noop, if: 'event'}\n")


def test_an_inbox_that_breaks_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that hears nobody any more can't be cancelled (law 7)."""
    runs = MemoryRuns()
    monkeypatch.setattr(MemoryInbox, "take", broken)
    plan = app.loads('version: "1.0"\nsteps:\n  a: {type: noop}\n').plan
    with pytest.raises(Bug, match="the engine failed"):
        app.start_run(plan, app.Start(run_id="r"), app.Options(runs=runs))


def test_one_sandbox_serves_a_run_and_its_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started once, and ended when the outputs are computed."""
    loaded = app.loads("""
version: "1.0"
outputs: [{name: twice, value_js: "outputs.a * 2"}]
steps: {a: {type: script, content: "return 21"}}
""")
    children: list[Child] = []
    ended: list[Child] = []

    class Counted(Child):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            children.append(self)

        def kill(self) -> int | None:
            ended.append(self)
            return super().kill()

    monkeypatch.setattr(sandbox, "Child", Counted)
    result = app.start_run(loaded, options=app.Options(runs=MemoryRuns()))
    assert result.outputs == {"twice": 42}
    assert len(children) == 1
    assert ended == children


def batches_of(monkeypatch: pytest.MonkeyPatch, text: str) -> list[list[str]]:
    """Run a workflow; the types of the events of each append."""
    batches: list[list[str]] = []
    append = MemoryJournal.append

    def noted(journal: MemoryJournal, records: Sequence[Record], *, sync: bool = False) -> None:
        batches.append([type(record.event).__name__ for record in records])
        append(journal, records, sync=sync)

    monkeypatch.setattr(MemoryJournal, "append", noted)
    app.start_run(app.loads(f'version: "1.0"\n{text}'), options=app.Options(runs=MemoryRuns()))
    return batches


def test_records_of_steps_that_never_wait_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One write for all that happens before anything else gets the processor."""
    steps = "steps:\n  a: {type: noop}\n  b: {type: noop, depends_on: a}\n  c: {type: noop, depends_on: b}\n"
    assert batches_of(monkeypatch, steps) == [["RunStarted", "CallDone", "CallDone", "CallDone"]]


def test_what_leads_to_a_mutating_call_is_written_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Semantics 12: the intent is durable first, even of a type that never waits."""
    steps = "steps:\n  a: {type: noop}\n  b: {type: log, message: hi, mutates: true, depends_on: a}\n"
    assert batches_of(monkeypatch, steps) == [["RunStarted", "CallDone"], ["CallDone"]]
