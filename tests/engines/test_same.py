"""One table of workflows on each host: in one process, by workers in one event loop, simulated, on DBOS and on
Temporal. What they decide is the same: verdict, outcomes, and each decision about each step with what it was based on.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.engines.simulated import Retold
from tests.engines.tales import CANCEL, TALES, Act, Tale
from tests.engines.telling import differences, told
from tests.engines.world import World
from tests.hosts.fleet import Fleet, fleet

from gonogo import app
from gonogo.app.engines import submit_run
from gonogo.app.options import Options, Start
from gonogo.app.requests import answer_run_async, cancel_run_async
from gonogo.app.running import resume_run_async, start_run_async
from gonogo.core.secrecy import SEAL_KEY
from gonogo.core.state import State
from gonogo.errors import JournalError
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.restoring import state_of
from gonogo.journal.store import Runs

LOOK_S = 0.02
WITHIN_S = 30.0


def state_in(runs: Runs, run_id: str) -> State | None:
    """How a run stands; None before it has begun."""
    try:
        records = list(runs.records(run_id))
    except JournalError:
        return None
    return state_of(records) if records else None


def rests(state: State | None) -> bool:
    """Nothing happens in it any more by itself."""
    if state is None or state.finished is None:
        return False
    return not (state.finished.parked and state.timers)


async def until(is_so: Callable[[], bool]) -> None:
    """Look again and again."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            if is_so():
                return
            await asyncio.sleep(LOOK_S)


def is_due(runs: Runs, run_id: str, act: Act) -> bool:
    """Whether it is time for what somebody does."""
    state = state_in(runs, run_id)
    return state is not None and act.is_due(state)


# --- hosts


async def locally(tale: Tale, folder: Path, run_id: str) -> MemoryRuns:
    """The local host; whoever answers goes on with the run, and so does who finds its timer due."""
    runs = MemoryRuns()
    options = Options(runs=runs)
    run = asyncio.create_task(start_run_async(tale.plan(folder), Start(run_id=run_id), options))
    for act in tale.acts:
        if act.word != CANCEL:
            await run
            await gone_on(run_id, options, partial(is_due, runs, run_id, act))
        await until(partial(is_due, runs, run_id, act))
        await act_locally(run_id, act, options)
    await run
    await gone_on(run_id, options, lambda: rests(state_in(runs, run_id)))
    return runs


async def gone_on(run_id: str, options: Options, is_so: Callable[[], bool]) -> None:
    """Go on with a run that waits whenever a timer of it is due."""
    async with asyncio.timeout(WITHIN_S):
        while not is_so():
            result = await resume_run_async(run_id, options)
            await asyncio.sleep(result.wakes_in_s or LOOK_S)


async def act_locally(run_id: str, act: Act, options: Options) -> None:
    """A cancel reaches the run that is under way; an answer waits until it has been left."""
    if act.word == CANCEL:
        await cancel_run_async(run_id, by=act.by, options=options)
    else:
        await answer_run_async(run_id, act.place, act.word, scope=act.scope, by=act.by, options=options)


async def in_one_loop(tale: Tale, folder: Path, run_id: str) -> Runs:
    """Two workers of a made-up engine."""
    async with fleet("a", "b", labels={"b": ("here",)}) as made:
        submit(made, tale, folder, run_id)
        for act in tale.acts:
            await until(partial(is_due, made.runs, run_id, act))
            state = state_in(made.runs, run_id)
            assert state is not None
            inbox = made.runs.inbox(act.run_in(state))
            inbox.put(act.request)
            if act.word != CANCEL:
                made.submit(run_id)
                await until(lambda inbox=inbox: not inbox.take())  # type: ignore[misc]
        await until(lambda: rests(state_in(made.runs, run_id)))
        return made.runs


def submit(made: Fleet, tale: Tale, folder: Path, run_id: str) -> None:
    """Have a worker begin with it."""
    from gonogo.app.wiring import first_record_of, redactor_for

    plan = tale.plan(folder)
    made.runs.submit(first_record_of(plan, Start(run_id=run_id), made.options, {}, redactor_for({}, plan)))
    made.submit(run_id)


def on_workers(here: World, folder: Path) -> dict[str, str]:
    """All at once on real ones; the runs by tale."""
    started = {}
    for number, (name, tale) in enumerate(TALES.items()):
        start = Start(run_id=f"r{number}")
        started[name] = submit_run(tale.plan(folder), start, here.options, here.carrier)
    for name, run_id in started.items():
        for act in TALES[name].acts:
            act_there(here, name, run_id, act)
    return started


def act_there(here: World, name: str, run_id: str, act: Act) -> None:
    """A worker hears of it."""

    here.wait(partial(is_due, here.runs, run_id, act), f"{name}: {act}")
    if act.word == CANCEL:
        app.cancel_run(run_id, by=act.by, options=here.options)
    else:
        app.answer_run(run_id, act.place, act.word, scope=act.scope, by=act.by, options=here.options)


# --- what they come to


def all_told(runs: Runs, run_id: str) -> dict[str, Any]:
    """The run, and those beneath it."""
    mine = [each for each in runs.ids() if each == run_id or each.startswith(f"{run_id}.")]
    return {each: told(runs.records(each)) for each in mine}


def assert_alike(found: dict[str, Any], expected: dict[str, Any], name: str) -> None:
    """The same runs, and nothing decided otherwise in any."""
    assert found.keys() == expected.keys()
    assert (name, {run_id: differences(found[run_id], expected[run_id]) for run_id in found}) == (
        name,
        {run_id: {} for run_id in found},
    )


@pytest.mark.parametrize("name", TALES)
def test_workers_and_the_simulator_decide_as_one_process_does(name: str, tmp_path: Path) -> None:
    """Where a call is performed is no matter of what is decided, nor is whose clock it goes by. To the simulated host a
    run beneath is a call like others.
    """
    tale = TALES[name]
    runs = asyncio.run(locally(tale, tmp_path, "r"))
    expected = all_told(runs, "r")
    assert_alike(all_told(asyncio.run(in_one_loop(tale, tmp_path, "r")), "r"), expected, name)
    simulated = told(Retold(list(runs.records("r")), tale.acts).run().records)
    assert_alike({"r": simulated}, {"r": expected["r"]}, name)


@pytest.mark.slow
def test_engines_decide_as_one_process_does(
    here: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once on two real workers."""
    monkeypatch.setenv(SEAL_KEY, base64.b64encode(bytes(32)).decode())
    here.worker("--label", "here")
    here.starting("--label", "here")
    for name, run_id in on_workers(here, tmp_path).items():
        here.wait(lambda run_id=run_id: rests(here.state(run_id)), f"{name}: the end")  # type: ignore[misc]
        expected = all_told(asyncio.run(locally(TALES[name], tmp_path, run_id)), run_id)
        assert_alike(all_told(here.runs, run_id), expected, name)
