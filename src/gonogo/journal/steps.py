"""A step of a run, and its items, as readers see them.

The nodes of a step are sorted and gone through once. What only some readers need (outputs, the items themselves) is
read from the state when it is asked for, so the state mustn't go on while a view of it is in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from gonogo.core import lifecycle as life
from gonogo.core.faults import Fault, Issue
from gonogo.core.plan import Step
from gonogo.core.reruns import item_of
from gonogo.core.scope import index_of, order_key
from gonogo.core.state import Node, State
from gonogo.core.values import output_of
from gonogo.journal.durations import milliseconds
from gonogo.journal.large import shown
from gonogo.journal.lazily import Elements, Members, plain_data

__all__ = ["ItemView", "Items", "StepView", "step_view"]

_WORST_FIRST = ("failed", "cancelled", "tolerated", "passed", "skipped")


class ItemView(Struct, frozen=True, eq=False):
    """One item of a fan-out."""

    node: Node
    state: State

    @property
    def index(self) -> int:
        """From 0 in its own fan-out."""
        return index_of(self.node.scope)

    @property
    def scope(self) -> str:
        """Names the place among nested fan-outs."""
        return self.node.scope

    @property
    def outcome(self) -> str:
        """As of a step."""
        return _of_one(self.node)[0]

    @property
    def reason(self) -> str | None:
        """As of a step."""
        return _of_one(self.node)[1]

    @property
    def attempts(self) -> int:
        """All calls made."""
        return self.node.attempts

    @property
    def output(self) -> Any:
        """What it gave; a large value as its reference."""
        return _output(self.node, self.state)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Its own."""
        return self.node.issues

    @property
    def fault(self) -> Fault | None:
        """Of its latest run."""
        return self.node.fault

    @property
    def value(self) -> Any:
        """The item itself, for people: `as_json` leaves it to the output of the list's step."""
        return shown(item_of(self.state, self.node.scope))

    def as_json(self) -> dict[str, Any]:
        """The item in the object of `--format json`."""
        return {
            "index": self.index,
            "scope": self.scope,
            "outcome": self.outcome,
            "attempts": self.attempts,
            "output": self.output,
        }


class Items(Sequence[ItemView]):
    """The innermost items of a step in index order: of a fan-out within a fan-out each has its own scope.

    A view of an item lives only while it is looked at.
    """

    __slots__ = ("_nodes", "_others", "_state", "total")

    def __init__(self, state: State, nodes: list[Node], total: int) -> None:
        """`total`: how many there are to be, those that haven't begun among them."""
        self.total = total
        self._state = state
        self._nodes = nodes
        self._others = [node for node in nodes if _of_one(node)[0] != "passed"]

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, place: Any) -> Any:
        found = self._nodes[place]
        return (
            [ItemView(node, self._state) for node in found] if isinstance(place, slice) else self._of(found)
        )

    def __iter__(self) -> Iterator[ItemView]:
        return map(self._of, self._nodes)

    def _of(self, node: Node) -> ItemView:
        return ItemView(node, self._state)

    @property
    def passed(self) -> int:
        """How many passed."""
        return len(self._nodes) - len(self._others)

    def not_passed(self) -> Iterator[ItemView]:
        """All others, whatever they came to."""
        return map(self._of, self._others)

    def at(self, scope: str) -> ItemView | None:
        """The item in a scope."""
        node = self._state.node(self._nodes[0].step, scope) if scope and self._nodes else None
        return self._of(node) if node is not None and node.fan is None else None


class StepView(Struct, frozen=True, eq=False):
    """A step's latest run. `outcome`: passed, failed, tolerated, skipped, cancelled, waiting or in_doubt.

    `attempts` are all calls made, those of items included; `runs` the executions; `items` is None when the
    step didn't fan out. `issues` include the items', and what the run said of the step (a refused route, a
    workflow's own detector). `node` is that of the step itself, `nodes` are all of it, in order.
    """

    name: str
    outcome: str
    reason: str | None
    attempts: int
    runs: int
    issues: tuple[Issue, ...]
    fault: Fault | None
    duration_ms: int
    criticality: str
    criticality_source: str
    items: Items | None
    node: Node | None
    nodes: list[Node]
    state: State

    @property
    def output(self) -> Any:
        """A fan-out's is the list of its items', as expressions see it; a large value is given as its reference."""
        return _output(self.node, self.state)

    @property
    def withheld(self) -> bool:
        """Whether safe mode kept its calls back: it passed without one."""
        mutates = self.state.graph.steps[self.name].effects == "mutates"
        return self.state.safe_mode and mutates and self.outcome == "passed"

    @property
    def gate(self) -> dict[str, Any] | None:
        """What the gate tells of its latest call: attempts, decisions in sentences, who served."""
        told = self.node.meta.get("gate") if self.node is not None and self.node.meta else None
        return told if isinstance(told, dict) else None

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The tools that a model used in its latest call, in order: arguments, and what came of it."""
        told = self.node.meta.get("tool_calls") if self.node is not None and self.node.meta else None
        return [each for each in told if isinstance(each, dict)] if isinstance(told, list | tuple) else []

    @property
    def set_by(self) -> str | None:
        """Who gave its output in place of a run; None when it ran."""
        told = self.node.meta.get("set_by") if self.node is not None and self.node.meta else None
        return told if isinstance(told, str) else None

    @property
    def content(self) -> str | None:
        """The provider's text for people."""
        return self.node.content if self.node is not None else None

    @property
    def because(self) -> str | None:
        """The step at the root of a skip."""
        return self.node.because if self.node is not None and self.node.outcome == "skipped" else None

    def told(self, issues: Sequence[Issue] | None = None, **more: Any) -> dict[str, Any] | Members:
        """The step in the object of `--format json`, with other `issues` than its own and with `more` at its end."""
        plain = {
            "outcome": self.outcome,
            "reason": self.reason,
            "attempts": self.attempts,
            "runs": self.runs,
            "output": self.output,
            "issues": msgspec.to_builtins(list(self.issues if issues is None else issues)),
            "fault": msgspec.to_builtins(self.fault),
            "duration_ms": self.duration_ms,
            "criticality": self.criticality,
            "criticality_source": self.criticality_source,
        }
        if self.gate is not None:
            plain["gate"] = self.gate
        if self.tool_calls:
            plain["tool_calls"] = self.tool_calls
        if self.set_by is not None:
            plain["set_by"] = self.set_by
        items = self.items
        if items is None:
            return plain | more
        each = Elements(lambda: (item.as_json() for item in items))
        return Members((plain | {"items": each, "items_total": items.total} | more).items)

    def as_json(self) -> dict[str, Any]:
        """As `told`, as plain JSON data."""
        told: dict[str, Any] = plain_data(self.told())
        return told


def step_view(state: State, step: Step, said: Sequence[Issue] = ()) -> StepView:
    """A step as it stands; `said` are the run's own issues about it."""
    nodes = _in_order(state, step.name)
    node = nodes[0] if nodes and not nodes[0].scope else None
    if node is None or node.fan is not None or len(nodes) > 1:
        return _of_several(state, step, said, node, nodes)
    outcome, reason = _of_one(node)
    return StepView(
        step.name,
        outcome,
        reason,
        node.attempts,
        node.execution,
        (*node.issues, *said) if said else node.issues,
        node.fault,
        _duration_ms(state, node),
        step.criticality,
        step.criticality_source,
        None,
        node,
        nodes,
        state,
    )


def _of_several(
    state: State, step: Step, said: Sequence[Issue], node: Node | None, nodes: list[Node]
) -> StepView:
    outcome, reason = _of_many(node, nodes)
    items = [one for one in nodes if one.scope and one.fan is None]
    is_list = node is not None and node.fan is not None
    return StepView(
        step.name,
        outcome,
        reason,
        sum([one.attempts for one in nodes]),
        node.execution if node is not None else max([one.execution for one in nodes], default=0),
        (*(issue for one in nodes if one.issues for issue in one.issues), *said),
        next((one.fault for one in nodes if one.fault is not None), None),
        _duration_ms(state, node),
        step.criticality,
        step.criticality_source,
        Items(state, items, len(items) + _to_come(nodes)) if items or is_list else None,
        node,
        nodes,
        state,
    )


def _to_come(nodes: list[Node]) -> int:
    """Items that nothing is known of but their number; those within such an item count as one."""
    fans = [one.fan for one in nodes if one.fan is not None and one.fan.complete < one.fan.total]
    if not fans:
        return 0
    begun = Counter(one.scope[: one.scope.rfind("[") + 1] for one in nodes if one.scope)
    return sum(max(0, fan.total - begun[fan.site.items]) for fan in fans)


def _in_order(state: State, name: str) -> list[Node]:
    """A step's nodes: the step itself, then its items in index order, each before what is within it."""
    scopes = state.nodes[name]
    return (
        list(scopes.values())
        if len(scopes) < 2
        else [scopes[scope] for scope in sorted(scopes, key=order_key)]
    )


def _of_one(node: Node) -> tuple[str, str | None]:
    """The final outcome, or what is waited for: a person, or (its reason is the stage it is in) the run itself."""
    if node.complete and node.outcome is not None:
        return node.outcome, node.reason
    if node.status == life.IN_DOUBT:
        return "in_doubt", node.reason
    return "waiting", "person" if node.status == life.HOLDING else node.status


def _of_many(node: Node | None, nodes: list[Node]) -> tuple[str, str | None]:
    """Of a step and its items: who waits for a person comes first."""
    doubtful = next((one for one in nodes if one.status == life.IN_DOUBT), None)
    if doubtful is not None:
        return "in_doubt", doubtful.reason
    if any(one.status == life.HOLDING for one in nodes):
        return "waiting", "person"
    return _of_items(nodes) if node is None else _of_one(node)


def _of_items(items: list[Node]) -> tuple[str, str | None]:
    """Of a step that ran only where items routed to it: the worst that it came to."""
    if not items:
        return "waiting", "not_started"
    open_item = next((item for item in items if not item.complete), None)
    if open_item is not None:
        return "waiting", open_item.status
    worst = min(items, key=lambda item: _WORST_FIRST.index(item.outcome or "skipped"))
    return worst.outcome or "skipped", worst.reason


def _output(node: Node | None, state: State) -> Any:
    if node is None:
        return None
    if node.fan is not None:
        return shown(output_of(node, state))
    return shown(node.output) if node.output is not UNSET and node.output is not None else None


def _duration_ms(state: State, node: Node | None) -> int:
    """Of the latest execution, retries and waits included; up to now for what is under way."""
    if node is None or node.started_at is None or node.execution == 0:
        return 0
    ended_at = node.ended_at if node.ended_at is not None and node.complete else state.at
    return milliseconds(ended_at - node.started_at)
