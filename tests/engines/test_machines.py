"""Machines that are wrong: clocks that differ, and a disk of the store that is full."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.engines.test_outages import ITEMS, LIST, settled
from tests.engines.world import World
from tests.servers.postgres import Server

AHEAD_S = 600.0
DISK_BYTES = 64 * 1024 * 1024
WAITS = """
steps:
  ask: {type: human-input, prompt: well, timeout: 1500, default: "no"}
  flaky:
    type: command
    runs_on: far
    exec: "echo x >> tries; test $(wc -l < tries) -ge 3"
    criticality: info
    on_fail: {retry: {max: 3, backoff: {mode: fixed, delay_ms: 1200}, retry_on: [transient, logical]}}
  last: {type: noop, depends_on: [ask, flaky]}
"""
PARKED = "steps:\n  ask: {type: human-input, prompt: well, timeout: 1500, default: 'no'}\n"
"""Nobody has the run while it waits, so who goes on with it may be another than who began with it."""

pytestmark = pytest.mark.slow


def test_clocks_that_are_twenty_minutes_apart_change_no_wait(here: World) -> None:
    """Who begins with a run, who goes on with it and who performs its calls may think that it is another time."""
    here.worker("--label", "far", clock_s=AHEAD_S)
    here.worker("--label", "far", clock_s=-AHEAD_S)
    waiting = [here.submit(WAITS.replace("tries", f"tries{number}")) for number in range(4)]
    parked = [here.submit(PARKED) for _ in range(4)]
    lists = here.submit(LIST)
    for run_id in (*waiting, *parked):
        here.wait(lambda run_id=run_id: str(verdict(here, run_id)) == "GO", f"the end of {run_id}", 60)  # type: ignore[misc]
        state = here.state(run_id)
        assert state is not None
        assert (2.3 if run_id in waiting else 1.5) <= state.at < 60
    assert settled(here, lists) == "GO"
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))


def verdict(here: World, run_id: str) -> str | None:
    """So far."""
    state = here.state(run_id)
    return state.finished.verdict if state is not None and state.finished is not None else None


@pytest.fixture
def disk() -> Iterator[Path]:
    """A small one, which root alone can make; not in a test's folder, into which Postgres' user may not reach."""
    with tempfile.TemporaryDirectory(prefix="disk-") as name:
        Path(name).chmod(0o711)
        folder = Path(name) / "small"
        folder.mkdir()
        options = f"size={DISK_BYTES},mode=711"
        mounting = ["mount", "-t", "tmpfs", "-o", options, "small", str(folder)]
        if os.geteuid() or subprocess.run(mounting, check=False).returncode:
            pytest.skip("no right to mount")
        yield folder
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def on_the_disk(here: World, postgres: Server, disk: Path) -> Iterator[World]:
    """Workers whose store is there."""
    home = disk / "tables"
    home.mkdir(mode=0o700)
    shutil.chown(home, "nobody")
    postgres.execute(f"create tablespace small location '{home}'")
    postgres.execute("create database small tablespace small")
    made = World(postgres.url("small"), here.folder, here.carrier)
    yield made
    made.close()
    postgres.execute("drop database small with (force)")
    postgres.execute("drop tablespace small")


def test_a_full_disk_of_the_store_costs_time_and_nothing_else(on_the_disk: World, disk: Path) -> None:
    """A real one. Nothing with consequences goes out while nothing can be recorded; all goes on once there is room."""
    here = on_the_disk
    here.worker()
    here.worker()
    run_id = here.submit(LIST.replace("[list]", '[list]\n    env: {LARGE: "' + "x" * 20_000 + '"}'))
    here.wait(lambda: len(here.lines("done")) > 1, "some items")
    filler = disk / "filler"
    with filler.open("wb") as file, suppress(OSError):
        while True:
            file.write(b"x" * 65536)
            file.flush()
    here.wait(lambda: any("No space left" in line for line in here.said), "the end of the disk")
    filler.unlink()
    assert settled(here, run_id) == "GO"
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
