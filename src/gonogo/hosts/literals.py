"""Known secrets that stand in a workflow file: handles take their place before the plan gets into a record.

Only what a call is made from is looked at, config and environment: it is opened again when the call is prepared. The
source of an expression can't hold a handle; `gonogo validate` points out what looks like a secret wherever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from gonogo.core.plan import Plan, Step
from gonogo.hosts.vault import Unopened, sealed_in
from gonogo.journal.handles import may_hold
from gonogo.journal.redact import Redactor
from gonogo.journal.sealing import Seals, Unsealable

NAME = "workflow"
"""What the handle of such a secret says: where it came from."""

Change = Callable[[Any], Any]


def without_literals(plan: Plan, seals: Seals, redactor: Redactor) -> Plan:
    """The plan with handles in place of the secrets that `redactor` knows; as it is where nothing can be sealed.

    Raises JournalError.
    """
    if not redactor.finds(plan):
        return plan
    try:
        seals.check()
    except Unsealable:
        return plan
    return with_texts(
        plan, lambda value: redactor.exchanged(value, lambda found: sealed_in(seals, NAME, found))
    )


def with_handles_of(plan: Plan, before: Plan, opened: Change) -> Plan:
    """A changed plan with the handles of the plan before, where these stand for what it says: there it is no change."""
    if not may_hold(before):
        return plan

    def same(now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
        return {key: _same(value, then.get(key), opened) for key, value in now.items()}

    def step(name: str, now: Step) -> Step:
        then = before.steps.get(name)
        return (
            now
            if then is None
            else replace(now, config=same(now.config, then.config), env=same(now.env, then.env))
        )

    return replace(
        plan,
        env=same(plan.env, before.env),
        steps={name: step(name, each) for name, each in plan.steps.items()},
        workflows={
            name: with_handles_of(each, before.workflows.get(name, each), opened)
            for name, each in plan.workflows.items()
        },
    )


def _same(now: Any, then: Any, opened: Change) -> Any:
    try:
        return then if may_hold(then) and opened(then) == now else now
    except Unopened:
        return now


def with_texts(plan: Plan, change: Change) -> Plan:
    """The plan with its texts changed: config and environment of its steps, its own environment, all that beneath."""

    def step(now: Step) -> Step:
        config, env = change(now.config), change(now.env)
        return now if config is now.config and env is now.env else replace(now, config=config, env=env)

    return replace(
        plan,
        env=change(plan.env),
        steps={name: step(each) for name, each in plan.steps.items()},
        workflows={name: with_texts(each, change) for name, each in plan.workflows.items()},
    )
