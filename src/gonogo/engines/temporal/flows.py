"""What Temporal replays: when to go on with a run, and who performs a call. No other module of gonogo is needed.

An activity that loses its worker is tried by another one. That is safe for calls that mutate, too: a claim in the store
lets the second try only say that nobody knows what the first one did.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

SEGMENT = "gonogo.segment"
CALLS = "gonogo.calls"
CALL = "gonogo.call"
ASIDE = "gonogo.aside"
LOSSES_MAX = 6
"""The first worker, and five that took over."""
HEARTBEAT = timedelta(seconds=2)
LONGEST = timedelta(days=30)
"""Longest for a segment or a call; runs and steps have limits of their own."""
ROUNDS_MAX = 500
"""Segments in one history; then it begins anew."""

_TRIES = RetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=10),
)
"""Not limited: a worker that can't reach the store isn't lost by the work. Who performs it counts (`worker.py`)."""

_CARRIED = MappingProxyType[str, Any](
    {"start_to_close_timeout": LONGEST, "heartbeat_timeout": HEARTBEAT, "retry_policy": _TRIES}
)
"""How work that a dead worker had comes to another."""


@workflow.defn(name=SEGMENT)
class SegmentFlow:
    """A run, from one wait to the next. Its id is the run's, so there is one at a time."""

    def __init__(self) -> None:
        self._woken = False
        self._reopens = False

    @workflow.run
    async def run(self, run_id: str, reopens: bool, delay_s: float) -> None:
        """Until nothing of the run has to happen by itself."""
        self._reopens = self._reopens or reopens
        wake_s: float | None = delay_s
        for _ in range(ROUNDS_MAX):
            if wake_s is not None:
                await self._wait(wake_s)
            self._woken, reopens, self._reopens = False, self._reopens, False
            wake_s = await self._segment(run_id, reopens)
            if wake_s is None and not self._woken:
                return
        workflow.continue_as_new(args=[run_id, self._reopens, wake_s or 0.0])

    @workflow.signal(name="wake")
    async def wake(self, reopens: bool) -> None:
        """Somebody left a request in the run's inbox."""
        self._woken = True
        self._reopens = self._reopens or reopens

    async def _wait(self, seconds: float) -> None:
        if seconds <= 0 or self._woken:
            return
        try:
            await workflow.wait_condition(lambda: self._woken, timeout=timedelta(seconds=seconds))
        except TimeoutError:
            return

    async def _segment(self, run_id: str, reopens: bool) -> float | None:
        try:
            waits: float | None = await workflow.execute_activity(
                SEGMENT,
                args=[run_id, reopens],
                result_type=float,
                **_CARRIED,
            )
        except ActivityError:
            await _set_aside(run_id, None)
            return None
        return None if waits is None or waits < 0 else waits


@workflow.defn(name=CALLS)
class CallsFlow:
    """Calls of a run that came at one moment, for workers with their label. One workflow each would cost ten times as
    much.
    """

    @workflow.run
    async def run(self, run_id: str, calls: list[int], queue: str) -> None:
        """Until somebody has performed each, or nobody can."""
        await asyncio.gather(*(_performed(run_id, call, queue) for call in calls))


async def _performed(run_id: str, call: int, queue: str) -> None:
    try:
        await workflow.execute_activity(
            CALL,
            args=[run_id, call],
            task_queue=queue,
            **_CARRIED,
        )
    except ActivityError:
        await _set_aside(run_id, call)


async def _set_aside(run_id: str, call: int | None) -> None:
    await workflow.execute_activity(
        ASIDE, args=[run_id, call, LOSSES_MAX], start_to_close_timeout=timedelta(minutes=1)
    )
