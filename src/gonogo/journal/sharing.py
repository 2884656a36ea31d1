"""What hosts on several machines ask of the place that keeps their runs, beyond what one process needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeGuard, TypeVar

from gonogo.core.events import RunStarted
from gonogo.journal.pool import Pool
from gonogo.journal.records import Record
from gonogo.journal.store import Runs

__all__ = ["SharedRuns", "is_shared"]

T = TypeVar("T")


class SharedRuns(Runs, Protocol):
    """A place that keeps runs for everybody who reaches it. Every method may raise JournalError."""

    @property
    def pool(self) -> Pool:
        """Calls that any worker may perform."""
        ...

    def records_after(self, run_id: str, seq: int) -> Iterable[Record]:
        """The run's records behind record `seq` (-1: all of them), as far as there are any."""
        ...

    def cut_off(self, run_id: str) -> bool:
        """Take a run from whoever writes it, for one that is gone or stands still; whether there was one."""
        ...

    def asked(self) -> Mapping[str, str]:
        """The runs of which something is asked that no journal holds yet, each with the id of the first request."""
        ...

    def answers(self) -> bool:
        """Whether the place can be reached now. Keeps nobody else in this process from it; raises nothing."""
        ...

    def at_once(self, work: Callable[[], T]) -> T:
        """What `work` makes with this place, without waiting. Raises StoreAway where that would take a wait."""
        return work()

    @property
    def is_away(self) -> bool:
        """Whether the place is waited for just now. Asks nobody."""
        ...

    def set_aside(self, run_id: str, why: str | None) -> None:
        """Keep that nobody goes on with a run until somebody asks; the next record undoes it, and so does None."""
        ...

    def submit(self, event: RunStarted) -> None:
        """Keep a run that hasn't started, for whoever starts it. Raises JournalError when its id is known already."""
        ...

    def submitted(self, run_id: str) -> RunStarted | None:
        """The start of a run that was submitted and hasn't started."""
        ...


def is_shared(runs: Runs) -> TypeGuard[SharedRuns]:
    """Whether hosts on several machines reach a place. Asked of one method: to look at `pool` may connect."""
    return hasattr(runs, "records_after")
