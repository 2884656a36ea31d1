"""A store that can't be reached, is slow, or says nothing: nothing is lost, nothing is done twice, and nobody has to
start anything again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.engines.world import HEAD, ITEMS, World, list_of_changes, pause
from tests.servers.cut import Wire, wire_to
from tests.servers.postgres import Server

from gonogo import app
from gonogo.core.events import TimerFired
from gonogo.core.scope import index_of
from gonogo.errors import UsageError

pytestmark = [pytest.mark.slow, pytest.mark.long]

LIST = list_of_changes(0.2)
READING = """
steps:
  list: {type: script, forEach: true, content: "return [1, 2, 3, 4, 5, 6]"}
  each: {type: command, depends_on: list, exec: "echo x >> read; sleep 3"}
"""
PARKED = """
steps:
  ask: {type: human-input, prompt: "ship?", timeout: 15s, default: "no"}
  then: {type: command, depends_on: ask, mutates: true, exec: "echo {{ outputs.ask.text | shell_escape }} >> woken"}
"""
RETRYING = """
steps:
  flaky:
    type: command
    exec: "echo x >> tries; test $(wc -l < tries) -ge 2 || exit 75"
    on_fail: {retry: {max: 1, backoff: {mode: fixed, delay_ms: 2000}}}
"""
LOCAL = """
steps:
  a: {type: command, mutates: true, exec: "touch began; sleep 10; echo a >> local"}
  b: {type: command, mutates: true, depends_on: a, exec: "echo b >> local"}
"""
AWAY_S = 30.0
"""Longer than anything by which workers are taken for dead, and a failover takes."""


@pytest.fixture
def wire(here: World, postgres: Server) -> Iterator[Wire]:
    """By which the workers reach the store, and nobody else."""
    with wire_to(postgres.port) as made:
        here.way = made.through(here.store)
        yield made
        here.close()


def command(here: World, text: str, *arguments: str) -> subprocess.Popen[str]:
    """`gonogo run` by the wire, on its way."""
    file = here.folder / f"{arguments[0] if arguments else 'local'}.yaml".replace("--", "")
    file.write_text(HEAD + text)
    return subprocess.Popen(
        [sys.executable, "-m", "gonogo", "run", str(file), *arguments],
        cwd=here.folder,
        env={**os.environ, "GONOGO_STORE": here.way},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def settled(here: World, run_id: str) -> str:
    """The verdict, once a person who looked at what was done has said so of every doubt."""

    def is_over() -> bool:
        if here.state(run_id) is None:
            return False
        view = app.view_run(run_id, here.options)[0]
        for waiting in view.waiting if view.verdict == "HOLD" else ():
            assert waiting.in_doubt
            item = str(index_of(waiting.scope))
            word = "done" if item in here.lines("done") else "again"
            with suppress(UsageError):  # its host has looked since, at an answer from before
                app.answer_run(run_id, waiting.step, word, scope=waiting.scope, options=here.options)
        return view.verdict in ("GO", "NO-GO")

    here.wait(is_over, f"the end of run {run_id}", 180)
    return str(app.view_run(run_id, here.options)[0].verdict)


def test_a_store_that_cannot_be_reached_for_half_a_minute_costs_time_and_nothing_else(
    here: World, wire: Wire
) -> None:
    """It is well all the time, and nobody reaches it: not the workers, not who follows a run, not a run without them.
    A run that is parked is due meanwhile.
    """
    here.worker()
    here.worker()
    parked = here.submit(PARKED)
    where = ["--url", here.carrier.address, "--queue", here.carrier.queue] if here.carrier.address else []
    following = command(here, READING, "--engine", here.carrier.name, *where)
    local = command(here, LOCAL)
    here.wait(lambda: bool(here.lines("read")) and (here.folder / "began").exists(), "the beginning of both")
    run_id = here.submit(LIST)
    here.wait(lambda: len(here.lines("done")) > 3, "some items")
    wire.cut()
    pause(AWAY_S)
    wire.mend()
    assert settled(here, run_id) == "GO"
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
    assert settled(here, parked) == "GO"
    assert here.lines("woken") == ["no"]
    for each in (following, local):
        said = each.communicate(timeout=90)[0]
        assert each.returncode == 0, said
    assert "doesn't answer, waiting up to 60 s" in said
    assert "answers again after" in said
    assert here.lines("local") == ["a", "b"]
    assert [each.poll() for each in here.workers] == [None, None]


def test_what_falls_due_while_there_is_no_worker_happens_once(here: World) -> None:
    """The wait of a parked run, and the one between the attempts of a run whose worker was killed."""
    worker = here.worker()
    parked = here.submit(PARKED.replace("15s", "1500"))
    retrying = here.submit(RETRYING)
    here.wait(lambda: here.lines("tries") == ["x"], "the first try")
    here.ended(parked)
    worker.kill()
    worker.wait()
    pause(4.0)
    here.worker()
    here.worker()
    assert settled(here, parked) == "GO"
    assert settled(here, retrying) == "GO"
    assert (here.lines("woken"), here.lines("tries")) == (["no"], ["x", "x"])
    for run_id in (parked, retrying):
        assert [type(each.event) for each in here.runs.records(run_id)].count(TimerFired) == 1


def test_a_store_that_restarts_is_met_again_by_the_same_workers(here: World, postgres: Server) -> None:
    """No supervisor is needed for that."""
    here.worker()
    here.worker()
    run_id = here.submit(LIST)
    here.wait(lambda: len(here.lines("done")) > 3, "some items")
    postgres.restart()
    assert settled(here, run_id) == "GO"
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
    assert [each.poll() for each in here.workers] == [None, None]


def test_a_slow_store_makes_a_slow_run(here: World, wire: Wire) -> None:
    """Forty milliseconds there and back, for each statement."""
    wire.delay_s = 0.02
    here.worker()
    run_id = here.submit(LIST)
    assert settled(here, run_id) == "GO"
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
