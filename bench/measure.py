"""Runs the installed `gonogo` command and measures it: wall time, peak memory, time between records.

A run's own time is taken from its journal, first record to last, so that neither the start of the process nor
the loading of a long file is counted as the engine's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

COMMAND = Path(sys.executable).parent / "gonogo"


class BenchError(Exception):
    """A run that was to be measured didn't end as it should; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class Process:
    """One finished process: seconds, peak memory in MB, what it printed."""

    wall_s: float
    peak_mb: float
    output: str


def gonogo(arguments: Sequence[str], folder: Path) -> Process:
    """Run the command once. Raises BenchError when it doesn't end with 0."""
    with tempfile.TemporaryFile() as sink:
        start = time.perf_counter()
        child = subprocess.Popen(
            [COMMAND, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        sink.seek(0)
        output = sink.read().decode(errors="replace")
    if child.returncode:
        raise BenchError(f"gonogo {' '.join(arguments)} ended with {child.returncode}: {output[-300:]}")
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return Process(wall_s, usage.ru_maxrss / unit, output)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a workflow: seconds from its first record to its last, peak memory in MB, its id."""

    engine_s: float
    peak_mb: float
    run_id: str


def run(workflow: str, folder: Path, *, slots: int = 1) -> Run:
    """Run a workflow text with its journal on disk."""
    (folder / "gonogo.yaml").write_text(workflow)
    result = folder / "result.json"
    arguments = ["run", "-j", str(slots), "--runs-dir", "runs", "--format", "json", "--out", str(result)]
    process = gonogo(arguments, folder)
    run_id = json.loads(result.read_text())["run_id"]
    return Run(engine_seconds(folder / "runs", run_id), process.peak_mb, run_id)


def engine_seconds(runs: Path, run_id: str) -> float:
    """Seconds between the first and the last record of a run's journal."""
    (journal,) = [path for path in runs.rglob("*.jsonl") if run_id in str(path)]
    times = [json.loads(line)["at"] for line in journal.read_text().splitlines()]
    return float(times[-1] - times[0])


def whole_process_s(arguments: Sequence[str], folder: Path, *, times: int = 7) -> float:
    """Median wall seconds of the whole process."""
    return median(gonogo(arguments, folder).wall_s for _ in range(times))


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
