"""The engine alone: no-op chains and maps on plans made in memory, journal on disk, effects durability.

python -m bench.chain [--profile] [LENGTH…]      µs a step of a chain, then µs an item of a map with 64 slots
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path

from gonogo import app
from gonogo.core.plan import Edge, Limits, Need, Plan, Step

SLOTS = 64


def chain(length: int) -> Plan:
    """Steps that each wait for the one before."""
    steps = {}
    for number in range(length):
        needs = (Need((Edge(f"s{number - 1}"),)),) if number else ()
        steps[f"s{number}"] = Step(f"s{number}", "noop", depends_on=needs, timeout_s=None)
    return Plan("chain", steps, limits=Limits(max_parallelism=1))


def fan_out(length: int) -> Plan:
    """One list, and a no-op for each of its items."""
    source = Step(
        "list", "script", {"content": f"return Array.from({{length: {length}}}, (_, i) => i)"}, for_each=True
    )
    item = Step(
        "item",
        "noop",
        depends_on=(Need((Edge("list"),)),),
        fanout="map",
        fanout_explicit=True,
        concurrency=SLOTS,
    )
    return Plan("map", {"list": source, "item": item}, limits=Limits(max_parallelism=SLOTS))


def engine_s(plan: Plan, folder: Path) -> float:
    """CPU seconds from the first record to the last, with an observer as a run on a terminal has one.

    CPU time, so that other work on the machine doesn't count; the sandbox's process isn't in it.
    """
    times: list[float] = []
    options = app.Options(runs=folder, sinks=(lambda record: times.append(time.process_time()),))
    result = app.start_run(plan, None, options)
    if result.verdict != "GO":
        raise SystemExit(f"{plan.name}: {result.verdict} {result.because}")
    return times[-1] - times[0]


def main() -> None:
    """Print one line for each length."""
    parser = argparse.ArgumentParser(description="Measure the engine on plans made in memory.")
    parser.add_argument("lengths", nargs="*", type=int, default=[100, 1000, 10_000])
    parser.add_argument(
        "--profile", action="store_true", help="show where the time goes, for the last length"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for shape in (chain, fan_out):
            for length in given.lengths:
                cost = min(engine_s(shape(length), Path(name)) for _ in range(5)) / length
                print(f"{shape.__name__:8} {length:7,}  {cost * 1e6:7.1f} µs", flush=True)
            if given.profile:
                profile = cProfile.Profile()
                start = time.perf_counter()
                profile.runcall(engine_s, shape(given.lengths[-1]), Path(name))
                print(f"profiled: {time.perf_counter() - start:.2f} s")
                pstats.Stats(profile).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    main()
