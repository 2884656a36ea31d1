"""Slots of calls that go on elsewhere while the runs they are of, beneath the one that is taken over, have no host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.fleet import HEAD, Fleet, fleet
from tests.hosts.test_worker import What

from gonogo import app
from gonogo.app.options import Start
from gonogo.app.wiring import first_record_of, redactor_for
from gonogo.core.commands import StartCall
from gonogo.core.events import CallLost, Resumed
from gonogo.core.graph import Graph
from gonogo.core.plan import Plan, Step
from gonogo.core.state import State
from gonogo.hosts.outlived import Outlived
from gonogo.hosts.slots import Places
from gonogo.hosts.spread import Spread
from gonogo.journal.memory_pool import MemoryPool
from gonogo.journal.pool import Ticket
from gonogo.journal.restoring import state_of
from gonogo.provider import Call, Context, Done, Outcome, Provider

PARENT = """imports: [kid.yaml]
max_parallelism: 2
steps:
  before: {type: mark, what: before}
  kid: {type: workflow, workflow: kid}
  own: {type: mark, what: own, runs_on: far, depends_on: [before]}
"""
FENCE = "steps:\n  fence: {type: mark, what: fence, runs_on: far}\n"
"""What was handed over before it has begun before it."""
BETWEEN = "id: kid\nimports: [low.yaml]\nsteps:\n  low: {type: workflow, workflow: low}\n"
LOWEST = """id: NAME
steps:
  one: {type: mark, what: one, runs_on: far}
  two: {type: mark, what: two, runs_on: far}
"""


class Marks:
    """A step type that lasts until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._go: dict[str, asyncio.Event] = {}

    def type(self) -> Provider:
        return Provider("mark", What, self._run, effects="reads")

    def go(self, what: str) -> None:
        """Let it end."""
        self._go.setdefault(what, asyncio.Event()).set()

    async def _run(self, call: Call, context: Context) -> Outcome:
        what = call.config.what
        self.begun.append(what)
        await self._go.setdefault(what, asyncio.Event()).wait()
        return Done(what)


async def until(true: Any) -> None:
    """Look again until it is so."""
    while not true():  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.005)


def begun(made: Fleet, folder: Path) -> str:
    """The run of a parent that was begun with; its id."""
    plan = app.load(str(folder / "parent.yaml"), table=made.options.table).plan
    event = first_record_of(plan, Start(), made.options, {}, redactor_for({}, plan))
    made.runs.submit(event)
    made.submit(event.run_id)
    return event.run_id


def is_resumed(made: Fleet, run_id: str) -> bool:
    """Whether another host goes on with all runs there are."""
    return all(
        any(isinstance(record.event, Resumed) for record in made.runs.read(each).records)
        for each in made.runs.ids()
        if each.startswith(run_id)
    )


def calls(made: Fleet, run_id: str) -> set[str]:
    """The steps whose calls are under way, or wait for a slot, in all runs there are."""
    states = [state_of(made.runs.read(each).records) for each in made.runs.ids() if each.startswith(run_id)]
    return {node.step for state in states for node in state.calls.values()}


def told(story: Callable[[Fleet], Coroutine[Any, Any, None]], marks: Marks) -> None:
    """Let a story happen to three workers, in time."""

    async def main() -> None:
        async with fleet("a", "b", "f", labels={"f": ("far",)}, step_types=[marks.type()]) as made:
            async with asyncio.timeout(20):
                await story(made)

    asyncio.run(main())


@pytest.mark.parametrize("levels", [1, 2])
def test_calls_of_runs_beneath_count_before_these_are_taken_up(levels: int, tmp_path: Path) -> None:
    """Their parent's next host would else begin as many of its own, while those still go on."""
    family = (
        {"kid": LOWEST.replace("NAME", "kid")}
        if levels == 1
        else {"kid": BETWEEN, "low": LOWEST.replace("NAME", "low")}
    )
    for name, text in {"parent": PARENT, **family}.items():
        (tmp_path / f"{name}.yaml").write_text(HEAD + text)
    marks = Marks()

    async def story(made: Fleet) -> None:
        run_id = begun(made, tmp_path)
        await until(lambda: len(marks.begun) == 2 and {"one", "two"} <= calls(made, run_id))
        marks.go("before")
        await until(lambda: len(marks.begun) == 3 and "own" in calls(made, run_id))
        await made.die("a")
        await until(lambda: is_resumed(made, run_id))
        marks.go("fence")
        await made.end(await made.start(FENCE))
        assert sorted(marks.begun) == ["before", "fence", "one", "two"]
        for what in ("one", "two", "own"):
            marks.go(what)
        state = await made.end(run_id)
        assert state.finished is not None
        assert state.finished.verdict == "GO"
        assert sorted(marks.begun) == ["before", "fence", "one", "own", "two"]

    told(story, marks)


class Ears:
    """Who listens to what is left for runs."""

    def __init__(self) -> None:
        self.of: dict[str, Callable[[], None]] = {}

    def listen(self, run_id: str, then: Callable[[], None]) -> Callable[[], None]:
        self.of[run_id] = then
        return lambda: self.of.pop(run_id)


def outlived(above: State) -> tuple[Outlived, Places, MemoryPool, Ears]:
    """Calls 1 and 2 of a run that nobody goes on with, which have both slots there are."""
    tree, pool, ears = Places(2), MemoryPool(), Ears()
    pool.offer([Ticket("r", StartCall(call, "one", "", 1, 1, "", "reads"), 0) for call in (1, 2)])
    spread = Spread(pool, lambda tickets: None, ears.listen)
    return Outlived("r", [1, 2], above, tree, spread), tree, pool, ears


def above() -> State:
    """A run with one beneath it."""
    return State(Graph(Plan("above", {"a": Step("a", "noop")})))


def test_a_call_that_ends_before_its_run_is_taken_up_leaves_its_slot() -> None:
    """Its answer stays for whoever goes on with the run."""

    async def story() -> None:
        made, tree, pool, ears = outlived(above())
        pool.leave("r", 1, CallLost(call=1))
        ears.of["r"]()
        ears.of["r"]()
        assert tree.take(9) == 1
        assert len(pool.take("r")) == 1
        made.end()
        assert (tree.take(9), ears.of) == (1, {})

    asyncio.run(story())


@pytest.mark.parametrize("because", ["time", "stopping"])
def test_slots_of_a_run_that_nobody_takes_up_are_free_some_time(
    because: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once where the run above stops: what it cleans up needs them, and nothing goes on beneath it."""
    monkeypatch.setattr("gonogo.hosts.outlived.LOOK_S", 0.0)
    if because == "time":
        monkeypatch.setattr("gonogo.hosts.outlived.KEPT_S", 0.0)

    async def story() -> None:
        state = above()
        made, tree, _, ears = outlived(state)
        if because == "stopping":
            state.stopping = "cancelled"
        async with asyncio.timeout(20):
            await tree.wait()
            await tree.wait()
        assert not ears.of
        made.end()  # as whoever keeps it does, when its run ends or somebody takes it up after all

    asyncio.run(story())


def test_nobody_looks_for_a_run_whose_calls_have_all_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look asks the store."""
    monkeypatch.setattr("gonogo.hosts.outlived.LOOK_S", 0.0)

    async def story() -> None:
        _, tree, pool, ears = outlived(above())
        for call in (1, 2):
            pool.leave("r", call, CallLost(call=call))
        async with asyncio.timeout(20):
            while ears.of:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0)
        assert tree.take(9) == 2

    asyncio.run(story())
