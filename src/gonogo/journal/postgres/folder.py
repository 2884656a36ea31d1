"""Large values of a run in a folder that all workers share, beside a store in Postgres: it then holds small rows alone.

They are the files that a local run has, in a folder by the run's id. What is in the store from before is read there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gonogo.core.secrecy import BLOBS
from gonogo.errors import JournalError, UsageError
from gonogo.journal import files
from gonogo.journal.blobs import FileBlobs, digest_of
from gonogo.journal.postgres.blobs import PostgresBlobs
from gonogo.journal.store import Blobs

__all__ = ["FolderBlobs", "folder_named"]


def folder_named(text: str) -> Path | None:
    """The folder that the variable names, if any. Raises UsageError for one that would be another for each worker."""
    if not text:
        return None
    if not Path(text).is_absolute():
        raise UsageError(
            f"{BLOBS} isn't an absolute path", advice="name the folder that all workers share, from / on"
        )
    return Path(text)


class FolderBlobs(Blobs):
    """Same content, same file. Each is on disk when `put` returns."""

    def __init__(self, folder: Path, run_id: str, rows: PostgresBlobs) -> None:
        """`folder`: of all runs. It is never made: where a share isn't there its place may be."""
        self._folder = folder
        self._own = folder / run_id
        self._files = FileBlobs(self._own)
        self._rows = rows

    def put(self, value: Any) -> Any:
        """`value` itself, or a reference to it when it is large. Raises JournalError, NotStorable."""
        if not self._folder.is_dir():
            raise JournalError(
                f"there is no folder {self._folder} for large values ({BLOBS})",
                advice="make it, or see that the share is there",
            )
        kept = self._files.put(value)
        with files.system_errors("write", self._own):
            self._files.sync()
        return kept

    def get(self, reference: Any) -> Any:
        """The value behind a reference; any other value as it is.

        Raises:
            JournalError: it is in neither place, or its content isn't what its name says.
        """
        digest = digest_of(reference)
        is_file = digest is not None and (self._own / digest).exists()
        return self._files.get(reference) if is_file else self._rows.get(reference)

    def digests(self) -> list[str]:
        """The names of all large values of the run, sorted. Raises JournalError."""
        return sorted({*self._files.digests(), *self._rows.digests()})
