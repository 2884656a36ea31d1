"""Prints each budget with what was measured. Ends with 1 when a run failed or a budget was missed.

python -m bench           all
python -m bench --quick   without the longest chains and lists
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import workflows
from bench.measure import BenchError, run, sync_s, whole_process_s

US = 1e6
SCRIPT = 'type: script\n    content: "return 1"'
MUTATING = "type: noop\n    mutates: true"


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the table: `value` and `budget` in `unit`."""

    name: str
    value: float
    budget: float
    unit: str

    def __str__(self) -> str:
        verdict = "ok" if self.value <= self.budget else "OVER"
        return f"{self.name:58} {self.value:10.1f} {self.budget:10.1f} {self.unit:8} {verdict}"


def chains(folder: Path, *, quick: bool) -> Iterator[Measured]:
    """A no-op step's cost, which must not grow with the length."""
    for length in (100, 1000) if quick else (100, 1000, 10_000):
        cost = run(workflows.chain(length), folder).engine_s / length
        yield Measured(f"no-op step on a chain of {length:,}", cost * US, 60, "µs")


def fan_outs(folder: Path, *, quick: bool) -> Iterator[Measured]:
    """A no-op item's cost and the peak memory of the process."""
    sizes = {1000: 60, 10_000: 70} if quick else {1000: 60, 10_000: 70, 100_000: 150}
    for length, memory_mb in sizes.items():
        done = run(workflows.fan_out(length), folder, slots=64)
        yield Measured(f"item of a list of {length:,}, 64 slots", done.engine_s / length * US, 50, "µs")
        yield Measured(f"peak memory of a list of {length:,}", done.peak_mb, memory_mb, "MB")


def guards(folder: Path, *, quick: bool) -> Iterator[Measured]:
    """What four guards add."""
    length = 1000
    for name, workflow, budget, slots in (
        ("four guards, a step on a chain", workflows.chain, 120, 1),
        ("four guards, an item of a list", workflows.fan_out, 25, 64),
    ):
        plain = run(workflow(length), folder, slots=slots).engine_s
        guarded = run(workflow(length, guarded=True), folder, slots=slots).engine_s
        yield Measured(name, (guarded - plain) / length * US, budget, "µs more")


def calls(folder: Path, *, quick: bool) -> Iterator[Measured]:
    """Steps that do something."""
    length = 1000
    chain = run(workflows.chain(length, body=SCRIPT), folder).engine_s
    yield Measured("script step on a chain", chain / length * US, 80, "µs")
    items = run(workflows.fan_out(length, body=SCRIPT), folder, slots=64).engine_s
    yield Measured("script step in a list", items / length * US, 50, "µs")
    mutating = run(workflows.chain(length, body=MUTATING), folder).engine_s / length
    sync = sync_s(folder)
    yield Measured(
        f"mutating step (one sync here: {sync * US:.0f} µs)", mutating * US, 2 * sync * US + 80, "µs"
    )


def processes(folder: Path, *, quick: bool) -> Iterator[Measured]:
    """Whole processes."""
    (folder / "gonogo.yaml").write_text(workflows.three_steps())
    yield Measured("gonogo --help", whole_process_s(["--help"], folder) * 1e3, 100, "ms")
    yield Measured("three-step run with expressions", whole_process_s(["run"], folder) * 1e3, 250, "ms")
    (folder / "gonogo.yaml").write_text(workflows.expressions(600))
    cost = whole_process_s(["validate"], folder, times=3)
    yield Measured("validate 600 expressions", cost * 1e3, 300, "ms")


def rebuilding(folder: Path, *, quick: bool) -> Iterator[Measured]:
    """A long journal folded into its state; a no-op step makes two records or fewer."""
    if not quick:
        done = run(workflows.chain(10_000), folder)
        cost = whole_process_s(["show", done.run_id, "--runs-dir", "runs"], folder, times=3)
        yield Measured("state of a 10,000-step journal, whole process", cost * 1e3, 400, "ms")


PARTS: tuple[Callable[..., Iterator[Measured]], ...] = (
    processes,
    chains,
    fan_outs,
    guards,
    calls,
    rebuilding,
)


def main() -> int:
    """Measure all parts, one line each."""
    parser = argparse.ArgumentParser(description="Measure gonogo against its budgets.")
    parser.add_argument("--quick", action="store_true", help="leave out the longest chains and lists")
    quick = parser.parse_args().quick
    # Others' work on the machine counts as ours in wall time; say how much of it there is.
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors at the start")
    print(f"{'what':58} {'measured':>10} {'budget':>10}")
    missed = 0
    for part in PARTS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                for line in part(Path(folder), quick=quick):
                    print(line, flush=True)
                    missed += line.value > line.budget
            except BenchError as error:
                print(f"{part.__name__}: {error}", flush=True)
                missed += 1
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
