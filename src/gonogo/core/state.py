"""RunState: everything known about a run, folded from its records. Only `apply.py` may change it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import UNSET, Struct

from gonogo.core import lifecycle
from gonogo.core.commands import Ask
from gonogo.core.decisions import Finished, Held
from gonogo.core.events import CallDone, CallFailed
from gonogo.core.faults import Fault, Issue
from gonogo.core.gated import Gated
from gonogo.core.graph import Graph
from gonogo.core.parts import Part, Site, site_at, site_of_items
from gonogo.core.plan import Plan, Step, Target
from gonogo.core.ready import ReadyQueue
from gonogo.errors import Bug


class Fan:
    """A fan-out under way: over which execution of `parent`, how many items, how many of them are complete.

    `site` is where its items run: in the scopes that begin with `site.items`. A route may run the step in others, too.
    """

    __slots__ = (
        "active", "complete", "cursor", "execution", "parent", "queue", "ready", "site", "total",
    )  # fmt: skip

    def __init__(self, part: Part, scope: str, parent: str, execution: int, total: int) -> None:
        own = f"{parent}#{execution}["
        self.site = site_of_items(part, scope, f"{scope}/{own}" if scope else own)
        self.parent = parent
        self.execution = execution
        self.total = total
        self.complete = 0
        self.active = 0
        # What follows is derived, never recorded, and found again after a resume: items to be looked at again when the
        # window has room (`queue`), items never looked at (from `cursor` on), items in the ready queue (`ready`).
        self.cursor = 0
        self.ready = 0
        self.queue: list[int] = []

    def item(self, index: int) -> str:
        """The scope of an item."""
        return f"{self.site.items}{index}]"


class Init(NamedTuple):
    """How far a step's on_init is: what is `left`, what runs (`running`), the outputs of items with another name.

    `done` holds for the whole execution; `numbered` until the call whose execution and attempt on_init began with.
    """

    left: tuple[Target, ...] = ()
    running: Target | None = None
    results: dict[str, Any] | None = None
    done: bool = False
    numbered: bool = True


DOUBTED = "in_doubt"
"""Among the details of a hold: a run beneath waits for somebody to say what became of a call of its."""


CONTAINER = "workflow"
"""A step of this type only waits for a run of its own."""


class Node:
    """One step in one scope: where it is in its life, and what its latest run came to.

    `arguments`, `lists` and `meta` are None where there are none: most of a hundred thousand items have none.
    """

    __slots__ = (
        "again", "arguments", "asked", "attempt", "attempts", "because", "call", "complete", "content", "continues",
        "effect", "ended_at", "event", "execution", "fan", "fault", "gate", "hold", "init", "inputs", "issues", "items",
        "lists", "meta", "outcome", "output", "reason", "requested", "requester", "result", "retries", "retrying",
        "scope", "settled", "site", "started_at", "status", "step", "timer", "trigger", "waits_for", "wave",
    )  # fmt: skip

    def __init__(self, site: Site, scope: str) -> None:
        self.site = site
        self.step = site.part.name
        self.scope = scope
        self.status = lifecycle.PENDING
        self.wave = self.execution = self.attempt = self.attempts = self.retries = self.asked = 0
        self.retrying = self.again = self.complete = self.settled = self.requested = self.continues = False
        self.effect = "none"
        self.output: Any = UNSET
        self.issues: tuple[Issue, ...] = ()
        self.waits_for: tuple[tuple[str, str], ...] = ()
        self.call: int | None = None
        self.timer: int | None = None
        self.result: CallDone | CallFailed | None = None
        self.outcome: str | None = None
        self.reason: str | None = None
        self.because: str | None = None
        self.meta: dict[str, Any] | None = None
        self.fault: Fault | None = None
        self.content: str | None = None
        self.inputs: Any = None
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.requester: tuple[str, str] | None = None
        self.arguments: dict[str, Any] | None = None
        self.event: str | None = None
        self.gate: Gated | None = None
        self.hold: Held | None = None
        self.init: Init | None = None
        self.trigger: str | None = None
        self.fan: Fan | None = None
        self.items: list[Any] | None = None
        self.lists: dict[int, list[Any]] | None = None

    @property
    def has_run_beneath(self) -> bool:
        """A run of its own may have begun, in which a call may be in doubt; its host alone can look (law 3)."""
        return self.execution > 0 and self.site.part.step.type == CONTAINER

    @property
    def looks_again(self) -> bool:
        """Waits for a slot to look what became of a run beneath, and does so whatever becomes of itself (law 3)."""
        return self.again and self.status == lifecycle.CLEARED and self.has_run_beneath

    @property
    def in_doubt(self) -> bool:
        """Nobody knows what became of its call, or of one in a run of its own that it waits for (law 3)."""
        if self.status == lifecycle.HOLDING and self.hold is not None:
            return bool(self.hold.details.get(DOUBTED))
        return self.status == lifecycle.IN_DOUBT

    @property
    def fan_out(self) -> Fan:
        """The fan-out, where there must be one; anything else is a bug."""
        if self.fan is None:
            raise Bug(f"step {self.step} in scope {self.scope or '(run)'} is no fan-out")
        return self.fan

    @property
    def beginning(self) -> Init:
        """How far its on_init is, where it must have begun; anything else is a bug."""
        if self.init is None:
            raise Bug(f"step {self.step} in scope {self.scope or '(run)'} has not begun its on_init")
        return self.init

    @property
    def failure(self) -> Fault:
        """The fault of a step that must have failed; anything else is a bug."""
        if self.fault is None:
            raise Bug(f"step {self.step} in scope {self.scope or '(run)'} has not failed")
        return self.fault


class OpenFault(Struct, frozen=True):
    """A fault that may still be recovered from: its number in the run, and the failure it began with.

    `sent`: since the latest failure its block has sent the run elsewhere, which may yet bring the step to pass.
    """

    number: int
    fault: Fault
    attempt: int
    sent: bool = False


class Undoable(NamedTuple):
    """A success that a compensating step can undo, with what it gave."""

    step: str
    scope: str
    execution: int
    output: Any
    inputs: Any


class Kept(NamedTuple):
    """What a call under a key gave, and in which scope."""

    scope: str
    event: CallDone


class Spent:
    """What a run has used so far. `time_s` without the time since it last went on.

    `tokens_kept` and `money_kept` are set aside for attempts under way.
    """

    __slots__ = ("calls", "money", "money_kept", "retries", "time_s", "tokens", "tokens_kept")

    def __init__(self) -> None:
        self.calls = self.retries = self.tokens = self.tokens_kept = 0
        self.money = self.money_kept = self.time_s = 0.0


class State:
    """A run. Nested step → scope → node, so that ten thousand items cost no more each than ten.

    `finishing`: whose on_finish has begun to speak and hasn't decided. `visits`: what a route runs in an item, where
    no fan-out counts it, while it isn't complete. `undone_for`: the fault before the first undoing (0: there was none).
    `known_children`: runs beneath that have waited; what they did is in their journals. `plan_before`: that of the
    revision which is just being decided about. `counted_from`: executions before a person had the step run again.
    `ready` and `returning` (calls that want back the slot they gave up, in configuration order) are derived.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.limit_of_slots = graph.plan.limits.max_parallelism
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
        self.may_begin: frozenset[str] = frozenset()
        self.nodes: dict[str, dict[str, Node]] = {name: {} for name in graph.steps}
        self.calls: dict[int, Node] = {}
        self.batches: dict[int, tuple[Ask, ...]] = {}
        self.asks: tuple[Ask, ...] = ()
        self.returned: Node | None = None
        self.fired: Node | None = None
        self.lost_asks: tuple[Ask, ...] = ()
        self.ready = ReadyQueue()
        self.returning: list[tuple[int, tuple[int, ...], str, str]] = []
        self.timers: dict[int, tuple[float, Node | None]] = {}
        self.dropped: dict[str, dict[str, int]] = {}
        self.foreign: dict[str, dict[str, None]] = {}
        self.remediating: dict[tuple[str, str], Node] = {}
        self.finishing: dict[tuple[str, str], None] = {}
        self.visits: dict[tuple[str, str], None] = {}
        self.unspoken: dict[tuple[str, str], None] = {}
        self.critical_failures: dict[tuple[str, str], None] = {}
        self.open_faults: dict[tuple[str, str], OpenFault] = {}
        self.last_fault = 0
        self.escalated: dict[tuple[str, str], None] = {}
        self.kept_back: dict[str, dict[tuple[str, str], None]] = {}
        self.slots = 0
        self.open_nodes = 0
        self.last_call = 0
        self.last_batch = 0
        self.last_timer = 0
        self.last_wave = 0
        self.loops: dict[str, int] = {}
        self.reentries = 0
        self.trail: deque[tuple[str, str, str]] = deque(maxlen=64)
        self.breaches: list[tuple[str, str]] = []
        self.run_issues: list[Issue] = []
        self.memory: dict[str, dict[str, Any]] = {}
        self.history: dict[str, list[tuple[int, Any]]] = {}
        self.stopping: str | None = None
        self.stopped_by: str | None = None
        self.cleanup_timer: int | None = None
        self.spent = Spent()
        self.budget_timer: int | None = None
        self.active_since = 0.0
        self.undoable: list[Undoable] = []
        self.undoing: Undoable | None = None
        self.answers: dict[tuple[str, str], Kept] = {}
        self.undone: dict[tuple[str, str], str] = {}
        self.undone_for: int | None = None
        self.interrupted = False
        self.finished: Finished | None = None
        self.known_children: dict[str, None] = {}
        self.plan_before: Plan | None = None
        self.counted_from: dict[tuple[str, str], int] = {}

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
        return node.site.part.step

    def site(self, part: Part, scope: str) -> Site:
        """Where a part runs in a scope; for items of a fan-out under way it is the fan-out's own."""
        if not scope:
            return part.root
        scopes = self.nodes[part.name]
        node = scopes.get(scope)
        if node is not None:
            return node.site
        aggregate = scopes.get(scope.rpartition("/")[0])
        if aggregate is None or aggregate.fan is None or not scope.startswith(aggregate.fan.site.items):
            return site_at(part, scope)
        return aggregate.fan.site

    def aggregate_of(self, node: Node) -> Node | None:
        """The fan-out a node is an item of, if it is one."""
        scope, site = node.scope, node.site
        if not scope:
            return None
        aggregate = self.nodes[node.step].get(site.around)
        if aggregate is None or aggregate.fan is None:
            return None
        own = aggregate.fan.site
        return aggregate if own is site or own.items == site.items else None

    def all_nodes(self) -> Iterator[Node]:
        """Every node, in configuration order of the steps."""
        for scopes in self.nodes.values():
            yield from scopes.values()

    @property
    def quiet(self) -> bool:
        """Nothing is in flight but holds: no call, no evaluation, no timer that isn't the end of a hold."""
        if self.calls or self.batches:
            return False
        return all(_ends_a_hold(node) for _, node in self.timers.values())


def _ends_a_hold(node: Node | None) -> bool:
    return node is None or node.status == lifecycle.HOLDING
