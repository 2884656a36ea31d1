"""What a worker says while it runs: enough to know from its log what happened, and when."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from tests.engines.world import World, temporal_server, world
from tests.servers.cut import wire_to
from tests.servers.postgres import Server

from gonogo.app.present import workers_in

STAMP = re.compile(r"\[\d+\] \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO|WARNING|ERROR|CRITICAL) \S")
SLOW = """
steps:
  slow: {type: command, runs_on: here, exec: "echo x >> began; sleep 60"}
"""

pytestmark = pytest.mark.slow


def workers(here: World) -> bool:
    """Whether there is one that others see."""
    return bool(workers_in(here.options)[0])


def heard(here: World, pattern: str) -> None:
    """Some worker says it, in a line of its own."""
    here.wait(lambda: any(re.search(pattern, line) for line in here.said), pattern)


def test_a_workers_life_is_in_its_log(here: World) -> None:
    """What it takes, if asked for, that it takes over, that it is told to end, with what, and that it did; nothing of
    libraries.
    """
    first = here.worker("--label", "here", "--calls", "3", "-v")
    heard(here, r"takes work from \w+.*: 100 runs and 3 calls at once; labels here$")
    here.submit(SLOW)
    here.wait(lambda: len(here.lines("began")) == 1, "the call")
    heard(here, r"INFO takes run \S+, which is new$")
    heard(here, r"INFO takes call \d+ of run \S+$")
    second = here.worker("--label", "here", "--drain", "1s")
    first.kill()
    here.wait(lambda: len(here.lines("began")) == 2, "the second try")
    heard(
        here,
        r"WARNING (takes over run \S+|gonogo-\S+ is gone or stands still; its work goes to others: 1 run \()",
    )
    heard(here, r"WARNING takes over call \d+ of run \S+, which \S+ had$")
    second.send_signal(signal.SIGTERM)
    heard(
        here,
        r"draining after SIGTERM: takes nothing new; under way: 1 run and 1 call, calls have 1 s to end$",
    )
    heard(here, r"INFO ended after SIGTERM")
    second.wait(30)
    assert second.returncode == 0
    assert [line for line in here.said if not STAMP.match(line)] == []
    quiet = [line for line in here.said if line.startswith(f"[{second.pid}]")]
    assert [line for line in quiet if "dbos" in line.partition(" takes work ")[0]] == []
    assert [line for line in quiet if " takes run " in line or " takes call " in line] == []


def test_a_store_that_is_away_is_told_of_and_that_it_is_back(here: World, postgres: Server) -> None:
    """In one line each, whatever the libraries have to say of it."""
    here.worker()
    here.wait(lambda: workers(here), "its row")
    postgres.stop()
    back = r"the store answers again after" if here.carrier.address else r"begins anew in the same process"
    away = (
        r"the store is away: .* didn't answer" if here.carrier.address else r"lost its session with the store"
    )
    heard(here, away)
    postgres.start()
    heard(here, back)
    here.wait(
        lambda: sum(" takes work " in line for line in here.said) == (1 if here.carrier.address else 2), "it"
    )
    assert [line for line in here.said if not STAMP.match(line)] == []
    assert sum(bool(re.search(away, line)) for line in here.said) == 1


def test_a_temporal_that_is_away_is_told_of_and_that_it_is_back(postgres: Server, tmp_path: Path) -> None:
    """In one line each; its own library says nothing."""
    with (
        temporal_server() as address,
        wire_to(int(address.rpartition(":")[2])) as wire,
        world(postgres, tmp_path, f"127.0.0.1:{wire.port}") as here,
    ):
        here.worker()
        wire.cut()
        heard(
            here,
            rf"WARNING Temporal at 127.0.0.1:{wire.port} doesn't answer; what is under way goes on$",
        )
        wire.mend()
        heard(here, rf"WARNING Temporal at 127.0.0.1:{wire.port} answers again after \d+ s$")
        assert [line for line in here.said if not STAMP.match(line)] == []
