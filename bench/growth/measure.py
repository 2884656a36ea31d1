"""What runs of each kind cost a real Postgres: commits, bytes of its log, rows; with two real workers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tests.servers.postgres import running

from bench.growth.shapes import SHAPES, Shape
from gonogo import app
from gonogo.app.engines import Carrier, submit_run
from gonogo.app.options import Options, Start, runs_in

TIMES = {"check": 40, "agent": 20, "approval": 20, "list of 100": 3, "list of 10,000": 1}
IDLE_S = 4.0
_FIGURES = "select xact_commit from pg_stat_database where datname = current_database()"
_WAL = "select wal_bytes::bigint from pg_stat_wal"
WORKERS = 2


def measure() -> None:
    """Print a line for each shape."""
    with running() as server, tempfile.TemporaryDirectory() as folder:
        url = server.new_database()
        with _workers(url, Path(folder)):
            idle = _idle(url)
            print(f"idle, {WORKERS} workers: {idle[0]:.0f} commits and {idle[1]:.0f} bytes of log a second")
            for shape in SHAPES:
                _report(shape, url, idle)


def _pause(seconds: float) -> None:
    """Another process works meanwhile."""
    threading.Event().wait(seconds)


def _report(shape: Shape, url: str, idle: tuple[float, float]) -> None:
    times = TIMES[shape.name]
    before, began_s = _figures(url), time.monotonic()
    _run(shape, url, times)
    took_s = time.monotonic() - began_s
    after = _figures(url)
    commits = (after[0] - before[0] - idle[0] * took_s) / times
    wal = (after[1] - before[1] - idle[1] * took_s) / times
    print(
        f"{shape.name:16} {commits:9.1f} commits {wal / 1024:9.1f} KiB of log a run;"
        f" {times} runs in {took_s:.1f} s ({times / took_s:.1f} a second)"
    )


def _run(shape: Shape, url: str, times: int) -> None:
    options = Options(runs=url)
    plan = app.loads(shape.text).plan
    runs = runs_in(options)
    waiting = {submit_run(plan, Start(), options, Carrier("dbos")) for _ in range(times)}
    while waiting:
        for run_id in sorted(waiting):
            summary = runs.summaries([run_id])[0]  # type: ignore[attr-defined]
            if summary.status in ("GO", "NO-GO", "HOLD"):
                waiting.discard(run_id)
        _pause(0.1)


def _figures(url: str) -> tuple[int, int]:
    _pause(1.2)  # what a session did is counted within a second of its end
    with psycopg.connect(url, autocommit=True) as connection:
        commits = connection.execute(_FIGURES).fetchone()
        wal = connection.execute(_WAL).fetchone()
    assert commits is not None
    assert wal is not None
    return int(commits[0]), int(wal[0])


def _idle(url: str) -> tuple[float, float]:
    began_s, before = time.monotonic(), _figures(url)
    _pause(IDLE_S)
    after, took_s = _figures(url), time.monotonic() - began_s
    return (after[0] - before[0]) / took_s, (after[1] - before[1]) / took_s


@contextmanager
def _workers(url: str, folder: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "gonogo", "worker", "--engine", "dbos", "--store", url]
    processes = [
        subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) for _ in range(WORKERS)
    ]
    try:
        for process in processes:
            assert process.stderr is not None
            print(process.stderr.readline().strip())
        _pause(5.0)  # until DBOS has made its tables
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
