"""The face for programs that embed gonogo: `load` a workflow, `run` it, read the result, answer what it waits for.

Each function that runs something has a twin that ends in `_async`, for programs with an event loop of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from gonogo.app import again, loading, requests, running
from gonogo.app.options import RUNS_DIR, Options, Start, Summary
from gonogo.app.parts import built_in_table
from gonogo.core.plan import Plan
from gonogo.errors import Problem, UsageError
from gonogo.hosts.base import Asker, RunResult, Sink, nobody
from gonogo.journal.store import Runs

if TYPE_CHECKING:
    from gonogo.journal.view import RunView
    from gonogo.provider import Provider
    from gonogo.providers.table import Table


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow that can be run any number of times. `problems` are warnings and notes of its file."""

    plan: Plan
    problems: tuple[Problem, ...] = ()
    table: Table | None = field(default=None, repr=False)

    def run(
        self,
        *,
        inputs: Mapping[str, Any] | None = None,
        event: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        steps: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        runs: str | Path | Runs = RUNS_DIR,
        ask: Asker = nobody,
        sinks: tuple[Sink, ...] = (),
        safe_mode: bool = False,
    ) -> RunResult:
        """Run it to its end or to a wait for a person.

        `event` is the trigger ({name, action, …}), `context` what expressions see as pr, files, branch…, `steps`
        limits the run to these and what they depend on, `ask` answers questions at once (an async function; None from
        it lets the run wait), `sinks` are told of each record of the journal. In `safe_mode` mutating calls are
        prepared and not made.

        Raises:
            UsageError: inputs or other values don't fit, or a requested step doesn't exist.
            JournalError, RunLocked, SandboxError, Bug: the run stopped where it was; it can be resumed.
        """
        return running.blocking(
            lambda: self.run_async(
                inputs=inputs,
                event=event,
                context=context,
                steps=steps,
                env=env,
                runs=runs,
                ask=ask,
                sinks=sinks,
                safe_mode=safe_mode,
            )
        )

    async def run_async(
        self,
        *,
        inputs: Mapping[str, Any] | None = None,
        event: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        steps: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        runs: str | Path | Runs = RUNS_DIR,
        ask: Asker = nobody,
        sinks: tuple[Sink, ...] = (),
        safe_mode: bool = False,
    ) -> RunResult:
        """As `run`, in an event loop that is running. When its task is cancelled the run is cancelled in good order."""
        if event is not None and not isinstance(event, Mapping):
            raise UsageError(
                f"event is a mapping, not {type(event).__name__}", advice="write it as {'name': 'pr_opened'}"
            )
        start = Start(event, context or {}, inputs or {}, requested=steps, safe_mode=safe_mode)
        options = Options(runs=runs, env=env or {}, ask=ask, sinks=sinks, table=self.table)
        return await running.start_run_async(self.plan, start, options)


def load(
    path: str | Path | None = None, *, strict: bool = False, step_types: Iterable[Provider] = ()
) -> Workflow:
    """The workflow in a file; without a path the usual names are looked for. Raises ConfigError, UsageError.

    `step_types` are there beside the built-in ones, and in place of one of the same name.
    """
    table = built_in_table(step_types)
    loaded = loading.load(path, strict=strict, table=table)
    return Workflow(loaded.plan, loaded.problems, table)


def loads(text: str, *, strict: bool = False, step_types: Iterable[Provider] = ()) -> Workflow:
    """The workflow in a text; `step_types` as for `load`. Raises ConfigError."""
    table = built_in_table(step_types)
    loaded = loading.loads(text, strict=strict, table=table)
    return Workflow(loaded.plan, loaded.problems, table)


def run(path: str | Path | None = None, **given: Any) -> RunResult:
    """Load a file and run it; `given` as for `Workflow.run`."""
    return load(path).run(**given)


def resume(
    run_id: str,
    *,
    runs: str | Path | Runs = RUNS_DIR,
    ask: Asker = nobody,
    sinks: tuple[Sink, ...] = (),
    step_types: Iterable[Provider] = (),
    from_steps: Iterable[str] = (),
    outputs: Mapping[str, Any] | None = None,
    workflow: str | Path | Workflow | None = None,
    by: str = "",
    may_act_again: bool = False,
) -> RunResult:
    """Go on with a run after a crash, a cancel or a hold; one that is over stays as it is.

    With `from_steps` (a step, or step@scope for an item of a list) these and what depends on them run again, also in a
    run that is over; `outputs`, by step, stand in for runs; `workflow` is what the run goes on under, which must leave
    what ran and stays as it was. `by` is who asks, for the journal. Steps behind, which nobody named, and which have
    changed something outside, are refused unless they `may_act_again`.

    A run that an engine carries goes on with the engine's workers, with their step types and nobody asked, and is
    followed until it is over or waits; one beneath another goes on with that, whose result this is then.

    Raises:
        RunLocked: another process runs it.
        EngineError: its engine can't be reached, or no worker goes on with it for a reason.
        UsageError: steps can't run again like this.
        ConfigError: the changed workflow is wrong, or doesn't fit what has run.
        JournalError: there is no such run, or its journal can't be trusted.
        SandboxError, Bug: as `Workflow.run`.
    """
    wish = _wish(from_steps, outputs, workflow, by, may_act_again=may_act_again)
    options = _options(runs, ask, sinks, step_types, workflow)
    if wish.asks_for_something:
        return again.run_again_from(run_id, wish, options)
    return running.resume_run(run_id, options)


async def resume_async(
    run_id: str,
    *,
    runs: str | Path | Runs = RUNS_DIR,
    ask: Asker = nobody,
    sinks: tuple[Sink, ...] = (),
    step_types: Iterable[Provider] = (),
    from_steps: Iterable[str] = (),
    outputs: Mapping[str, Any] | None = None,
    workflow: str | Path | Workflow | None = None,
    by: str = "",
    may_act_again: bool = False,
) -> RunResult:
    """As `resume`, in an event loop that is running."""
    wish = _wish(from_steps, outputs, workflow, by, may_act_again=may_act_again)
    options = _options(runs, ask, sinks, step_types, workflow)
    if wish.asks_for_something:
        return await again.run_again_from_async(run_id, wish, options)
    return await running.resume_run_async(run_id, options)


def resume_due(
    *,
    runs: str | Path | Runs = RUNS_DIR,
    ask: Asker = nobody,
    sinks: tuple[Sink, ...] = (),
    step_types: Iterable[Provider] = (),
) -> list[RunResult]:
    """Go on with every run whose timer fell due while nobody was there: reminders, handovers, the ends of waits.

    For programs that are there now and then, or always. Runs that another process has are left to it.

    Raises:
        JournalError, SandboxError, Bug: as `resume`, of the first run that couldn't go on, once all have been tried.
    """
    return running.blocking(lambda: resume_due_async(runs=runs, ask=ask, sinks=sinks, step_types=step_types))


async def resume_due_async(
    *,
    runs: str | Path | Runs = RUNS_DIR,
    ask: Asker = nobody,
    sinks: tuple[Sink, ...] = (),
    step_types: Iterable[Provider] = (),
) -> list[RunResult]:
    """As `resume_due`, in an event loop that is running."""
    from gonogo.app import waiting as runs_that_wait

    return await runs_that_wait.resume_due_async(_options(runs, ask, sinks, step_types))


def waiting(*, runs: str | Path | Runs = RUNS_DIR) -> list[Summary]:
    """The runs on HOLD, the newest last, each with its questions in short (`waits`) and when it is due (`wake_at`).

    Only the last record of each is read. Raises JournalError.
    """
    from gonogo.app.waiting import waiting_runs

    return waiting_runs(Options(runs=runs))


def answer(
    run_id: str,
    place: str,
    text: str,
    *,
    by: str = "",
    every: bool = False,
    output: Any = UNSET,
    runs: str | Path | Runs = RUNS_DIR,
    ask: Asker = nobody,
    sinks: tuple[Sink, ...] = (),
    step_types: Iterable[Provider] = (),
) -> RunResult | None:
    """Answer a step that waits for a person, and go on with the run.

    `place` is one of `RunResult.waiting`: a step, or step@scope for an item of a list; child.step for a workflow
    within; of a bare name, or one with * in it, the one place that waits, or all of them alike (`every`). For a call in
    doubt `text` says what became of it: done (with its `output`, if that is known), again, failed, or unknown if nobody
    will ever know. None: another process runs it, or an engine's workers do, and takes the answer up.

    `by`: the name of who answers, which counts where the step has approvers or a quorum. An approval takes yes or no.

    Raises:
        UsageError: the step waits for nothing or at several places, or didn't take the answer: somebody was first, it
        is too late, its giver isn't among the approvers or has answered already.
        JournalError, SandboxError, Bug: as `resume`.
    """
    return running.blocking(
        lambda: answer_async(
            run_id,
            place,
            text,
            by=by,
            every=every,
            output=output,
            runs=runs,
            ask=ask,
            sinks=sinks,
            step_types=step_types,
        )
    )


async def answer_async(
    run_id: str,
    place: str,
    text: str,
    *,
    by: str = "",
    every: bool = False,
    output: Any = UNSET,
    runs: str | Path | Runs = RUNS_DIR,
    ask: Asker = nobody,
    sinks: tuple[Sink, ...] = (),
    step_types: Iterable[Provider] = (),
) -> RunResult | None:
    """As `answer`, in an event loop that is running."""
    step, _, scope = place.partition("@")
    options = _options(runs, ask, sinks, step_types)
    given = requests.Answer(text, by, output)
    asked = await requests.give_async(run_id, step, given, scope=scope, every=every, options=options)
    return asked.result


def cancel(
    run_id: str,
    *,
    by: str = "",
    runs: str | Path | Runs = RUNS_DIR,
    step_types: Iterable[Provider] = (),
) -> RunResult | None:
    """Cancel a run. One that another process runs is told to (None is returned); any other is ended here.

    Raises:
        JournalError, SandboxError, Bug: as `resume`.
    """
    return requests.cancel_run(run_id, by=by, options=_options(runs, nobody, (), step_types))


async def cancel_async(
    run_id: str,
    *,
    by: str = "",
    runs: str | Path | Runs = RUNS_DIR,
    step_types: Iterable[Provider] = (),
) -> RunResult | None:
    """As `cancel`, in an event loop that is running."""
    return await requests.cancel_run_async(run_id, by=by, options=_options(runs, nobody, (), step_types))


def read(run_id: str, *, runs: str | Path | Runs = RUNS_DIR) -> RunView:
    """A run as it stands, from its journal alone: outcomes, faults, what it waits for. Raises JournalError."""
    from gonogo.app.looking import view_run

    return view_run(run_id, Options(runs=runs))[0]


def _wish(
    steps: Iterable[str],
    outputs: Mapping[str, Any] | None,
    workflow: str | Path | Workflow | None,
    by: str,
    *,
    may_act_again: bool,
) -> again.Wish:
    if isinstance(steps, str):
        raise UsageError("from_steps is a list of steps, not a text", advice=f"write it as [{steps!r}]")
    plan = workflow.plan if isinstance(workflow, Workflow) else workflow
    return again.Wish(tuple(steps), dict(outputs or {}), plan, by, may_act_again)


def _options(
    runs: str | Path | Runs,
    ask: Asker,
    sinks: tuple[Sink, ...],
    step_types: Iterable[Provider],
    workflow: str | Path | Workflow | None = None,
) -> Options:
    """A workflow that was loaded with step types of its own runs with them."""
    own = workflow.table if isinstance(workflow, Workflow) else None
    return Options(runs=runs, ask=ask, sinks=sinks, table=own or built_in_table(step_types))
