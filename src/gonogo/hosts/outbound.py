"""What all that goes out of a process shares, whichever run or call it belongs to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gonogo.hosts.pacing import Pace, Pacer, Turns

if TYPE_CHECKING:
    from gonogo.gate.budgets import RetryShare
    from gonogo.gate.clock import Clock
    from gonogo.gate.latencies import Latencies
    from gonogo.gate.stores import Store

RETRIES_MIN = 20
"""So many retries in ten seconds are always allowed: a run makes few calls, and a tenth of few is none (F22)."""


class Outbound:
    """What all gates of a run and of the runs beneath it share: retries, breakers' records, latencies, and paces.

    Records are kept where `open_store` says, so that other processes find them; without one they end with the run.
    `turns` are those that other processes share, too. `clock` is theirs; None is the system's.
    """

    __slots__ = ("_latencies", "_open_store", "_retries", "_store", "clock", "pace", "trouble")

    def __init__(
        self,
        open_store: Callable[[], Store] | None = None,
        turns: Callable[[], Turns] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._open_store = open_store
        self.clock = clock
        self.pace = Pace(Pacer(time.monotonic), turns)
        self.trouble: str | None = None
        self._latencies: Latencies | None = None
        self._retries: RetryShare | None = None
        self._store: Store | None = None

    def retries(self) -> RetryShare:
        """How many of the calls may be retries."""
        if self._retries is None:
            from gonogo.gate.budgets import RetryShare

            self._retries = RetryShare(floor=RETRIES_MIN)
        return self._retries

    def latencies(self) -> Latencies:
        """What was seen of targets' latency, for policies whose order goes by it."""
        if self._latencies is None:
            from gonogo.gate.latencies import Latencies

            self._latencies = Latencies()
        return self._latencies

    def store(self) -> Store:
        """Where breakers' records are. A place that can't be made costs no call; `trouble` says so."""
        if self._store is None:
            from gonogo.gate.stores import MemoryStore, StoreTrouble

            try:
                self._store = MemoryStore() if self._open_store is None else self._open_store()
            except StoreTrouble as trouble:
                self.trouble = str(trouble)
                self._store = MemoryStore()
        return self._store
