"""Puts a run together: what a host is given, and the event that starts a run. Nothing else wires anything."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gonogo.app.breakers import store_opener, turns_opener
from gonogo.app.options import Options, Start, store_secrets
from gonogo.app.parts import built_in_table, new_sandbox
from gonogo.core.events import RerunAsked, RunStarted
from gonogo.core.plan import Plan
from gonogo.errors import UsageError
from gonogo.hosts import inputs as given_inputs
from gonogo.hosts.base import Asker, Question, Surroundings
from gonogo.hosts.environment import as_texts, fill_in, visible
from gonogo.hosts.filling import has_references, secret_headers_in, secrets_among
from gonogo.hosts.outbound import Outbound
from gonogo.hosts.slots import Places
from gonogo.hosts.start import first_event, new_run_id
from gonogo.journal.handles import may_hold
from gonogo.journal.postgres.address import secrets_of
from gonogo.journal.records import Record
from gonogo.journal.redact import STORE, Redactor, secrets_in
from gonogo.journal.store import RunJournal, Runs
from gonogo.providers.table import UnknownType

if TYPE_CHECKING:
    from gonogo.providers.table import Table

OVERLAY = "$overlay"
"""Where the first record's context keeps the names of the variables that were given for the run."""


def first_record_of(
    plan: Plan, start: Start, options: Options, environment: Mapping[str, str], redactor: Redactor
) -> RunStarted:
    """The event that starts a run, as its journal will hold it. Raises UsageError."""
    return first_event(_event(plan, start, options, environment), redactor)


def _event(plan: Plan, start: Start, options: Options, environment: Mapping[str, str]) -> RunStarted:
    inputs, wrong = given_inputs.checked(plan, start.inputs)
    if wrong:
        raise UsageError(
            f"the inputs don't fit: {'; '.join(wrong[:5])}", advice="give them with -i name=value"
        )
    for name in start.requested:
        if name not in plan.steps:
            raise UsageError(f"there is no step {name!r}", advice="'gonogo plan' lists the steps")
    run_id = start.run_id or new_run_id()
    ahead = options.ahead
    started_at_ms = ahead.started_at_ms if ahead is not None else int(time.time() * 1000)
    context = dict(start.context)
    if options.env:
        context[OVERLAY] = sorted(options.env)
    return RunStarted(
        run_id=run_id,
        plan=plan,
        started_at_ms=started_at_ms,
        seed=start.seed or run_id,
        trigger=dict(start.trigger) if start.trigger is not None else None,
        context=context,
        inputs=inputs,
        env=_without(visible({**environment, **as_texts(plan.env), **options.env}), entries(plan, options)),
        arguments=dict(start.arguments),
        requested=start.requested,
        safe_mode=start.safe_mode,
        core_version=_version(),
    )


def started_by(journal: RunJournal) -> RunStarted:
    """The event that started a run."""
    first = journal.records[0].event
    assert isinstance(first, RunStarted)
    return first


def surroundings_of(
    first: RunStarted, runs: Runs, options: Options, plan: Plan | None = None
) -> Surroundings:
    """What a run is given that was started elsewhere: variables that were given for it come from its first record.

    `plan`: the run's own by now, where it may be another than at the start.
    """
    environment, overlay = _environment_of(first, options)
    plan = plan if plan is not None else first.plan
    return surroundings(runs, options, environment, overlay, redactor_for(environment, plan), plan)


def redactor_of(first: RunStarted, plan: Plan, options: Options) -> Redactor:
    """Knows what the host of a run that was started elsewhere knows, as far as this process has the same variables."""
    environment, _ = _environment_of(first, options)
    redactor = redactor_for(environment, plan)
    _add_entries(redactor, environment, plan, options)
    return redactor


def _environment_of(first: RunStarted, options: Options) -> tuple[dict[str, str], dict[str, str]]:
    """All variables, and those of them that are for the run alone."""
    told = first.context.get(OVERLAY)
    # A forged record may name anything there.
    names = [name for name in told if isinstance(name, str)] if isinstance(told, list | tuple) else []
    kept = {name: str(first.env[name]) for name in names if name in first.env}
    secret = {name: os.environ[name] for name in names if name not in kept and name in os.environ}
    overlay = {**kept, **secret, **options.env}
    return {**os.environ, **overlay}, overlay


def plan_in(records: Sequence[Record]) -> Plan:
    """The plan a run has by now: that of its start, or the latest that a person gave it."""
    events = (record.event for record in reversed(records))
    return next(
        event.plan
        for event in events
        if isinstance(event, RunStarted | RerunAsked) and event.plan is not None
    )


def surroundings(
    runs: Runs,
    options: Options,
    environment: Mapping[str, str],
    overlay: Mapping[str, str],
    redactor: Redactor,
    plan: Plan,
) -> Surroundings:
    """What a host is given for a run of this plan."""
    table = options.table or built_in_table()
    _add_entries(redactor, environment, plan, options)
    return Surroundings(
        table=table,
        runs=runs,
        new_sandbox=options.ahead.take if options.ahead is not None else new_sandbox,
        redactor=redactor,
        environment=environment,
        overlay=overlay,
        working_directory=_working_directory(),
        plan_of=lambda path: plan_of(path, table),
        ask=options.ask if options.message is None else _Message(options.message, options.ask),
        sinks=options.sinks,
        log=options.log,
        patience_s=options.patience_s,
        slots=_slots(plan),
        outbound=Outbound(store_opener(options, runs), turns_opener(runs)),
    )


def _slots(plan: Plan) -> Places | None:
    """What bounds calls over a run and its children; alone, a run's own count of slots is enough."""
    alone = all(step.type != "workflow" for step in plan.steps.values())
    return None if alone else Places(plan.limits.max_parallelism)


class _Message:
    """Answers the first question with a text that was given beforehand."""

    def __init__(self, text: str, otherwise: Asker) -> None:
        self._text: str | None = text
        self._otherwise = otherwise

    async def __call__(self, question: Question) -> str | None:
        text, self._text = self._text, None
        return text if text is not None else await self._otherwise(question)


def redactor_for(environment: Mapping[str, str], plan: Plan) -> Redactor:
    """Knows the values of secret names in the environment, and those written in the workflow itself."""
    redactor = Redactor(secrets_in(environment))
    for secret in secrets_of(environment.get(STORE, "")):
        redactor.add(STORE, secret)
    for values in (plan.env, *(step.env for step in plan.steps.values() if step.env)):
        for name, text in secrets_in(as_texts(values)).items():
            if "$" not in text and "{" not in text and not may_hold(text):
                redactor.add(name, text)
    return redactor


def _add_entries(redactor: Redactor, environment: Mapping[str, str], plan: Plan, options: Options) -> None:
    """What lets steps in, and us into the store."""
    for name in entries(plan, options):
        if name in environment:
            redactor.add(name, environment[name])
    for secret in store_secrets(options):
        redactor.add(STORE, secret)


def entries(plan: Plan, options: Options) -> frozenset[str]:
    """The variables that steps are let in by (`auth` of http_client, a header such as Authorization), also beneath,
    whatever they are called.
    """
    table = options.table or built_in_table()
    found: set[str] = set()
    for beneath in plan.workflows.values():
        found |= entries(beneath, options)
    for step in plan.steps.values():
        if not step.config or not has_references(step.config):
            continue
        try:
            names = table.get(step.type).secrets
        except UnknownType:
            continue  # the step's own failure
        asked = [text for _, text in secrets_among(step.config, names)] + [*secret_headers_in(step.config)]
        for text in asked:
            found.update(fill_in(text, {})[1])
    return frozenset(found)


def _without(env: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if name not in names}


def plan_of(path: str, table: Table) -> Plan:
    """The plan of a file that a workflow step names. Raises ConfigError, UsageError."""
    from gonogo.app.loading import load

    return load(path, table=table).plan


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("the working directory is gone", advice="change to one that exists") from None


def _version() -> str:
    from gonogo import __version__

    return __version__
