"""What stops a run that can't go on, and what is left running when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gonogo import app
from gonogo.errors import Bug
from gonogo.expressions import sandbox
from gonogo.expressions.process import Child
from gonogo.hosts.base import RunResult
from gonogo.journal.memory import MemoryInbox, MemoryRuns

Go = Callable[..., RunResult]


def broken(*_: Any, **__: Any) -> Any:
    """What nobody expected."""
    raise RuntimeError("odd")


def test_an_evaluation_that_breaks_is_a_bug_and_no_bare_exception(
    go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 4: what isn't expected stops the run with its story; those who embed gonogo catch one base class."""
    monkeypatch.setattr(sandbox.Sandbox, "evaluate_async", broken)
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
