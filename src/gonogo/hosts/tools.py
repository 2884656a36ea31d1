"""Runs a step of the workflow inside another step's call, for a model that calls it as a tool (spec E.11).

The core knows nothing of it: the call around it is what is journaled, with this as a part of its record. So only steps
can be tools whose every rule is kept here too: the type's own work, the schema, the time limit, the masking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gonogo.core.commands import StartCall
from gonogo.core.events import CallDone, CallFailed
from gonogo.core.faults import Fault
from gonogo.core.plan import Step
from gonogo.core.state import State
from gonogo.hosts.outcomes import Outcomes
from gonogo.hosts.prepare import Preparation, Unprepared
from gonogo.hosts.vault import Unopened
from gonogo.journal.handles import shortened
from gonogo.provider import Context, Done, Failed, Outcome

_TYPES_REFUSED = frozenset({"ai", "workflow", "human-input"})
"""They talk, run or wait themselves, which the call around them can't hold."""
NO_CALL = 0
"""The number of a call that the core knows nothing of."""

ContextFor = Callable[[StartCall, Step, float | None], Context]


class StepTools:
    """The steps of one run, as tools."""

    __slots__ = ("_context_for", "_outcomes", "_preparation", "_state")

    def __init__(
        self, state: State, preparation: Preparation, outcomes: Outcomes, context_for: ContextFor
    ) -> None:
        self._state = state
        self._preparation = preparation
        self._outcomes = outcomes
        self._context_for = context_for

    async def run(
        self, around: StartCall, name: str, arguments: Mapping[str, Any], *, number: int, mutates: bool
    ) -> Done | Failed:
        """One use of a step within the call `around`; `number` tells it from the others of that call.

        What it gives is masked and checked as any output. A step that changes things needs `mutates`.
        """
        step = self._state.graph.steps.get(name)
        refused = "it is no step of this workflow" if step is None else refusal(step, mutates=mutates)
        if step is None or refused is not None:
            return Failed(_fault(name, "tool.refused", f"step '{name[:100]}' can't be a tool: {refused}"))
        intent = f"{around.intent}/tool/{name}/{number}"
        command = StartCall(
            around.call,
            name,
            around.scope,
            around.execution,
            around.attempt,
            intent,
            step.effects,
            f"{name}/{number}",
        )
        try:
            outcome = await self._performed(step, command, arguments)
        except Unprepared as problem:
            return Failed(problem.fault)
        except Unopened as problem:
            return Failed(_fault(name, "secret.unopened", str(problem)))
        event = self._outcomes.event(step, NO_CALL, 0.0, outcome, None)
        return _held(step, event)

    async def _performed(self, step: Step, command: StartCall, arguments: Mapping[str, Any]) -> Outcome:
        card = self._preparation.card(step)
        call = self._preparation.prepare(card, step, command, arguments).call
        context = self._context_for(command, step, call.timeout_s)
        import anyio  # a run without tools does without

        with anyio.move_on_after(call.timeout_s):
            return await card.provider.run(call, context)
        message = f"{step.name} took longer than its limit of {call.timeout_s:g} s"
        effect = "unknown" if step.effects == "mutates" else "none"
        return Failed(_fault(step.name, "step.timeout", message), effect=effect)  # type: ignore[arg-type]


def refusal(step: Step, *, mutates: bool) -> str | None:
    """Why a step can't be a tool; None when it can."""
    if step.type in _TYPES_REFUSED:
        return f"steps of type {step.type} can't be"
    if step.effects == "mutates" and not mutates:
        return "it changes things outside; say `mutates: true` at the tool if that's meant"
    told = {
        "if": step.if_condition is not None,
        "assume": bool(step.assume),
        "guarantee": bool(step.guarantee),
        "fail_if": step.fail_if is not None,
        "failure_conditions": bool(step.failure_conditions),
        "forEach": step.for_each,
        "on_init": bool(step.on_init) or step.on_init_js is not None,
    }
    keys = [key for key, there in told.items() if there]
    return f"nobody would look at its {', '.join(keys)}" if keys else None


def _held(step: Step, event: Any) -> Done | Failed:
    """What the core would have made of it: a schema that isn't met is a failure."""
    if isinstance(event, CallFailed):
        return Failed(event.fault, memory=event.memory, effect=event.effect)
    if not isinstance(event, CallDone):
        return Failed(_fault(step.name, "tool.refused", "it waits for a person, which a tool can't"))
    if event.schema_errors and step.schema_mode == "fail":
        return Failed(
            _fault(step.name, "contract.schema", "; ".join(event.schema_errors[:3])), effect=event.effect
        )
    return Done(shortened(event.output), memory=event.memory, effect=event.effect)


def _fault(step: str, kind: str, message: str) -> Fault:
    return Fault(kind, "logical", f"{step[:100]}/{kind.partition('.')[2]}", message)
