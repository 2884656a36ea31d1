"""The core on a virtual clock: many timers at once, and items that are tried again. No journal, no host, no waiting.

python -m bench.waits        CPU seconds as JSON, by case
"""

from __future__ import annotations

import heapq
import json
import time
from collections import deque

from gonogo.app.collecting import seldom_collected
from gonogo.core import commands as c
from gonogo.core import events as e
from gonogo.core import machine
from gonogo.core.faults import Fault
from gonogo.core.plan import Block, Edge, Limits, Need, Plan, Retry, Step

SLOTS = 64
BUSY = Fault("bench.busy", "transient", "bench/busy", "try again")
CASES = {
    "10,000 timers pending at once": (10_000, 1),
    "1,000 items retried twice": (1_000, 2),
}
"""Items, and how often each is retried: an item of one retry is two calls, of two retries three."""


def plan(retries: int) -> Plan:
    """A list, and a step over its items that is to be tried again after a long wait."""
    retry = Retry(retries, mode="exponential", delay_s=60.0)
    item = Step(
        "item",
        "noop",
        depends_on=(Need((Edge("list"),)),),
        fanout="map",
        concurrency=SLOTS,
        on_fail=Block(retry=retry),
    )
    steps = {"list": Step("list", "noop", for_each=True), "item": item}
    return Plan("waits", steps, limits=Limits(max_parallelism=SLOTS))


class Clock:
    """Plays a host: every call of an item fails until its last attempt, timers fire when nothing else is left."""

    def __init__(self, count: int, retries: int) -> None:
        self._items, self._retries = list(range(count)), retries
        self._inbox: deque[e.AnyEvent] = deque()
        self._timers: list[tuple[float, int]] = []
        self.now_s = 0.0
        self.pending_max = 0

    def run(self) -> str:
        """The verdict."""
        first = e.RunStarted(run_id="bench", plan=plan(self._retries), started_at_ms=0)
        state = machine.begin(first)
        self._inbox.append(first)
        while state.finished is None:
            for command in machine.advance(state, self._next()).commands:
                self._perform(command)
        return state.finished.verdict

    def _next(self) -> e.AnyEvent:
        if self._inbox:
            return self._inbox.popleft()
        self.pending_max = max(self.pending_max, len(self._timers))
        self.now_s, timer = heapq.heappop(self._timers)
        return e.TimerFired(at=self.now_s, timer=timer)

    def _perform(self, command: c.Command) -> None:
        if isinstance(command, c.SetTimer):
            heapq.heappush(self._timers, (command.due_s, command.timer))
        elif isinstance(command, c.StartCall) and command.step == "list":
            self._inbox.append(e.CallDone(at=self.now_s, call=command.call, output=self._items))
        elif isinstance(command, c.StartCall) and command.attempt <= self._retries:
            self._inbox.append(e.CallFailed(at=self.now_s, call=command.call, fault=BUSY))
        elif isinstance(command, c.StartCall):
            self._inbox.append(e.CallDone(at=self.now_s, call=command.call))


def cost_s(count: int, retries: int) -> float:
    """CPU seconds in all. Raises SystemExit when the run isn't what is to be measured."""
    clock = Clock(count, retries)
    with seldom_collected():  # as a host does
        start = time.process_time()
        verdict = clock.run()
    taken = time.process_time() - start
    if verdict != "GO" or clock.pending_max < count:
        raise SystemExit(f"{verdict}, at most {clock.pending_max} timers")
    return taken


if __name__ == "__main__":
    print(json.dumps({name: cost_s(*case) for name, case in CASES.items()}))
