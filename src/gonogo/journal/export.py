"""Writes a run of any place as the local files would have it, byte for byte: to keep, to hand on, to show."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from gonogo.errors import JournalError
from gonogo.journal import files
from gonogo.journal.blobs import FileBlobs, digest_of
from gonogo.journal.codec import decode_line
from gonogo.journal.jsonl import BLOBS, JOURNAL
from gonogo.journal.lines import Reading
from gonogo.journal.store import Blobs, Runs

__all__ = ["export", "with_children"]


def with_children(runs: Runs, run_id: str) -> list[str]:
    """The run and those that it started, directly or not. Raises JournalError."""
    return [run_id, *(each for each in runs.ids() if each.startswith(f"{run_id}."))]


def export(runs: Runs, run_id: str, folder: Path) -> Path:
    """Write `<folder>/<run id>`, whole or not at all; a line that a crash cut is left out. The answer is where it is.

    Raises:
        JournalError: there is no such run, it can't be trusted, or there is such a folder already.
    """
    home = folder / run_id
    lines = runs.lines(run_id)
    with files.system_errors("write", home):
        files.make_folder(folder)
        unfinished = folder / f".{run_id}.{os.getpid()}"
        files.make_folder(unfinished)
        try:
            _write_lines(lines, unfinished / JOURNAL, f"run {run_id}")
            _copy_blobs(runs.blobs(run_id), unfinished / BLOBS)
            files.sync_folder(unfinished)
            if home.exists():
                raise JournalError(f"{home} is there already", advice="name another folder with --out")
            unfinished.rename(home)
            files.sync_folder(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return home


def _write_lines(lines: Iterable[bytes], path: Path, named: str) -> None:
    """Each line as it was kept, once it was read as a record."""
    at_hand = [b""]

    def seen() -> Iterator[bytes]:
        for line in lines:
            at_hand[0] = line
            yield line

    descriptor = files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(descriptor, "wb") as file:
        for _ in Reading(seen(), named, decode_line):
            file.write(at_hand[0].removesuffix(b"\n") + b"\n")
        file.flush()
        os.fsync(descriptor)


def _copy_blobs(blobs: Blobs, folder: Path) -> None:
    """Each is known by its content, so what comes out differently is told."""
    copies = FileBlobs(folder)
    for digest in blobs.digests():
        copy = copies.put(blobs.get({"$blob": f"sha256:{digest}"}))
        if digest_of(copy) != digest:
            raise JournalError(f"the large value {digest} isn't what its name says")
    copies.sync()
