"""A run as its readers see it: reports, the web page, the command line and tests all read this, and nothing else.

`run_view(records)` folds the state and adds what only the records know (faults of earlier attempts, counts).
`as_json` is the object that `--format json` prints; the attributes beside it (`plan`, `waiting`) are for
people's formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from gonogo.core import lifecycle as life
from gonogo.core.faults import Fault, Issue
from gonogo.core.plan import Plan, Step
from gonogo.core.reruns import item_of
from gonogo.core.scope import index_of
from gonogo.core.state import Node, State
from gonogo.core.values import output_of
from gonogo.journal.large import shown
from gonogo.journal.records import Record
from gonogo.journal.restoring import state_of
from gonogo.journal.statistics import Tally, issues_of, milliseconds, nodes_of, statistics

__all__ = ["ItemView", "RunView", "StepView", "Waiting", "exit_code", "run_view"]

GO, NO_GO, HOLD, INTERRUPTED = 0, 1, 3, 130
_WORST_FIRST = ("failed", "cancelled", "tolerated", "passed", "skipped")
_CODES = {"GO": GO, "NO-GO": NO_GO, "HOLD": HOLD}


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item of a fan-out. `index` counts from 0 in its own fan-out, `scope` names the place among nested ones.

    `value` is the item itself, for people: `as_json` leaves it to the output of the list's step.
    """

    index: int
    scope: str
    outcome: str
    reason: str | None
    attempts: int
    output: Any
    issues: tuple[Issue, ...]
    fault: Fault | None
    value: Any = None

    def as_json(self) -> dict[str, Any]:
        """The item in the object of `--format json`."""
        return {
            "index": self.index,
            "scope": self.scope,
            "outcome": self.outcome,
            "attempts": self.attempts,
            "output": self.output,
        }


@dataclass(frozen=True, slots=True)
class StepView:
    """A step's latest run. `outcome`: passed, failed, tolerated, skipped, cancelled, waiting or in_doubt.

    `attempts` are all calls made, those of items included; `runs` the executions; `items` is None when the
    step didn't fan out. `issues` include the items'. `content` is the provider's text for people.
    """

    name: str
    outcome: str
    reason: str | None
    attempts: int
    runs: int
    output: Any
    issues: tuple[Issue, ...]
    fault: Fault | None
    duration_ms: int
    criticality: str
    criticality_source: str
    items: tuple[ItemView, ...] | None = None
    content: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The step in the object of `--format json`."""
        plain = {
            "outcome": self.outcome,
            "reason": self.reason,
            "attempts": self.attempts,
            "runs": self.runs,
            "output": self.output,
            "issues": msgspec.to_builtins(list(self.issues)),
            "fault": msgspec.to_builtins(self.fault),
            "duration_ms": self.duration_ms,
            "criticality": self.criticality,
            "criticality_source": self.criticality_source,
        }
        return plain if self.items is None else {**plain, "items": [item.as_json() for item in self.items]}


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a person is asked: a hold with its prompt, or a call `in_doubt`. `due_s` on the run's clock, if it ends."""

    step: str
    scope: str
    prompt: str
    in_doubt: bool = False
    details: Any = None
    due_s: float | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class RunView:
    """A run. `verdict` is None while it is under way or after a crash; `because` names the steps that made it.

    `steps` holds the included steps in configuration order, `excluded` why each other one was left out.
    `issues` are the run's own (a refused route, a plan that can't run); those about a step stand with it, too.
    """

    run_id: str
    verdict: str | None
    because: tuple[str, ...]
    exit_code: int
    event: dict[str, Any] | None
    steps: dict[str, StepView]
    statistics: dict[str, Any]
    faults: tuple[dict[str, Any], ...]
    budgets: dict[str, Any]
    issues: tuple[Issue, ...]
    excluded: dict[str, str]
    waiting: tuple[Waiting, ...]
    parked: bool
    interrupted: bool
    started_at_ms: int
    plan: Plan

    def as_json(self) -> dict[str, Any]:
        """The object of `--format json`: plain JSON data."""
        return {
            "run_id": self.run_id,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "event": self.event,
            "steps": {name: step.as_json() for name, step in self.steps.items()},
            "statistics": self.statistics,
            "faults": list(self.faults),
            "budgets": self.budgets,
        }


def run_view(records: Sequence[Record], state: State | None = None) -> RunView:
    """The run that these records tell of. `state`: their fold, if the caller has it.

    Raises:
        Bug: the records don't start with the start of a run.
    """
    state = state_of(records) if state is None else state
    tally = Tally(records, state.graph.steps)
    finished = state.finished
    # A run that was interrupted and went on since isn't any more.
    interrupted = state.interrupted and state.stopping in ("cancelled", "cancelled_hard")
    return RunView(
        run_id=state.run_id,
        verdict=finished.verdict if finished else None,
        because=finished.because if finished else (),
        exit_code=exit_code(finished.verdict if finished else None, interrupted=interrupted),
        event={"name": state.trigger.get("name")} if state.trigger else None,
        steps={
            name: _step(state, step) for name, step in state.graph.steps.items() if name in state.included
        },
        statistics=statistics(state, tally),
        faults=tuple(_faults(state, tally)),
        budgets=_budgets(state, tally),
        issues=tuple(state.run_issues),
        excluded=state.excluded,
        waiting=tuple(_waiting(state.all_nodes())),
        parked=finished is not None and finished.parked,
        interrupted=interrupted,
        started_at_ms=state.started_at_ms,
        plan=state.graph.plan,
    )


def exit_code(verdict: str | None, *, interrupted: bool = False) -> int:
    """What the process says (cli.md): an interrupted run, and one without a verdict, can be resumed."""
    return INTERRUPTED if verdict is None or interrupted else _CODES[verdict]


def _step(state: State, step: Step) -> StepView:
    nodes = nodes_of(state, step.name)
    node = nodes[0] if nodes and not nodes[0].scope else None
    items = _items(state, nodes)
    outcome, reason = _outcome(node, nodes)
    return StepView(
        name=step.name,
        outcome=outcome,
        reason=reason,
        attempts=sum(one.attempts for one in nodes),
        runs=node.execution if node else max((item.execution for item in nodes), default=0),
        output=_output(node, state),
        issues=tuple(issues_of(state, step.name)),
        fault=next((one.fault for one in nodes if one.fault is not None), None),
        duration_ms=_duration_ms(state, node),
        criticality=step.criticality,
        criticality_source=step.criticality_source,
        items=items if items or (node is not None and node.fan is not None) else None,
        content=node.content if node else None,
    )


def _items(state: State, nodes: list[Node]) -> tuple[ItemView, ...]:
    """The innermost items: of a fan-out within a fan-out each has its own scope."""
    return tuple(_item(state, node) for node in nodes if node.scope and node.fan is None)


def _item(state: State, node: Node) -> ItemView:
    outcome, reason = _outcome(node, [node])
    return ItemView(
        index=index_of(node.scope),
        scope=node.scope,
        outcome=outcome,
        reason=reason,
        attempts=node.attempts,
        output=_output(node, state),
        issues=node.issues,
        fault=node.fault,
        value=shown(item_of(state, node.scope)),
    )


def _outcome(node: Node | None, nodes: list[Node]) -> tuple[str, str | None]:
    """The final outcome, or what is waited for: a person, or (its reason is the stage it is in) the run itself."""
    statuses = {one.status for one in nodes}
    if life.IN_DOUBT in statuses:
        return "in_doubt", next(one.reason for one in nodes if one.status == life.IN_DOUBT)
    if life.HOLDING in statuses:
        return "waiting", "person"
    if node is None:
        return _outcome_of_items(nodes)
    if node.complete and node.outcome is not None:
        return node.outcome, node.reason
    return "waiting", node.status


def _outcome_of_items(items: list[Node]) -> tuple[str, str | None]:
    """Of a step that ran only where items routed to it: the worst that it came to."""
    if not items:
        return "waiting", "not_started"
    open_item = next((item for item in items if not item.complete), None)
    if open_item is not None:
        return "waiting", open_item.status
    worst = min(items, key=lambda item: _WORST_FIRST.index(item.outcome or "skipped"))
    return worst.outcome or "skipped", worst.reason


def _output(node: Node | None, state: State) -> Any:
    """A fan-out's output is the list of its items' outputs, as expressions see it."""
    if node is None or (node.fan is None and node.output is UNSET):
        return None
    return shown(output_of(node, state) if node.fan is not None else node.output)


def _duration_ms(state: State, node: Node | None) -> int:
    """Of the latest execution, retries and waits included; up to now for what is under way."""
    if node is None or node.started_at is None or node.execution == 0:
        return 0
    ended_at = node.ended_at if node.ended_at is not None and node.complete else state.at
    return milliseconds(ended_at - node.started_at)


def _faults(state: State, tally: Tally) -> Iterator[dict[str, Any]]:
    """What the run itself says, then every fault of every attempt: steps in order, each step's as they happened."""
    for issue in state.run_issues:
        place = {"step": issue.check_name, "scope": issue.scope or "", "attempt": 0, "outcome": None}
        told = {"kind": "run", "class": "logical", "rule_id": issue.rule_id, "message": issue.message}
        yield {**place, **told}
    for ended, fault, attempt in sorted(tally.faults, key=lambda found: state.graph.order[found[0].step]):
        place = {"step": ended.step, "scope": ended.scope, "attempt": attempt, "outcome": ended.outcome}
        yield {**place, **msgspec.to_builtins(fault)}


def _budgets(state: State, tally: Tally) -> dict[str, Any]:
    """What of each limit was used, and every refusal."""
    limits = state.graph.plan.limits
    return {
        "max_loops": {"allowed": limits.max_loops, "used": dict(state.loops)},
        "max_runs": {"allowed": limits.max_runs},
        "max_parallelism": {"allowed": limits.max_parallelism},
        "refused": [
            {
                "step": refusal.step,
                "scope": refusal.scope,
                "target": refusal.target,
                "limit": refusal.limit,
                "used": refusal.used,
                "allowed": refusal.allowed,
            }
            for refusal in tally.refusals
        ],
    }


def _waiting(nodes: Iterable[Node]) -> Iterator[Waiting]:
    for node in nodes:
        hold = node.hold
        if node.status == life.IN_DOUBT:
            yield Waiting(node.step, node.scope, node.reason or "", in_doubt=True)
        elif node.status == life.HOLDING and hold is not None:
            yield Waiting(node.step, node.scope, hold.prompt, False, hold.details, hold.due_s, hold.default)
