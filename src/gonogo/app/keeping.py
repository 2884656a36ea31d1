"""Work that an engine gives a second time, and work that can't be done for a reason that may pass."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from gonogo.errors import EngineError, JournalError, RunLocked, SandboxError
from gonogo.journal.lines import NewerJournal, NoSuchRun

T = TypeVar("T")
Key = tuple[str, int | None]
"""A run, or a call of one."""

AGAIN_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 30.0, 30.0, 60.0, 60.0)
"""Pauses before it is tried again: a disk that was full, a store that restarted. About four minutes in all."""
_MAY_PASS = (JournalError, EngineError, SandboxError)


class Here:
    """What is under way in this worker. An engine that lost sight of it (the worker was slow, or the engine was away)
    gives it again, to this worker as likely as not: then it goes on as it is. To take it over from oneself would cut
    off one's own session, and put calls in doubt that are well.
    """

    def __init__(self) -> None:
        self._tasks: dict[Key, asyncio.Task[Any]] = {}
        self._all: set[asyncio.Task[Any]] = set()

    @property
    def keys(self) -> Collection[Key]:
        """Of all that is under way."""
        return self._tasks.keys()

    async def done(self, key: Key, work: Callable[[], Awaitable[T]], *, given_again: bool) -> T:
        """What comes of the work."""
        there = self._tasks.get(key) if given_again else None
        if there is not None:
            result: T = await asyncio.shield(there)
            return result
        task = asyncio.current_task()
        assert task is not None
        first = self._tasks.setdefault(key, task) is task
        self._all.add(task)
        try:
            return await work()
        finally:
            self._all.discard(task)
            if first:
                del self._tasks[key]

    async def over(self, within_s: float) -> None:
        """Wait for the end of everything, for a time."""
        if self._all:
            await asyncio.wait(self._all, timeout=within_s)


async def persistently(work: Callable[[], Awaitable[T]], tell: Callable[[str], object]) -> T:
    """What comes of the work, tried again as long as that may help. `tell` hears of each failure.

    Raises GonogoError: the last one, or one that doesn't pass.
    """
    for pause_s in AGAIN_S:
        try:
            return await work()
        except (RunLocked, NewerJournal, NoSuchRun):
            raise
        except _MAY_PASS as problem:
            tell(f"{problem.message}; it is tried again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
    return await work()
