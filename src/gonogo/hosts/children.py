"""Child runs: each a run of its own with its own journal, found again by the intent of the call that needs it (C.17).

Environment, limits and what is left of the budget are inherited. Memory isn't, unless it is shared: then the child
starts with a copy, and what it changed goes back to its parent once it is GO. A child that holds parks its parent's
step; when that is called again, the same child goes on.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from gonogo.core.commands import StartCall
from gonogo.core.events import CallDone, CallFailed, Evaluated, RunStarted
from gonogo.core.faults import Fault, cancellation
from gonogo.core.plan import Effects, Plan, Step
from gonogo.core.scheduling import may_still_run
from gonogo.core.spending import budget_beneath
from gonogo.core.state import State
from gonogo.errors import ConfigError, JournalError
from gonogo.expressions.results import MemoryOp, Value
from gonogo.hosts import inputs as given_inputs
from gonogo.hosts import outputs
from gonogo.hosts.base import RunResult, Surroundings
from gonogo.hosts.environment import as_texts, visible
from gonogo.hosts.literals import with_texts
from gonogo.hosts.start import first_event
from gonogo.hosts.vault import Vault
from gonogo.journal.handles import may_hold
from gonogo.journal.records import Record
from gonogo.journal.sealing import Seals
from gonogo.journal.store import RunJournal
from gonogo.provider import ChildResult, Provider
from gonogo.providers.table import Table, UnknownType

if TYPE_CHECKING:
    from gonogo.hosts.above import Above

_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_BASE_CHARACTERS_MAX = 72
_STEP_CHARACTERS_MAX = 32

RunNew = Callable[[RunStarted, RunJournal, Surroundings], Awaitable[RunResult]]
RunAgain = Callable[[RunJournal, Surroundings, bool], Awaitable[RunResult]]
"""True: only to be stopped."""


class Children:
    """The child runs of one run."""

    def __init__(
        self, state: State, seals: Seals, around: Surroundings, run_new: RunNew, run_again: RunAgain
    ) -> None:
        self._state = state
        self._vault = Vault(state, seals, around.redactor, resumed=True)
        # Records carry no run's id, so a watcher of the parent would take a child's for its own.
        self._around = replace(around, sinks=())
        self._run_new = run_new
        self._run_again = run_again

    async def run(
        self,
        command: StartCall,
        workflow: str,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any],
        *,
        shares_memory: bool,
        above: Above | None = None,
    ) -> ChildResult:
        """Run the child of a call, or go on with it; it asks `above` before it spends. Secrets that are handed to it,
        or come back, are sealed anew: a run needs no other one's.

        Raises JournalError, SandboxError, Bug, Unopened.
        """
        run_id = child_id(self._state.run_id, command)
        around = replace(self._around, above=above)
        stops = self._stops(command)
        journal = self._known(run_id)
        if not isinstance(journal, JournalError):
            result = await self._run_again(journal, around, stops)
        elif stops:
            fault = cancellation(command.step, "stopped before it started")
            return ChildResult(run_id, "NO-GO", {}, fault)
        else:
            try:
                self._refuse_gone(run_id, journal)
                event = self._event(run_id, command, self._plan(workflow, overrides, shares_memory), inputs)
            except _Refused as problem:
                return ChildResult(run_id, "NO-GO", {}, problem.fault)
            created = self._created(run_id, journal)
            result = await self._run_new(self._handed_over(event, created), created, around)
        child = _as_child(result)
        if may_hold(child.outputs):
            child = replace(child, outputs=self._vault.adopted(child.outputs, self._its(result.state)))
        if self._state.graph.limited:
            # Calls that were asked for one by one are known already.
            known = frozenset({"calls"}) if above is not None and above.counts_calls else frozenset()
            child = replace(child, usage=_usage(result.state, known))
        if not shares_memory or child.verdict != "GO":
            return child
        its = self._its(result.state)
        changes = _memory_changes(self._around.runs.read(run_id).records)
        memory = tuple(replace(each, value=self._vault.adopted(each.value, its)) for each in changes)
        return replace(child, memory=memory)

    def _stops(self, command: StartCall) -> bool:
        """Whether this run stops: then a child is only taken up to be stopped, and nothing begins there (law 7)."""
        step = self._state.graph.steps[command.step]
        return bool(self._state.stopping) and not may_still_run(self._state, step)

    def _handed_over(self, event: RunStarted, journal: RunJournal) -> RunStarted:
        """The start of a child with its own handles in place of this run's."""
        if not may_hold(event):
            return event
        try:
            its = Vault(self._state, journal.seals, self._around.redactor, resumed=True)
            adopted = partial(its.adopted, of=self._vault)
            plan = replace(with_texts(event.plan, adopted), memory=adopted(event.plan.memory))
            return replace(event, inputs=adopted(event.inputs), env=adopted(event.env), plan=plan)
        except BaseException:
            journal.close()
            raise

    def _its(self, state: State) -> Vault:
        """The secrets of a child."""
        seals = self._around.runs.seals(state.run_id)
        return Vault(state, seals, self._around.redactor, resumed=True)

    def _refuse_gone(self, run_id: str, unread: JournalError) -> None:
        """A child that has waited, and whose journal is gone, may have done anything (case RES-2)."""
        if run_id in self._state.known_children:
            if run_id in self._around.runs.ids():
                raise unread
            message = f"the journal of {run_id}, which has waited before, is gone: nobody knows what it did"
            raise _Refused(Fault("workflow.lost", "lost", "workflow/lost", message))

    def _known(self, run_id: str) -> RunJournal | JournalError:
        """The child's journal, when it was begun before, else why there is none. One without a record never began."""
        try:
            self._around.runs.read(run_id)
        except JournalError as problem:
            return problem
        return self._around.runs.reopen(run_id)

    def _created(self, run_id: str, unread: JournalError) -> RunJournal:
        try:
            return self._around.runs.create(run_id)
        except JournalError as problem:
            raise (unread if run_id in self._around.runs.ids() else problem) from None

    def _plan(self, workflow: str, overrides: Mapping[str, Any], shares_memory: bool) -> Plan:
        depth = depth_of(self._state) + 1
        limit = self._state.graph.plan.limits.max_workflow_depth
        if depth > limit:
            raise _Refused(_fault("workflow.depth", f"workflows may be nested {limit} deep, this is {depth}"))
        plan = self._state.graph.plan.workflows.get(workflow)
        if plan is None:
            plan = self._loaded(workflow)
        plan = _with_overrides(plan, overrides, self._around.table)
        memory = {space: dict(values) for space, values in self._state.memory.items()}
        return replace(
            plan,
            limits=self._state.graph.plan.limits,
            budget=budget_beneath(self._state, plan.budget),
            env={**self._state.graph.plan.env, **plan.env},
            memory=memory if shares_memory else plan.memory,
        )

    def _loaded(self, workflow: str) -> Plan:
        if self._around.plan_of is None:
            raise _Refused(_fault("workflow.unknown", f"there is no workflow {workflow!r}"))
        try:
            return self._around.plan_of(workflow)
        except ConfigError as problem:
            first = problem.problems[0].message if problem.problems else problem.message
            raise _Refused(_fault("workflow.config", f"{workflow}: {first}")) from problem

    def _event(self, run_id: str, command: StartCall, plan: Plan, given: Mapping[str, Any]) -> RunStarted:
        inputs, wrong = given_inputs.checked(plan, given)
        if wrong:
            raise _Refused(_fault("workflow.input", f"inputs don't fit: {'; '.join(wrong[:5])}"))
        state = self._state
        parent = {
            "run_id": state.run_id,
            "step": command.step,
            "scope": command.scope,
            "intent": command.intent,
            "depth": depth_of(state) + 1,
        }
        event = RunStarted(
            run_id=run_id,
            plan=plan,
            started_at_ms=int(time.time() * 1000),
            seed=f"{state.seed}/{command.intent}",
            trigger=state.trigger,
            context=state.context,
            inputs=inputs,
            env=visible({**self._around.environment, **as_texts(plan.env), **self._around.overlay}),
            arguments=state.arguments,
            parent=parent,
            safe_mode=state.safe_mode,
        )
        return first_event(event, self._around.redactor)


class _Refused(Exception):  # noqa: N818 - the name says what happened
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def depth_of(state: State) -> int:
    """How many runs are above this one."""
    return int(state.parent.get("depth", 1)) if state.parent else 0


def child_id(run_id: str, command: StartCall) -> str:
    """The child's run id: the parent's, the step, and a hash of the intent, so that a resumed parent finds it.

    A retry is a child of its own; the one before has ended.
    """
    step = _NO_FILE_NAME.sub("-", command.step)[:_STEP_CHARACTERS_MAX]
    attempt = command.intent if command.attempt == 1 else f"{command.intent}/{command.attempt}"
    digest = hashlib.sha256(attempt.encode()).hexdigest()[:8]
    return f"{run_id[:_BASE_CHARACTERS_MAX]}.{step}.{digest}"


def _with_overrides(plan: Plan, overrides: Mapping[str, Any], table: Table) -> Plan:
    """The plan with config keys of its steps replaced."""
    steps = dict(plan.steps)
    for name, keys in overrides.items():
        if name not in steps or not isinstance(keys, Mapping):
            message = f"overrides name the step {name!r}, which the workflow doesn't have"
            raise _Refused(_fault("workflow.overrides", message))
        step = replace(steps[name], config={**steps[name].config, **keys})
        steps[name] = replace(step, effects=_effects(step, steps[name], table))
    return replace(plan, steps=steps) if overrides else plan


def _effects(step: Step, before: Step, table: Table) -> Effects:
    """What a step does outside with other config keys: a reading step that is told to send something now mutates.

    That its author said of it `mutates: false` holds for what it did before.
    """
    try:
        provider = table.get(step.type)
    except UnknownType:
        return step.effects
    if isinstance(provider.effects, str) or _by_type(provider, step) != "mutates":
        return step.effects
    told = before.effects != "reads" and _by_type(provider, before) == "mutates"
    return step.effects if told else "mutates"


def _by_type(provider: Provider, step: Step) -> Effects:
    """The type's word; what can't be known before its templates are rendered counts as mutating."""
    try:
        return provider.effects_of(provider.checked(step.config))
    except (msgspec.ValidationError, AttributeError, KeyError, TypeError, ValueError):
        return "mutates"


def _memory_changes(records: Iterable[Record]) -> Iterator[MemoryOp]:
    """What a run did to its memory, in the order it was done."""
    for record in records:
        event = record.event
        if isinstance(event, CallDone | CallFailed):
            yield from event.memory
        elif isinstance(event, Evaluated):
            yield from (
                each for result in event.results if isinstance(result, Value) for each in result.memory
            )


def _as_child(result: RunResult) -> ChildResult:
    verdict, fault = result.verdict, result.fault
    given = result.outputs if result.state.graph.plan.outputs else outputs.of_steps(result.state)
    if fault is not None and fault.kind == "workflow.output":
        verdict = "NO-GO"  # an output that can't be computed is fatal (spec E.10 D)
    if verdict == "GO":
        fault = None
    in_doubt = any(node.in_doubt for node in result.state.all_nodes())
    shown = given if verdict != "HOLD" else {}
    return ChildResult(result.run_id, verdict, shown, fault, result.waiting, in_doubt=in_doubt)


def _usage(state: State, known: frozenset[str]) -> dict[str, float]:
    spent = state.spent
    told = {"calls": spent.calls, "retries": spent.retries, "tokens": spent.tokens, "cost": spent.money}
    return {name: used for name, used in told.items() if name not in known}


def _fault(kind: str, message: str) -> Fault:
    return Fault(kind, "logical", kind.replace(".", "/"), message)
