"""Places that keep runs, and a short way to run a workflow's text in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gonogo import app
from gonogo.hosts.base import LogLine, RunResult
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.store import Runs

HEAD = 'version: "1.0"\n'


@pytest.fixture(params=["memory", "jsonl"])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Runs:
    """The same stories hold in memory and on disk."""
    return MemoryRuns() if request.param == "memory" else JsonlRuns(tmp_path / "runs")


@pytest.fixture
def logged() -> list[LogLine]:
    """What the person who watches was told."""
    return []


@pytest.fixture
def go(
    runs: Runs, logged: list[LogLine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., RunResult]:
    """Run a workflow's text in an empty folder. Keywords: those of Start, then those of Options."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)

    def run(text: str, **given: Any) -> RunResult:
        start = {name: given.pop(name) for name in app.Start.__slots__ if name in given}
        options = app.Options(runs=runs, log=logged.append, **given)
        return app.start_run(app.loads(HEAD + text), app.Start(**start), options)

    return run
