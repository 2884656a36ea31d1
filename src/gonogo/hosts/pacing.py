"""So many requests in so much time, by key: who comes too early is told how long to wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from gonogo.errors import JournalError

if TYPE_CHECKING:
    import asyncio

KEYS_MAX = 1000
AHEAD_S = 2.0
"""So far ahead a turn is taken that others share; who dies before it costs them no more."""
AGAIN_S = 0.1
"""Least time until a turn is asked for again."""


class Pacer:
    """Gives out turns in the order they are asked for. A turn that nobody takes is lost, so no window is overdrawn.
    Reads no clock of its own.
    """

    __slots__ = ("_now", "_turns")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._turns: dict[str, deque[float]] = {}

    def take(self, key: str, requests: int, per_s: float) -> float:
        """Take the next turn under a key; how many seconds from now it is, 0 for at once."""
        now_s = self._now()
        turns = self._turns.pop(key, None) or deque()
        self._turns[key] = turns
        if len(self._turns) > KEYS_MAX:
            del self._turns[next(iter(self._turns))]
        while turns and turns[0] <= now_s - per_s:
            turns.popleft()
        due_s = now_s if len(turns) < requests else max(now_s, turns[-requests] + per_s)
        turns.append(due_s)
        return due_s - now_s


class Turns(Protocol):
    """Gives out turns to all processes that ask. Blocks."""

    def take(
        self, run_id: str, key: str, requests: int, per_s: float, ahead_s: float
    ) -> tuple[float, bool] | None:
        """In how many seconds the next turn under a key is, for a run and those above and beneath it; and whether it is
        taken, which it is only if no further `ahead`. None for a run that isn't known. Raises JournalError.
        """
        ...


class Pace:
    """The turns of one process' calls. With `turns`, others share them, and those are asked; who can't be asked holds
    up no call.
    """

    __slots__ = ("_heads", "_pacer", "_turns")

    def __init__(self, pacer: Pacer, turns: Callable[[], Turns] | None) -> None:
        self._pacer = pacer
        self._turns = turns
        self._heads: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def turn(
        self, run_id: str, key: str, requests: int, per_s: float, tell: Callable[[str], None]
    ) -> None:
        """Wait for one; `tell` hears for how long."""
        import asyncio

        def told(wait_s: float) -> None:
            if wait_s > 0:
                tell(f"waits {wait_s:.3g} s: {requests} requests in {per_s:g} s to {key}")

        if self._turns is None:
            wait_s = self._pacer.take(key, requests, per_s)
            told(wait_s)
        else:
            wait_s = await self._shared(self._turns(), run_id, key, requests, per_s, told)
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    async def _shared(
        self, turns: Turns, run_id: str, key: str, requests: int, per_s: float, told: Callable[[float], None]
    ) -> float:
        """Of this process' calls one asks at a time, and none takes a turn far ahead: were the process to die, all of
        those would be lost to the others.
        """
        import asyncio

        head = self._heads.setdefault(key, asyncio.Lock())
        async with head:
            while True:
                try:
                    found = await asyncio.to_thread(turns.take, run_id, key, requests, per_s, AHEAD_S)
                except JournalError:
                    found = None
                if found is None:
                    found = self._pacer.take(key, requests, per_s), True
                wait_s, is_taken = found
                told(wait_s)
                if is_taken:
                    return wait_s
                await asyncio.sleep(max(AGAIN_S, wait_s - AHEAD_S))
