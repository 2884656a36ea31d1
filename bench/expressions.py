"""The expression sandbox alone, its child process started and warm.

python -m bench.expressions      µs by the clock of each case, as JSON; the best of several rounds
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import count

from gonogo.expressions.sandbox import Request, Sandbox

ROUNDS = 9


def cases(sandbox: Sandbox) -> Iterator[tuple[str, float]]:
    """Each case with its µs."""
    fresh = count()
    constant = Request("1 + 1 > 0", "condition", {})
    value = {"rows": [{"n": n, "text": "x" * 20} for n in range(20)]}

    def new_output() -> None:
        names = {"output": {**value, "id": next(fresh)}}
        sandbox.evaluate([Request("output.rows.length > 3", "condition", names)])

    def compiled() -> None:
        sandbox.prepare([(f"{next(fresh)} + 1 > output", "condition") for _ in range(100)])

    yield "tiny", best_us(lambda: sandbox.evaluate([constant]), 200)
    yield "batch of 64, each", best_us(lambda: sandbox.evaluate([constant] * 64), 20) / 64
    yield "new 1 KB output", best_us(new_output, 100)
    yield "reading and compiling", best_us(compiled, 3) / 100


def best_us(action: Callable[[], object], times: int) -> float:
    """The least mean of several rounds."""
    means = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            action()
        means.append((time.perf_counter() - start) / times)
    return min(means) * 1e6


def main() -> None:
    """Print all cases."""
    with Sandbox(0.0) as sandbox:
        sandbox.evaluate([Request("true", "condition", {})])
        print(json.dumps(dict(cases(sandbox))))


if __name__ == "__main__":
    main()
