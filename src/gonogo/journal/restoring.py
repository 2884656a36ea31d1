"""The state of a run from its records, which are input like any other: a journal can be forged, checksums and all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from gonogo.core.apply import fold, take_in
from gonogo.core.state import State
from gonogo.errors import JournalError
from gonogo.journal.records import Record


def state_of(records: Iterable[Record]) -> State:
    """The fold of the records. Raises JournalError when they don't follow from each other."""
    with _distrusted():
        return fold(records)


class Follower:
    """The state of a run that somebody else writes: it follows the journal as far as it is read."""

    def __init__(self, first: Record) -> None:
        """Raises JournalError when this record starts no run."""
        self.state = state_of([first])
        self.seq = first.seq

    def follow(self, records: Iterable[Record]) -> None:
        """Take in the next records. Raises JournalError when they don't follow from what is known."""
        for record in records:
            if record.seq != self.seq + 1:
                raise JournalError(f"record {record.seq} follows record {self.seq}; some are missing")
            with _distrusted():
                take_in(self.state, record)
            self.seq = record.seq


@contextmanager
def _distrusted() -> Iterator[None]:
    try:
        yield
    except JournalError:
        raise
    except Exception as error:
        told = f"the records of this run don't follow from each other: {type(error).__name__}: {error}"
        raise JournalError(
            told, advice="the journal was changed by hand, or gonogo has a bug: please report it"
        ) from error
