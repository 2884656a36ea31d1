"""Hosts and workers that stand still right before a call that changes something, while others take it over (law 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.hosts.fleet import Fleet
from tests.hosts.test_errands import with_calls
from tests.hosts.test_worker import Touch, with_fleet

from gonogo.app import keeping
from gonogo.core.commands import StartCall
from gonogo.core.events import CancelAsked
from gonogo.errors import Bug, JournalError
from gonogo.hosts import errands
from gonogo.hosts.gates import Gates
from gonogo.hosts.pen import Pen
from gonogo.hosts.prepare import Preparation
from gonogo.journal.records import Record
from gonogo.journal.store import StoreAway


def test_a_host_makes_no_call_of_a_run_that_was_taken_from_it_since_its_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next host asks what became of it. Were the answer to make it again, it would be made twice."""
    monkeypatch.setattr(keeping, "AGAIN_S", (0.0,))
    prepare, stalls = Preparation.prepare, [True]

    async def story(made: Fleet, touch: Touch) -> None:
        def prepared(self: Preparation, card: Any, step: Any, command: StartCall) -> Any:
            if stalls:
                stalls.clear()
                made.runs.cut_off(run_id)
            return prepare(self, card, step, command)

        monkeypatch.setattr(Preparation, "prepare", prepared)
        run_id = made.submitted("steps:\n  one: {type: touch, what: x}\n")
        made.submit(run_id)
        state = await made.end(run_id)
        assert state.finished is not None
        assert (state.finished.verdict, touch.touched, stalls) == ("HOLD", [], [])

    with_fleet(story, "a", effects="mutates")


@pytest.mark.parametrize(("effects", "made_all_the_same"), [("mutates", False), ("reads", True)])
def test_a_worker_makes_no_call_that_another_has_claimed_since(
    monkeypatch: pytest.MonkeyPatch, effects: str, made_all_the_same: bool
) -> None:
    """That one has left the doubt by then. What only reads may be made by both."""
    catch_up = errands.Visit.catch_up

    def stalls(self: errands.Visit, seq: int) -> None:
        catch_up(self, seq)
        for call in self._runs.pool.open(self.run_id):
            assert self._runs.pool.claim(self.run_id, call, "other")

    monkeypatch.setattr(errands.Visit, "catch_up", stalls)

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        await made.workers["a"].calls(run_id, calls[:1], lambda number: None)
        assert touch.touched == (["1"] if made_all_the_same else [])

    with_calls(story, effects)


def test_a_worker_whose_store_is_away_right_before_a_call_does_all_else_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call is made once the store has said that it is still the worker's."""

    async def story(made: Fleet, touch: Touch, run_id: str, calls: list[int]) -> None:
        holds, ears = made.runs.pool.holds, []

        def away(run_id: str, call: int, before: int) -> bool:
            if not ears:
                raise StoreAway("it doesn't answer", advice="wait", when_back=ears.append)
            return holds(run_id, call, before)

        monkeypatch.setattr(made.runs.pool, "holds", away)
        performs = asyncio.create_task(made.workers["a"].calls(run_id, calls[:1], lambda number: None))
        async with asyncio.timeout(20):
            while not ears:  # noqa: ASYNC110 - nobody tells that somebody waits
                await asyncio.sleep(0)
        assert touch.touched == []
        ears[0](None)
        await performs
        assert touch.touched == ["1"]

    with_calls(story, "mutates")


def test_each_attempt_of_a_gate_elsewhere_is_made_only_while_it_is_ours() -> None:
    """Between two it may wait for minutes; where the run is, each is written down first."""
    asked: list[int] = []

    async def sure(command: StartCall) -> None:
        asked.append(command.call)
        if len(asked) > 1:
            raise JournalError("it is another's")

    async def story() -> None:
        gates = Gates(None, None, None, None, sure)  # type: ignore[arg-type]
        opens = gates._fence(StartCall(7, "post", "", 1, 1, "r/post/1", "mutates"))
        assert opens is not None
        ledger = opens(SimpleNamespace())  # type: ignore[arg-type]
        assert await ledger.ask(SimpleNamespace(effects="reads"), ()) is None  # type: ignore[arg-type]
        assert await ledger.ask(SimpleNamespace(effects="mutates"), ()) is None  # type: ignore[arg-type]
        with pytest.raises(JournalError):
            await ledger.ask(SimpleNamespace(effects="mutates"), ())  # type: ignore[arg-type]
        assert asked == [7, 7]

    asyncio.run(story())


class Lost:
    """A journal that another process has; it takes nothing more once it has said so."""

    run_id = "r"
    records: Sequence[Record] = ()

    def __init__(self) -> None:
        self._closed = False

    def append(self, records: Sequence[Record], *, sync: bool = False) -> None:
        if self._closed:
            raise Bug("closed")
        self._closed = True
        raise JournalError("taken over", advice="leave it")

    def at_once(self, work: Any) -> Any:
        return work()


def test_why_nothing_can_be_written_is_told_once_and_nothing_else_is() -> None:
    """A run that was taken over isn't set aside as one that hit a bug: another host goes on with it."""

    async def story() -> None:
        around = SimpleNamespace(sinks=())
        pen = Pen(Lost(), around, then=lambda: None, fail=lambda error: None)  # type: ignore[arg-type]
        pen.add(0.0, CancelAsked(), ())
        with pytest.raises(JournalError, match="taken over"):
            pen.write()
        assert pen.write() == ()

    asyncio.run(story())
