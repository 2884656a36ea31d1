"""RunState: everything known about a run, folded from its records. Only `apply.py` may change it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from gonogo.core import lifecycle
from gonogo.core.commands import Ask
from gonogo.core.decisions import Finished, Held
from gonogo.core.events import CallDone, CallFailed
from gonogo.core.faults import Fault, Issue
from gonogo.core.graph import Graph
from gonogo.core.plan import Step
from gonogo.core.ready import ReadyQueue
from gonogo.core.scope import enclosing
from gonogo.errors import Bug


class Fan:
    """A fan-out under way: over which execution of `parent`, how many items, how many of them are complete."""

    __slots__ = (
        "active", "complete", "cursor", "execution", "items", "parent", "queue", "queued", "ready", "total",
    )  # fmt: skip

    def __init__(self, scope: str, parent: str, execution: int, total: int) -> None:
        own = f"{parent}#{execution}["
        # How the scopes of its items begin: a route may run the step in other scopes, too.
        self.items = f"{scope}/{own}" if scope else own
        self.parent = parent
        self.execution = execution
        self.total = total
        self.complete = 0
        self.active = 0
        # What follows is derived, never recorded, and found again after a resume: items waiting for room in the window
        # (`queue`), items never looked at (from `cursor` on), items in the ready queue (`ready`).
        self.cursor = 0
        self.ready = 0
        self.queue: list[int] = []
        self.queued: set[int] = set()


class Node:
    """One step in one scope: where it is in its life, and what its latest run came to."""

    __slots__ = (
        "again", "arguments", "asked", "attempt", "attempts", "because", "call", "complete", "content",
        "effect", "ended_at", "event", "execution", "fan", "fault", "hold", "inputs", "issues", "items", "lists",
        "meta", "outcome", "output", "reason", "requested", "requester", "result", "retries", "retrying",
        "scope", "settled", "started_at", "status", "step", "timer", "trigger", "waits_for", "wave",
    )  # fmt: skip

    def __init__(self, step: str, scope: str) -> None:
        self.step = step
        self.scope = scope
        self.status = lifecycle.PENDING
        self.wave = 0
        self.execution = 0
        self.attempt = 0
        self.attempts = 0
        self.retries = 0
        self.retrying = False
        self.again = False
        self.asked = 0
        self.effect = "none"
        self.call: int | None = None
        self.timer: int | None = None
        self.result: CallDone | CallFailed | None = None
        self.outcome: str | None = None
        self.reason: str | None = None
        self.because: str | None = None
        self.output: Any = UNSET
        self.meta: dict[str, Any] = {}
        self.issues: tuple[Issue, ...] = ()
        self.fault: Fault | None = None
        self.content: str | None = None
        self.inputs: Any = None
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.complete = False
        self.settled = False
        self.requested = False
        self.requester: tuple[str, str] | None = None
        self.arguments: dict[str, Any] = {}
        self.event: str | None = None
        self.hold: Held | None = None
        self.trigger: str | None = None
        self.waits_for: tuple[tuple[str, str], ...] = ()
        self.fan: Fan | None = None
        self.items: list[Any] | None = None
        self.lists: dict[int, list[Any]] = {}


class State:
    """A run. Nested step → scope → node, so that ten thousand items cost no more each than ten."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.run_id = ""
        self.seed = ""
        self.at = 0.0
        self.started_at_ms = 0
        self.trigger: dict[str, Any] | None = None
        self.context: dict[str, Any] = {}
        self.inputs: dict[str, Any] = {}
        self.env: dict[str, Any] = {}
        self.arguments: dict[str, Any] = {}
        self.requested: tuple[str, ...] = ()
        self.parent: dict[str, Any] | None = None
        self.safe_mode = False
        self.included: frozenset[str] = frozenset()
        self.excluded: dict[str, str] = {}
        self.held_back: frozenset[str] = frozenset()
        self.nodes: dict[str, dict[str, Node]] = {name: {} for name in graph.steps}
        self.calls: dict[int, Node] = {}
        self.batches: dict[int, tuple[Ask, ...]] = {}
        self.asks: tuple[Ask, ...] = ()
        self.returned: Node | None = None
        self.fired: Node | None = None
        self.lost_asks: tuple[Ask, ...] = ()
        self.ready = ReadyQueue()
        self.timers: dict[int, tuple[float, Node | None]] = {}
        self.dropped: dict[str, dict[str, int]] = {}
        self.foreign: dict[str, dict[str, None]] = {}
        self.remediating: dict[tuple[str, str], Node] = {}
        self.slots = 0
        self.open_nodes = 0
        self.last_call = 0
        self.last_batch = 0
        self.last_timer = 0
        self.last_wave = 0
        self.loops: dict[str, int] = {}
        self.trail: deque[tuple[str, str, str]] = deque(maxlen=64)
        self.breaches: list[tuple[str, str]] = []
        self.run_issues: list[Issue] = []
        self.memory: dict[str, dict[str, Any]] = {}
        self.memory_version = 0
        self.history: dict[str, deque[tuple[int, Any]]] = {}
        self.stopping: str | None = None
        self.stopped_by: str | None = None
        self.cleanup_timer: int | None = None
        self.interrupted = False
        self.finished: Finished | None = None

    def node(self, step: str, scope: str) -> Node | None:
        """The node of a step in exactly this scope."""
        return self.nodes[step].get(scope)

    def existing(self, step: str, scope: str) -> Node:
        """The node, which must be there; anything else is a bug."""
        node = self.nodes[step].get(scope)
        if node is None:
            raise Bug(f"no step {step} in scope {scope or '(run)'}")
        return node

    def runs_before(self, step: str, scope: str) -> int:
        """How often a step has run in a scope, items that were dropped since included."""
        node = self.nodes[step].get(scope)
        if node is not None:
            return node.execution
        return self.dropped[step].get(scope, 0) if step in self.dropped else 0

    def step(self, node: Node) -> Step:
        """The plan's step of a node."""
        return self.graph.steps[node.step]

    def aggregate_of(self, node: Node) -> Node | None:
        """The fan-out a node is an item of, if it is one."""
        if not node.scope:
            return None
        aggregate = self.nodes[node.step].get(enclosing(node.scope))
        if aggregate is None or aggregate.fan is None or not node.scope.startswith(aggregate.fan.items):
            return None
        return aggregate

    def all_nodes(self) -> Iterator[Node]:
        """Every node, in configuration order of the steps."""
        for scopes in self.nodes.values():
            yield from scopes.values()

    @property
    def limit_of_slots(self) -> int:
        """How many steps may run at once."""
        return self.graph.plan.limits.max_parallelism

    @property
    def quiet(self) -> bool:
        """Nothing is in flight but holds: no call, no evaluation, no timer that isn't the end of a hold."""
        return not (
            self.calls or self.batches or any(not _ends_a_hold(node) for _, node in self.timers.values())
        )


def _ends_a_hold(node: Node | None) -> bool:
    return node is None or node.status == lifecycle.HOLDING
