"""The queue of steps that may start: derived from the state, never recorded, found again after a resume."""

from __future__ import annotations

import heapq

from gonogo.core.scope import order_key


class ReadyQueue:
    """Steps that may start, in configuration order, items by index."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, tuple[int, ...], str, str]] = []
        self._present: set[tuple[str, str]] = set()

    def push(self, order: int, step: str, scope: str) -> bool:
        """Add a step once; False when it is there already."""
        key = (step, scope)
        if key in self._present:
            return False
        self._present.add(key)
        heapq.heappush(self._heap, (order, order_key(scope), step, scope))
        return True

    def pop(self) -> tuple[str, str] | None:
        """The next step in order, or None."""
        while self._heap:
            _, _, step, scope = heapq.heappop(self._heap)
            if (step, scope) in self._present:
                self._present.discard((step, scope))
                return step, scope
        return None

    def discard(self, step: str, scope: str) -> bool:
        """Forget a step that may no longer start; True when it was there."""
        if (step, scope) not in self._present:
            return False
        self._present.discard((step, scope))
        return True

    def clear(self) -> None:
        """Forget all."""
        self._heap.clear()
        self._present.clear()

    def __len__(self) -> int:
        return len(self._present)
