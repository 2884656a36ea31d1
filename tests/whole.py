"""Runs a workflow's text as a user would: real reading, sandbox, step types, loop, and a journal on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from gonogo import app
from gonogo.config import Loaded
from gonogo.core import decisions as d
from gonogo.core.commands import Ask
from gonogo.core.events import RunStarted
from gonogo.hosts.base import LogLine, RunResult
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.records import Record
from gonogo.journal.store import Runs
from gonogo.journal.view import RunView, StepView, run_view
from gonogo.providers.table import Table


class Ran:
    """A run that is over or parked, read back from its journal alone."""

    def __init__(self, result: RunResult, runs: Runs, folder: Path, logged: list[LogLine]) -> None:
        self.result = result
        self.runs = runs
        self.folder = folder
        self.logged = logged
        self.records: list[Record] = runs.read(result.run_id).records
        self.view: RunView = run_view(self.records)

    def __getitem__(self, step: str) -> StepView:
        return self.view.steps[step]

    @property
    def verdict(self) -> str | None:
        """GO, NO-GO or HOLD."""
        return self.view.verdict

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcome by step."""
        return {name: step.outcome for name, step in self.view.steps.items()}

    def why(self, step: str) -> tuple[str, str | None]:
        """Outcome and reason of a step."""
        return self[step].outcome, self[step].reason

    def output(self, step: str) -> Any:
        """A step's output as an expression would see it."""
        return self.result.output(step)

    def decisions(self, kind: type[Any], step: str | None = None) -> list[Any]:
        """Decisions of a kind, in order, of one step or of all."""
        found = [decision for record in self.records for decision in record.decisions]
        return [one for one in found if isinstance(one, kind) and step in (None, getattr(one, "step", None))]

    def judged(self, construct: str, step: str | None = None) -> list[d.Judged]:
        """What was judged, in order."""
        return [one for one in self.decisions(d.Judged, step) if one.construct == construct]

    def asked(self, construct: str) -> list[Ask]:
        """What was sent to be evaluated, in order."""
        return [ask for batch in self.decisions(d.Asked) for ask in batch.asks if ask.construct == construct]

    @property
    def started(self) -> list[str]:
        """Steps in the order in which their calls went out, one entry a call."""
        return [one.step for one in self.decisions(d.Started)]

    @property
    def calls(self) -> Counter[str]:
        """Calls by step."""
        return Counter(self.started)

    def rules(self, step: str) -> list[str]:
        """The rules of a step's issues."""
        return [issue.rule_id for issue in self[step].issues]

    @property
    def own_rules(self) -> list[str]:
        """The rules of the run's own issues."""
        return [issue.rule_id for issue in self.view.issues]

    def lines(self, name: str) -> list[str]:
        """The lines of a file the run's commands wrote; none when there is no such file."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def resumed(self, **options: Any) -> Ran:
        """Go on with it as another process would."""
        with chdir(self.folder):
            result = app.resume_run(self.result.run_id, app.Options(runs=self.runs, **options))
        return Ran(result, self.runs, self.folder, self.logged)

    def answered(self, step: str, text: str, **options: Any) -> Ran:
        """Answer a step and go on."""
        with chdir(self.folder):
            told = app.Options(runs=self.runs, **options)
            result = app.answer_run(self.result.run_id, step, text, options=told)
        assert result is not None
        return Ran(result, self.runs, self.folder, self.logged)

    @property
    def first(self) -> RunStarted:
        """The first event."""
        event = self.records[0].event
        assert isinstance(event, RunStarted)
        return event


RunYaml = Callable[..., Ran]


def runner(folder: Path) -> RunYaml:
    """Runs texts, each run in the folder's `home`. Keywords: `event` (a name), `files` (texts by
    name, beside the workflow's own file), then those of Start and Options.
    """
    home = folder / "home"
    home.mkdir()
    runs = JsonlRuns(folder / "runs", durability="none")
    logged: list[LogLine] = []

    def run(text: str, **given: Any) -> Ran:
        event = given.pop("event", None)
        if event is not None:
            given["trigger"] = {"name": event, "event_name": event}
        start = {name: given.pop(name) for name in app.Start.__slots__ if name in given}
        files = given.pop("files", {})
        options = app.Options(runs=runs, log=logged.append, **given)
        with chdir(home):
            loaded = _loaded('version: "1.0"\n' + text, files, folder, options.table)
            return Ran(app.start_run(loaded, app.Start(**start), options), runs, home, logged)

    return run


def _loaded(text: str, files: dict[str, str], folder: Path, table: Table | None) -> Loaded:
    if not files:
        return app.loads(text, table=table)
    for name, content in {**files, "workflow.yaml": text}.items():
        (folder / name).write_text(content)
    return app.load(folder / "workflow.yaml", table=table)


@pytest.fixture
def run_yaml(tmp_path: Path) -> RunYaml:
    """Run a text in a folder of the test's own; see `runner`."""
    return runner(tmp_path)
