"""The engines' own steps, without gonogo: what there is to compare with. Each is a process of its own.

    python -m bench.engines.bare steps URL      DBOS: a step in a workflow
    python -m bench.engines.bare worker URL     DBOS: takes workflows from a queue, until it is ended
    python -m bench.engines.bare queued URL     DBOS: a workflow through that queue, one after the other
    python -m bench.engines.bare fanned URL     DBOS: many workflows at once through that queue
    python -m bench.engines.bare local ADDRESS  Temporal: a local activity in a workflow
    python -m bench.engines.bare far ADDRESS    Temporal: an activity in a workflow

Prints the seconds of one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

STEPS = 200
FLOW = 50
QUEUED = 60
FANNED = 300
POLL_S = 0.01
"""How often the queue is looked at, and the result: DBOS' own is a second."""
QUEUE = "bare"
VERSION = "bare"


def _launched(url: str, *, listens: bool) -> Callable[[int], float]:
    from dbos import DBOS

    DBOS(
        config={
            "name": "bare",
            "system_database_url": url,
            "executor_id": f"bare-{os.getpid()}",
            "application_version": VERSION,
            "log_level": "ERROR",
        }
    )

    @DBOS.step()
    def step() -> int:
        return 1

    @DBOS.workflow(name="chain")
    def chain(length: int) -> float:
        began_s = time.perf_counter()
        for _ in range(length):
            step()
        return (time.perf_counter() - began_s) / length

    DBOS.listen_queues([QUEUE] if listens else [])
    DBOS.launch()
    DBOS.register_queue(
        QUEUE, worker_concurrency=16, polling_interval_sec=POLL_S, on_conflict="always_update"
    )
    return chain


def steps(url: str) -> float:
    """Within one workflow."""
    chain = _launched(url, listens=False)
    chain(5)
    return chain(STEPS)


def worker(url: str) -> float:
    """Until somebody ends it."""
    _launched(url, listens=True)
    print("ready", flush=True)
    threading.Event().wait()
    return 0.0


def queued(url: str) -> float:
    """From the moment it is put into the queue to its result."""
    enqueue = _enqueue(url)
    found = []
    for _ in range(QUEUED):
        began_s = time.perf_counter()
        enqueue().get_result(polling_interval_sec=POLL_S)
        found.append(time.perf_counter() - began_s)
    return median(found[5:])


def fanned(url: str) -> float:
    """From the first that is put into the queue to the last result."""
    enqueue = _enqueue(url)
    enqueue().get_result(polling_interval_sec=POLL_S)
    began_s = time.perf_counter()
    handles = [enqueue() for _ in range(FANNED)]
    for handle in handles:
        handle.get_result(polling_interval_sec=POLL_S)
    return (time.perf_counter() - began_s) / FANNED


def _enqueue(url: str) -> Callable[[], Any]:
    from dbos import DBOSClient

    client = DBOSClient(system_database_url=url)
    return lambda: client.enqueue({"workflow_name": "chain", "queue_name": QUEUE, "app_version": VERSION}, 1)


def local(address: str) -> float:
    """Performed by the worker that has the workflow."""
    return asyncio.run(_temporal(address, local=True))


def far(address: str) -> float:
    """Performed by any worker."""
    return asyncio.run(_temporal(address, local=False))


async def _temporal(address: str, *, local: bool) -> float:
    from temporalio.client import Client
    from temporalio.worker import Worker

    from bench.engines.flow import Chain, step

    client = await Client.connect(address)

    async def took_s(length: int) -> float:
        began_s = time.perf_counter()
        name = f"bare-{os.getpid()}-{length}"
        await client.execute_workflow(Chain.run, args=[length, local], id=name, task_queue="bare")
        return time.perf_counter() - began_s

    async with Worker(client, task_queue="bare", workflows=[Chain], activities=[step]):
        alone_s = await took_s(0)
        return (await took_s(FLOW) - alone_s) / FLOW


PARTS = {each.__name__: each for each in (steps, worker, queued, fanned, local, far)}

if __name__ == "__main__":
    print(PARTS[sys.argv[1]](sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)  # DBOS' own threads would go on for seconds
