"""Large values of a run, kept beside its journal under the hash of their content, so that records and state stay small.

    {"$blob": "sha256:<64 hex digits>", "bytes": 300123, "preview": "the first characters"}

takes the place of a value whose JSON is above `BLOB_BYTES`, before the event enters the core: state,
expressions and journal see the same thing. The content is the value's JSON. A reference in a hostile output
can only name what the same run stored, never a path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from gonogo.errors import JournalError
from gonogo.journal import files
from gonogo.journal.normalise import to_json
from gonogo.journal.store import Blobs

__all__ = [
    "BLOB_BYTES",
    "BLOB_BYTES_MAX",
    "PREVIEW_CHARACTERS",
    "FileBlobs",
    "digest_of",
    "is_reference",
    "reference",
]

BLOB_BYTES = 256 * 1024
"""Values whose JSON is larger than this are kept apart (architecture.md 2.7)."""
BLOB_BYTES_MAX = 512 * 1024 * 1024
"""What is larger is kept nowhere. A plan's own limit (`Limits.output_bytes_max`) was looked at before."""
PREVIEW_CHARACTERS = 1000

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_HEX = re.compile(r"[0-9a-f]{64}")


def digest_of(value: Any) -> str | None:
    """The hex digest a reference names; None when the value is no reference."""
    if type(value) is not dict or "$blob" not in value:
        return None
    named = value["$blob"]
    match = _DIGEST.fullmatch(named) if isinstance(named, str) else None
    return match[1] if match else None


def is_reference(value: Any) -> bool:
    """Whether a value stands for a larger one."""
    return digest_of(value) is not None


def reference(value: Any, data: bytes) -> dict[str, Any]:
    """What stands in the place of `value`, whose JSON is `data`."""
    from hashlib import sha256

    text = value if isinstance(value, str) else data[: PREVIEW_CHARACTERS * 4].decode(errors="ignore")
    return {
        "$blob": f"sha256:{sha256(data).hexdigest()}",
        "bytes": len(data),
        "preview": text[:PREVIEW_CHARACTERS],
    }


class FileBlobs(Blobs):
    """Blobs as files `<folder>/<hex digest>`. Written whole by rename; durable when the writer's `sync` is called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unsynced: list[Path] = []

    def put(self, value: Any) -> Any:
        """`value` itself, or a reference to it when its JSON is above `BLOB_BYTES`. Raises JournalError,
        NotStorable.
        """
        data = to_json(value, size_bytes_max=BLOB_BYTES_MAX)
        if len(data) <= BLOB_BYTES:
            return value
        kept = reference(value, data)
        path = self._folder / str(digest_of(kept))
        with files.system_errors("write", path):
            self._write(path, data)
        return kept

    def get(self, value: Any) -> Any:
        """The value behind a reference; any other value as it is.

        Raises:
            JournalError: the blob is missing, or its content isn't what its name says.
        """
        digest = digest_of(value)
        if digest is None:
            return value
        from hashlib import sha256

        path = self._folder / digest
        with files.system_errors("read", path):
            files.real_folder(self._folder)
            data = files.read_file(path)
        if sha256(data).hexdigest() != digest:
            raise JournalError(
                f"{path} was changed after it was written: its content doesn't match its name",
                advice="restore it from a copy; the run can't be trusted without it",
            )
        return msgspec.json.decode(data)

    def digests(self) -> list[str]:
        """The names of all large values, sorted. Raises JournalError."""
        if not self._folder.exists():
            return []
        with files.system_errors("read", self._folder):
            files.real_folder(self._folder)
            return sorted(name for name in os.listdir(self._folder) if _HEX.fullmatch(name))

    def sync(self) -> None:
        """Make all blobs written so far survive a power cut. Raises OSError."""
        if not self._unsynced:
            return
        for path in self._unsynced:
            descriptor = files.open_file(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        files.sync_folder(self._folder)
        self._unsynced.clear()

    def _write(self, path: Path, data: bytes) -> None:
        """Same content, same file; one that a crash left damaged is written anew."""
        if path.exists() and files.read_file(path) == data:
            return
        if not self._folder.exists():
            files.make_folder(self._folder)
            files.sync_folder(self._folder.parent)  # its own name must last too; this happens once a run
        files.real_folder(self._folder)
        files.atomic_write(path, data, durable=False)
        self._unsynced.append(path)
