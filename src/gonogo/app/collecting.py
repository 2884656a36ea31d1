"""When Python looks for cycles of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 50_000


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Records and nodes are made by the thousand and hardly ever in cycles, so the collector of cycles comes less
    often meanwhile: a fifth of a no-op step's cost, a third of reading a long journal. Where it is off it stays off.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], ALLOCATIONS) if thresholds[0] else 0, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
