"""Calls that a worker is given together, for runs that another one has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.hosts.fleet import Fleet, fleet
from tests.hosts.test_worker import Touch, outcome

from gonogo.core.state import State
from gonogo.errors import JournalError
from gonogo.hosts import errands
from gonogo.hosts.errands import Errands

LIST = """
max_parallelism: 9
steps:
  list: {type: script, forEach: true, forEach_concurrency: 4, content: "return [1, 2, 3]"}
  each: {type: touch, what: "{{ item }}", runs_on: nobody, depends_on: [list]}
"""


def with_calls(
    story: Callable[[Fleet, Touch, str, list[int]], Coroutine[Any, Any, None]], effects: str = "reads"
) -> None:
    """Two workers, and a run whose three calls are on offer, and told to neither."""

    async def main() -> None:
        touch = Touch()
        async with fleet("a", "b", step_types=[touch.type(effects)]) as made:
            run_id = await made.start(LIST)
            async with asyncio.timeout(20):
                while len(made.runs.pool.open(run_id)) < 3:  # noqa: ASYNC110 - nobody tells of an offer
                    await asyncio.sleep(0)
            await story(made, touch, run_id, sorted(made.runs.pool.open(run_id)))

    asyncio.run(main())


def outcomes(state: State) -> list[str | None]:
    """Of the three items."""
    return [state.nodes["each"][scope].outcome for scope in sorted(state.nodes["each"]) if scope]


def test_calls_given_to_two_workers_are_performed_once_each() -> None:
    """Each says of all of them that they are over, or aren't for it."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        ended = {"a": 0, "b": 0}

        async def perform(name: str) -> None:
            def count(number: int) -> None:
                ended[name] += number

            await made.workers[name].calls(run_id, calls, count)

        await asyncio.gather(perform("a"), perform("b"))
        assert outcomes(await made.end(run_id)) == ["passed"] * 3
        assert (sorted(touch.touched), ended) == (["1", "2", "3"], {"a": 3, "b": 3})

    with_calls(story)


def test_a_mutating_call_of_a_lost_worker_is_in_doubt_and_the_others_are_performed() -> None:
    """Nobody knows what the lost one did of it (law 3)."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        assert made.runs.pool.claim_free(run_id, calls[:1], "dead")
        await made.workers["a"].lost("dead")
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        state = await made.end(run_id)
        assert state.finished is not None
        assert (state.finished.verdict, sorted(touch.touched)) == ("HOLD", ["2", "3"])

    with_calls(story, "mutates")


def test_calls_of_a_lost_worker_are_handed_over_once_more() -> None:
    """Whatever told of them before may have been lost with it."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        assert made.runs.pool.claim_free(run_id, calls, "dead")
        made.labels["b"] = ("nobody",)
        await made.workers["a"].lost("dead")
        await made.end(run_id)
        assert sorted(touch.touched) == ["1", "2", "3"]

    with_calls(story)


def test_a_mutating_call_that_is_offered_again_after_its_end_is_not_performed_again() -> None:
    """By a host that stood still between writing and offering it, while another one had the run and ended the call."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        offered = [entry.ticket for entry in made.runs.pool._entries.values()]  # type: ignore[attr-defined]
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        await made.end(run_id)
        assert made.runs.pool.open(run_id) == set()
        made.runs.pool.offer(offered)
        await made.workers["b"].calls(run_id, calls, lambda number: None)
        assert sorted(touch.touched) == ["1", "2", "3"]

    with_calls(story, "mutates")


def test_a_call_that_lost_too_many_workers_is_given_up_and_the_others_are_performed() -> None:
    """They came with it, and have done nothing wrong."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        for _ in range(6):
            assert made.runs.pool.claim(run_id, calls[0], "dead")
        await made.workers["a"].lost("dead")
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        state = await made.end(run_id)
        assert outcomes(state) == ["failed", "passed", "passed"]
        assert sorted(touch.touched) == ["2", "3"]

    with_calls(story)


def test_a_call_that_cannot_be_performed_for_now_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its group is never told again, so nobody else would."""
    monkeypatch.setattr(errands, "AGAIN_S", (0.0, 0.0))
    broken = [JournalError("not now"), ValueError("nor now")]
    visit = Errands._visit

    async def seldom(self: Errands, run_id: str) -> Any:
        if broken:
            raise broken.pop()
        return await visit(self, run_id)

    monkeypatch.setattr(Errands, "_visit", seldom)

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        assert outcomes(await made.end(run_id)) == ["passed"] * 3

    with_calls(story)


def test_a_call_that_can_never_be_performed_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run goes on (law 2)."""
    monkeypatch.setattr(errands, "AGAIN_S", (0.0, 0.0))

    async def never(self: Errands, run_id: str) -> Any:
        raise JournalError("the sandbox is gone")

    monkeypatch.setattr(Errands, "_visit", never)

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        await made.workers["a"].calls(run_id, calls, lambda number: None)
        state = await made.end(run_id)
        assert outcomes(state) == ["failed"] * 3
        assert outcome(state, "list") == "passed"

    with_calls(story)
