"""The slots that a run and its children share. A call that waits long in its gate lets go of its own meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Slots:
    """Those of one run's calls; without a semaphore the run's own count of slots is enough."""

    __slots__ = ("_held", "_semaphore")

    def __init__(self, semaphore: asyncio.Semaphore | None) -> None:
        self._semaphore = semaphore
        self._held: set[int] = set()

    @property
    def are_shared(self) -> bool:
        """Whether a call has to wait for one."""
        return self._semaphore is not None

    def of(self, call: int) -> AbstractAsyncContextManager[None]:
        """A call's slot, as long as the block lasts."""
        return nullcontext() if self._semaphore is None else self._of(call)

    @asynccontextmanager
    async def _of(self, call: int) -> AsyncIterator[None]:
        await self.take(call)
        try:
            yield
        finally:
            self.let_go(call)

    def let_go(self, call: int) -> None:
        """Others may have the call's slot. Nothing happens to a call that has none."""
        if self._semaphore is not None and call in self._held:
            self._held.discard(call)
            self._semaphore.release()

    async def take(self, call: int) -> None:
        """Wait for a slot, in the order in which calls come for one; a call that has one goes on."""
        if self._semaphore is not None and call not in self._held:
            await self._semaphore.acquire()
            self._held.add(call)
