"""Answer and cancel runs, whether or not somebody runs them now."""

from __future__ import annotations

from dataclasses import replace

from gonogo.app.options import Options, runs_in
from gonogo.app.running import blocking, go_on_async
from gonogo.core import lifecycle
from gonogo.core.events import AnswerGiven, CancelAsked, RunStarted
from gonogo.errors import RunLocked, UsageError
from gonogo.hosts.base import RunResult
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Request, Runs


def answer_run(
    run_id: str, step: str, text: str, *, scope: str = "", by: str = "", options: Options | None = None
) -> RunResult | None:
    """Answer a step that waits for a person, or say what became of a call in doubt (done, again or failed).

    The answer is kept with the run. Unless another process runs it (then None is returned), the run goes on at once.
    A step that waits for a child run takes the answer to where the child waits; `child.step` names a step of it.

    Raises:
        UsageError: the step waits for nothing.
        JournalError, RunLocked, SandboxError, Bug: as `resume_run`.
    """
    return blocking(lambda: answer_run_async(run_id, step, text, scope=scope, by=by, options=options))


async def answer_run_async(
    run_id: str, step: str, text: str, *, scope: str = "", by: str = "", options: Options | None = None
) -> RunResult | None:
    """As `answer_run`."""
    from gonogo.providers.human_input import clean

    options = options or Options()
    runs = runs_in(options)
    target_id, step, scope = _waiting_place(runs, run_id, step, scope)
    request = AnswerGiven(step=step, text=clean(text), scope=scope, by=by)
    return await _ask_of(runs, target_id, request, options)


def cancel_run(run_id: str, *, by: str = "", options: Options | None = None) -> RunResult | None:
    """Cancel a run. One that another process runs is told to (None is returned); any other is ended here.

    Raises:
        JournalError, SandboxError, Bug: as `resume_run`.
    """
    return blocking(lambda: cancel_run_async(run_id, by=by, options=options))


async def cancel_run_async(run_id: str, *, by: str = "", options: Options | None = None) -> RunResult | None:
    """As `cancel_run`."""
    options = options or Options()
    runs = runs_in(options)
    return await _ask_of(runs, run_id, CancelAsked(by=by), options)


async def _ask_of(runs: Runs, run_id: str, request: Request, options: Options) -> RunResult | None:
    """Leave a request, then go on with the outermost run around it, if nobody else does.

    Whoever ran it may have taken the request and ended meanwhile: going on then would undo a cancel.
    """
    inbox = runs.inbox(run_id)
    request_id = inbox.put(request)

    def waits() -> bool:
        return any(one.request == request_id for one in inbox.take())

    try:
        outermost = _outermost(runs, run_id)
        return await go_on_async(outermost, replace(options, runs=runs), waits)
    except RunLocked:
        return None


def _waiting_place(runs: Runs, run_id: str, step: str, scope: str) -> tuple[str, str, str]:
    """The run, step and scope an answer is for: through workflow steps to where somebody waits."""
    state = state_of(runs.read(run_id).records)
    outer, _, inner = step.partition(".") if step not in state.nodes else (step, "", "")
    node = state.nodes.get(outer, {}).get(scope)
    if node is None:
        places = [
            each.step for each in state.all_nodes() if each.status in (lifecycle.HOLDING, lifecycle.IN_DOUBT)
        ]
        advice = f"these wait: {', '.join(places)}" if places else "nothing of this run waits"
        raise UsageError(f"step {step!r} waits for nothing", advice=advice)
    child = node.hold.details.get("child") if node.hold is not None else None
    if not isinstance(child, str):
        return run_id, outer, scope
    if inner:
        return _waiting_place(runs, child, inner, "")
    waiting = node.hold.details.get("waiting") if node.hold is not None else None
    place = str(waiting[0]) if isinstance(waiting, list) and len(waiting) == 1 else ""
    name, _, inner_scope = place.partition("@")
    if not name:
        raise UsageError(f"several steps of {child} wait", advice=f"name one: {outer}.STEP, of {waiting}")
    return _waiting_place(runs, child, name, inner_scope)


def _outermost(runs: Runs, run_id: str) -> str:
    """The run that has no parent: going on with it goes on with its children."""
    while True:
        first = runs.read(run_id).records[0].event
        parent = first.parent.get("run_id") if isinstance(first, RunStarted) and first.parent else None
        if not isinstance(parent, str):
            return run_id
        run_id = parent
