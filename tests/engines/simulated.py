"""The simulated host over what a real run got from the outside: the same replies, given by its own clock and order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace
from tests.engines.tales import CANCEL, Act

from gonogo.core import commands as c
from gonogo.core import events as e
from gonogo.core import machine
from gonogo.core.decisions import Asked
from gonogo.core.state import State
from gonogo.journal.records import Record
from gonogo.journal.restoring import state_of
from gonogo.provider import Result
from gonogo.testing.behaviours import Reply
from gonogo.testing.outside import Outside
from gonogo.testing.scenarios import Scenario
from gonogo.testing.simulated import Simulation, _Waiting

_REPLIES = (e.CallDone, e.CallFailed, e.CallParked)
_Place = tuple[str, str, int, int]


class Heard(Outside):
    """What each call and each expression of a run came to."""

    def __init__(self, scenario: Scenario, records: Sequence[Record]) -> None:
        super().__init__(scenario)
        self._replies: dict[_Place, list[e.CallDone | e.CallFailed | e.CallParked]] = defaultdict(list)
        self._attempts: dict[_Place, list[e.AttemptAsked | e.AttemptEnded]] = defaultdict(list)
        self._results: dict[tuple[int, str, str], list[Result]] = defaultdict(list)
        asked: dict[int, tuple[c.Ask, ...]] = {}
        for number, record in enumerate(records):
            event = record.event
            if isinstance(event, _REPLIES):
                node = state_of(records[:number]).calls[event.call]
                self._replies[node.step, node.scope, node.execution, node.attempt].append(event)
            elif isinstance(event, e.AttemptAsked | e.AttemptEnded):
                node = state_of(records[:number]).calls[event.call]
                self._attempts[node.step, node.scope, node.execution, node.attempt].append(event)
            elif isinstance(event, e.Evaluated):
                for ask, result in zip(asked[event.batch], event.results, strict=True):
                    self._results[ask.expression, ask.step, ask.scope].append(result)
            asked |= {each.batch: each.asks for each in record.decisions if isinstance(each, Asked)}

    def reply(self, command: c.StartCall) -> Reply:
        """As the real one."""
        replies = self._replies[command.step, command.scope, command.execution, command.attempt]
        event = replies.pop(0) if len(replies) > 1 else replies[0]
        return Reply(replace(event, call=command.call), acted=event_acted(event), duration_s=0.25)

    def attempts(self, command: c.StartCall) -> list[e.AttemptAsked | e.AttemptEnded]:
        """Of the real one, in order."""
        return self._attempts.pop((command.step, command.scope, command.execution, command.attempt), [])

    def result(self, ask: c.Ask) -> Result:
        """As the real one."""
        return self._results[ask.expression, ask.step, ask.scope].pop(0)


def event_acted(event: e.AnyEvent) -> bool:
    """Whether the world is another now."""
    return isinstance(event, e.CallDone)


class Retold(Simulation):
    """A run whose calls come to what they came to before, and whose people do what they did."""

    def __init__(self, records: Sequence[Record], acts: Sequence[Act]) -> None:
        first = records[0].event
        assert isinstance(first, e.RunStarted)
        self._first = first
        self._acts = list(acts)
        super().__init__(Scenario(seed=0, plan=first.plan, behaviours={}, timed=True))
        self.outside = self.watch.outside = self._heard = Heard(self.scenario, records)

    def _start(self) -> State:
        super()._start()
        (event,) = self.urgent
        assert isinstance(event, e.RunStarted)
        kept = {name: getattr(self._first, name) for name in ("run_id", "seed", "env", "context", "inputs")}
        event = replace(event, **kept)
        self.urgent = [event]
        return machine.begin(event)

    def _next_event(self) -> e.AnyEvent | None:
        if (
            not self.urgent
            and self._acts
            and self._acts[0].word == CANCEL
            and self._acts[0].is_due(self.state)
        ):
            return self._acts.pop(0).request
        return super()._next_event()

    def _after_the_end(self) -> e.AnyEvent | None:
        assert self.state.finished is not None
        if not self.state.finished.parked:
            return None
        if self._acts and self._acts[0].is_due(self.state):
            act = self._acts.pop(0)
            return e.Resumed(by="child") if act.beneath else act.request
        if not self.timers:
            return None
        return self._fire(*min((due_s, timer) for timer, due_s in self.timers.items()))

    def _start_call(self, command: c.StartCall) -> None:
        """With what its gate asked for and told of on the way."""
        for number, event in enumerate(self._heard.attempts(command)):
            due_s = self.now + number / 1024
            self.waiting.append(_Waiting(due_s, replace(event, call=command.call), command))
        super()._start_call(command)

    def _evaluated(self, command: c.Evaluate) -> e.Evaluated:
        return e.Evaluated(batch=command.batch, results=tuple(map(self._heard.result, command.asks)))

    def _stop(self, call: int) -> None:
        """What became of it is known."""
