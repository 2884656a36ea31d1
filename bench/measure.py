"""Runs the installed `gonogo` command and measures it: wall time, CPU time, peak memory, time between records.

Each measurement is a fresh process. A run's own time is taken from its journal, first record to last, so that
neither the start of the process nor the loading of a long file is counted as the engine's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

COMMAND = (sys.executable, "-m", "gonogo")
# A process inherits the peak memory of the one that starts it (Linux keeps it over exec), and this one reads whole
# journals; so a small one starts what is measured, and holds the watch.
_STARTER = """
import json, os, subprocess, sys, time
sink = int(sys.argv[1])
start = time.perf_counter()
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
_, status, usage = os.wait4(child.pid, 0)
wall_s = time.perf_counter() - start
code = child.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([code, wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""


class BenchError(Exception):
    """A run that was to be measured didn't end as it should; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What several measurements of the same came to."""

    middle: float
    low: float
    high: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread:
        """Median, least and most."""
        found = sorted(values)
        return Spread(median(found), found[0], found[-1])

    def times(self, factor: float) -> Spread:
        """In another unit."""
        return Spread(self.middle * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Process:
    """One finished process: seconds by the clock and of CPU (with children that ended), peak MB, its output."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    output: str


def process(command: Sequence[str], folder: Path) -> Process:
    """Run a command once. Raises BenchError when it doesn't end with 0."""
    with tempfile.TemporaryFile() as sink:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _STARTER, str(sink.fileno()), *command],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            pass_fds=(sink.fileno(),),
            check=True,
        )
        sink.seek(0)
        output = sink.read().decode(errors="replace")
    code, wall_s, cpu_s, peak = json.loads(done.stdout)
    if code:
        raise BenchError(f"{' '.join(command)} ended with {code}: {output[-300:]}")
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return Process(wall_s, cpu_s, peak / unit, output)


def _environment() -> dict[str, str]:
    """As an installed program has it: with compiled bytecode, which the first start writes."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def gonogo(arguments: Sequence[str], folder: Path) -> Process:
    """Run the command line once. Raises BenchError."""
    return process([*COMMAND, *arguments], folder)


def python(*arguments: str) -> Process:
    """Run Python once, in this folder. Raises BenchError."""
    return process([sys.executable, *arguments], Path.cwd())


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a workflow: seconds from its first record to its last, peak memory in MB, its id and records."""

    engine_s: float
    peak_mb: float
    run_id: str
    records: int


def run(workflow: str, folder: Path, *, slots: int = 1) -> Run:
    """Run a workflow text with its journal on disk. Raises BenchError."""
    (folder / "gonogo.yaml").write_text(workflow)
    result = folder / "result.json"
    arguments = ["run", "-j", str(slots), "--runs-dir", "runs", "--format", "json", "--out", str(result)]
    ended = gonogo(arguments, folder)
    run_id = json.loads(result.read_text())["run_id"]
    times = record_times(folder / "runs", run_id)
    return Run(times[-1] - times[0], ended.peak_mb, run_id, len(times))


def record_times(runs: Path, run_id: str) -> list[float]:
    """The Unix times of a run's records."""
    (journal,) = [path for path in runs.rglob("*.jsonl") if run_id in str(path)]
    with journal.open() as lines:
        return [float(json.loads(line)["at"]) for line in lines]


def several(times: int, measure: Callable[[], float]) -> Spread:
    """The same measured so many times."""
    return Spread.of(measure() for _ in range(times))


def sync_s(folder: Path, *, times: int = 50) -> float:
    """Median seconds of one sync of a short append here."""
    costs: list[float] = []
    sync = getattr(os, "fdatasync", os.fsync)
    with (folder / "sync").open("ab", buffering=0) as file:
        for _ in range(times):
            file.write(b"x" * 200)
            start = time.perf_counter()
            sync(file.fileno())
            costs.append(time.perf_counter() - start)
    return median(costs)
