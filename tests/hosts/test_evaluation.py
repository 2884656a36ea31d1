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


class Under:
    """A frame under way: a few rounds of the event loop pass before it ends."""

    def __init__(self, results: list[Result] | None, outcome: list[Result] | Exception) -> None:
        self.results = results
        self.dropped = False
        self._outcome = outcome

    async def finish(self) -> list[Result]:
        """The results, or the error."""
        for _ in range(5):
            await asyncio.sleep(0)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def drop(self) -> None:
        """Noted."""
        self.dropped = True


class Noting:
    """A sandbox that notes its frames and gives the sources as results: at once, or after a while if it is slow."""

    def __init__(self, *, slow: bool = False, error: Exception | None = None) -> None:
        self.frames: list[list[str]] = []
        self.under: list[Under] = []
        self._slow = slow
        self._error = error

    def begin(self, requests: Sequence[Request]) -> Under:
        """As the real one does."""
        self.frames.append([request.source for request in requests])
        results: list[Result] = [Value(request.source) for request in requests]
        if self._error is not None and not self._slow:
            raise self._error
        self.under.append(Under(None if self._slow else results, self._error or results))
        return self.under[-1]

    def close(self) -> None:
        """Nothing to close."""


def evaluations(sandbox: Noting) -> Evaluations:
    """Evaluations that use it."""
    return Evaluations(lambda: sandbox, Templates(), Redactor({"A_TOKEN": "swordfish"}), Limits())  # type: ignore[arg-type,return-value]


async def ask_all(made: Evaluations, sources: Sequence[str], kind: str) -> list[Any]:
    """Ask for all at once."""
    return await asyncio.gather(
        *(made.evaluate(source, kind, {}, None) for source in sources), return_exceptions=True
    )


@pytest.mark.parametrize("slow", [False, True])
def test_what_is_asked_together_is_one_frame(slow: bool) -> None:
    """Semantics 9, for what providers ask."""
    sandbox = Noting(slow=slow)
    results = asyncio.run(ask_all(evaluations(sandbox), ["1", "2", "3"], "value"))
    assert [result.value for result in results] == ["1", "2", "3"]
    assert sandbox.frames == [["1", "2", "3"]]


def test_what_waits_for_the_sandbox_shares_its_next_frame() -> None:
    """Nothing waits to make a batch bigger, and what had to wait goes together."""
    sandbox = Noting(slow=True)

    async def one_by_one() -> None:
        made = evaluations(sandbox)
        first = asyncio.create_task(ask_all(made, ["1"], "value"))
        while not sandbox.frames:  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0)
        await ask_all(made, ["2", "3"], "value")
        await first

    asyncio.run(one_by_one())
    assert sandbox.frames == [["1"], ["2", "3"]]


@pytest.mark.parametrize("slow", [False, True])
def test_a_script_that_reads_memory_is_never_joined(slow: bool) -> None:
    """Semantics 15: nor does it wait for ever for changes that never come."""
    sandbox = Noting(slow=slow)
    sources = ["1", "memory.get('a')", "2", "memory.get('b')"]
    asyncio.run(ask_all(evaluations(sandbox), sources, "script"))
    assert sandbox.frames == [["1", "2"], ["memory.get('a')"], ["memory.get('b')"]]


def test_a_script_that_reads_memory_sees_what_the_one_before_wrote() -> None:
    """Semantics 15: it goes once the state has moved, and reads memory as it is then; other names are held."""
    sandbox = Noting()
    live = {"memory": {"n": 1}, "branch": "main"}

    async def two() -> Any:
        made = evaluations(sandbox)
        _, first = made.answer("memory.get('n')", "script", live, None)
        _, second = made.answer("memory.get('n') + branch", "script", live, None)
        made.work()
        assert sandbox.frames == [["memory.get('n')"]]
        made.state_moves()
        live.update(memory={"n": 2}, branch="other")
        made.work()
        assert len(sandbox.frames) == 2
        await made.close()
        assert first.alone is not None
        return second.requests[0].names

    names = asyncio.run(two())
    assert (names["memory"], names["branch"]) == ({"n": 2}, "main")


@pytest.mark.parametrize("slow", [False, True])
def test_a_sandbox_that_cant_be_had_is_told_to_all_who_asked(slow: bool) -> None:
    """Nobody waits for ever."""
    error = SandboxError("no engine")
    results = asyncio.run(ask_all(evaluations(Noting(slow=slow, error=error)), ["1", "2", "3"], "value"))
    assert results == [error, error, error]


def test_what_nobody_wants_any_more_is_not_evaluated() -> None:
    """Law 7: what waits is taken back; a frame the sandbox is at for nobody is ended, and the next one goes."""
    sandbox = Noting(slow=True)

    async def given_up() -> Result:
        made = evaluations(sandbox)
        _, hanging = made.answer("1", "value", {}, None)
        made.work()
        _, waiting = made.answer("2", "value", {}, None)
        made.withdraw(waiting)
        made.withdraw(hanging)
        return await made.evaluate("3", "value", {}, None)

    assert asyncio.run(given_up()) == Value("3")
    assert sandbox.frames == [["1"], ["3"]]
    assert [each.dropped for each in sandbox.under] == [True, True]


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
    assert evaluations(Noting()).masked(result) == masked


def test_names_keep_the_values_they_had_when_asked() -> None:
    """Semantics 10: what is settled later isn't seen, once the names were taken hold of."""
    from types import MappingProxyType

    steps = {"a": 1, "b": 2}
    live = {"outputs": MappingProxyType(steps), "branch": "main", "outputs_history": MappingProxyType({})}
    named = Captured(live, analyse("outputs.a + branch"))
    dynamic = Captured(live, analyse("outputs[branch]"))
    for each in (named, dynamic):
        each.freeze()
        each.freeze()  # once is enough
    steps["a"], live["branch"] = 10, "other"
    steps["main"] = 5
    assert (named["outputs"]["a"], named["branch"]) == (1, "main")
    assert "main" not in dynamic["outputs"]
    assert Captured(live, analyse("outputs.a"))["outputs"]["a"] == 10
