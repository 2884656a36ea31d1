"""Prints each budget of docs/project/budgets.md with what was measured: median, least and most of several runs, each
in a fresh process. Ends with 0 whatever comes out: a benchmark is no test, and other work on the machine counts.

python -m bench           all, some ten minutes
python -m bench --quick   without the longest chains and lists, and without most of the engines
python -m bench dbos      parts by name
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import fallbacks, gates, workflows
from bench.engines import measure as engines
from bench.measure import BenchError, Run, Spread, gonogo, python, run, several, sync_s
from bench.waits import CASES

US = 1e6
MS = 1e3
SCRIPT = 'type: script\n    content: "return 1"'
MUTATING = "type: noop\n    mutates: true"
CHAINS = {
    "no-op": "type: noop",
    "mutating no-op": "type: noop, mutates: true",
    "command": "type: command, exec: 'true'",
}
"""Steps that stay with their run on a worker, as an inline mapping."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, all figures in `unit`. Without a `budget` it is there to compare with."""

    name: str
    figure: Spread
    unit: str
    budget: float | None = None

    def __str__(self) -> str:
        figure = self.figure
        spread = f"{figure.low:.1f}–{figure.high:.1f}"
        limit, verdict = "", ""
        if self.budget is not None:
            limit = f"{self.budget:.0f}"
            verdict = "ok" if figure.middle <= self.budget else "OVER"
        return f"{self.name:80} {figure.middle:9.1f} {spread:>17} {limit:>8} {self.unit:3} {verdict}".rstrip()


def floors(folder: Path, *, quick: bool) -> Iterator[Row]:
    """What the machine costs without gonogo."""
    bare, structs = ([python("-c", code) for _ in range(7)] for code in ("pass", "import msgspec"))
    yield Row("floor: python -c pass, by the clock", Spread.of(each.wall_s for each in bare).times(MS), "ms")
    yield Row("floor: python -c pass, CPU", Spread.of(each.cpu_s for each in bare).times(MS), "ms")
    yield Row("floor: importing msgspec, CPU", Spread.of(each.cpu_s for each in structs).times(MS), "ms")
    loop = several(5, lambda: float(python("-m", "bench.floor", "loop").output))
    yield Row("floor: three million turns of an empty loop, CPU", loop.times(MS), "ms")
    event = several(5, lambda: float(python("-m", "bench.floor", "events").output))
    yield Row("floor: an event loop that writes one JSON line an event, CPU an event", event.times(US), "µs")


def processes(folder: Path, *, quick: bool) -> Iterator[Row]:
    """Whole processes, from start to end."""
    (folder / "gonogo.yaml").write_text(workflows.three_steps())
    yield from _whole("gonogo --help", ["--help"], folder, 100, times=9)
    yield from _whole(
        "gonogo run: script, noop, log; a guarantee, an if, a template", ["run"], folder, 250, times=9
    )
    text = workflows.expressions(600)
    (folder / "gonogo.yaml").write_text(text)
    lines = text.count("\n")
    yield from _whole(
        f"gonogo validate: {lines:,} lines, 600 expressions", ["validate"], folder, 300, times=5
    )


def _whole(name: str, arguments: list[str], folder: Path, budget_ms: float, *, times: int) -> Iterator[Row]:
    gonogo(arguments, folder)  # the first start writes bytecode
    done = [gonogo(arguments, folder) for _ in range(times)]
    yield Row(f"{name}; by the clock", Spread.of(each.wall_s for each in done).times(MS), "ms", budget_ms)
    yield Row(f"{name}; CPU", Spread.of(each.cpu_s for each in done).times(MS), "ms")


def chains(folder: Path, *, quick: bool) -> Iterator[Row]:
    """A no-op step's cost, which must not grow with the length."""
    for length, times in ((100, 5), (1000, 5)) if quick else ((100, 5), (1000, 5), (10_000, 2)):
        cost = _per_item(workflows.chain(length), folder, length, times=times)
        yield Row(f"chain of {length:,} no-op steps, a step, first record to last", cost, "µs", 60)


def fan_outs(folder: Path, *, quick: bool) -> Iterator[Row]:
    """A no-op item's cost and the peak memory of the whole process."""
    sizes = ((1000, 3, 60), (10_000, 2, 70), (100_000, 1, 150))
    for length, times, memory_mb in sizes[:2] if quick else sizes:
        runs = [run(workflows.fan_out(length), folder, slots=64) for _ in range(times)]
        yield Row(f"map of {length:,} no-op items, 64 slots, an item", _costs(runs, length), "µs", 50)
        memory = Spread.of(each.peak_mb for each in runs)
        yield Row(f"map of {length:,} no-op items, peak memory of the process", memory, "MB", memory_mb)


def sandbox(folder: Path, *, quick: bool) -> Iterator[Row]:
    """What expressions cost by themselves. Reading and compiling is paid once for each text, when a file is loaded."""
    runs = [json.loads(python("-m", "bench.expressions").output) for _ in range(3)]
    for case in runs[0]:
        yield Row(f"sandbox: {case}", Spread.of(each[case] for each in runs), "µs")


def guards(folder: Path, *, quick: bool) -> Iterator[Row]:
    """What four guards (if, assume, guarantee, fail_if) add, pairs of runs one after the other.

    Their 4,000 texts are read and compiled before the first record, so that isn't in it; `sandbox` says what it costs.
    """
    length = 1000
    for name, workflow, budget, slots in (
        ("four guards, no two alike, added to a step of a chain of 1,000", workflows.chain, 120, 1),
        ("four guards added to an item of a map of 1,000", workflows.fan_out, 25, 64),
    ):
        more = []
        for _ in range(3):
            plain = run(workflow(length), folder, slots=slots).engine_s
            more.append(run(workflow(length, guarded=True), folder, slots=slots).engine_s - plain)
        yield Row(name, Spread.of(more).times(US / length), "µs", budget)


def calls(folder: Path, *, quick: bool) -> Iterator[Row]:
    """Steps that do something."""
    length = 1000
    chain = _per_item(workflows.chain(length, body=SCRIPT), folder, length, times=3)
    yield Row("script step on a chain of 1,000", chain, "µs", 80)
    items = _per_item(workflows.fan_out(length, body=SCRIPT), folder, length, times=3, slots=64)
    yield Row("script step on a map of 1,000, 64 slots, an item", items, "µs", 50)
    sync = several(3, lambda: sync_s(folder)).times(US)
    yield Row("floor: one sync of a short append", sync, "µs")
    mutating = _per_item(workflows.chain(length, body=MUTATING), folder, length, times=3)
    yield Row("mutating no-op step on a chain of 1,000 (2 syncs + 80)", mutating, "µs", 2 * sync.middle + 80)


def waits(folder: Path, *, quick: bool) -> Iterator[Row]:
    """Waits between attempts, by the core alone on a virtual clock."""
    runs = [json.loads(python("-m", "bench.waits").output) for _ in range(3)]
    for case, (items, retries) in CASES.items():
        taken = Spread.of(each[case] for each in runs)
        yield Row(f"core: {case}, an item", taken.times(US / items), "µs")
        yield Row(f"core: {case}, each of its calls", taken.times(US / items / (1 + retries)), "µs", 50)


def gate(folder: Path, *, quick: bool) -> Iterator[Row]:
    """What the gate adds to a call and to a piece of a stream; a call's budget is its peers' figure of the same run."""
    found: dict[str, dict[str, list[float]]] = json.loads(python("-m", "bench.gates").output)
    calls = {name: Spread.of(costs).times(US) for name, costs in found["call"].items()}
    peers = calls[gates.PEERS]
    yield Row("gate: a clean call, its record included", calls[gates.GATE], "µs", peers.middle)
    for name, spread in calls.items():
        if name != gates.GATE:
            yield Row(f"to compare: the same call by {name}", spread, "µs")
    for mode, costs in found["piece"].items():
        yield Row(f"gate: added to a piece of a stream, mode {mode}", Spread.of(costs).times(US), "µs", 5)


def failing_over(folder: Path, *, quick: bool) -> Iterator[Row]:
    """A call that fails over, over real connections; the budget is the peer's figure, where the peer is installed."""
    found: dict[str, list[float]] = json.loads(python("-m", "bench.fallbacks").output)
    spreads = {name: Spread.of(costs).times(MS) for name, costs in found.items()}
    peer = spreads.pop(fallbacks.PEER, None)
    for name, spread in spreads.items():
        told = f"a call that fails over on the loopback, CPU, by {name}"
        yield Row(told, spread, "ms", None if peer is None else peer.middle)
    if peer is not None:
        yield Row(f"to compare: the same by {fallbacks.PEER}", peer, "ms")


def rebuilding(folder: Path, *, quick: bool) -> Iterator[Row]:
    """A long journal folded into its state, and that printed."""
    if not quick:
        done = run(workflows.chain(10_000), folder)
        name = f"gonogo show of a journal of {done.records:,} records"
        yield from _whole(name, ["show", done.run_id, "--runs-dir", "runs"], folder, 400, times=3)


def dbos(folder: Path, *, quick: bool) -> Iterator[Row]:
    """Workers on DBOS, beside DBOS' own steps on the same store."""
    with engines.carriers("dbos") as made:
        url = made.server.new_database()
        made.begin()
        step = engines.bare("steps", url)
        yield from _chains(made, "DBOS", dict.fromkeys(CHAINS, 6))
        yield Row("to compare: a step of DBOS in its own workflow", step.times(MS), "ms")
        if quick:
            return
        yield Row(
            "DBOS: a call through the queue to another worker, from one to the next",
            made.calls().times(MS),
            "ms",
            20,
        )
        made.begin("--label", "far")
        made.end_first()
        yield Row("DBOS: a call that its run's own worker takes", made.own_calls().times(MS), "ms")
        made.begin()
        yield from _lists(made, "DBOS", 5)
        yield Row("DBOS: two idle workers, commits a second", made.idle(), "")
        made.end_workers()
        with engines.bare_workers(url):
            queued, fanned = engines.bare("queued", url), engines.bare("fanned", url)
        yield Row(
            "to compare: a workflow through DBOS' queue to its result, looked at all 10 ms",
            queued.times(MS),
            "ms",
        )
        yield Row("to compare: 300 workflows through DBOS' queue, two workers, one", fanned.times(MS), "ms")
        yield _take_over(made, "DBOS")
    yield from _parked()


def temporal(folder: Path, *, quick: bool) -> Iterator[Row]:
    """Workers on Temporal, beside its own steps on the same server, which is told to look often for work."""
    with engines.carriers("temporal") as made:
        made.begin()
        own = engines.bare("local", made.here.carrier.address)
        yield from _chains(made, "Temporal", {"no-op": 8})
        yield Row("to compare: a local activity of Temporal", own.times(MS), "ms")
        if quick:
            return
        yield Row(
            "Temporal: a call through the queue to another worker, from one to the next",
            made.calls().times(MS),
            "ms",
        )
        made.begin()
        far = engines.bare("far", made.here.carrier.address)
        yield Row("to compare: an activity of Temporal", far.times(MS), "ms")
        yield from _lists(made, "Temporal", None)
        made.end_workers()
        yield _take_over(made, "Temporal")


def _chains(made: engines.Carriers, engine: str, budgets: dict[str, int]) -> Iterator[Row]:
    """Steps that stay with their run, first record to last. Records of no-op steps are written many at a time; of one
    that changes something, its intent and what came of it each by themselves.
    """
    for name, body in CHAINS.items():
        spread = made.chain(body).times(MS)
        yield Row(f"{engine}: {name} step on a chain of 100 in Postgres", spread, "ms", budgets.get(name))


def _lists(made: engines.Carriers, name: str, budget_ms: float | None) -> Iterator[Row]:
    clock, cpu = made.lists()
    told = f"{name}: list of {engines.LIST} commands on two workers, 64 at a time, an item"
    yield Row(told, clock.times(MS), "ms", budget_ms)
    yield Row("… CPU of all processes, the store's and the commands' included", cpu.times(MS), "ms")


def _take_over(made: engines.Carriers, name: str) -> Row:
    took = several(3, made.take_over)
    return Row(f"{name}: a call of a killed worker with another", took, "s", 5)


def _parked() -> Iterator[Row]:
    with engines.carriers("dbos") as made:
        found = engines.parked(made.here.store)
    name = f"{engines.PARKED:,} runs that wait: more of the worker's"
    yield Row(f"{name} memory", Spread.of([found["MB"]]), "MB", 50)
    yield Row(f"{name} tasks", Spread.of([found["tasks"]]), "", 0)
    yield Row(f"{name} threads (pools that fill up to their size)", Spread.of([found["threads"]]), "")


def _per_item(workflow: str, folder: Path, length: int, *, times: int, slots: int = 1) -> Spread:
    return _costs([run(workflow, folder, slots=slots) for _ in range(times)], length)


def _costs(runs: list[Run], length: int) -> Spread:
    return Spread.of(each.engine_s for each in runs).times(US / length)


PARTS: tuple[Callable[..., Iterator[Row]], ...] = (
    floors,
    processes,
    rebuilding,
    chains,
    fan_outs,
    sandbox,
    guards,
    calls,
    gate,
    failing_over,
    waits,
    dbos,
    temporal,
)


def main() -> int:
    """Measure all parts, one line each."""
    parser = argparse.ArgumentParser(description="Measure gonogo against its budgets.")
    parser.add_argument("--quick", action="store_true", help="leave out the longest chains and lists")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(each.__name__ for each in PARTS)}"
    )
    asked = parser.parse_args()
    quick = asked.quick
    # Others' work on the machine counts as ours in wall time; say how much of it there is.
    load = os.getloadavg()[0]
    print(f"load {load:.1f} on {os.cpu_count()} processors at the start: budgets are for a quiet machine")
    print(f"{'what':80} {'median':>9} {'least–most':>17} {'budget':>8}")
    for part in PARTS:
        if asked.parts and part.__name__ not in asked.parts:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                for row in part(Path(folder), quick=quick):
                    print(row, flush=True)
            except BenchError as error:
                print(f"{part.__name__}: {error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
