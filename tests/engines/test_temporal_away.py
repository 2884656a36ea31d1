"""A Temporal that is away, for all workers or for one, while the store is well: runs go on where they can, and all of
them do afterwards, by themselves; nothing is lost, nothing is done twice, and nobody is asked about anything.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.world import (
    ENDS_WITH_US,
    ITEMS,
    World,
    free_port,
    list_of_changes,
    pause,
    until_open,
    world,
)
from tests.servers.cut import Wire, wire_to
from tests.servers.postgres import Server

from gonogo import app
from gonogo.app.engines import hand_on
from gonogo.errors import EngineError, UsageError

pytestmark = [pytest.mark.slow, pytest.mark.long]

AWAY_S = 15.0
"""Longer than anything by which work is taken for lost, and than the SDK tries to complete what ended."""
LIST = list_of_changes(1.0)
OWN = """
steps:
  first: {type: command, mutates: true, exec: "echo first >> own; sleep 3"}
  second:
    type: command
    mutates: true
    depends_on: [first]
    exec: "echo second >> own; while [ ! -e go ]; do sleep 0.1; done"
"""
FAR = """
steps:
  far: {type: command, mutates: true, timeout: 120000, exec: "echo x >> far; while [ ! -e go ]; do sleep 0.1; done"}
"""
ASK = "steps:\n  ask: {type: human-input, prompt: ok}\n"
TIMED = "steps:\n  ask: {type: human-input, prompt: ok, timeout: 20000, default: no}\n"


class Development:
    """A development server that keeps what it knows in a file; killed and started again it has the same address."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "temporal.db"
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Until it answers."""
        command = [
            sys.executable, "-c", ENDS_WITH_US, str(Path(sys.executable).with_name("temporal")),
            "server", "start-dev", "--headless", "--port", str(self.port), "--ip", "127.0.0.1", "--log-level", "never",
            "--db-filename", str(self._file), "--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until_open(self.port)

    def kill(self) -> None:
        """As kill -9."""
        self._process.kill()
        self._process.wait(30)

    def forget(self) -> None:
        """What it knew, once it is killed."""
        self._file.unlink()


@pytest.fixture
def temporal_of_ours(tmp_path: Path) -> Iterator[Development]:
    """One that runs."""
    made = Development(tmp_path)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def here(temporal_of_ours: Development, postgres: Server, tmp_path: Path) -> Iterator[World]:
    """A world whose Temporal may go away."""
    with world(postgres, tmp_path, temporal_of_ours.address) as made:
        yield made


@pytest.fixture
def wire(temporal_of_ours: Development) -> Iterator[Wire]:
    """By which a worker may reach it."""
    with wire_to(temporal_of_ours.port) as made:
        yield made


def verdict(here: World, run_id: str) -> str:
    """That of a run that is over."""
    found = []

    def is_over() -> bool:
        state = here.state(run_id)
        if state is not None and state.finished is not None and not state.finished.parked:
            found.append(state.finished.verdict)
        return bool(found)

    here.wait(is_over, f"the end of run {run_id}")
    return found[-1]


def test_a_temporal_that_is_killed_and_started_again_costs_time_and_nothing_else(
    here: World, temporal_of_ours: Development
) -> None:
    """Calls under way go on all the time, those that are due wait, and what is asked meanwhile is heard afterwards."""
    here.worker()
    here.worker()
    runs = {name: here.submit(text) for name, text in {"list": LIST, "own": OWN, "far": FAR}.items()}
    asked, timed, left = here.submit(ASK), here.submit(TIMED), here.submit(ASK)
    here.wait(lambda: all(map(here.lines, ("done", "own", "far"))), "some calls")
    for run_id in (asked, timed, left):
        here.ended(run_id)
    temporal_of_ours.kill()
    assert app.answer_run(asked, "ask", "yes", options=here.options) is None
    with pytest.raises(UsageError, match="was answered already.* the Temporal server at .* can't be used"):
        app.answer_run(asked, "ask", "no", options=here.options)
    assert app.cancel_run(left, options=here.options) is None
    with pytest.raises(EngineError, match="can't be used"):
        here.submit(ASK)
    pause(AWAY_S)
    assert here.lines("own") == ["first", "second"]
    temporal_of_ours.start()
    pause(5.0)
    (here.folder / "go").touch()
    assert {name: verdict(here, run_id) for name, run_id in runs.items()} == dict.fromkeys(runs, "GO")
    assert (verdict(here, asked), verdict(here, timed)) == ("GO", "GO")
    here.wait(lambda: here.state(left).stopping == "cancelled", "the cancel")  # type: ignore[union-attr]
    assert sorted(map(int, here.lines("done"))) == list(range(ITEMS))
    assert (here.lines("own"), here.lines("far")) == (["first", "second"], ["x"])
    assert [each.poll() for each in here.workers] == [None, None]


def test_calls_that_a_temporal_forgot_go_on_once_somebody_resumes_their_run(
    here: World, temporal_of_ours: Development
) -> None:
    """It is killed and begins anew with nothing; the worker that has the run knows of that as little as the others."""
    here.worker("--calls", "1")
    here.worker("--calls", "1")
    run_id = here.submit(LIST)
    here.wait(lambda: len(here.lines("done")) > 3, "some items")
    temporal_of_ours.kill()
    temporal_of_ours.forget()
    pause(AWAY_S)
    assert here.runs.pool.unclaimed(run_id)
    temporal_of_ours.start()
    hand_on(run_id, here.carrier, here.options, reopens=True)
    assert verdict(here, run_id) == "GO"
    assert sorted(map(int, here.lines("done"))) == list(range(ITEMS))
    assert [each.poll() for each in here.workers] == [None, None]


def test_a_cancel_reaches_a_run_under_way_while_temporal_is_away(
    here: World, temporal_of_ours: Development
) -> None:
    """Its worker looks into the store."""
    here.worker()
    run_id = here.submit(OWN)
    here.wait(lambda: bool(here.lines("own")), "a call")
    temporal_of_ours.kill()
    assert app.cancel_run(run_id, options=here.options) is None
    assert here.ended(run_id).stopping == "cancelled"
    temporal_of_ours.start()


def test_a_worker_that_is_cut_off_from_temporal_keeps_what_it_has_and_others_help(
    here: World, wire: Wire
) -> None:
    """It can't hand over the calls of its runs; whoever is given the run in its place does that for it."""
    cut = here.worker("--url", f"127.0.0.1:{wire.port}", "--calls", "2")
    runs = {"list": here.submit(LIST), "own": here.submit(OWN)}
    here.wait(lambda: all(map(here.lines, ("done", "own"))), "some calls")
    here.worker()
    assert here.host(runs["list"]) == here.host(runs["own"]) == cut.pid
    wire.cut()
    here.wait(lambda: len(here.lines("done")) == ITEMS, "the items")
    (here.folder / "go").touch()
    assert {name: verdict(here, run_id) for name, run_id in runs.items()} == dict.fromkeys(runs, "GO")
    assert sorted(map(int, here.lines("done"))) == list(range(ITEMS))
    assert here.lines("own") == ["first", "second"]


def test_a_worker_that_is_cut_off_and_killed_is_replaced(here: World, wire: Wire) -> None:
    """Nobody answers for it any more."""
    cut = here.worker("--url", f"127.0.0.1:{wire.port}")
    run_id = here.submit(OWN.replace("mutates: true", "mutates: false"))
    here.wait(lambda: bool(here.lines("own")), "a call")
    here.worker()
    wire.cut()
    pause(5.0)
    assert here.host(run_id) == cut.pid
    cut.kill()
    here.wait(lambda: here.host(run_id) == here.workers[-1].pid, "the other worker")
    (here.folder / "go").touch()
    assert verdict(here, run_id) == "GO"


def test_a_worker_ends_when_it_is_told_to_though_temporal_is_away(
    here: World, temporal_of_ours: Development
) -> None:
    """A supervisor would have to kill it otherwise."""
    worker = here.worker("--drain", "1s")
    temporal_of_ours.kill()
    worker.terminate()
    assert worker.wait(60) == 0
    temporal_of_ours.start()
