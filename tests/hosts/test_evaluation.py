"""Evaluations of one run: names as they were when asked, shared frames, failures that reach those who asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gonogo.errors import SandboxError
from gonogo.expressions.analyse import analyse
from gonogo.expressions.request import Limits, Request
from gonogo.expressions.results import Failure, Result, Value
from gonogo.hosts.captured import Captured
from gonogo.hosts.evaluation import Evaluations
from gonogo.hosts.templates import Templates
from gonogo.journal.redact import Redactor


class Slow:
    """A sandbox that notes its frames; each takes a moment of the event loop."""

    def __init__(self, error: Exception | None = None) -> None:
        self.frames: list[list[str]] = []
        self._error = error

    async def evaluate_async(self, requests: Sequence[Request]) -> list[Result]:
        """The sources as results."""
        self.frames.append([request.source for request in requests])
        for _ in range(5):
            await asyncio.sleep(0)
        if self._error is not None:
            raise self._error
        return [Value(request.source) for request in requests]

    def close(self) -> None:
        """Nothing to close."""


def evaluations(sandbox: Slow) -> Evaluations:
    """Evaluations that use it."""
    return Evaluations(lambda: sandbox, Templates(), Redactor({"A_TOKEN": "swordfish"}), Limits())  # type: ignore[arg-type,return-value]


async def ask_all(made: Evaluations, sources: Sequence[str], kind: str) -> list[Any]:
    """Ask for all at once."""
    return await asyncio.gather(
        *(made.evaluate(source, kind, {}, None) for source in sources), return_exceptions=True
    )


def test_what_waits_for_the_sandbox_shares_its_next_frame() -> None:
    """Nothing waits to make a batch bigger, and what had to wait goes together."""
    sandbox = Slow()
    results = asyncio.run(ask_all(evaluations(sandbox), ["1", "2", "3"], "value"))
    assert [result.value for result in results] == ["1", "2", "3"]
    assert sandbox.frames == [["1"], ["2", "3"]]


def test_a_script_that_reads_memory_is_never_joined() -> None:
    """Semantics 15: its reads must see the writes of the one before."""
    sandbox = Slow()
    sources = ["1", "memory.get('a')", "2", "memory.get('b')"]
    asyncio.run(ask_all(evaluations(sandbox), sources, "script"))
    assert sandbox.frames == [["1"], ["memory.get('a')"], ["2"], ["memory.get('b')"]]


def test_a_sandbox_that_cant_be_had_is_told_to_all_who_asked() -> None:
    """Nobody waits for ever."""
    error = SandboxError("no engine")
    results = asyncio.run(ask_all(evaluations(Slow(error)), ["1", "2", "3"], "value"))
    assert results == [error, error, error]


@pytest.mark.parametrize(
    ("result", "masked"),
    [
        (Value(True), Value(True)),
        (Value("a swordfish"), Value("a ***")),
        (Value(1, logs=("swordfish",)), Value(1, logs=("***",))),
        (Failure("error", "no swordfish"), Failure("error", "no ***")),
        (Value("a\ud800"), Value("a\ufffd")),
    ],
)
def test_results_are_made_fit_for_the_journal(result: Result, masked: Result) -> None:
    """Plain text without secrets, whatever JavaScript gave."""
    assert evaluations(Slow()).masked(result) == masked


def test_names_keep_the_values_they_had_when_asked() -> None:
    """Semantics 10: what is settled later isn't seen, once the names were taken hold of."""
    from types import MappingProxyType

    steps = {"a": 1, "b": 2}
    live = {"outputs": MappingProxyType(steps), "branch": "main", "outputs_history": MappingProxyType({})}
    named = Captured(live, analyse("outputs.a + branch"))
    dynamic = Captured(live, analyse("outputs[branch]"))
    for each in (named, dynamic):
        each.freeze()
    steps["a"], live["branch"] = 10, "other"
    steps["main"] = 5
    assert (named["outputs"]["a"], named["branch"]) == (1, "main")
    assert "main" not in dynamic["outputs"]
    assert Captured(live, analyse("outputs.a"))["outputs"]["a"] == 10
