"""What only the records know, counted when somebody asks: most reports need none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gonogo.journal.glimpse import Glimpse
    from gonogo.journal.tally import Tally

__all__ = ["Counts", "milliseconds"]


class Counts:
    """The tally of a run, made once."""

    __slots__ = ("_glimpses", "_tally")

    def __init__(self, glimpses: Callable[[], Iterable[Glimpse]]) -> None:
        self._glimpses = glimpses
        self._tally: Tally | None = None

    @property
    def tally(self) -> Tally:
        """Raises JournalError, should the journal have been damaged meanwhile."""
        if self._tally is None:
            from gonogo.journal.tally import Tally

            self._tally = Tally(self._glimpses())
        return self._tally


def milliseconds(seconds: float) -> int:
    """Whole milliseconds, never less than none."""
    return max(0, round(seconds * 1000))
