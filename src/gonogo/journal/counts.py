"""What only the records know, counted when somebody asks: most reports need none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gonogo.journal.fault_log import FaultLog
    from gonogo.journal.glimpse import Glimpse
    from gonogo.journal.tally import Tally

__all__ = ["Counts"]


class Counts:
    """The tally of a run, and what became of its faults, each made once. `fault_glimpses` is a quicker way to these."""

    __slots__ = ("_fault_glimpses", "_fault_log", "_glimpses", "_tally")

    def __init__(
        self,
        glimpses: Callable[[], Iterable[Glimpse]],
        fault_glimpses: Callable[[], Iterable[Glimpse]] | None = None,
    ) -> None:
        self._glimpses = glimpses
        self._fault_glimpses = fault_glimpses or glimpses
        self._tally: Tally | None = None
        self._fault_log: FaultLog | None = None

    @property
    def tally(self) -> Tally:
        """Raises JournalError, should the journal have been damaged meanwhile."""
        if self._tally is None:
            from gonogo.journal.tally import Tally

            self._tally = Tally(self._glimpses())
            self._fault_log = self._tally.fault_log
        return self._tally

    @property
    def fault_log(self) -> FaultLog:
        """Raises as `tally`."""
        if self._fault_log is None:
            from gonogo.journal.fault_log import FaultLog

            self._fault_log = FaultLog()
            for glimpse in self._fault_glimpses():
                self._fault_log.see(glimpse)
        return self._fault_log
