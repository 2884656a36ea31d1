"""The store's machine is gone, and its standby takes over: with all that was promised, or without the last of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.test_outages import ITEMS, LIST, settled
from tests.engines.world import HEAD, World
from tests.servers.postgres import Server, Standby, running, standby_of

from gonogo.app.engines import Carrier
from gonogo.core.events import CallDone, RunStarted
from gonogo.core.plan import Plan, Step
from gonogo.errors import JournalError
from gonogo.journal.postgres import link
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.records import Record

pytestmark = [pytest.mark.slow, pytest.mark.long]

LOCAL = """
steps:
  a: {type: command, mutates: true, criticality: external, exec: "touch began; sleep 6; echo a >> local"}
  b: {type: command, mutates: true, criticality: external, depends_on: a, exec: "echo b >> local"}
"""


@pytest.fixture
def primary() -> Iterator[Server]:
    """One that may be lost."""
    with running() as server:
        yield server


@pytest.fixture
def standby(primary: Server) -> Iterator[Standby]:
    """What follows it."""
    with standby_of(primary) as server:
        yield server


@pytest.fixture
def store(primary: Server, standby: Standby) -> str:
    """A new database on both, and the URL of whichever takes writes."""
    one = primary.new_database()
    both = one.replace(f":{primary.port}/", f":{primary.port},127.0.0.1:{standby.port}/")
    return f"{both}?target_session_attrs=read-write"


def test_runs_go_on_with_a_standby_that_has_all_that_was_promised(
    store: str, primary: Server, standby: Standby, tmp_path: Path
) -> None:
    """Nothing is lost, nothing is done twice, and nobody starts anything again: workers, and a run without them."""
    standby.keep_up()
    here = World(store, tmp_path, Carrier("dbos"))
    try:
        here.worker()
        here.worker()
        (tmp_path / "local.yaml").write_text(HEAD + LOCAL)
        local = subprocess.Popen(
            [sys.executable, "-m", "gonogo", "run", "local.yaml"],
            cwd=tmp_path, env={**os.environ, "GONOGO_STORE": store}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        here.wait((tmp_path / "began").exists, "the run without workers")
        run_id = here.submit(LIST)
        here.wait(lambda: len(here.lines("done")) > 3, "some items")
        primary.kill()
        standby.promote()
        assert settled(here, run_id) == "GO"
        assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
        said = local.communicate(timeout=60)[0]
        assert local.returncode == 0, said
        assert here.lines("local") == ["a", "b"]
        assert [each.poll() for each in here.workers] == [None, None]
    finally:
        here.close()


def record(seq: int) -> Record:
    """Record 0 starts a run; each other ends a call."""
    if seq == 0:
        plan = Plan("small", {"lint": Step("lint", "noop")})
        return Record(0, 0.0, RunStarted(run_id="r", plan=plan, started_at_ms=1))
    return Record(seq, float(seq), CallDone(at=float(seq), call=seq, output=seq))


def test_who_knows_more_than_a_standby_that_lacks_the_last_commits_stops(
    store: str, primary: Server, standby: Standby
) -> None:
    """What was promised is gone, and what was done on it nobody else can know: nothing is written on top."""
    with PostgresRuns(store) as runs:
        journal = runs.create("r")
        journal.append([record(0), record(1)], sync=True)
        standby.fall_behind()
        journal.append([record(2)], sync=True)
        primary.kill()
        standby.promote()
        with pytest.raises(
            JournalError, match="isn't as this process wrote it: record 3 came where 2 is due"
        ):
            journal.append([record(3)], sync=True)
        assert [each.seq for each in runs.read("r").records] == [0, 1]


def test_nothing_is_promised_that_a_standby_which_should_have_it_lacks(
    store: str, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The primary has the record, and shows it to whoever looks; but were it lost now, so would be the record."""
    monkeypatch.setattr(link, "SILENCE_S", 0.3)
    standby.keep_up()
    with PostgresRuns(store, patience_s=2.0) as runs:
        journal = runs.create("r")
        journal.append([record(0)], sync=True)
        standby.stop()
        with pytest.raises(JournalError, match="didn't answer for 2 s"):
            journal.append([record(1)], sync=True)
        standby.start()
