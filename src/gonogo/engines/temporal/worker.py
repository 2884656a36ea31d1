"""Takes work from Temporal's task queues."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError
from temporalio.worker import Worker

from gonogo.engines.base import NEWER_S, Limits, Places, Stopping, Work
from gonogo.engines.temporal.engine import TemporalEngine, queue_of, queue_of_segments
from gonogo.engines.temporal.flows import ASIDE, CALL, LOSSES_MAX, SEGMENT, CallsFlow, SegmentFlow
from gonogo.engines.temporal.sight import watch

BEAT_S = 0.5
NEWER = "newer"
"""Type of the error that offers a call to another worker."""
_BEAT = timedelta(seconds=BEAT_S)
"""Signs of life go out at once. By itself the SDK keeps them back for four fifths of the time that they may be late."""
STICKY = timedelta(seconds=1)
"""How long a workflow waits for the worker that has it in memory, before any other may take it."""
AGAIN = timedelta(seconds=1)
"""So soon work is given to a worker again that one couldn't do: it doesn't reach the store, or had no place."""
WAITS_S = 5.0
"""So long a call waits here for a place."""

log = logging.getLogger("gonogo.worker")


class TemporalWorker:
    """One worker process."""

    def __init__(self, address: str, queue: str, namespace: str = "default") -> None:
        """Raises EngineError when the server can't be reached."""
        self._address = address
        self._queue = queue
        self._namespace = namespace
        self._engine = TemporalEngine(address, queue, namespace)

    @property
    def engine(self) -> TemporalEngine:
        """Hands over work."""
        return self._engine

    async def serve(self, work: Work, limits: Limits, stopping: Stopping, ready: Callable[[], None]) -> None:
        """Take work until told to stop; see `EngineWorker`. Raises EngineError when the server doesn't let it."""
        try:
            await self._serve(work, limits, stopping, ready)
        except (RPCError, RuntimeError) as problem:
            raise self._engine.unusable(str(problem.__cause__ or problem)) from problem

    async def _serve(self, work: Work, limits: Limits, stopping: Stopping, ready: Callable[[], None]) -> None:
        client = await Client.connect(self._address, namespace=self._namespace)
        looking = asyncio.create_task(watch(client.service_client, self._address))
        try:
            await _run(self._workers(client, work, limits), stopping, ready)
        finally:
            looking.cancel()
        await work.leave()

    def _workers(self, client: Client, work: Work, limits: Limits) -> list[Worker]:
        segment, call, aside = _activities(work)
        drain = timedelta(seconds=limits.drain_s)
        rate = limits.rate[0] / limits.rate[1] if limits.rate else None
        rate = rate or None  # lifted
        calls = [
            Worker(
                client,
                task_queue=queue_of(self._queue, label),
                activities=[call],
                max_concurrent_activities=limits.calls,
                max_task_queue_activities_per_second=rate,
                max_heartbeat_throttle_interval=_BEAT,
                graceful_shutdown_timeout=drain,
            )
            for label in ("", *limits.labels)
        ]
        segments = Worker(
            client,
            task_queue=queue_of_segments(self._queue),
            workflows=[SegmentFlow, CallsFlow],
            activities=[segment, aside],
            max_concurrent_activities=limits.segments,
            max_heartbeat_throttle_interval=_BEAT,
            sticky_queue_schedule_to_start_timeout=STICKY,
            graceful_shutdown_timeout=drain,
        )
        return [*calls, segments]


async def _run(workers: Sequence[Worker], stopping: Stopping, ready: Callable[[], None]) -> None:
    """Until told to stop, or until one of them can't go on: then none does, and why is raised. As context managers each
    would cancel this task when it can't go on, and where two can't at once nobody would hear why.
    """
    runs = [asyncio.create_task(each.run()) for each in workers]
    told = asyncio.create_task(stopping.wait())
    ready()
    try:
        await asyncio.wait([*runs, told], return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
        await asyncio.gather(*(each.shutdown() for each in workers))
        await asyncio.wait(runs)
    for problem in [each.exception() for each in runs]:
        if problem is not None:
            raise problem


def _activities(work: Work) -> tuple[Callable[..., Any], ...]:
    @activity.defn(name=SEGMENT)
    async def segment(run_id: str, reopens: bool) -> float:
        waits = await _performed(
            work,
            run_id,
            None,
            lambda again: work.segment(run_id, reopens=reopens, takes_over=again, alone=True),
        )
        return -1.0 if waits is None else waits

    @activity.defn(name=CALL)
    async def call(run_id: str, number: int) -> None:
        await _performed(
            work, run_id, number, lambda again: _called(work, run_id, number, again), work.places
        )

    @activity.defn(name=ASIDE)
    async def aside(run_id: str, number: int | None, times: int) -> None:
        await work.aside(run_id, number, times)

    return segment, call, aside


async def _called(work: Work, run_id: str, number: int, again: bool) -> None:
    """In a place that was taken before."""
    try:
        is_over = await work.call(run_id, number, takes_over=again)
    finally:
        work.places.give(1)
    if not is_over:
        raise ApplicationError(
            f"call {number} of run {run_id} is for a newer worker",
            type=NEWER,
            next_retry_delay=timedelta(seconds=NEWER_S),
        )


async def _performed(
    work: Work,
    run_id: str,
    number: int | None,
    begun: Callable[[bool], Coroutine[Any, Any, Any]],
    places: Places | None = None,
) -> Any:
    """What comes of it. Whoever takes over waits until it is free, and whoever doesn't reach the store leaves it to
    others: that the store is away, or that Temporal alone lost sight of who has it, is no fault of the work, and loses
    it no worker. It takes one of the `places` first.

    Temporal counts the tries. Those that came back are told with each sign of life; the others have lost their workers,
    be it before they gave any.
    """
    info = activity.info()
    back = _number(info.heartbeat_details)
    lost = info.attempt - 1 - back
    try:
        if work.is_cut_off:
            raise _for_others()
        if info.attempt > 1 and not await _beating(
            work.free(run_id, number), back, lambda: True, first_s=BEAT_S
        ):
            raise _for_others()
        if lost >= LOSSES_MAX:
            return await work.aside(run_id, number, lost)
        if places is not None:
            await _taken(places, back)
        return await _beating(begun(info.attempt > 1), back, lambda: not work.is_cut_off)
    except BaseException:
        activity.heartbeat(back + 1)
        raise


async def _taken(places: Places, back: int) -> None:
    """Take a place. Temporal counts what a worker has of each task queue; its calls of all of them, and those of its
    runs, share as many. While there is none for long, another worker may have one.
    """
    asked = places.ask(1)
    try:
        if not asked.done():
            await _beating(_over(asked), back, lambda: True)
        if not asked.done():
            raise _for_others()
    except BaseException:
        places.withdraw(asked)
        raise


async def _over(asked: asyncio.Future[None]) -> None:
    await asyncio.wait([asked], timeout=WAITS_S)


def _number(details: Sequence[Any]) -> int:
    return details[0] if details and isinstance(details[0], int) else 0


async def _beating(
    work: Coroutine[Any, Any, Any], back: int, is_well: Callable[[], bool], *, first_s: float = 0.0
) -> Any:
    """Tell the server that this worker lives, as long as it works and `is_well`: who is cut off from the store can't go
    on, and others may. After `first_s` at first, since what is told soon after it waits for two seconds. A worker that
    is told to end lets the work end by itself: a cancelled task would be a cancelled run.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=first_s)
        while not task.done():
            if is_well():
                activity.heartbeat(back)
            await asyncio.wait([task], timeout=BEAT_S)
    except asyncio.CancelledError:
        raise _out_of_sight(task) from None
    return task.result()


def _for_others() -> ApplicationError:
    """This worker doesn't reach the store, or has no place; another may."""
    return ApplicationError(
        "another worker may", category=ApplicationErrorCategory.BENIGN, next_retry_delay=AGAIN
    )


def _out_of_sight(task: asyncio.Future[Any]) -> ApplicationError:
    """Temporal doesn't hear of the work any more: it was away, or this worker was cut off from it, or is told to end.
    The work goes on. Temporal has it given to a worker again, and to this one as likely as not, which then waits for
    what is under way.
    """
    task.add_done_callback(_is_told)
    return ApplicationError("out of sight", category=ApplicationErrorCategory.BENIGN)


def _is_told(task: asyncio.Future[Any]) -> None:
    if not task.cancelled() and (problem := task.exception()) is not None:
        log.warning("work that Temporal lost sight of failed: %s", problem)
