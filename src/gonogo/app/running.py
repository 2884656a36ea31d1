"""Start a run, go on with one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from gonogo.app.collecting import seldom_collected
from gonogo.app.options import Options, Start, opened
from gonogo.app.wiring import (
    first_record_of,
    plan_in,
    redactor_for,
    started_by,
    surroundings,
    surroundings_of,
)
from gonogo.core.plan import Plan
from gonogo.errors import UsageError
from gonogo.hosts.base import RunResult

if TYPE_CHECKING:
    from gonogo.config import Loaded

T = TypeVar("T")


def start_run(plan: Loaded | Plan, start: Start | None = None, options: Options | None = None) -> RunResult:
    """Run a workflow; returns when it is over, parked or cancelled.

    Raises:
        UsageError: inputs or other values don't fit, or a requested step doesn't exist.
        JournalError: the run's journal can't be created or written.
        RunLocked: another process is starting the same run.
        SandboxError, Bug: the run stopped where it was; it can be resumed.
    """
    return blocking(lambda: start_run_async(plan, start, options))


async def start_run_async(
    plan: Loaded | Plan, start: Start | None = None, options: Options | None = None
) -> RunResult:
    """As `start_run`. Cancelling it cancels the run, then goes on."""
    from gonogo.hosts.local import run_new

    start = start or Start()
    plan = plan if isinstance(plan, Plan) else plan.plan
    with opened(options) as (runs, options):
        environment = {**os.environ, **options.env}
        redactor = redactor_for(environment, plan)
        event = first_record_of(plan, start, options, environment, redactor)
        around = surroundings(runs, options, environment, dict(options.env), redactor, plan)
        return await run_new(event, runs.create(event.run_id), around, signals=options.signals)


def resume_run(run_id: str, options: Options | None = None) -> RunResult:
    """Go on with a run after a crash, a cancel or a hold; one that is over stays as it is. Where an engine carries it
    (or the run around it) its workers go on, and it is followed.

    Raises:
        RunLocked: another process runs it.
        JournalError: there is no such run, or its journal can't be trusted.
        EngineError: its engine can't be reached, or the run was set aside.
        SandboxError, Bug: as `start_run`.
    """
    return blocking(lambda: resume_run_async(run_id, options))


async def resume_run_async(run_id: str, options: Options | None = None) -> RunResult:
    """As `resume_run`."""
    from gonogo.app.carried import carried_in, gone_on_by_workers

    with opened(options) as (runs, options):
        carried = carried_in(runs, run_id)
        if carried is not None:
            return await gone_on_by_workers(carried, options)
        result = await go_on_async(run_id, options, lambda: True, reopens=True)
        assert result is not None
        return result


async def go_on_async(
    run_id: str, options: Options, due: Callable[[], bool], *, reopens: bool
) -> RunResult | None:
    """As `resume_run`, but None and nothing done if it isn't `due` any more once nobody else can run it.

    A cancelled run goes on with its work only if it `reopens`.
    """
    from gonogo.hosts.local import run_again

    with opened(options) as (runs, options):
        journal = runs.reopen(run_id)
        try:
            if not due():
                journal.close()
                return None
            around = surroundings_of(started_by(journal), runs, options, plan_in(journal.records))
        except BaseException:
            journal.close()
            raise
        return await run_again(journal, around, signals=options.signals, reopens=reopens)


def blocking(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in an event loop of its own. Ctrl-C cancels it, which ends the run in good order.

    Raises UsageError where a loop is running already: it would stand still meanwhile.
    """
    if _loop_is_running():
        raise UsageError(
            "an event loop is running here, so nothing can block it",
            advice="await the function that ends in _async",
        )
    with seldom_collected():
        return asyncio.run(main())


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
