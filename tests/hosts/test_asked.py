"""What is asked of a run that goes on elsewhere: what became of it is told, also where nobody could be told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.fleet import Fleet, fleet

from gonogo import app
from gonogo.app import requests, unheard
from gonogo.app.engines import CARRIED, Carrier
from gonogo.app.options import Options
from gonogo.app.requests import Answer, Asked, give_async, stop_async
from gonogo.app.unheard import Unheard
from gonogo.core.events import AnswerGiven
from gonogo.errors import EngineError, SandboxError, UsageError

CARRIER = {"name": "temporal", "address": "there:7233", "queue": "q"}
ASK = "steps:\n  ask: {type: human-input, prompt: ok}\n  then: {type: noop, depends_on: ask}\n"
APPROVAL = "steps:\n  ask: {type: human-input, prompt: ok, approvers: [ana, ben], quorum: 2}\n"

Story = Callable[["World"], Coroutine[Any, Any, None]]


class World:
    """A run that waits, workers that would go on with it, and an engine between, which may be away."""

    def __init__(self, made: Fleet, run_id: str) -> None:
        self.made, self.run_id, self.away = made, run_id, False
        self.inbox = made.runs.inbox(run_id)

    def hand_on(self, run_id: str, carrier: Carrier, options: Options) -> None:
        if self.away:
            raise EngineError("the server at there:7233 can't be reached", advice="see that it runs")
        self.made.submit(run_id)

    async def answer(self, text: str = "yes", by: str = "ana") -> Asked:
        return await give_async(self.run_id, "ask", Answer(text, by), options=self.made.options)

    async def cancel(self) -> Asked:
        return await stop_async(self.run_id, options=self.made.options)

    async def comes_back(self) -> str | None:
        """The engine is back, and a worker has looked twice: the run's verdict."""
        self.away = False
        looks = Unheard("temporal", self.made.runs, self.made.options)
        known = len(list(self.made.runs.records(self.run_id))) - 1
        await looks.look()
        await looks.look()
        finished = (await self.made.end(self.run_id, known)).finished
        return finished.verdict if finished is not None else None


def told(monkeypatch: pytest.MonkeyPatch, story: Story, text: str = ASK, *, away: bool = True) -> None:
    """Tell a story of a run on HOLD that an engine carries."""
    monkeypatch.setattr(requests, "TAKEN_LOOKS", 1)

    async def main() -> None:
        async with fleet("a") as made:
            run_id = await made.start(text, context={CARRIED: CARRIER})
            await made.end(run_id)
            world = World(made, run_id)
            for module in (requests, unheard):
                monkeypatch.setattr(module, "hand_on", world.hand_on)
            world.away = away
            await story(world)

    asyncio.run(main())


def test_an_answer_is_kept_while_the_engine_is_away_and_acts_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever answers needn't do anything more."""

    async def story(world: World) -> None:
        asked = await world.answer()
        assert (asked.result, asked.is_taken, asked.carrier) == (None, False, "temporal")
        assert isinstance(asked.away, EngineError)
        assert await world.comes_back() == "GO"

    told(monkeypatch, story)


def test_a_second_answer_is_told_of_the_one_that_lies_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It isn't kept: what is refused must not act later."""

    async def story(world: World) -> None:
        await world.answer("yes", "ana")
        with pytest.raises(
            UsageError, match="was answered already, by ana, with an answer that lies"
        ) as refused:
            await world.answer("no", "ben")
        assert "by itself" in str(refused.value.advice)
        assert [one.by for one in world.inbox.take()] == ["ana"]

    told(monkeypatch, story)


def test_a_second_answer_wakes_the_run_for_the_one_that_lies_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever left that was cut off before the engine heard of it."""

    async def story(world: World) -> None:
        world.inbox.put(AnswerGiven(step="ask", text="yes", by="ana"))
        with pytest.raises(UsageError, match="was answered already, by ana"):
            await world.answer("no", "ben")
        finished = (await world.made.end(world.run_id, 3)).finished
        assert finished is not None
        assert finished.verdict == "GO"

    told(monkeypatch, story, away=False)


def test_people_who_are_asked_together_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word of an approval is kept, but one of each giver."""

    async def story(world: World) -> None:
        await world.answer("yes", "ana")
        with pytest.raises(UsageError, match="by Ana|by ana"):
            await world.answer("no", "Ana")
        await world.answer("yes", "ben")
        assert await world.comes_back() == "GO"

    told(monkeypatch, story, APPROVAL)


def test_an_answer_that_would_not_count_keeps_no_other_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can leave one."""

    async def story(world: World) -> None:
        world.inbox.put(AnswerGiven(step="ask", text="no", by="mallory"))
        world.inbox.put(AnswerGiven(step="ask", text="no", by="ana", start=7))
        await world.answer("yes", "ana")
        await world.answer("yes", "ben")
        assert await world.comes_back() == "GO"

    told(monkeypatch, story, APPROVAL)


def test_a_cancel_is_kept_once_while_the_engine_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given twice for want of an answer, it would stop the cleanup, too."""

    async def story(world: World) -> None:
        first, second = await world.cancel(), await world.cancel()
        assert (first.away is None, first.lay_there, second.lay_there) == (False, False, True)
        assert len(world.inbox.take()) == 1
        assert await world.comes_back() == "NO-GO"

    told(monkeypatch, story)


def test_an_approval_tells_how_far_it_is_where_workers_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does in a run of this process."""

    async def story(world: World) -> None:
        asked = await world.answer("yes", "ana")
        assert (asked.is_taken, asked.so_far) == (True, ("ask: approved 1 of 2 (ana)",))
        assert (await world.answer("yes", "ben")).so_far == ()

    told(monkeypatch, story, APPROVAL, away=False)


@pytest.mark.parametrize("ask", ["answer", "cancel"])
def test_what_nobody_can_go_on_for_is_withdrawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ask: str
) -> None:
    """It was refused, so it must not act when somebody resumes the run days later."""
    options = app.Options(runs=tmp_path)
    run_id = app.start_run(app.loads(f'version: "1.0"\n{ASK}'), None, options).run_id

    async def fails(*_: object, **__: object) -> None:
        raise SandboxError("no sandbox")

    monkeypatch.setattr(requests, "go_on_async", fails)
    with pytest.raises(SandboxError):
        if ask == "answer":
            app.answer_run(run_id, "ask", "yes", options=options)
        else:
            app.cancel_run(run_id, options=options)
    assert not list(tmp_path.glob("*/inbox/*.json"))
