"""Have steps of a run run again, give outputs in their place, or go on with the run under a changed workflow."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from gonogo.app.carried import Carried, carried_in, gone_on_by_workers
from gonogo.app.engines import hand_on
from gonogo.app.options import Options, opened
from gonogo.app.running import blocking
from gonogo.app.wiring import started_by, surroundings_of
from gonogo.core.asking_again import Look, Unfit, look_at
from gonogo.core.events import GivenOutput, RerunAsked
from gonogo.core.plan import Plan
from gonogo.core.revising import renumbered
from gonogo.core.scope import step_at
from gonogo.core.state import State
from gonogo.errors import ConfigError, Place, Problem, UsageError
from gonogo.hosts.base import RunResult
from gonogo.hosts.literals import with_handles_of, without_literals
from gonogo.hosts.requests import requests_in
from gonogo.hosts.vault import Vault
from gonogo.journal.handles import shortened
from gonogo.journal.normalise import NotStorable, normalise_event
from gonogo.journal.redact import Redactor
from gonogo.journal.restoring import state_of
from gonogo.journal.sealing import Seals
from gonogo.journal.store import RunJournal

if TYPE_CHECKING:
    from gonogo.hosts.base import Surroundings
    from gonogo.journal.store import Runs
    from gonogo.providers.table import Table

GIVEN_BYTES_MAX = 1024 * 1024
"""Bytes of all outputs that are given at once, as JSON."""
NAMES_SHOWN_MAX = 10

log = logging.getLogger("gonogo.worker")


class Wish(Struct, frozen=True):
    """What somebody wants of a run.

    `steps` (`step`, or `step@scope` for an item of a list) run again with all that depends on them. `outputs`, by step,
    stand in for runs. `workflow`: the file, or the plan, that the run goes on under. `by`: who wants it, for the
    journal. `may_act_again`: steps behind, which nobody named, may change things outside once more.
    """

    steps: tuple[str, ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)
    workflow: str | Path | Plan | None = None
    by: str = ""
    may_act_again: bool = False

    @property
    def asks_for_something(self) -> bool:
        """False for a wish that is nothing but a resume."""
        return bool(self.steps or self.outputs or self.workflow is not None)


class Foreseen(Struct, frozen=True):
    """What a wish would take (`look`) in a run as it stands (`state`, under the plan that it would have)."""

    look: Look
    state: State


def foresee(run_id: str, wish: Wish, options: Options | None = None) -> Foreseen:
    """What would run again; nothing is changed.

    Raises:
        UsageError: it can't be.
        ConfigError: the changed workflow doesn't fit what has run, with the first place where it doesn't.
        JournalError: as `resume_run`.
    """
    with opened(options) as (runs, options):
        state = state_of(runs.records(run_id))
        event = _event(wish, state, runs.seals(run_id), options.table)
        return Foreseen(_looked(state, event, wish), state)


def run_again_from(run_id: str, wish: Wish, options: Options | None = None) -> RunResult:
    """Go on with a run for a wish, whether or not the run was over: here, or by the workers of its engine.

    Raises:
        UsageError, ConfigError: as `foresee`, or steps would act again that nobody named.
        RunLocked, JournalError, EngineError, SandboxError, Bug: as `resume_run`.
    """
    return blocking(lambda: run_again_from_async(run_id, wish, options))


async def run_again_from_async(run_id: str, wish: Wish, options: Options | None = None) -> RunResult:
    """As `run_again_from`."""
    from gonogo.hosts.local import run_again

    with opened(options) as (runs, options):
        carried = carried_in(runs, run_id)
        if carried is not None:
            return await gone_on_by_workers(
                carried, options, lambda: hand_over_wish(run_id, wish, carried, options)
            )
        journal = runs.reopen(run_id)
        try:
            event, around = _fitted(wish, journal, runs, options)
        except BaseException:
            journal.close()
            raise
        return await run_again(journal, around, signals=options.signals, wish=event)


def hand_over_wish(run_id: str, wish: Wish, carried: Carried, options: Options) -> None:
    """Have a worker of the run's engine go on with it for a wish. It takes the place of one that nobody has taken up
    yet, since whoever had that may have gone before an engine heard of it.

    Raises as `run_again_from`, and EngineError.
    """
    with opened(options) as (runs, options):
        journal = runs.reopen(run_id)
        try:
            event = _fitted(wish, journal, runs, options)[0]
            for request in journal.inbox.take(requests_in(journal.records)):
                if isinstance(request, RerunAsked):
                    journal.inbox.done(request.request)
            journal.inbox.put(event)
        finally:
            journal.close()
        hand_on(run_id, carried.carrier, options, reopens=True)


def wish_left_for(journal: RunJournal) -> RerunAsked | None:
    """What somebody wanted of a run when nobody had it. One that doesn't fit any more is dropped, with a word."""
    for request in journal.inbox.take(requests_in(journal.records)):
        if not isinstance(request, RerunAsked):
            continue
        try:
            look_at(state_of(journal.records), request)
        except Unfit as unfit:
            log.error("steps of run %s can't run again: %s", journal.run_id, unfit.message)
            journal.inbox.done(request.request)
        else:
            return request
    return None


def _fitted(wish: Wish, journal: RunJournal, runs: Runs, options: Options) -> tuple[RerunAsked, Surroundings]:
    """The wish as the run's journal will have it. Raises as `run_again_from`."""
    state = state_of(journal.records)
    event = _event(wish, state, journal.seals, options.table)
    look = _looked(state, event, wish)
    if look.acts_again and not wish.may_act_again:
        raise _acts_again(look)
    around = surroundings_of(started_by(journal), runs, options, state.graph.plan)
    return _storable(_without_literals(event, journal, around.redactor), around.redactor), around


def _event(wish: Wish, state: State, seals: Seals, table: Table | None) -> RerunAsked:
    if state.parent is not None:
        above = f"{state.parent.get('run_id')}"
        raise UsageError(
            f"run {state.run_id} is part of {above}, which wouldn't hear of it",
            advice=f"have the step of {above} run again: --from {state.parent.get('step')}",
        )
    places = [_place(name) for name in (*wish.steps, *wish.outputs)]
    _refuse_both(places[: len(wish.steps)], places[len(wish.steps) :])
    outputs = zip(places[len(wish.steps) :], wish.outputs.values(), strict=True)
    plan = _plan(wish.workflow, state.graph.plan, table) if wish.workflow is not None else None
    if plan is not None:
        vault = Vault(state, seals, Redactor(), resumed=True)
        plan = with_handles_of(plan, state.graph.plan, vault.opened)
    return RerunAsked(
        by=wish.by,
        steps=tuple(places[: len(wish.steps)]),
        outputs=tuple(GivenOutput(step, output, scope) for (step, scope), output in outputs),
        plan=plan,
    )


def _refuse_both(run: list[tuple[str, str]], given: list[tuple[str, str]]) -> None:
    """A step runs again or has its output given; an item of it may run while another is given."""
    for step, scope in run:
        if any(step == other and ("" in (scope, where) or scope == where) for other, where in given):
            name = step_at(step, scope)
            raise UsageError(
                f"{name} can't both run again and be given its output",
                advice=f"leave out --from {name}, or --set {step}.output=…",
            )


def _place(name: str) -> tuple[str, str]:
    step, _, scope = name.partition("@")
    return step, scope


def _plan(workflow: str | Path | Plan, before: Plan, table: Table | None) -> Plan:
    """The changed plan. What the run was started with (safety, which tags) stays as it is."""
    if not isinstance(workflow, Plan):
        from gonogo.app.loading import load

        workflow = load(workflow, safety=before.safety, table=table).plan
    kept = replace(workflow, include_tags=before.include_tags, exclude_tags=before.exclude_tags)
    return renumbered(kept, before)


def _looked(state: State, event: RerunAsked, wish: Wish) -> Look:
    """What it takes; uses up the state, which then has the new plan."""
    before = state.graph.plan
    try:
        return look_at(state, event)
    except Unfit as unfit:
        plan = event.plan if event.plan is not None else before
        if isinstance(wish.workflow, str | Path) and (unfit.step or unfit.key):
            raise _misfit(unfit, wish.workflow, plan) from unfit
        raise UsageError(unfit.message, advice=unfit.advice) from unfit


def _misfit(unfit: Unfit, file: str | Path, plan: Plan) -> ConfigError:
    """The first difference, at its line in the changed file."""
    lines = Path(file).read_text("utf-8", "replace").splitlines()
    step = plan.steps.get(unfit.step)
    number = _line_of(unfit.key, step.line if step is not None else 0, lines, deep=step is not None)
    path = ".".join(part for part in ("steps" if step is not None else "", unfit.step, unfit.key) if part)
    source = lines[number - 1] if number <= len(lines) else None
    place = Place(str(file), number, 1 + len(source) - len(source.lstrip()) if source else 1)
    return ConfigError(
        (Problem("rerun.changed", unfit.message, path, place, source, unfit.advice),),
        advice="'gonogo resume RUN --config FILE --from STEP --plan' shows what would run again",
    )


def _line_of(key: str, start: int, lines: list[str], *, deep: bool) -> int:
    """The line of a key, of the step that begins at line `start` where it is `deep`; else that of the step itself."""
    word = re.escape(key)
    pattern = re.compile(rf"\s*['\"]?{word}['\"]?\s*:" if deep else rf"['\"]?{word}['\"]?\s*:")
    inline = re.compile(rf"[{{,]\s*{word}\s*:")
    indent = _indent(lines[start - 1]) if 0 < start <= len(lines) else -1
    for number in range(max(start, 1), len(lines) + 1) if key else ():
        line = lines[number - 1]
        if deep and number > start and line.strip() and _indent(line) <= indent:
            break
        if pattern.match(line) or (deep and number == start and inline.search(line)):
            return number
    return max(start, 1)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _acts_again(look: Look) -> UsageError:
    shown = [step_at(*place) for place in look.acts_again[:NAMES_SHOWN_MAX]]
    more = len(look.acts_again) - len(shown)
    names = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return UsageError(
        f"these have changed something outside, and would again: {names}",
        advice=f"add --yes if they may, or give what they gave: --set {shown[0]}.output=JSON",
    )


def _without_literals(event: RerunAsked, journal: RunJournal, redactor: Redactor) -> RerunAsked:
    if event.plan is None:
        return event
    return replace(event, plan=without_literals(event.plan, journal.seals, redactor))


def _storable(event: RerunAsked, redactor: Redactor) -> RerunAsked:
    """The event as the journal will give it back, secrets masked. Raises UsageError."""
    masked = tuple(replace(each, output=redactor.value(shortened(each.output))) for each in event.outputs)
    try:
        normalise_event(replace(event, outputs=masked, plan=None), size_bytes_max=GIVEN_BYTES_MAX)
        stored = normalise_event(replace(event, by=redactor.text(event.by), outputs=masked))
    except NotStorable as problem:
        raise UsageError(
            f"the outputs can't be kept: {problem}", advice="give plain, smaller data"
        ) from problem
    assert isinstance(stored, RerunAsked)
    return stored
