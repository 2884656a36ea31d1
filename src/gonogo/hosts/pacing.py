"""So many requests in so much time, by key: who comes too early is told how long to wait. Reads no clock of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

KEYS_MAX = 1000


class Pacer:
    """Gives out turns in the order they are asked for. A turn that nobody takes is lost, so no window is overdrawn."""

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
