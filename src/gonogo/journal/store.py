"""What a host and the readers ask of a place that keeps runs. `jsonl.py` is the truth, `memory.py` is for
tests and embedding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from gonogo.core.events import AnswerGiven, CancelAsked, RerunAsked
from gonogo.errors import JournalError, UsageError
from gonogo.journal.records import Record
from gonogo.journal.sealing import Seals

if TYPE_CHECKING:
    from gonogo.journal.glimpse import Glimpse
    from gonogo.journal.lines import Reading
    from gonogo.journal.summary import Summary
    from gonogo.journal.wanted import Wanted

__all__ = [
    "Blobs",
    "Durability",
    "Inbox",
    "Loaded",
    "Request",
    "RunJournal",
    "Runs",
    "StoreAway",
    "Sums",
    "check_run_id",
    "is_run_id",
]

T = TypeVar("T")

Durability = Literal["every", "effects", "none"]
"""When what was appended must be on disk: after each batch; when a caller asks and at the end; whenever the
system likes.
"""

Request = AnswerGiven | CancelAsked | RerunAsked
"""What another process may ask of a run."""

_RUN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


class StoreAway(JournalError):  # noqa: N818 - the name says what is wrong
    """The place that keeps runs doesn't answer just now, and who asked didn't want to wait there (`at_once`). What was
    asked for may have been done. To ask again is safe where a method says nothing else.

    `when_back` has a function called, from another thread: when the place answers again, or with why it isn't waited
    for any longer.
    """

    def __init__(
        self,
        message: str,
        *,
        advice: str,
        when_back: Callable[[Callable[[JournalError | None], object]], object],
    ) -> None:
        super().__init__(message, advice=advice)
        self.when_back = when_back


class Loaded(Struct, frozen=True):
    """What is known of a run. `notes` are warnings for the reader: a torn last line left out, a request refused."""

    records: list[Record]
    notes: tuple[str, ...] = ()


class Blobs(Protocol):
    """Large values of one run, by the hash of their content."""

    def put(self, value: Any) -> Any:
        """`value` itself, or a reference to it when it is large (above `blobs.BLOB_BYTES` as JSON)."""
        ...

    def get(self, reference: Any) -> Any:
        """The value behind a reference; any other value is given back as it is. Raises JournalError."""
        ...

    def digests(self) -> list[str]:
        """The names of all that are there (hex digests), sorted. Raises JournalError."""
        ...


class Inbox(Protocol):
    """Requests from other processes, in the order they were made. Works whether or not the run is running."""

    def put(self, request: Request) -> str:
        """Leave a request; the answer is its id. Raises JournalError."""
        ...

    def take(self, seen: Collection[str] = ()) -> list[Request]:
        """Requests not yet `done`, each with its `request` id set, without those whose ids the journal has `seen`."""
        ...

    def done(self, request_id: str) -> None:
        """Forget a request, once the journal holds it."""
        ...


class RunJournal(Protocol):
    """The one writer of a run."""

    run_id: str
    records: list[Record]
    """What was there when the run was opened; empty for a new one."""
    notes: tuple[str, ...]
    idle_s: float | None
    """How long nobody had written when the run was opened, by a clock that all its writers share; None without one."""
    blobs: Blobs
    inbox: Inbox
    seals: Seals

    def append(self, records: Sequence[Record], *, sync: bool = False) -> None:
        """Add a batch, all or none; with `sync` it survives a power cut when this returns. Raises JournalError."""
        ...

    def confirm(self) -> None:
        """Raises JournalError when another process may write the run by now, as it may where this one stood still.
        Nobody takes a file from a process that lives.
        """
        return

    def close(self) -> None:
        """Make everything durable and let others write. May be called twice. What couldn't be appended isn't waited
        for.
        """
        ...

    def at_once(self, work: Callable[[], T]) -> T:
        """What `work` makes with this journal, its inbox or its values, without waiting. Raises StoreAway where that
        would take a wait for a store that is away; files never are.
        """
        return work()


class Runs(Protocol):
    """A place that keeps runs."""

    def create(self, run_id: str) -> RunJournal:
        """Start a run's journal. Raises JournalError when there is one, UsageError for a bad id."""
        ...

    def reopen(self, run_id: str) -> RunJournal:
        """Go on with a run. Raises RunLocked, JournalError."""
        ...

    def read(self, run_id: str) -> Loaded:
        """Look at a run, running or not, changing nothing. Raises JournalError."""
        ...

    def records(self, run_id: str) -> Reading[Record]:
        """As `read`, one record after the other. Raises JournalError, some only when it is gone through."""
        ...

    def lines(self, run_id: str) -> Iterable[bytes]:
        """The lines of a run as they are kept, for a copy. Raises JournalError, some only when gone through."""
        ...

    def glimpses(self, run_id: str) -> Reading[Glimpse]:
        """As `records`, with only what is counted. Raises as `records`."""
        ...

    def fault_glimpses(self, run_id: str) -> Reading[Glimpse]:
        """As `glimpses`, those that tell nothing of faults being empty; quick, for a run that was read before."""
        ...

    def blobs(self, run_id: str) -> Blobs:
        """The run's large values, for reading."""
        ...

    def inbox(self, run_id: str) -> Inbox:
        """Where to leave requests for the run."""
        ...

    def seals(self, run_id: str) -> Seals:
        """The run's secret values, which are no part of a copy."""
        ...

    def ids(self) -> list[str]:
        """All run ids, sorted."""
        ...


@runtime_checkable
class Sums(Protocol):
    """A place that knows of each run what a list shows, without reading its journal."""

    def summaries(self, ids: Iterable[str]) -> list[Summary]:
        """These runs, in this order; what can't be told is said in `note`. Raises JournalError."""
        ...


@runtime_checkable
class Finds(Protocol):
    """A place that finds runs among very many by itself."""

    def find(self, wanted: Wanted, limit: int) -> list[Summary]:
        """The newest runs that are wanted, the newest first. Raises JournalError."""
        ...


def is_run_id(name: str) -> bool:
    """Whether it has the form of one: folders of other names beside the runs are not ours."""
    return _RUN_ID.fullmatch(name) is not None


def check_run_id(run_id: str) -> str:
    """The id itself when it can safely be a folder's name.

    Raises:
        UsageError: it has other characters than letters, digits, dot, underscore and dash, begins with a dot
        or is too long.
    """
    if not is_run_id(run_id):
        raise UsageError(
            f"{run_id[:140]!r} can't be a run id",
            advice="use up to 128 letters, digits, '.', '_' and '-', not starting with '.'",
        )
    return run_id
