"""Answer and cancel runs, whether or not somebody runs them now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from gonogo.app.carried import Carried, carried_in, outermost_of
from gonogo.app.engines import hand_on, has_started
from gonogo.app.given import fitting
from gonogo.app.options import Options, opened, runs_in
from gonogo.app.places import Place, doubts_of, end_of, named, places_of, words_of
from gonogo.app.running import blocking, go_on_async
from gonogo.app.taken import Refusals, heard_within
from gonogo.core import approvals, lifecycle
from gonogo.core.events import AnswerGiven, CancelAsked
from gonogo.core.holds import GIVEN_UP
from gonogo.core.state import Node
from gonogo.errors import EngineError, GonogoError, JournalError, RunLocked, UsageError
from gonogo.hosts.base import RunResult
from gonogo.hosts.local import result_of
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Request, Runs

TAKEN_LOOKS = 20
"""Looks whether a request is taken up, where the engine can't be told of it."""
_LOOK_S = 0.1


class Asked(Struct, frozen=True):
    """What became of what was asked. `result`: what the run came to here; else it is left with the run, for whoever
    has it, or for its engine's workers (`carrier` names the engine).

    `places` were answered. `so_far`: how far those are that wait on. `is_taken`: the journal has all of it. `away`: why
    nobody could be told, or asked what became of it; it lies with the run, and is taken up all the same. `lay_there`:
    the same was asked before, and wasn't taken up yet.
    """

    run_id: str
    result: RunResult | None = None
    carrier: str = ""
    places: tuple[str, ...] = ()
    so_far: tuple[str, ...] = ()
    is_taken: bool = False
    away: GonogoError | None = None
    lay_there: bool = False

    @property
    def named(self) -> str:
        """The first few places, and how many more there are."""
        return named(self.places)


def answer_run(
    run_id: str, step: str, text: str, *, scope: str = "", by: str = "", options: Options | None = None
) -> RunResult | None:
    """Answer a step that waits for a person, or say what became of a call in doubt (done, again, failed or unknown).

    The answer is kept with the run. Unless another process or an engine's workers go on with it (then None is returned,
    also where the engine can't be told for now: it hears of it when it is back), the run goes on at once.
    A step that waits for a child run takes the answer to where the child waits; `child.step` names a step of it.

    Raises:
        UsageError: the step waits for nothing or at several places, takes other words or didn't take the answer, the
        answer has more than 100 KiB, or the run is over.
        JournalError, RunLocked, SandboxError, Bug: as `resume_run`.
    """
    return blocking(lambda: answer_run_async(run_id, step, text, scope=scope, by=by, options=options))


async def answer_run_async(
    run_id: str, step: str, text: str, *, scope: str = "", by: str = "", options: Options | None = None
) -> RunResult | None:
    """As `answer_run`."""
    given = Answer(text, by=by)
    return (await give_async(run_id, step, given, scope=scope, options=options)).result


class Answer(Struct, frozen=True):
    """What is answered, and in whose name. `output`: what a call in doubt gave that was `done`, if that is known."""

    text: str
    by: str = ""
    output: Any = UNSET


async def give_async(
    run_id: str,
    step: str,
    answer: Answer,
    *,
    scope: str = "",
    every: bool = False,
    options: Options | None = None,
) -> Asked:
    """As `answer_run`; `every`: all places that fit are answered alike. `step` and `scope` may be patterns.

    Raises as `answer_run`; with several places, those are answered that could be.
    """
    with opened(options) as (runs, options):
        places = places_of(runs, run_id, step, scope, every=every)
        _refuse_long(answer.text)
        for place in places:
            _refuse_other_words(place, answer)
        answer = replace(answer, output=fitting(answer.output, places, runs, options))
        return await _answered(run_id, places, answer, options)


def cancel_run(run_id: str, *, by: str = "", options: Options | None = None) -> RunResult | None:
    """Cancel a run. One that another process or an engine's workers have is told to (None is returned); any other is
    ended here; one that is over, or was cancelled before, stays as it is.

    Raises:
        JournalError, SandboxError, Bug: as `resume_run`.
    """
    return blocking(lambda: cancel_run_async(run_id, by=by, options=options))


async def cancel_run_async(run_id: str, *, by: str = "", options: Options | None = None) -> RunResult | None:
    """As `cancel_run`."""
    return (await stop_async(run_id, by=by, options=options)).result


async def stop_async(
    run_id: str, *, by: str = "", give_up: bool = False, options: Options | None = None
) -> Asked:
    """As `cancel_run`; with `give_up` all calls in doubt are given up, too: they end as failed, with nobody knowing
    whether they were done.
    """
    with opened(options) as (runs, options):
        state = state_of(runs.records(run_id)) if has_started(runs, run_id) else None
        if state is not None and end_of(state) is not None:
            return Asked(run_id, result_of(state), is_taken=True)
        inbox = runs.inbox(run_id)
        lies = any(isinstance(one, CancelAsked) for one in inbox.take())
        doubts = doubts_of(runs, run_id) if give_up and state is not None else []
        wants_cancel = not lies and not (doubts and state is not None and state.stopping is not None)
        cancel: list[tuple[str, Request]] = [(run_id, CancelAsked(by=by))] if wants_cancel else []
        answers = _requests(doubts, Answer(GIVEN_UP, by))
        refused: Refusals = {}
        asked = await _ask(runs, run_id, [*cancel, *answers], {run_id}, options, refused)
        _raise_refused(refused, len(doubts))
        return replace(asked, lay_there=lies, places=tuple(place.label for place in doubts))


def doubts_of_cancelled(run_id: str, options: Options | None = None) -> list[Place]:
    """The calls in doubt that are all that a cancelled run waits for; empty for any other run. Raises JournalError."""
    with opened(options) as (runs, options):
        if not has_started(runs, run_id):
            return []
        state = state_of(runs.records(run_id))
        parked = state.finished is not None and state.finished.parked
        stopped = state.stopping in ("cancelled", "cancelled_hard")
        return doubts_of(runs, run_id) if parked and stopped else []


async def _answered(run_id: str, places: list[Place], answer: Answer, options: Options) -> Asked:
    runs = runs_in(options)
    lying = {target: _lying(runs, target) for target in {place.run_id for place in places}}
    before = {place.label: _first(lying[place.run_id], place, answer) for place in places}
    fresh = [place for place in places if before[place.label] is None]
    refused: Refusals = {}
    requests = _requests(fresh, answer)
    asked = await _ask(runs, run_id, requests, lying.keys(), options, refused)
    for place in places:
        if (first := before[place.label]) is not None:
            refused[first.request] = _lies_there(place, first, asked)
    _raise_refused(refused, len(places))
    so_far = tuple(told for place in fresh if (told := _so_far(runs, place)))
    return replace(asked, places=tuple(place.label for place in fresh), so_far=so_far)


def _requests(places: Iterable[Place], answer: Answer) -> list[tuple[str, Request]]:
    from gonogo.providers.human_input import clean

    text = clean(answer.text)
    return [
        (
            place.run_id,
            AnswerGiven(
                step=place.node.step,
                text=text,
                scope=place.node.scope,
                by=answer.by,
                start=place.node.attempts,
                output=answer.output,
            ),
        )
        for place in places
    ]


async def _ask(
    runs: Runs,
    run_id: str,
    requests: list[tuple[str, Request]],
    targets: Iterable[str],
    options: Options,
    refused: Refusals,
) -> Asked:
    """Leave requests, then go on with the outermost run around, if nobody else does; where an engine carries it, one of
    its workers does. Without any request the run goes on for those that lie with the `targets`.

    Whoever ran it may have taken the requests and ended meanwhile: going on then would undo a cancel.
    """
    left: dict[str, set[str]] = {target: set() for target in targets}
    for target, request in requests:
        left.setdefault(target, set()).add(runs.inbox(target).put(request))

    def waits() -> bool:
        return any(_waiting(runs, target, ids) for target, ids in left.items() if ids or not requests)

    carried, result, away = carried_in(runs, run_id), None, None
    if carried is not None:
        away = await _tell(carried, options, waits)
    else:
        with suppress(RunLocked):
            result = await _gone_on(runs, run_id, left, options, waits)
            _refuse_unheard(runs, outermost_of(runs, run_id), left)
    answers = {target: ids for target, ids in left.items() if ids}
    if away is None:
        away = await heard_within(runs, answers, refused) if _are_answers(requests) else None
    name = carried.carrier.name if carried is not None else ""
    outermost = carried.run_id if carried is not None else run_id
    return Asked(outermost, result, name, is_taken=away is None and not waits(), away=away)


def _are_answers(requests: list[tuple[str, Request]]) -> bool:
    return any(isinstance(request, AnswerGiven) for _, request in requests)


def _waiting(runs: Runs, run_id: str, ids: set[str]) -> bool:
    """Whether requests lie there: these, or any if none is named."""
    return any(not ids or one.request in ids for one in runs.inbox(run_id).take())


async def _gone_on(
    runs: Runs, run_id: str, left: Mapping[str, set[str]], options: Options, waits: Callable[[], bool]
) -> RunResult | None:
    """Raises RunLocked, which leaves the requests to whoever has the run. Where nobody can go on with it, they are
    withdrawn: what is refused must not act later.
    """
    try:
        return await go_on_async(outermost_of(runs, run_id), options, waits, reopens=False)
    except RunLocked:
        raise
    except GonogoError:
        with suppress(JournalError):
            _withdraw(runs, left)
        raise


def _withdraw(runs: Runs, left: Mapping[str, set[str]]) -> None:
    for target, ids in left.items():
        for request_id in ids:
            runs.inbox(target).done(request_id)


def _refuse_unheard(runs: Runs, outermost: str, left: Mapping[str, set[str]]) -> None:
    """A run beneath one that is over is gone on with by nobody. Raises UsageError; JournalError."""
    for target, ids in left.items():
        lies_there = bool(ids) and target != outermost and _waiting(runs, target, ids)
        if lies_there and end_of(state_of(runs.records(target))) is None:
            _withdraw(runs, left)
            raise UsageError(
                f"nobody goes on with run {target}: the run around it, {outermost}, is over",
                advice=f"'gonogo show {outermost}' shows how that ended",
            )


async def _tell(carried: Carried, options: Options, waits: Callable[[], bool]) -> GonogoError | None:
    """Have a worker look at what is asked; why it couldn't be told. Whoever has the run sees it without the engine; a
    run that waits does once the engine answers (`unheard.py`), so that nobody needs to ask twice.

    Raises JournalError.
    """
    try:
        await asyncio.to_thread(hand_on, carried.run_id, carried.carrier, options)
    except EngineError as problem:
        for _ in range(TAKEN_LOOKS):
            if not waits():
                return None
            await asyncio.sleep(_LOOK_S)
        return problem
    return None


def _refuse_long(text: str) -> None:
    """It would be cut, and half an answer may say something else."""
    from gonogo.providers.human_input import ANSWER_BYTES_MAX

    size = len(text.encode("utf-8", "replace"))
    if size > ANSWER_BYTES_MAX:
        raise UsageError(
            f"the answer has {size:,} bytes; at most {ANSWER_BYTES_MAX:,} are kept",
            advice="say in a few words where the rest is to be found",
        )


def _refuse_other_words(place: Place, answer: Answer) -> None:
    """A choice and a call in doubt take certain words; others would be kept, and change nothing."""
    words, word = words_of(place.node), approvals.word(answer.text)
    if words and word not in words:
        raise UsageError(
            f"{place.label} can't be answered with {answer.text[:80]!r}",
            advice=f"it takes {', '.join(words[:-1])} or {words[-1]}",
        )
    if answer.output is not UNSET and not (place.in_doubt and word == "done"):
        raise UsageError(
            f"an output is given for a call in doubt that was done, which {place.label} is not",
            advice="give it with the word done, or leave it out",
        )


# --- what lies there already


def _lying(runs: Runs, run_id: str) -> list[AnswerGiven]:
    """Answers that were left with a run and that nobody has taken up yet."""
    return [one for one in runs.inbox(run_id).take() if isinstance(one, AnswerGiven)]


def _first(lying: Iterable[AnswerGiven], place: Place, answer: Answer) -> AnswerGiven | None:
    """One that settles the place, or, where several people are asked, is of the same giver."""
    about = (one for one in lying if (one.step, one.scope) == (place.node.step, place.node.scope))
    return next((one for one in about if _comes_before(one, place.node, answer)), None)


def _comes_before(one: AnswerGiven, node: Node, answer: Answer) -> bool:
    if one.start not in (0, node.attempts):
        return False
    if node.status == lifecycle.IN_DOUBT or node.hold is None:
        return approvals.word(one.text) in words_of(node)
    if approvals.refusal(node.hold, one.by, one.text) is not None:
        return False
    return node.hold.quorum is None or approvals.same(one.by) == approvals.same(answer.by)


def _lies_there(place: Place, first: AnswerGiven, asked: Asked) -> UsageError:
    by = f", by {first.by}" if first.by else ""
    message = f"{place.label} took no answer: it was answered already{by}"
    if asked.away is None:
        return UsageError(message, advice=f"'gonogo show {asked.run_id}' shows what became of that")
    return UsageError(
        f"{message}, with an answer that lies with the run and isn't taken up yet: {asked.away.message}",
        advice="it is taken up by itself; there is nothing to do again",
    )


def _raise_refused(refused: Refusals, answered: int) -> None:
    """Raises UsageError, of one or all that weren't taken."""
    problems = list(refused.values())
    if len(problems) == 1 and answered == 1:
        raise problems[0]
    if problems:
        told = "; ".join(problem.message for problem in problems[:3])
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise UsageError(
            f"{len(problems)} of {answered} answers weren't taken: {told}{more}", advice=problems[0].advice
        )


def _so_far(runs: Runs, place: Place) -> str:
    """How far an approval is that waits on."""
    node = state_of(runs.records(place.run_id)).nodes[place.node.step].get(place.node.scope)
    hold = node.hold if node is not None and node.status == lifecycle.HOLDING else None
    if hold is None or hold.quorum is None:
        return ""
    counted = approvals.count(hold)
    by = ", ".join(vote.by for vote in hold.votes if vote.text == "yes")
    return f"{place.label}: approved {counted.approved} of {counted.quorum}" + (f" ({by})" if by else "")
