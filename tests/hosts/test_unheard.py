"""Requests that reached the store, and whose engine was never told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.hosts.fleet import Fleet, fleet

from gonogo.app import unheard
from gonogo.app.engines import CARRIED, Carrier
from gonogo.app.options import Options
from gonogo.app.unheard import Unheard
from gonogo.core.events import CancelAsked
from gonogo.errors import EngineError

TEMPORAL = {"name": "temporal", "address": "there:7233", "queue": "q"}
ONE = "steps:\n  one: {type: noop}\n"


class Engines:
    """Where runs are handed on to; may be away."""

    def __init__(self) -> None:
        self.handed: list[tuple[str, Carrier]] = []
        self.away = False

    def hand_on(self, run_id: str, carrier: Carrier, options: Options) -> None:
        if self.away:
            raise EngineError("it is away", advice="wait")
        self.handed.append((run_id, carrier))


def with_looks(
    monkeypatch: pytest.MonkeyPatch,
    story: Callable[[Fleet, Unheard, Engines, str], Coroutine[Any, Any, None]],
    carrier: dict[str, str] | None = TEMPORAL,
) -> None:
    """A run of which something is asked, and a worker of Temporal that looks."""

    async def main() -> None:
        engines = Engines()
        monkeypatch.setattr(unheard, "hand_on", engines.hand_on)
        async with fleet("a") as made:
            run_id = made.submitted(ONE, context={CARRIED: carrier} if carrier else {})
            made.runs.inbox(run_id).put(CancelAsked())
            await story(made, Unheard("temporal", made.runs, made.options), engines, run_id)

    asyncio.run(main())


def test_what_is_asked_twice_in_a_row_is_handed_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first look whoever has the run may just be about to take it."""

    async def story(made: Fleet, looks: Unheard, engines: Engines, run_id: str) -> None:
        await looks.look()
        assert engines.handed == []
        for _ in range(3):
            await looks.look()
        assert engines.handed == [(run_id, Carrier("temporal", "there:7233", "q"))]

    with_looks(monkeypatch, story)


def test_the_event_loop_does_not_wait_for_who_carries_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store may take its time to tell, and all that the worker has under way would stand still."""
    carried_in, threads = unheard.carried_in, []

    def asked(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return carried_in(*given)

    monkeypatch.setattr(unheard, "carried_in", asked)

    async def story(made: Fleet, looks: Unheard, engines: Engines, run_id: str) -> None:
        for _ in range(2):
            await looks.look()
        assert (len(threads), threading.main_thread() in threads) == (1, False)

    with_looks(monkeypatch, story)


def test_a_look_that_breaks_is_not_the_last_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would notice a worker that looks no more."""
    monkeypatch.setattr(unheard, "LOOK_S", 0.0)

    async def story(made: Fleet, looks: Unheard, engines: Engines, run_id: str) -> None:
        look, times, again = looks.look, [], asyncio.Event()

        async def broken() -> None:
            times.append(1)
            if len(times) == 1:
                raise ValueError("a bug")
            again.set()
            await look()

        monkeypatch.setattr(looks, "look", broken)
        watching = asyncio.create_task(looks.watch())
        async with asyncio.timeout(20):
            await again.wait()
        watching.cancel()

    with_looks(monkeypatch, story)
    assert "please report it" in caplog.text


def test_it_is_handed_on_when_the_engine_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes."""

    async def story(made: Fleet, looks: Unheard, engines: Engines, run_id: str) -> None:
        engines.away = True
        for _ in range(3):
            await looks.look()
        engines.away = False
        await looks.look()
        assert [each for each, _ in engines.handed] == [run_id]

    with_looks(monkeypatch, story)


def test_what_was_taken_meanwhile_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is nearly always; what is asked later is another thing."""

    async def story(made: Fleet, looks: Unheard, engines: Engines, run_id: str) -> None:
        await looks.look()
        inbox = made.runs.inbox(run_id)
        inbox.done(inbox.take()[0].request)
        inbox.put(CancelAsked())
        await looks.look()
        assert engines.handed == []
        await looks.look()
        assert [each for each, _ in engines.handed] == [run_id]

    with_looks(monkeypatch, story)


@pytest.mark.parametrize("carrier", [None, {**TEMPORAL, "name": "dbos"}], ids=["none", "another"])
def test_runs_that_this_engine_does_not_carry_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, carrier: dict[str, str] | None
) -> None:
    """Whoever carries them looks, too; and a run that nobody carries goes on where somebody resumes it."""

    async def story(made: Fleet, looks: Unheard, engines: Engines, run_id: str) -> None:
        for _ in range(3):
            await looks.look()
        assert engines.handed == []

    with_looks(monkeypatch, story, carrier)
