"""Hands work over: starts and signals workflows."""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from gonogo.engines.base import WIRE, Errand, together
from gonogo.engines.temporal.flows import CALLS, SEGMENT
from gonogo.errors import EngineError

T = TypeVar("T")

CONNECT_S = 10.0
"""Longest for a connection. The SDK itself waits three times as long for a server that says nothing."""
ANSWER_S = 15.0
"""Longest for one request to the server."""
_SYSTEM_SAYS = re.compile(r'message: "([^"]{1,200})"')
"""What the operating system said, within what the SDK makes of it."""
TOGETHER_MAX = 50
"""Calls in one workflow: its history has three events for each."""


class TemporalEngine:
    """The task queues of one name on one server, used from any thread: its client lives in a thread of its own."""

    def __init__(self, address: str, queue: str, namespace: str = "default") -> None:
        """Raises EngineError when the server can't be reached."""
        self._address = address
        self._queue = queue
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gonogo-temporal", daemon=True)
        self._thread.start()
        try:
            self._client = self._done(
                asyncio.wait_for(Client.connect(address, namespace=namespace), CONNECT_S)
            )
        except EngineError:
            self.close()
            raise

    def submit(self, run_id: str, *, delay_s: float = 0.0, reopens: bool = False) -> None:
        """Start the run's workflow, or wake it. See `Engine`."""
        start: dict[str, Any] = (
            {} if delay_s > 0 else {"start_signal": "wake", "start_signal_args": [reopens]}
        )
        try:
            self._done(
                self._client.start_workflow(
                    SEGMENT,
                    args=[run_id, reopens, delay_s],
                    id=workflow_of(run_id),
                    task_queue=queue_of_segments(self._queue),
                    id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                    rpc_timeout=timedelta(seconds=ANSWER_S),
                    **start,
                )
            )
        except WorkflowAlreadyStartedError:
            return  # it runs, and waits itself where it has to

    def begin(self, errands: Sequence[Errand]) -> Sequence[Errand]:
        """Nothing: only a workflow tells Temporal that a call was lost with its worker."""
        return errands

    def perform(self, errands: Sequence[Errand], *, delay_s: float = 0.0) -> None:
        """Start a workflow for each call that has none. See `Engine`."""
        self._done(self._all_started(errands, timedelta(seconds=delay_s)))

    def close(self) -> None:
        """Let go of the connection."""
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _all_started(self, errands: Sequence[Errand], delay: timedelta) -> None:
        for (run_id, label), calls in together(errands, TOGETHER_MAX):
            await self._started(run_id, label, calls, delay)

    async def _started(self, run_id: str, label: str, calls: list[int], delay: timedelta) -> None:
        """The same calls handed over again are the same workflow; others may hold a call again, which does no harm:
        only a worker that takes over from a dead one claims what was claimed.
        """
        digest = hashlib.sha256(",".join(map(str, calls)).encode()).hexdigest()[:16]
        await self._client.start_workflow(
            CALLS,
            args=[run_id, calls, queue_of(self._queue, label)],
            id=f"{workflow_of(run_id)}/calls-{calls[0]}-{digest}",
            task_queue=queue_of_segments(self._queue),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            run_timeout=timedelta(days=31),
            start_delay=delay or None,
            rpc_timeout=timedelta(seconds=ANSWER_S),
        )

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except (RPCError, RuntimeError, OSError) as problem:
            if isinstance(problem, WorkflowAlreadyStartedError):
                raise
            raise self.unusable(str(problem)) from None

    def unusable(self, told: str) -> EngineError:
        """What is told of a server that can't be used, from what the SDK says."""
        within = _SYSTEM_SAYS.search(told)
        reason = within[1] if within else told.partition("\n")[0][:200] or "it doesn't answer"
        return EngineError(
            f"the Temporal server at {self._address} can't be used: {reason}",
            advice="check the address (--url host:port), and that the server runs",
        )


def workflow_of(run_id: str) -> str:
    """The workflow of a run, for workers of this version: that of another version is theirs, and hears nothing more."""
    return f"{run_id}-v{WIRE}"


def queue_of_segments(queue: str) -> str:
    """The task queue of runs, for workers of this version."""
    return f"{queue}-v{WIRE}"


def queue_of(queue: str, label: str) -> str:
    """The task queue of calls for workers with this label; without one, for all of them."""
    return f"{queue_of_segments(queue)}-calls-{label}" if label else f"{queue_of_segments(queue)}-calls"
