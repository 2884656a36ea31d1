"""Two attempts side by side: when the first is slow, the next target is asked too, and the first good answer wins.

The core says whether a second one may begin (its bounds, budgets and share of retries count it); the loser is cut off
at once and is an attempt of the record all the same. Off unless a policy has a hedge.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from msgspec import structs

from gonogo.gate import commands as c
from gonogo.gate import events as e
from gonogo.gate.admission import Flight
from gonogo.gate.calls import Call

Outcome = tuple[e.Answered, float, Flight, Any]
Once = Callable[[Call, c.StartAttempt], Awaitable[Outcome]]


class _Race:
    """The attempts under way and those that are over. `came` is set when there is news."""

    def __init__(self, call: Call, once: Once) -> None:
        self.call = call
        self.once = once
        self.came = anyio.Event()
        self.over: list[tuple[int, Outcome]] = []
        self.running: dict[int, tuple[anyio.CancelScope, Flight, anyio.Event]] = {}

    async def run(self, command: c.StartAttempt, flight: Flight) -> None:
        """One attempt; its scope is what cuts it off."""
        ended = anyio.Event()
        with anyio.CancelScope() as scope:
            self.running[command.number] = (scope, flight, ended)
            outcome = await self.once(self.call, command)
            self.over.append((command.number, outcome))
        del self.running[command.number]
        ended.set()
        self.came.set()

    async def next(self) -> tuple[int, Outcome]:
        """The next one that is over."""
        while not self.over:
            self.came = anyio.Event()
            await self.came.wait()
        return self.over.pop(0)

    async def cut_off(self) -> int:
        """End the other one, if there is one: its number, or 0."""
        if self.running:
            number, (scope, flight, ended) = next(iter(self.running.items()))
            scope.cancel()
            await ended.wait()
            self.over.clear()
            self.call.flights.remove(flight)
            await flight.release()
            flight.settle(flight.used)
            return number
        if self.over:  # both came at the same moment
            number, (event, latency_s, flight, _) = self.over.pop(0)
            self.call.flights.remove(flight)
            flight.settle(event.usage)
            await flight.report(event.failure, latency_s)
            return number
        return 0


async def hedged(call: Call, command: c.StartAttempt, once: Once) -> list[c.Command]:
    """An attempt that may get a second one beside it. Raises whatever cancels it, unchanged."""
    assert command.hedge_s is not None
    commands: list[c.Command] = []
    try:
        async with anyio.create_task_group() as group:
            race = _Race(call, once)
            group.start_soon(race.run, command, call.flights[-1])
            with call.gate.clock.limit(command.hedge_s):
                while not race.over:
                    race.came = anyio.Event()
                    await race.came.wait()
            if not race.over:
                second = await _second(call)
                if second is not None:
                    group.start_soon(race.run, second, call.flights[-1])
                    await anyio.lowlevel.checkpoint()
            commands = await _settled(call, race)
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return commands


async def _second(call: Call) -> c.StartAttempt | None:
    """Ask the core for a second attempt."""
    commands = call.feed(e.Slow(call.gate.clock.now()))
    if not commands:
        return None
    commands = call.feed(await call.answer(commands[-1]))
    return commands[-1] if commands and isinstance(commands[-1], c.StartAttempt) else None


async def _settled(call: Call, race: _Race) -> list[c.Command]:
    """The first good answer, or the last failure."""
    while True:
        number, (event, latency_s, flight, value) = await race.next()
        lost = await race.cut_off() if event.failure is None else 0
        call.value = value
        commands = await call.ended(structs.replace(event, attempt=number, lost=lost), latency_s, flight)
        if commands:
            return commands
