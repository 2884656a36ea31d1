"""What the gate adds to a call and to a piece of a stream, beside libraries that do part of the same.

All take turns in one process, so that the machine's mood is the same for each; the event loop gets its turn between.
Each wraps the same function, which does nothing. The gate's figures include the record of the call.

python -m bench.gates       CPU seconds as JSON, by case: least, median and most of many rounds
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pybreaker
import stamina
import tenacity
from purgatory import AsyncCircuitBreakerFactory

from gonogo.gate import Chunk, Gate, Policy, Step, Target
from gonogo.gate.policy import StreamMode

Call = Callable[[], Awaitable[object]]
ROUNDS = 25
CALLS = 500
PIECES = 2_000
GATE = "gate"
PEERS = "tenacity and purgatory"
MODES: tuple[StreamMode, ...] = ("pass-through", "restart", "hold-until-first-token", "hold-until-valid")


async def nothing(value: int) -> int:
    """What is called."""
    return value


def by_gate() -> Call:
    """Retries, a breaker, limits of time, and a record of all of it."""
    gate = Gate("bench")
    return lambda: gate.call(nothing, 1)


def by_tenacity() -> Call:
    """Retries alone."""
    wrapped = tenacity.retry(
        stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_random_exponential(max=20)
    )(nothing)
    return lambda: wrapped(1)


def by_stamina() -> Call:
    """Retries alone."""
    wrapped = stamina.retry(on=OSError, attempts=3)(nothing)
    return lambda: wrapped(1)


def by_pybreaker() -> Call:
    """A breaker alone. Its way for coroutines needs tornado, so it guards a plain function here."""
    breaker = pybreaker.CircuitBreaker()

    async def call() -> object:
        return breaker.call(lambda: 1)

    return call


async def _guarded() -> Callable[[int], Awaitable[int]]:
    breaker = await AsyncCircuitBreakerFactory().get_breaker("bench")

    async def call(value: int) -> int:
        async with breaker:
            return await nothing(value)

    return call


async def by_purgatory() -> Call:
    """A breaker alone."""
    call = await _guarded()
    return lambda: call(1)


async def by_tenacity_and_purgatory() -> Call:
    """Retries around a breaker: what the gate is held against."""
    wrapped = tenacity.retry(
        stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_random_exponential(max=20)
    )(await _guarded())
    return lambda: wrapped(1)


async def by_stamina_and_purgatory() -> Call:
    """The same with the leaner of the two."""
    wrapped = stamina.retry(on=OSError, attempts=3)(await _guarded())
    return lambda: wrapped(1)


async def calls() -> dict[str, list[float]]:
    """CPU seconds a call, by case and round."""
    cases: dict[str, Call] = {
        GATE: by_gate(),
        PEERS: await by_tenacity_and_purgatory(),
        "stamina and purgatory": await by_stamina_and_purgatory(),
        "tenacity alone": by_tenacity(),
        "stamina alone": by_stamina(),
        "purgatory alone": await by_purgatory(),
        "pybreaker alone": by_pybreaker(),
    }
    costs: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, call in cases.items():
            await call()
            start = time.process_time()
            for _ in range(CALLS):
                await call()
            costs[name].append((time.process_time() - start) / CALLS)
            await asyncio.sleep(0)
    return costs


async def pieces(attempt: object) -> AsyncIterator[Chunk]:
    """A stream that is always ready."""
    piece = Chunk("hello ")
    for _ in range(PIECES):
        yield piece
    yield Chunk(finish="stop", end=True)


async def chunks() -> dict[str, list[float]]:
    """CPU seconds that the gate adds to a piece, by mode and round. What the first round teaches isn't counted."""
    gates = {mode: Gate(Policy(targets=(Target("bench"),), mode=mode)) for mode in MODES}
    costs: dict[StreamMode, list[float]] = {mode: [] for mode in MODES}
    step = Step("bench", stream=pieces)
    for _ in range(ROUNDS):
        for mode, gate in gates.items():
            start = time.process_time()
            async for _piece in pieces(None):
                pass
            between = time.process_time()
            async with gate.stream(step) as stream:
                async for _piece in stream:
                    pass
            costs[mode].append((time.process_time() - between - (between - start)) / PIECES)
    return {str(mode): found[1:] for mode, found in costs.items()}


async def measured() -> dict[str, dict[str, list[float]]]:
    """Both, each case as least, median and most."""
    found = {"call": await calls(), "piece": await chunks()}
    return {
        part: {name: [min(costs), statistics.median(costs), max(costs)] for name, costs in cases.items()}
        for part, cases in found.items()
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured())))
