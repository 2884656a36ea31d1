"""Slots that are kept for runs beneath one that was taken over. Apart: whoever shows a run needs no event loop."""

from __future__ import annotations

from collections.abc import Callable


class Kept:
    """For which runs of a tree slots are kept: their calls go on elsewhere, and nobody goes on with the runs yet."""

    __slots__ = ("_runs", "_top")

    def __init__(self) -> None:
        self._top: str | None = None
        self._runs: dict[str, Callable[[], None]] = {}

    def is_top(self, run_id: str) -> bool:
        """Whether this run is the one that is gone on with first: all others here are beneath it."""
        if self._top is None:
            self._top = run_id
        return self._top == run_id

    def keep(self, run_id: str, end: Callable[[], None]) -> None:
        """Until `give_back`, which calls `end`."""
        self._runs[run_id] = end

    def give_back(self, run_id: str) -> None:
        """Somebody goes on with the run, and has slots for its calls. Nothing happens where none are kept."""
        end = self._runs.pop(run_id, None)
        if end is not None:
            end()

    def close(self) -> None:
        """The tree is over here."""
        for run_id in tuple(self._runs):
            self.give_back(run_id)
