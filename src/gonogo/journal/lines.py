"""Reads a journal as far as it can be trusted, one line after the other: nothing is kept but the record at hand.

A last line without its end is what a crash leaves: it is left out and reported (`show` works on a run that is
being written, too). Anything else that isn't as it was written is refused with its line number: a record that
others build on may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from gonogo.errors import JournalError
from gonogo.journal.codec import LineDamaged, NewerFormat, check_first

__all__ = ["NewerJournal", "NoSuchRun", "Reading"]

CLOCK_S_MAX = 1e9
"""No run is older than thirty years; a clock beyond that is damage, or a forgery."""


class _Numbered(Protocol):
    """What is looked at in whatever a line is decoded to: `Record`, or what is lighter."""

    @property
    def seq(self) -> int: ...
    @property
    def event(self) -> Any: ...


R = TypeVar("R", bound=_Numbered)


class NewerJournal(JournalError):  # noqa: N818 - the name says what is wrong
    """A newer gonogo wrote the journal: it is well, and for others to go on with."""


class NoSuchRun(JournalError):  # noqa: N818 - the name says what is wrong
    """A store doesn't have the run: it was deleted, or is another store's."""


class Reading(Generic[R]):
    """The records of a journal in order, to be gone through once. Then `count` says how many they were, and `torn`,
    `unended` and `whole_bytes` how they end: bytes of a line that was cut, a whole line that lacks only its newline,
    where whole lines end.

    Going through it raises JournalError: there is no record, one is damaged, or the format is newer. `path` is what
    messages call the journal. `ready` is what is done with a record before it is given out, at the price of a note in
    `notes` when that fails.
    """

    def __init__(
        self,
        lines: Iterable[bytes],
        path: Path | str,
        decode: Callable[[bytes], R],
        ready: Callable[[R], R] | None = None,
        *,
        run_id: str | None = None,
    ) -> None:
        """With `run_id`, another run's journal is refused: who goes on with a copy does everything once more."""
        self._lines = lines
        self._path = path
        self._decode = decode
        self._ready = ready
        self._run_id = run_id
        self._failures: list[str] = []
        self._due: int | None = None
        self.count = 0
        self.torn = b""
        self.unended = False
        self.whole_bytes = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the reader, once everything was read."""
        cut = f"the last line of {self._path} is incomplete and was left out ({len(self.torn)} bytes)"
        return (*((cut,) if self.torn else ()), *self._failures)

    def __iter__(self) -> Iterator[R]:
        for number, line in enumerate(self._lines, 1):
            record = self._record(number, line) if line.endswith(b"\n") else self._last(line)
            if record is None:
                break
            self.count += 1
            self.whole_bytes += len(line)
            self._due = record.seq + 1
            yield record if self._ready is None else self._made_ready(record, self._ready)
        if self._due is None:
            raise JournalError(
                f"{self._path} holds no whole record: the run ended before it began", advice="start it again"
            )

    def _record(self, number: int, line: bytes) -> R:
        try:
            if number == 1:
                check_first(line)
            record = self._decode(line)
        except LineDamaged as error:
            raise self._damaged(number, str(error)) from error
        except NewerFormat as error:
            raise NewerJournal(
                f"{self._path}, line {number}: a newer gonogo wrote this: {error}",
                advice="update gonogo to read it",
            ) from error
        if self._due is not None and record.seq != self._due:
            # A line taken out or doubled leaves a gap in the numbers.
            raise self._damaged(number, f"expected record {self._due}, found {record.seq}")
        found = getattr(record.event, "run_id", None) if number == 1 else None
        if found is not None and self._run_id not in (None, found):
            raise JournalError(
                f"{self._path} is the journal of run {found}",
                advice="a copy of a run is for another folder or store, under the run's own name",
            )
        if not 0 <= record.event.at < CLOCK_S_MAX:
            raise self._damaged(number, f"its clock says {record.event.at:g} seconds")
        return record

    def _last(self, line: bytes) -> R | None:
        """The record of a last line that lacks nothing but its newline; else it is torn."""
        try:
            if self._due is None:
                check_first(line)
            record = self._decode(line)
        except (LineDamaged, NewerFormat):
            record = None
        if record is None or record.seq != (record.seq if self._due is None else self._due):
            self.torn = line
            return None
        self.unended = True
        return record

    def _made_ready(self, record: R, ready: Callable[[R], R]) -> R:
        try:
            return ready(record)
        except JournalError as problem:
            if problem.message not in self._failures:
                self._failures.append(problem.message)
            return record

    def _damaged(self, number: int, what: str) -> JournalError:
        kept = "or cut it before that line, and what came after is unknown"
        lost = "without its first line nothing is known of the run"
        return JournalError(
            f"{self._path}, line {number} is damaged: {what}",
            advice=f"restore it from a copy; {kept if number > 1 else lost}",
        )
