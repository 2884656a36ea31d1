"""One turn of the core: the decisions taken about one event, applied as they are taken, and the commands they mean.

The modules that decide share a `Turn` and nothing else. Work that follows from a decision (a settled step lets others
start) goes on a list instead of the call stack, so a chain of ten thousand steps needs no deeper stack than one of ten.
"""

from __future__ import annotations

from collections import deque

from gonogo.core import decisions as d
from gonogo.core import fault_events
from gonogo.core.apply import DELTAS, apply
from gonogo.core.commands import Ask, ClearTimer, Command, Evaluate, FinishRun, SetTimer, StartCall, StopCall
from gonogo.core.parts import Site
from gonogo.core.plan import Step
from gonogo.core.state import Node, State

BLOCK_CONSTRUCTS = frozenset({"run", "when", "goto_js"})


class Turn:
    """Decisions and commands of one `advance`, and the work still to be looked at.

    `news`: nodes that are complete. `refills`: fan-outs that may have room or be over. `expanded`: fan-outs to look for
    items of. `routed`: steps to look at again, where. `inits`: steps whose on_init begins. `sweep`: look at every step
    of the plan.
    """

    __slots__ = (
        "_asked", "asks", "commands", "decisions", "expanded", "graph", "inits", "news", "ready", "refills", "routed",
        "state", "sweep",
    )  # fmt: skip

    def __init__(self, state: State) -> None:
        self.state = state
        self.graph = state.graph
        self.ready = state.ready
        self.decisions: list[d.AnyDecision] = []
        self.commands: list[Command] = []
        self.asks: list[Ask] = []
        self.news: deque[Node] = deque()
        self.refills: dict[Node, None] = {}
        self.expanded: list[Node] = []
        self.routed: list[tuple[str, str]] = []
        self.inits: list[Node] = []
        self.sweep = False
        self._asked: set[tuple[str, str]] = set()

    @property
    def has_work(self) -> bool:
        """True while something is still to be looked at."""
        return bool(self.news or self.refills or self.expanded or self.routed or self.inits or self.sweep)

    def decide(self, decision: d.AnyDecision) -> None:
        """Take a decision: apply it, remember it, and note what it may set free."""
        state, kind = self.state, type(decision)
        node = DELTAS[kind](state, decision)
        self.decisions.append(decision)
        if kind in _LEAVES_ROOM and node is not None:
            if node.complete:
                self.news.append(node)
            if node.scope:
                self.refill_around(node.site)
        if state.open_faults or (kind is d.Ended and decision.fault is not None):  # type: ignore[union-attr]
            told = fault_events.FOLLOW.get(kind)
            if told is not None:
                for event in told(state, decision):
                    apply(state, event)  # follows from this decision, and nothing from it
                    self.decisions.append(event)

    def refill_around(self, site: Site) -> None:
        """Have the fan-out around a site looked at."""
        aggregate = self.state.nodes[site.part.name].get(site.around)
        if aggregate is not None:
            self.refills[aggregate] = None

    def step(self, node: Node) -> Step:
        """The plan's step of a node."""
        return node.site.part.step

    def remediating(self) -> list[Node]:
        """Steps that wait for what they routed, in the order in which they began to."""
        return list(self.state.remediating.values())

    def ask(self, step: str, scope: str, construct: str, *expressions: int) -> None:
        """Have expressions evaluated; what is asked in one turn is one batch (semantics.md 9)."""
        for number in expressions:
            self.asks.append(Ask(step, scope, construct, number))

    def ask_anew(self, step: str, scope: str, construct: str, *expressions: int) -> None:
        """Ask what replaces all that this place has asked for in this turn."""
        if self.asks:
            self.asks = [each for each in self.asks if (each.step, each.scope) != (step, scope)]
        self.ask(step, scope, construct, *expressions)

    def ask_once(self, step: str, scope: str, expression: int) -> None:
        """Have an `if` evaluated, once however often the step is looked at in this turn."""
        if (step, scope) not in self._asked:
            self._asked.add((step, scope))
            self.ask_anew(step, scope, "if", expression)

    def send_asks(self) -> None:
        """Close the batch."""
        if self.asks:
            batch = self.state.last_batch + 1
            asks = tuple(self.asks)
            self.asks.clear()
            self.decide(d.Asked(batch, asks))
            self.commands.append(Evaluate(batch, asks))

    def gave_up_asks(self) -> bool:
        """Forget what was asked about steps that were skipped since, as the run stopped; True when nothing is left."""
        self.asks = [ask for ask in self.asks if not self._is_over(ask)]
        return not self.asks

    def _is_over(self, ask: Ask) -> bool:
        """A block asks about a step that may be over; all else is about one that is still to come to its end."""
        node = self.state.nodes[ask.step].get(ask.scope)
        return node is not None and node.complete and ask.construct not in BLOCK_CONSTRUCTS

    def start_call(self, step: Step, decision: d.Started) -> None:
        """Send a call out."""
        self.decide(decision)
        self.commands.append(
            StartCall(
                decision.call,
                decision.step,
                decision.scope,
                decision.execution,
                decision.attempt,
                intent(self.state.run_id, decision.scope, decision.step, decision.execution),
                step.effects,
            )
        )

    def stop_call(self, node: Node) -> None:
        """Tell a call in flight to stop."""
        if node.call is not None:
            self.decide(d.CallStopping(node.step, node.scope, node.call))
            self.commands.append(StopCall(node.call))

    def set_timer(self, timer: int, due_s: float) -> None:
        """The command behind a decision that waits."""
        self.commands.append(SetTimer(timer, due_s))

    def supersede(self, node: Node) -> None:
        """A run that doesn't count, since the step was asked to run again meanwhile: it is looked at anew."""
        self.decide(d.Superseded(node.step, node.scope))
        self.routed.append((node.step, node.scope))

    def clear_timer(self, node: Node) -> None:
        """Give up a wait."""
        if node.timer is not None:
            self.forget_timer(node.timer)

    def forget_timer(self, timer: int) -> None:
        """A timer that nobody waits for any more."""
        self.decide(d.TimerCleared(timer))
        self.commands.append(ClearTimer(timer))

    def finish(self, decision: d.Finished) -> None:
        """The run is over or parked."""
        if not decision.parked:
            for event in fault_events.at_the_end(self.state):
                self.decide(event)
        self.decide(decision)
        self.commands.append(FinishRun(decision.verdict, decision.parked))


_LEAVES_ROOM = frozenset(
    {d.Ended, d.Skipped, d.Completed, d.Settled, d.Retrying, d.Held, d.Doubted, d.Remediating}
)


def intent(run_id: str, scope: str, step: str, execution: int) -> str:
    """Names a call over retries, failover, crashes and take-overs (semantics.md 17)."""
    return f"{run_id}/{scope}/{step}/{execution}" if scope else f"{run_id}/{step}/{execution}"
