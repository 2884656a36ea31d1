"""The state of a run from its records, which are input like any other: a journal can be forged, checksums and all."""

from __future__ import annotations

from collections.abc import Iterable

from gonogo.core.apply import fold
from gonogo.core.state import State
from gonogo.errors import JournalError
from gonogo.journal.records import Record


def state_of(records: Iterable[Record]) -> State:
    """The fold of the records. Raises JournalError when they don't follow from each other."""
    try:
        return fold(records)
    except JournalError:
        raise
    except Exception as error:
        told = f"the records of this run don't follow from each other: {type(error).__name__}: {error}"
        raise JournalError(
            told, advice="the journal was changed by hand, or gonogo has a bug: please report it"
        ) from error
