"""A call that fails over, over loopback connections: the gate beside the fallback model of pydantic-ai.

The first server always answers 503, the second one answers. Both clients ask in the same wire format, neither keeps a
breaker, and nothing is tried twice. CPU of the client's thread alone counts; the servers have threads of their own.
pydantic-ai is no dependency: with its OpenAI client it brings 17 packages and 80 MB. It is measured where it is
installed.

python -m bench.fallbacks        CPU seconds as JSON, by case: least, median and most of many rounds
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from msgspec.structs import replace
from tests.servers.faulty import FaultyServer
from tests.servers.model import refuses, says

from gonogo.gate import Attempt, Bounds, Gate, Policy, RetryShare, Step, Target, Timers
from gonogo.models.conversation import Ask, Message
from gonogo.providers.ai.asking import Wire, ask_server
from gonogo.providers.ai.config import Config
from gonogo.providers.ai.pricing import Pricing
from gonogo.providers.ai.ways import ways_of

ROUNDS = 15
CALLS = 20
PEER = "pydantic-ai's fallback model"
Call = Callable[[], Awaitable[str]]


def by_gate(urls: tuple[str, str]) -> Call:
    """The product's own client and reader behind a gate of two targets."""
    policy = Policy(
        targets=tuple(Target(url, client=url) for url in urls),
        bounds=Bounds(attempts_per_target=1),
        breaker=None,
    )
    gate = Gate(policy, retries=RetryShare(floor=1_000_000))
    way = ways_of(Config(provider="openai", model="m", url="http://127.0.0.1", prompt="hi"))[0]
    wire = Wire(Pricing({}), Timers(), False, True, 1 << 20)
    ask = Ask("m", (Message("user", "hi"),))

    async def invoke(attempt: Attempt) -> str:
        there = replace(way, url=f"{attempt.target.name}/v1")
        return (await ask_server(there, ask, attempt, wire, None)).text

    step = Step("ask", invoke)

    async def call() -> str:
        return str(await gate.call(step))

    return call


def by_peer(urls: tuple[str, str]) -> Call:
    """The same by pydantic-ai, its clients' retries off."""
    models, providers = (
        import_module("pydantic_ai.models.openai"),
        import_module("pydantic_ai.providers.openai"),
    )
    fallback, client = import_module("pydantic_ai.models.fallback"), import_module("openai")
    agent: Any = import_module("pydantic_ai").Agent(
        fallback.FallbackModel(
            *(
                models.OpenAIChatModel(
                    "m",
                    provider=providers.OpenAIProvider(
                        openai_client=client.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
                    ),
                )
                for url in urls
            )
        )
    )

    async def call() -> str:
        return str((await agent.run("hi")).output)

    return call


async def measured() -> dict[str, list[float]]:
    """Each case as least, median and most. Raises SystemExit when a call isn't what is to be measured."""
    with FaultyServer(refuses(503, "overloaded")) as first, FaultyServer(says("hello")) as second:
        cases = {"the gate": by_gate((first.url, second.url))}
        if find_spec("pydantic_ai") is not None and find_spec("openai") is not None:
            cases[PEER] = by_peer((first.url, second.url))
        costs: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(ROUNDS):
            for name, call in cases.items():
                start = time.thread_time()
                for _ in range(CALLS):
                    if await call() != "hello":
                        raise SystemExit(f"{name} gave something else")
                costs[name].append((time.thread_time() - start) / CALLS)
    return {name: [min(each), statistics.median(each), max(each)] for name, each in costs.items()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured())))
