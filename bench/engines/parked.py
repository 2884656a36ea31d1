"""A worker in this process with many runs that wait: what they take of it. Prints JSON, one figure a name.

python -m bench.engines.parked URL RUNS
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
from dataclasses import dataclass

from msgspec.structs import replace

from gonogo import app
from gonogo.app.engines import Carrier, Limits, engine_for, serve
from gonogo.app.options import Options, Start
from gonogo.app.wiring import first_record_of, redactor_for
from gonogo.core.events import RunStarted
from gonogo.journal.postgres.runs import PostgresRuns

ASKED = 'version: "1.0"\nsteps:\n  ask: {type: human-input, prompt: ok}\n'
TIMED = 'version: "1.0"\nsteps:\n  ask: {type: human-input, prompt: ok, timeout: 86400000, default: "no"}\n'
FIRST = 300
"""So many before anything is measured: what is loaded and kept once is no run's."""
SETTLED_S = 3.0
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Figures:
    """Of this process."""

    threads: int
    tasks: int
    rss_mb: float


class Parking:
    """Submits runs, half of them with a time limit, and waits until each waits for a person."""

    def __init__(self, url: str) -> None:
        self._options = Options(runs=url)
        self._runs = PostgresRuns(url)
        self._engine = engine_for(Carrier("dbos"), self._options)
        self._firsts = [self._first(text) for text in (ASKED, TIMED)]
        self._begun = 0

    def _first(self, text: str) -> RunStarted:
        plan = app.loads(text).plan
        return first_record_of(plan, Start(), self._options, {}, redactor_for({}, plan))

    def _submit(self) -> str:
        """As `app.engines.submit_run`, over one connection for all."""
        self._begun += 1
        first = self._firsts[self._begun % len(self._firsts)]
        run_id = f"{first.run_id}x{self._begun}"
        self._runs.submit(replace(first, run_id=run_id))
        self._engine.submit(run_id)
        return run_id

    def park(self, runs: int) -> None:
        """Returns once they are no worker's any more."""
        ids = [self._submit() for _ in range(runs)]
        pause = threading.Event()
        for start in range(0, runs, 500):
            some = ids[start : start + 500]
            while any(each.status != "HOLD" for each in self._runs.summaries(some)):
                pause.wait(0.2)
        pause.wait(SETTLED_S)


def _figures(loop: asyncio.AbstractEventLoop) -> Figures:
    gc.collect()
    tasks = asyncio.run_coroutine_threadsafe(_tasks(), loop).result()
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return Figures(threading.active_count(), tasks, pages * PAGE / 2**20)


async def _tasks() -> int:
    return len(asyncio.all_tasks())


def main(url: str, runs: int) -> None:
    """The worker has the main thread, since it listens to signals."""

    def measure(loop: asyncio.AbstractEventLoop) -> None:
        try:
            parking = Parking(url)
            parking.park(FIRST)
            before = _figures(loop)
            parking.park(runs)
            after = _figures(loop)
            print(
                json.dumps(
                    {
                        "threads": after.threads - before.threads,
                        "tasks": after.tasks - before.tasks,
                        "MB": after.rss_mb - before.rss_mb,
                    }
                ),
                flush=True,
            )
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def ready(name: str) -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=measure, args=(loop,), daemon=True).start()

    serve(Carrier("dbos"), Options(runs=url), Limits(), ready=ready)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
