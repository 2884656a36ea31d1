"""Keeps a worker to its own bounds. DBOS (3.4) has a bound of each worker, and one number of it for all of them, which
is whatever the last one that started said; so what it reads of a queue is put right in each process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def keep_own(database: Any, most: Mapping[str, int]) -> None:
    """Have DBOS' `database` take so many workflows of each queue at once here, and no more than all workers may."""
    found, start = database.get_queue, database.start_queued_workflows

    def bounded(queue: Any) -> Any:
        if queue is not None and queue.name in most:
            bounds = (most[queue.name], queue._concurrency)
            queue._worker_concurrency = min(bound for bound in bounds if bound is not None)
        return queue

    def get_queue(*args: Any, **given: Any) -> Any:
        return bounded(found(*args, **given))

    def start_queued_workflows(queue: Any, *args: Any, **given: Any) -> Any:
        return start(bounded(queue), *args, **given)

    database.get_queue = get_queue
    database.start_queued_workflows = start_queued_workflows
