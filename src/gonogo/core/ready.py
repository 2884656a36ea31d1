"""The queue of steps that may start: derived from the state, never recorded, found again after a resume."""

from __future__ import annotations

import heapq

from gonogo.core.parts import Site
from gonogo.core.scope import order_key


class ReadyQueue:
    """Steps that may start, in configuration order, items by index. `waiting`: their sites by step and scope."""

    __slots__ = ("_heap", "waiting")

    def __init__(self) -> None:
        self._heap: list[tuple[int, tuple[int, ...], str, str]] = []
        self.waiting: dict[tuple[str, str], Site] = {}

    def push(self, site: Site, scope: str) -> bool:
        """Add a step once; False when it is there already."""
        part = site.part
        key = (part.name, scope)
        if key in self.waiting:
            return False
        self.waiting[key] = site
        heapq.heappush(self._heap, (part.order, order_key(scope), *key))
        return True

    def pop(self) -> tuple[Site, str] | None:
        """The next step in order, as its site and scope; or None."""
        while self._heap:
            _, _, step, scope = heapq.heappop(self._heap)
            site = self.waiting.pop((step, scope), None)
            if site is not None:
                return site, scope
        return None

    def discard(self, step: str, scope: str) -> Site | None:
        """Forget a step that may no longer start; its site when it was there."""
        return self.waiting.pop((step, scope), None)

    def clear(self) -> None:
        """Forget all."""
        self._heap.clear()
        self.waiting.clear()

    def __len__(self) -> int:
        return len(self.waiting)
