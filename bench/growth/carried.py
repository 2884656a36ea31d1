"""One run as its host has it, decided by the core that decides real ones: what comes in, what goes out, by whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.growth.shapes import Shape
from gonogo import app
from gonogo.core.commands import Command, Evaluate, FinishRun, StartCall
from gonogo.core.events import (
    AnswerGiven,
    AnyEvent,
    CallDone,
    CallLost,
    CallParked,
    Evaluated,
    Resumed,
    RunStarted,
)
from gonogo.core.machine import advance, begin
from gonogo.core.plan import Plan
from gonogo.expressions.results import Value

INLINE = frozenset({"noop", "script", "human-input"})
"""Step types that are over at once, or wait for a person."""
_TRUE = Value(True)


class Carried:
    """A run under way. `turns`: so often something was written; `records`: how much; `verdict`: once it rests."""

    __slots__ = (
        "_plan",
        "_state",
        "began_s",
        "calls",
        "records",
        "shape",
        "shard",
        "turns",
        "verdict",
        "worker",
    )

    def __init__(self, shape: Shape, plan: Plan, shard: int, now_s: float) -> None:
        self.shape = shape
        self.shard = shard
        self.began_s = now_s
        self.worker = 0
        self.turns = 0
        self.records = 0
        self.verdict = ""
        self.calls: dict[int, StartCall] = {}
        """Those that are elsewhere, or wait for a place."""
        self._plan = plan
        self._state = begin(self._start())

    def start(self) -> list[StartCall]:
        """The calls that the run begins with."""
        return self._turn([self._start()])

    def ended(self, call: int, now_s: float) -> list[StartCall]:
        """A call is over: those that follow."""
        self.calls.pop(call)
        return self._turn([CallDone(at=now_s - self.began_s, call=call)])

    def lost(self, calls: Iterable[int], now_s: float, *, host: bool) -> list[StartCall]:
        """Workers that had these are dead; with `host`, the one that had the run is. Calls to be made again."""
        at_s = now_s - self.began_s
        events: list[AnyEvent] = [Resumed(at=at_s)] if host else []
        for call in calls:
            del self.calls[call]
            events.append(CallLost(at=at_s, call=call))
        return self._turn(events) if events else []

    def answered(self, now_s: float) -> list[StartCall]:
        """The person whom the run waits for has said yes, or what became of a call in doubt."""
        at_s = now_s - self.began_s
        self.verdict = ""
        given = [
            AnswerGiven(
                at=at_s, step=node.step, scope=node.scope, text="done" if node.status == "in_doubt" else "yes"
            )
            for node in self._state.all_nodes()
            if node.status in ("holding", "in_doubt")
        ]
        return self._turn([Resumed(at=at_s), *given])

    @property
    def doubts(self) -> int:
        """Calls of which a person must say what became of them."""
        return sum(node.status == "in_doubt" for node in self._state.all_nodes())

    def _start(self) -> RunStarted:
        return RunStarted(run_id="r", plan=self._plan, started_at_ms=1)

    def _turn(self, events: Sequence[AnyEvent]) -> list[StartCall]:
        """What these lead to, with all that needs nobody else: the host writes it together."""
        self.turns += 1
        waiting, found = list(events), []
        for event in waiting:
            step = advance(self._state, event)
            self.records += 1
            for command in step.commands:
                if isinstance(command, StartCall) and self._type(command) not in INLINE:
                    self.calls[command.call] = command
                    found.append(command)
                else:
                    waiting += self._at_once(command, event.at)
        if self.calls:
            self.verdict = ""  # it stood still until the next of these events
        return found

    def _at_once(self, command: Command, at_s: float) -> list[AnyEvent]:
        if isinstance(command, Evaluate):
            return [Evaluated(at=at_s, batch=command.batch, results=(_TRUE,) * len(command.asks))]
        if isinstance(command, FinishRun):
            self.verdict = command.verdict
        elif isinstance(command, StartCall):
            kind = self._type(command)
            if kind == "human-input":
                return [CallParked(at=at_s, call=command.call, prompt="go on?")]
            output: Any = list(range(self.shape.calls)) if kind == "script" else None
            return [CallDone(at=at_s, call=command.call, output=output)]
        return []

    def _type(self, command: StartCall) -> str:
        return self._plan.steps[command.step].type


def plan_of(shape: Shape) -> Plan:
    """As it is read from its file."""
    return app.loads(shape.text).plan


def alone(shape: Shape, plan: Plan) -> Carried:
    """A run that nothing disturbs, from its start to its end."""
    run = Carried(shape, plan, 0, 0.0)
    calls = run.start()
    while run.verdict != "GO":
        if run.verdict == "HOLD":
            calls = run.answered(1.0)
            continue
        first, *others = calls
        calls = others + run.ended(first.call, 1.0)
    return run
