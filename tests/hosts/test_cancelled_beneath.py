"""A run that goes on after a cancel goes on with the runs beneath it: what was done there stays done (law 3)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from gonogo import app
from gonogo.app.again import Wish, run_again_from
from gonogo.core.events import CancelAsked
from gonogo.hosts.loop import RunLoop
from gonogo.journal.memory import MemoryRuns
from gonogo.provider import Call, Context, Done, Outcome, Provider
from gonogo.providers.table import built_in

HEAD = 'version: "1.0"\nsteps:\n'
ONE = HEAD + "  inner: {type: workflow, config: child.yaml}\n"
LIST = HEAD + (
    '  list: {type: script, forEach: true, forEach_concurrency: 2, content: "return [1, 2]"}\n'
    "  inner: {type: workflow, config: child.yaml, depends_on: [list], fanout: map}\n"
)
CHILD = HEAD + "  act: {type: act}\n  after: {type: look, depends_on: act}\n"


class NoKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It has none."""


class World:
    """Runs that are cancelled when a step `after` has begun for the first time. `made`: the calls that were made."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.was_stopped = False
        self.loops: list[RunLoop] = []
        types = [
            Provider(name=name, config=NoKeys, run=self._act, effects=effects)
            for name, effects in (("act", "mutates"), ("look", "reads"))
        ]
        self.options = app.Options(runs=MemoryRuns(), table=built_in(types))

    async def _act(self, call: Call, context: Context) -> Outcome:
        self.made.append(call.step)
        if call.step == "after" and not self.was_stopped:
            self.was_stopped = True
            outermost = self.loops[0]
            outermost.post(CancelAsked(at=outermost.clock.now(), by="me"))
            await asyncio.Event().wait()
        return Done({})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "child.yaml").write_text(CHILD)
    return tmp_path


def cancelled(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[World, str]:
    """A run that was stopped while a child had its second step under way; its id."""
    (folder / "main.yaml").write_text(text)
    world, run = World(), RunLoop.run

    async def seen(self: RunLoop) -> None:
        world.loops.append(self)
        await run(self)

    monkeypatch.setattr(RunLoop, "run", seen)
    stopped = app.start_run(app.load("main.yaml", table=world.options.table), options=world.options)
    assert stopped.verdict == "NO-GO"
    return world, stopped.run_id


@pytest.mark.parametrize(("text", "children"), [(ONE, 1), (LIST, 2)], ids=["one", "for each item"])
def test_what_a_child_had_done_before_a_cancel_is_not_done_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, children: int
) -> None:
    """Its step runs no new child: the one that was cancelled goes on."""
    world, run_id = cancelled(folder, monkeypatch, text)
    assert app.resume_run(run_id, world.options).verdict == "GO"
    assert world.made.count("act") == children


def test_a_child_that_a_person_has_run_again_is_a_new_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its workflow may be another one by now."""
    world, run_id = cancelled(folder, monkeypatch, ONE)
    wish = Wish(("inner",), may_act_again=True)
    assert run_again_from(run_id, wish, world.options).verdict == "GO"
    assert world.made == ["act", "after", "act", "after"]
