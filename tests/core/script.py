"""A script for the core: this plan, these results, these answers; then what was decided.

No host, no clock, no sandbox: calls and evaluations are answered from tables, timers fire when nothing else is left.
Expressions are texts answered by `answers`; one that isn't listed is true.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import structs

from gonogo.core import commands as c
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import machine
from gonogo.core.apply import fold
from gonogo.core.faults import Fault
from gonogo.core.plan import (
    Block,
    Edge,
    Expression,
    FailureCondition,
    Limits,
    Need,
    Plan,
    Retry,
    Step,
    Target,
    Transition,
)
from gonogo.core.state import Node, State
from gonogo.core.values import names_for
from gonogo.expressions.results import Failure, MemoryOp, Result, Value

TRANSIENT = Fault("test.transient", "transient", "test/transient", "try again")
LOGICAL = Fault("test.logical", "logical", "test/logical", "wrong for good")


class Parks:
    """A call that waits for a person."""

    def __init__(self, timeout_s: float | None = None, default: str | None = None, **details: Any) -> None:
        self.timeout_s, self.default, self.details = timeout_s, default, details


class Never:
    """A call that doesn't come back."""


class Unclear:
    """A call that failed after it may have been done."""


class Returns:
    """A call result with more than an output."""

    def __init__(self, output: Any = e.UNSET, **more: Any) -> None:
        self.output, self.more = output, more


def error(message: str = "boom") -> Failure:
    """An evaluation that fails."""
    return Failure("error", message)


def needs(*entries: str) -> tuple[Need, ...]:
    """`depends_on`: "a" waits for a, "a|b" for either, "a?" lets a failure of a pass."""
    return tuple(Need(tuple(_edge(name) for name in entry.split("|"))) for entry in entries)


def _edge(name: str) -> Edge:
    return Edge(name[:-1], "continue") if name.endswith("?") else Edge(name)


class Draft:
    """A step whose expressions are still texts."""

    def __init__(self, name: str, **keys: Any) -> None:
        self.name, self.keys = name, keys


def step(name: str, *depends_on: str, **keys: Any) -> Draft:
    """A step; `if_`, `assume`, `guarantee`, `fail_if` and blocks are given as texts."""
    return Draft(name, depends_on=needs(*depends_on), **keys)


def block(
    run: Iterable[str | Target] = (),
    when: Iterable[tuple[str, str | None]] = (),
    retry: Retry | int | None = None,
    **keys: Any,
) -> dict[str, Any]:
    """An on_success, on_fail or on_finish block, expressions as texts."""
    targets = tuple(Target(item) if isinstance(item, str) else item for item in run)
    return {
        "run": targets,
        "when": tuple(when),
        "retry": Retry(retry) if isinstance(retry, int) else retry,
        **keys,
    }


def plan(
    *drafts: Draft, fail_if: str | None = None, conditions: Iterable[dict[str, Any]] = (), **keys: Any
) -> Plan:
    """Compile drafts; expression numbers are given in order of appearance."""
    table: list[str] = []

    def number(text: str) -> int:
        table.append(text)
        return len(table) - 1

    steps = {draft.name: _compile(draft, number) for draft in drafts}
    shared = tuple(_condition(condition, number) for condition in conditions)
    top = number(fail_if) if fail_if else None
    limits = Limits(**{key: keys.pop(key) for key in list(keys) if key in Limits.__struct_fields__})
    expressions = tuple(Expression(text, "condition") for text in table)
    return Plan("test", steps, expressions, limits, fail_if=top, failure_conditions=shared, **keys)


def _compile(draft: Draft, number: Callable[[str], int]) -> Step:
    keys = dict(draft.keys)
    condition = keys.pop("if_", None)
    if condition is not None:
        keys["if_condition"] = number(condition)
    for name in ("assume", "guarantee"):
        if name in keys:
            keys[name] = tuple(number(text) for text in keys[name])
    if "fail_if" in keys:
        keys["fail_if"] = number(keys["fail_if"])
    if "conditions" in keys:
        keys["failure_conditions"] = tuple(_condition(item, number) for item in keys.pop("conditions"))
    if "on_init_js" in keys:
        keys["on_init_js"] = number(keys["on_init_js"])
    keys["on_init"] = tuple(_target(item, number) for item in keys.pop("on_init", ()))
    for name in ("on_success", "on_fail", "on_finish"):
        if name in keys:
            keys[name] = _block(dict(keys[name]), number)
    return Step(draft.name, **{"type": "noop", **keys})


def _target(item: str | dict[str, Any], number: Callable[[str], int]) -> Target:
    """A name, or the fields of a Target with its templates as texts."""
    if isinstance(item, str):
        return Target(item)
    rendered = {name: number(text) for name, text in item.get("templates", {}).items()}
    return Target(**{**item, "templates": rendered})


def _condition(item: dict[str, Any], number: Callable[[str], int]) -> FailureCondition:
    return FailureCondition(
        expression=number(item["when"]), **{key: value for key, value in item.items() if key != "when"}
    )


def _block(keys: dict[str, Any], number: Callable[[str], int]) -> Block:
    rules = tuple(Transition(number(text), to) for text, to in keys.pop("when"))
    for name in ("run_js", "goto_js"):
        if name in keys:
            keys[name] = number(keys[name])
    return Block(transitions=rules, **keys)


class Script:
    """One run of a plan, to its end or until it waits for a person."""

    def __init__(
        self,
        plan: Plan,
        calls: dict[str, Any] | None = None,
        answers: dict[str, Any] | None = None,
        **start: Any,
    ) -> None:
        first = e.RunStarted(run_id="run", plan=plan, started_at_ms=1_000, **start)
        self.state: State = machine.begin(first)
        self.results, self.answers = calls or {}, answers or {}
        self.records: list[tuple[e.AnyEvent, tuple[d.AnyDecision, ...]]] = []
        self.started: list[str] = []
        self.commands: list[c.Command] = []
        self.now = 0.0
        self._inbox: deque[e.AnyEvent] = deque([first])
        self._timers: list[tuple[float, int]] = []
        self.go()

    # --- driving

    def tell(self, *events: e.AnyEvent) -> Script:
        """Give more events, which come in together, and go on."""
        self._inbox.extend(events)
        return self.go()

    def pass_time(self, seconds: float) -> Script:
        """Let time pass while the run waits for a person."""
        self.now += seconds
        for due_s, timer in sorted(self._timers):
            if due_s <= self.now and timer in self.state.timers:
                self._inbox.append(e.TimerFired(timer=timer))
        return self.go()

    def go(self) -> Script:
        """Work off what there is."""
        while self._inbox or self._next_timer():
            event = structs.replace(self._inbox.popleft(), at=self.now)
            step = machine.advance(self.state, event)
            self.records.append((event, step.decisions))
            self.commands.extend(step.commands)
            for command in step.commands:
                self._perform(command)
        return self

    def _next_timer(self) -> bool:
        while self._timers and self.state.finished is None:
            due_s, timer = heapq.heappop(self._timers)
            if timer in self.state.timers:
                self.now = max(self.now, due_s)
                self._inbox.append(e.TimerFired(timer=timer))
                return True
        return False

    def _perform(self, command: c.Command) -> None:
        if isinstance(command, c.StartCall):
            self.started.append(f"{command.step}@{command.scope}" if command.scope else command.step)
            self._answer_call(command)
        elif isinstance(command, c.Evaluate):
            results = tuple(self._evaluate(ask) for ask in command.asks)
            self._inbox.append(e.Evaluated(batch=command.batch, results=results))
        elif isinstance(command, c.SetTimer):
            heapq.heappush(self._timers, (command.due_s, command.timer))
        elif isinstance(command, c.StopCall):
            fault = Fault("run.cancelled", "cancelled", "cancelled", "told to stop")
            self._inbox.append(e.CallFailed(call=command.call, fault=fault))

    def _answer_call(self, command: c.StartCall) -> None:
        result = self.results.get(command.step)
        result = result(command) if callable(result) else result
        if isinstance(result, Fault):
            self._inbox.append(e.CallFailed(call=command.call, fault=result))
        elif isinstance(result, Unclear):
            self._inbox.append(e.CallFailed(call=command.call, fault=TRANSIENT, effect="unknown"))
        elif isinstance(result, Parks):
            self._inbox.append(
                e.CallParked(
                    call=command.call,
                    prompt="well?",
                    details=result.details,
                    timeout_s=result.timeout_s,
                    default=result.default,
                )
            )
        elif isinstance(result, Returns):
            self._inbox.append(e.CallDone(call=command.call, output=result.output, **result.more))
        elif not isinstance(result, Never):
            self._inbox.append(e.CallDone(call=command.call, output=result))

    def _evaluate(self, ask: c.Ask) -> Result:
        answer = self.answers.get(self.state.graph.expression(ask.expression), True)
        if callable(answer):
            answer = answer(names_for(self.state, ask.step, ask.scope))
        return answer if isinstance(answer, Value | Failure) else Value(answer)

    # --- looking

    @property
    def verdict(self) -> str:
        """GO, NO-GO or HOLD."""
        assert self.state.finished is not None, "the run is still going"
        return self.state.finished.verdict

    def node(self, name: str, scope: str = "") -> Node:
        """The state of a step."""
        return self.state.existing(name, scope)

    def outcome(self, name: str, scope: str = "") -> str | None:
        """The outcome of a step's latest run."""
        return self.node(name, scope).outcome

    def outcomes(self) -> dict[str, str | None]:
        """Outcome by step, fan-outs as a whole."""
        return {name: scopes[""].outcome for name, scopes in self.state.nodes.items() if "" in scopes}

    def rules(self, name: str, scope: str = "") -> list[str]:
        """The rule ids of a step's issues."""
        return [issue.rule_id for issue in self.node(name, scope).issues]

    def decided(self, kind: type, name: str | None = None) -> list[Any]:
        """All decisions of a kind, about a step if one is named."""
        found = [
            decision for _, decisions in self.records for decision in decisions if isinstance(decision, kind)
        ]
        return [decision for decision in found if name is None or getattr(decision, "step", None) == name]

    def folded(self) -> State:
        """The state rebuilt from the records."""
        return fold(_Record(event, decisions) for event, decisions in self.records)


class _Record:
    def __init__(self, event: e.AnyEvent, decisions: tuple[d.AnyDecision, ...]) -> None:
        self.event, self.decisions = event, decisions


def remember(op: str, key: str, value: Any = None) -> MemoryOp:
    """A memory operation in the default namespace."""
    return MemoryOp(op, key, value)
