"""Every row of the taxonomy: what it allows, and a real thing that is taken for it (D.2)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
from tests.gate.test_signals import BODIES
from tests.gate.world import NO_WAIT, Chunk, Http, Slow, collected, gate, play, policy, streams, world

from gonogo.gate import Bounds, BreakerPolicy, Gate, GateError, Signal, Timers
from gonogo.gate import decisions as d
from gonogo.gate.taxonomy import ROWS

D2 = """
cancelled            no        no      no       yes
deadline             no        no      no       yes
timeout-connect      yes       yes     failure  no
timeout-first-token  no        yes     failure  no
timeout-idle         once      yes     failure  no
timeout-total        no        yes     failure  no
network              yes       yes     failure  no
server-5xx           yes       yes     failure  no
overloaded           wait      yes     failure  no
rate-limit           wait      yes     cool     no
quota-exhausted      no        yes     isolate  if-none
auth                 no        yes     isolate  if-none
permission           no        yes     no       if-none
not-found            no        yes     isolate  if-none
bad-request          no        no      no       yes
context-too-long     no        larger  no       if-none
content-filter       no        opt-in  no       yes
refusal              no        opt-in  no       no
schema-fail          feedback  yes     no       no
empty-response       once      yes     failure  no
truncated-stream     yes       yes     failure  no
malformed-stream     yes       yes     failure  no
length-stop          no        opt-in  no       no
circuit-open         wait      yes     no       no
budget-exceeded      no        no      no       yes
side-effect-unsafe   no        no      no       yes
inner-gate           no        yes     no       no
unknown              once      yes     failure  no
"""
"""Kind, same target, another one, what the breaker counts, terminal. `inner-gate` is a gate within that gave up."""


def test_every_row_allows_what_the_table_says() -> None:
    """D.2: written down a second time, so that a slip of the hand is seen."""
    told = {line.split()[0]: tuple(line.split()[1:]) for line in D2.strip().splitlines()}
    assert {kind: (row.same, row.other, row.counting, row.terminal) for kind, row in ROWS.items()} == told


async def call(fail: Any, **more: Any) -> Any:
    """One call of a target that does this."""
    return await gate(policy("a", backoff=NO_WAIT, **more)).call(world(a=fail).step())


async def stream(*pieces: Any, **more: Any) -> Any:
    """One stream of these pieces."""
    given = policy("a", **{"mode": "hold-until-valid", "bounds": Bounds(attempts_max=1), **more})
    return await collected(gate(given).stream(streams(a=[list(pieces)]).step()))


def body(name: str) -> Http:
    """A vendor's error as its SDK raises it."""
    row = next(row for row in BODIES if row["name"] == name)
    error = Http(row["status"])
    error.body = row["body"]  # type: ignore[attr-defined]
    return error


class ConnectTimeout(Exception):  # noqa: N818 - the name that clients give it
    """No connection in time."""


async def refused_by_its_breaker() -> Any:
    """The second call, of a target that has just failed."""
    one = gate(policy("a", backoff=NO_WAIT, breaker=BreakerPolicy(failures=1), when_all_open="fail"))
    there = world(a=Http(500))
    with pytest.raises(GateError):
        await one.call(there.step())
    return await one.call(there.step())


async def within() -> Any:
    """A call through a gate within a gate."""

    async def inner(attempt: Any) -> Any:
        return await call(Http(500))

    from gonogo.gate import Step

    return await gate(policy("a")).call(Step("outer", inner))


async def in_doubt() -> Any:
    """A call that changes something, and may have."""
    return await gate(policy("a", backoff=NO_WAIT)).call(world(a=Http(500)).step(effects="mutates"))


END = Chunk(finish="stop", end=True)
SHOWN: dict[str, Callable[[], Any]] = {
    "deadline": lambda: call(Slow(100), bounds=Bounds(deadline_s=5)),
    "timeout-connect": lambda: call(ConnectTimeout()),
    "timeout-first-token": lambda: stream(1000.0, Chunk("late")),
    "timeout-idle": lambda: stream(Chunk("x"), 1000.0),
    "timeout-total": lambda: call(Slow(1000), timers=Timers(attempt_s=1), bounds=Bounds(attempts_max=1)),
    "network": lambda: call(socket.gaierror(-2, "Name or service not known")),
    "server-5xx": lambda: call(body("anthropic conflict")),
    "overloaded": lambda: call(body("openai slow down")),
    "rate-limit": lambda: call(body("openai rate limit")),
    "quota-exhausted": lambda: call(body("openai quota")),
    "auth": lambda: call(body("openai key")),
    "permission": lambda: call(Http(403)),
    "not-found": lambda: call(body("openai model")),
    "bad-request": lambda: call(body("openai parameter")),
    "context-too-long": lambda: call(body("groq too large")),
    "content-filter": lambda: stream(Chunk("x"), Chunk(finish="content_filter", end=True)),
    "refusal": lambda: stream(Chunk("x"), Chunk(finish="refusal", end=True)),
    "schema-fail": lambda: gate(policy("a", bounds=Bounds(attempts_max=1))).call(
        world(a="x").step(validate=lambda value: "no JSON")
    ),
    "empty-response": lambda: stream(END),
    "truncated-stream": lambda: stream(Chunk("x")),
    "malformed-stream": lambda: stream(Chunk("x"), Chunk(error=Signal(message="sorry"))),
    "length-stop": lambda: stream(Chunk("x"), Chunk(finish="length", end=True)),
    "circuit-open": refused_by_its_breaker,
    "budget-exceeded": lambda: call(Http(500), bounds=Bounds(tokens_max=0)),
    "side-effect-unsafe": in_doubt,
    "inner-gate": within,
    "unknown": lambda: call(ValueError("odd")),
}


@pytest.mark.parametrize("kind", [kind for kind in ROWS if kind != "cancelled"])
def test_every_row_is_met_by_something_real(kind: str) -> None:
    """D.2: by vendors' bodies, sockets' errors, timers, streams, breakers and budgets; an error or its last attempt."""
    with pytest.raises(GateError) as raised:
        play(SHOWN[kind])
    last = raised.value.attempts[-1].failure if raised.value.attempts else None
    assert kind in (raised.value.kind, last.kind if last else "")


def test_a_cancelled_attempt_is_one() -> None:
    """D.2, B21: raised on, unchanged; the attempt is in the record all the same (B23)."""
    heard: list[Any] = []

    async def story() -> None:
        one: Gate = gate(policy("a"), watch=lambda call, decision: heard.append(decision))
        task = asyncio.create_task(one.call(world(a=Slow(10)).step()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(story)
    (ended,) = [each for each in heard if isinstance(each, d.AttemptEnded)]
    assert ended.failure is not None
    assert (ended.failure.kind, ended.latency_s, ended.effect) == ("cancelled", 1.0, "unknown")
