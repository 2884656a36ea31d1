"""Answer and cancel runs, whether or not somebody runs them now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from gonogo.app.carried import Carried, carried_in, outermost_of
from gonogo.app.engines import hand_on, has_started
from gonogo.app.options import Options, runs_in
from gonogo.app.running import blocking, go_on_async
from gonogo.app.taken import SHOWN, heard, told_of
from gonogo.core import approvals, lifecycle
from gonogo.core.decisions import Finished
from gonogo.core.events import AnswerGiven, CancelAsked
from gonogo.core.exhaustion import CHOICES, is_choice
from gonogo.core.holds import SEALED, SEALED_WORDS
from gonogo.core.holds import WORDS as IN_DOUBT_WORDS
from gonogo.core.state import Node, State
from gonogo.errors import EngineError, RunLocked, UsageError
from gonogo.hosts.base import RunResult
from gonogo.hosts.local import result_of
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Request, Runs

TAKEN_LOOKS = 20
"""Looks whether a request is taken up, where the engine can't be told of it."""
_LOOK_S = 0.1


def answer_run(
    run_id: str, step: str, text: str, *, scope: str = "", by: str = "", options: Options | None = None
) -> RunResult | None:
    """Answer a step that waits for a person, or say what became of a call in doubt (done, again or failed).

    The answer is kept with the run. Unless another process runs it (then None is returned), the run goes on at once.
    A step that waits for a child run takes the answer to where the child waits; `child.step` names a step of it.

    Raises:
        UsageError: the step waits for nothing, takes other words or didn't take the answer, or the run is over.
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
    state = state_of(runs.records(target_id))
    _refuse_other_words(state, step, scope, text)
    start = state.nodes[step][scope].attempts
    request = AnswerGiven(step=step, text=clean(text), scope=scope, by=by, start=start)
    result, request_id = await _ask_of(runs, target_id, request, options)
    await heard(runs, target_id, request_id)
    return result


def cancel_run(run_id: str, *, by: str = "", options: Options | None = None) -> RunResult | None:
    """Cancel a run. One that another process runs is told to (None is returned); any other is ended here; one that is
    over, or was cancelled before, stays as it is.

    Raises:
        JournalError, SandboxError, Bug: as `resume_run`.
    """
    return blocking(lambda: cancel_run_async(run_id, by=by, options=options))


async def cancel_run_async(run_id: str, *, by: str = "", options: Options | None = None) -> RunResult | None:
    """As `cancel_run`."""
    options = options or Options()
    runs = runs_in(options)
    if has_started(runs, run_id):
        state = state_of(runs.records(run_id))
        if _end_of(state) is not None:
            return result_of(state)
    return (await _ask_of(runs, run_id, CancelAsked(by=by), options))[0]


async def _ask_of(
    runs: Runs, run_id: str, request: Request, options: Options
) -> tuple[RunResult | None, str]:
    """Leave a request, then go on with the outermost run around it, if nobody else does; where an engine carries it,
    one of its workers does (None). With the request's id.

    Whoever ran it may have taken the request and ended meanwhile: going on then would undo a cancel.
    """
    inbox = runs.inbox(run_id)
    request_id = inbox.put(request)

    def waits() -> bool:
        return any(one.request == request_id for one in inbox.take())

    carried = carried_in(runs, run_id)
    if carried is not None:
        await _tell(carried, options, waits)
        return None, request_id
    try:
        chosen = replace(options, runs=runs)
        return await go_on_async(outermost_of(runs, run_id), chosen, waits, reopens=False), request_id
    except RunLocked:
        return None, request_id


async def _tell(carried: Carried, options: Options, waits: Callable[[], bool]) -> None:
    """Have a worker look at what is asked. Whoever has the run sees it without the engine; a run that waits does once
    the engine answers (`unheard.py`), so that nobody needs to ask twice.

    Raises EngineError, JournalError.
    """
    try:
        await asyncio.to_thread(hand_on, carried.run_id, carried.carrier, options)
    except EngineError as problem:
        for _ in range(TAKEN_LOOKS):
            if not waits():
                return
            await asyncio.sleep(_LOOK_S)
        kept = f"what you asked is kept with run {carried.run_id}, which takes it up once the engine answers"
        raise EngineError(problem.message, advice=f"{problem.advice}; don't ask again: {kept}") from None


def _end_of(state: State) -> Finished | None:
    """The end of a run that nobody is at work on and nothing is waited for in."""
    return state.finished if state.finished is not None and not state.finished.parked else None


def _waiting_place(
    runs: Runs, run_id: str, step: str, scope: str, seen: frozenset[str] = frozenset()
) -> tuple[str, str, str]:
    """The run, step and scope an answer is for: through workflow steps (`seen` so far) to where somebody waits."""
    state = state_of(runs.records(run_id))
    outer, _, inner = step.partition(".") if step not in state.nodes else (step, "", "")
    node = state.nodes.get(outer, {}).get(scope)
    if node is None or node.complete or _end_of(state) is not None:
        raise _waits_for_nothing(state, step, scope)
    child = node.hold.details.get("child") if node.hold is not None else None
    if inner and not isinstance(child, str):
        raise UsageError(
            f"{outer} waits for no run of its own just now, so nobody there can take an answer",
            advice=f"'gonogo show {run_id}' shows what waits",
        )
    if not isinstance(child, str) or child in seen:
        return run_id, outer, scope
    seen |= {run_id, child}
    if inner:
        return _waiting_place(runs, child, inner, "", seen)
    waiting = node.hold.details.get("waiting") if node.hold is not None else None
    place = str(waiting[0]) if isinstance(waiting, list) and len(waiting) == 1 else ""
    name, _, inner_scope = place.partition("@")
    if not name:
        raise UsageError(f"several steps of {child} wait", advice=f"name one: {outer}.STEP, of {waiting}")
    return _waiting_place(runs, child, name, inner_scope, seen)


def _refuse_other_words(state: State, step: str, scope: str, text: str) -> None:
    """A choice and a call in doubt take certain words; others would be kept, and change nothing."""
    node = state.nodes[step][scope]
    words = _words(node)
    if words and text.strip().lower() not in words:
        place = f"{step}@{scope}" if scope else step
        raise UsageError(
            f"{place} can't be answered with {text[:80]!r}",
            advice=f"it takes {', '.join(words[:-1])} or {words[-1]}",
        )


def _words(node: Node) -> tuple[str, ...]:
    """The words that a step takes; empty for any text."""
    if is_choice(node):
        return CHOICES
    if node.status == lifecycle.IN_DOUBT:
        return IN_DOUBT_WORDS
    if node.hold is not None and SEALED in node.hold.details:
        return SEALED_WORDS
    return approvals.WORDS if node.hold is not None and node.hold.quorum is not None else ()


def _waits_for_nothing(state: State, step: str, scope: str) -> UsageError:
    end = _end_of(state)
    if end is not None:
        return UsageError(
            f"run {state.run_id} is over: {end.verdict}; nothing of it waits for an answer",
            advice=f"'gonogo show {state.run_id}' shows how it ended",
        )
    node = state.nodes.get(step, {}).get(scope)
    if node is not None and (reason := approvals.past(node)) != "nothing":
        return UsageError(told_of(state, step, scope, reason), advice=SHOWN.format(run=state.run_id))
    places = [
        f"{each.step}@{each.scope}" if each.scope else each.step
        for each in state.all_nodes()
        if each.status in (lifecycle.HOLDING, lifecycle.IN_DOUBT)
    ]
    advice = f"these wait: {', '.join(places)}" if places else "nothing of this run waits"
    return UsageError(f"step {step!r} waits for nothing", advice=advice)
