"""Whoever ends a call of a workflow step without having heard from its child keeps the child's doubt (law 3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gonogo import app
from gonogo.app.running import go_on_async
from gonogo.core.commands import StartCall
from gonogo.core.events import CancelAsked
from gonogo.core.faults import Fault
from gonogo.errors import JournalError
from gonogo.hosts import beneath, workplace
from gonogo.hosts.base import RunResult
from gonogo.hosts.calls import Calls
from gonogo.hosts.loop import RunLoop
from gonogo.hosts.prepare import Preparation
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Runs
from gonogo.provider import Call, Context, Done, Failed, Outcome, Provider
from gonogo.providers.table import built_in

MAIN = 'version: "1.0"\nsteps:\n  inner: {type: workflow, config: child.yaml}\n'
CHILD = 'version: "1.0"\nsteps:\n  act: {type: act}\n  after: {type: act, depends_on: act}\n'


class NoKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It has none."""


class World:
    """A run above one whose first call nobody knows the end of. `made`: the calls that were made; `loops`: those of the
    runs under way, the outermost first.
    """

    def __init__(self) -> None:
        self.runs = MemoryRuns()
        self.made: list[str] = []
        self.loops: list[RunLoop] = []
        self.first: Callable[[], Awaitable[Outcome]] = breaks_off
        self.acting = Provider(name="act", config=NoKeys, run=self._act, effects="mutates")
        self.options = app.Options(runs=self.runs, table=built_in([self.acting]))

    async def _act(self, call: Call, context: Context) -> Outcome:
        self.made.append(call.step)
        return await self.first() if len(self.made) == 1 else Done({})

    def start(self) -> RunResult:
        """Up to the doubt, or as far as it comes."""
        return app.start_run(app.load("main.yaml", table=self.options.table), options=self.options)

    def go_on(self, run_id: str) -> RunResult:
        """Whatever lies there is taken up; a cancel stays."""
        self.loops.clear()
        result = asyncio.run(go_on_async(run_id, self.options, lambda: True, reopens=False))
        assert result is not None
        return result

    def cancel(self) -> None:
        """The outermost run is told to stop."""
        outermost = self.loops[0]
        if not outermost.state.stopping:
            outermost.post(CancelAsked(at=outermost.clock.now(), by="me"))

    @property
    def states(self) -> dict[str, str]:
        """The steps of the child."""
        (child,) = [run_id for run_id in self.runs.ids() if "." in run_id]
        state = state_of(self.runs.read(child).records)
        return {node.step: node.status for node in state.all_nodes()}


async def breaks_off() -> Outcome:
    """Nobody knows whether it was done."""
    return Failed(Fault("act.broke", "transient", "act/broke", "it broke off"), effect="unknown")


async def never() -> Outcome:
    """Until it is told to stop."""
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """With its files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.yaml").write_text(MAIN)
    (tmp_path / "child.yaml").write_text(CHILD)
    made, run = World(), RunLoop.run

    async def seen(self: RunLoop) -> None:
        made.loops.append(self)
        await run(self)

    monkeypatch.setattr(RunLoop, "run", seen)
    return made


def is_kept(world: World, run_id: str) -> None:
    """However often the run is gone on with, nothing is made before somebody has said what became of the call."""
    for _ in range(2):
        assert world.go_on(run_id).verdict == "HOLD"
        assert world.states["act"] == "in_doubt"
    assert app.resume_run(run_id, world.options).verdict == "HOLD"
    assert world.made == ["act"]


def test_a_cancel_before_the_call_that_looks_again_is_started(world: World) -> None:
    """Both come of the same moment."""
    run_id = world.start().run_id
    assert world.states["act"] == "in_doubt"
    world.runs.inbox(run_id).put(CancelAsked(by="me"))
    is_kept(world, run_id)


@pytest.mark.parametrize(
    ("owner", "name"), [(Calls, "start"), (Preparation, "prepare")], ids=["begun", "prepared"]
)
def test_a_cancel_before_the_call_that_looks_again_is(
    world: World, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    """It has not come to its child yet."""
    run_id, original = world.start().run_id, getattr(owner, name)

    def cancels(self: Any, *given: Any) -> Any:
        world.cancel()
        return original(self, *given)

    monkeypatch.setattr(owner, name, cancels)
    assert world.go_on(run_id).verdict == "HOLD"
    monkeypatch.setattr(owner, name, original)
    is_kept(world, run_id)


def test_a_cancel_during_the_call_beneath(world: World) -> None:
    """The child ends in doubt, and its parent has not heard from it."""

    async def first() -> Outcome:
        world.cancel()
        return await never()

    world.first = first
    parked = world.start()
    assert parked.verdict == "HOLD"
    is_kept(world, parked.run_id)


def test_the_journals_beneath_are_read_beside_the_event_loop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their store may be away, and all other runs of a worker would stand still."""
    threads: list[threading.Thread] = []

    def noted(runs: Runs, run_id: str, command: StartCall) -> str | None:
        threads.append(threading.current_thread())
        return beneath.doubtful_child(runs, run_id, command)

    monkeypatch.setattr(workplace, "doubtful_child", noted)

    async def first() -> Outcome:
        world.cancel()
        return await never()

    world.first = first
    assert world.start().verdict == "HOLD"
    assert threads
    assert threading.main_thread() not in threads


def test_a_cancelled_run_whose_host_dies_during_the_call_beneath(world: World) -> None:
    """To take it up again is no reason to forget what was under way."""

    async def first() -> Outcome:
        world.cancel()
        while not world.loops[0].state.stopping:  # noqa: ASYNC110 - nobody tells that it is
            await asyncio.sleep(0)
        for loop in reversed(world.loops):
            loop.fail(JournalError("it died", advice="resume it"))
        return await never()

    world.first = first
    with pytest.raises(JournalError, match="it died"):
        world.start()
    (run_id,) = [run_id for run_id in world.runs.ids() if "." not in run_id]
    is_kept(world, run_id)


def test_a_call_that_takes_too_long_is_tried_again_only_once_the_doubt_is_settled(
    world: World, tmp_path: Path
) -> None:
    """The retry would be a child of its own."""
    (tmp_path / "main.yaml").write_text(
        MAIN.replace("child.yaml}", "child.yaml, timeout: 50ms, on_fail: {retry: {max: 2}}}")
    )
    world.first = never
    parked = world.start()
    assert (parked.verdict, world.made) == ("HOLD", ["act"])
    assert app.answer_run(parked.run_id, "inner.act", "failed", options=world.options) is not None


@pytest.mark.parametrize(("word", "made"), [("done", ["act"]), ("again", ["act"]), ("unknown", ["act"])])
def test_a_cancelled_run_makes_no_call_beneath_once_the_doubt_is_settled(
    world: World, word: str, made: list[str]
) -> None:
    """Law 7: the child hears of the cancel before it hears the answer."""
    run_id = world.start().run_id
    world.runs.inbox(run_id).put(CancelAsked(by="me"))
    assert world.go_on(run_id).verdict == "HOLD"
    ended = app.answer_run(run_id, "inner.act", word, options=world.options)
    assert ended is not None
    assert (ended.verdict, world.made) == ("NO-GO", made)
