"""The face for programs that embed gonogo: `load` a workflow, `run` it, read the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gonogo.app import loading, running
from gonogo.app.options import RUNS_DIR, Options, Start
from gonogo.core.plan import Plan
from gonogo.errors import Problem
from gonogo.hosts.base import RunResult, Sink
from gonogo.journal.store import Runs


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow that can be run any number of times. `problems` are warnings and notes of its file."""

    plan: Plan
    problems: tuple[Problem, ...] = ()

    def run(
        self,
        *,
        inputs: Mapping[str, Any] | None = None,
        event: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        steps: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        runs: str | Path | Runs = RUNS_DIR,
        sinks: tuple[Sink, ...] = (),
    ) -> RunResult:
        """Run it to its end or to a wait for a person. Raises as `gonogo.app.start_run`.

        `event` is the trigger ({name, action, …}), `context` what expressions see as pr, files, branch…, `steps`
        limits the run to these and what they depend on, `sinks` are told of each record of the journal.
        """
        start = Start(trigger=event, context=context or {}, inputs=inputs or {}, requested=steps)
        return running.start_run(self.plan, start, Options(runs=runs, env=env or {}, sinks=sinks))


def load(path: str | Path | None = None, *, strict: bool = False) -> Workflow:
    """The workflow in a file; without a path the usual names are looked for. Raises ConfigError, UsageError."""
    loaded = loading.load(path, strict=strict)
    return Workflow(loaded.plan, loaded.problems)


def loads(text: str, *, strict: bool = False) -> Workflow:
    """The workflow in a text. Raises ConfigError."""
    loaded = loading.loads(text, strict=strict)
    return Workflow(loaded.plan, loaded.problems)


def run(path: str | Path | None = None, **given: Any) -> RunResult:
    """Load a file and run it; `given` as for `Workflow.run`."""
    return load(path).run(**given)


def resume(run_id: str, *, runs: str | Path | Runs = RUNS_DIR) -> RunResult:
    """Go on with a run after a crash, a cancel or a hold. Raises as `gonogo.app.resume_run`."""
    return running.resume_run(run_id, Options(runs=runs))
