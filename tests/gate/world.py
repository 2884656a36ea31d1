"""A small world for gates: scripted targets, virtual time, and what was called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gonogo.gate import (
    Attempt,
    Backoff,
    Chunk,
    Gate,
    Policy,
    RetryShare,
    Rule,
    Step,
    StepFailed,
    StreamReset,
    Target,
    rule,
)
from gonogo.gate.virtual import VirtualClock, run

T = TypeVar("T")

TRANSIENT = ["server-5xx", "overloaded", "rate-limit", "network", "truncated-stream", "timeout-idle"]
PLENTY = RetryShare(floor=1_000_000)


class Http(Exception):  # noqa: N818 - a short name for tests
    """An answer with a status, as clients raise it."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass
class Slow:
    """An answer that takes its time."""

    after_s: float
    then: Any = "late"


@dataclass
class World:
    """Targets by name with what they do next; the last thing is repeated. `calls` are those made, in order."""

    scripts: dict[str, list[Any]]
    calls: list[Attempt] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    closed: int = 0

    def _next(self, attempt: Attempt) -> Any:
        self.calls.append(attempt)
        self.at.append(asyncio.get_running_loop().time())
        script = self.scripts[attempt.target.name]
        return script.pop(0) if len(script) > 1 else script[0]

    async def invoke(self, attempt: Attempt) -> Any:
        """Answer as scripted."""
        what = self._next(attempt)
        if isinstance(what, Slow):
            await asyncio.sleep(what.after_s)
            what = what.then
        if isinstance(what, BaseException):
            raise what
        return what

    async def stream(self, attempt: Attempt) -> AsyncIterator[Any]:
        """A list is given piece by piece: numbers wait, exceptions are raised, the rest comes out."""
        what = self._next(attempt)
        try:
            for piece in what if isinstance(what, list) else [what]:
                if isinstance(piece, int | float | Slow):
                    await asyncio.sleep(piece.after_s if isinstance(piece, Slow) else piece)
                elif isinstance(piece, BaseException):
                    raise piece
                else:
                    yield piece
        finally:
            self.closed += 1

    @property
    def called(self) -> list[str]:
        """Names of the targets called, in order."""
        return [attempt.target.name for attempt in self.calls]

    def step(self, **more: Any) -> Step:
        """A step over this world."""
        return Step("ask", self.invoke, self.stream, **more)


def world(**scripts: Any) -> World:
    """A world of these targets."""
    return World({name: script if isinstance(script, list) else [script] for name, script in scripts.items()})


def streams(**scripts: list[Any]) -> World:
    """A world of streams: each target has a list of lists of pieces."""
    return World(scripts)


def policy(*names: str, **more: Any) -> Policy:
    """A policy over these targets, without a breaker unless given."""
    targets = tuple(Target(name, model=f"{name}-model") for name in names or ("a",))
    return Policy(targets=targets, **{"breaker": None, **more})


def golden(**more: Any) -> Policy:
    """The policy of B.5."""
    rules: tuple[Rule, ...] = (
        rule("fail-fast", "stuck", kind="schema-stuck-loop"),
        rule("retry", {"error_kind": "schema-fail", "attempt": {"lt": 3}}, feedback="that was wrong"),
        rule("retry", {"error_kind": {"in": TRANSIENT}, "attempt": {"lt": 3}}),
        rule("retry-other", {"error_kind": {"ne": "ok"}, "can_switch": True}),
        rule("fallback", {"error_kind": {"ne": "ok"}, "has_fallback": True}),
        rule("fail-fast", {"error_kind": {"ne": "ok"}}, kind="exhausted"),
    )
    return policy("a", "b", after=rules, **more)


def gate(given: Policy, **more: Any) -> Gate:
    """A gate in virtual time; texts of rules are Python here."""
    return Gate(given, **{"clock": VirtualClock(), "seed": "s", "retries": PLENTY, "evaluate": judge, **more})


def judge(text: str, scope: Any) -> Any:
    """The evaluator of these tests: one text it knows, others are Python."""
    from gonogo.gate import Judgement
    from gonogo.gate.scopes import read_along

    errors = scope["validation_errors"]
    if text == "stuck":
        return Judgement(
            len(errors) > 1 and errors[-1] == errors[-2], read_along(scope, ("validation_errors",))
        )
    return Judgement(bool(eval(text, {}, dict(scope))))


def play(story: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a story in virtual time."""
    return run(story)


def answered(given: Policy, there: World, gate_more: dict[str, Any] | None = None, **more: Any) -> Any:
    """The answer of one call."""

    async def story() -> Any:
        return await gate(given, **(gate_more or {})).answer(there.step(**more))

    return play(story)


async def collected(stream: Any) -> list[Any]:
    """All that comes out, resets included."""
    return [piece async for piece in stream]


def shown(pieces: list[Any]) -> str:
    """What a consumer that obeys resets shows in the end."""
    text = ""
    for piece in pieces:
        text = (
            ""
            if isinstance(piece, StreamReset)
            else text + (piece.text if isinstance(piece, Chunk) else str(piece))
        )
    return text


NO_WAIT = Backoff(base_s=0.0)
__all__ = ["NO_WAIT", "Chunk", "StepFailed"]
