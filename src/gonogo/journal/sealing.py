"""The sealed store of a run: secret values that steps gave, beside its journal and never in it (semantics.md 14).

A value goes in before the record that holds its tag is written, and is deleted with the run. The local store is a file
for its owner's eyes; one that several machines share is encrypted (`postgres/seals.py`).
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Raw, Struct

from gonogo.journal import files

__all__ = ["FileSeals", "MemorySeals", "Seals", "Unsealable", "Unsealed"]

TAG_BYTES = 16
SECRET_BYTES = 32


class Unsealable(Exception):  # noqa: N818 - the name says what is wrong
    """Nothing can be sealed here; the text says why and what to do."""


class Unsealed(Exception):  # noqa: N818 - the name says what is wrong
    """A value that was sealed can't be had; the text says why, and what to do about it."""


class Seals(Protocol):
    """The sealed values of one run. All but `check` may raise JournalError."""

    used: bool
    """Whether something was sealed by way of this object."""

    def check(self) -> None:
        """Whether values can be sealed here. Raises Unsealable."""
        ...

    def seal(self, data: bytes) -> str:
        """Keep some JSON; durable when this returns. The answer is its tag, the same for the same data in this run.

        Raises Unsealable.
        """
        ...

    def open(self, tag: str) -> bytes:
        """What was sealed under this tag. Raises Unsealed."""
        ...

    def all(self) -> list[bytes]:
        """Everything that can be opened; what can't is left out."""
        ...


def tag_of(data: bytes, secret: bytes) -> str:
    """The tag of some data: keyed, so that a journal's reader can neither make one nor try out what it stands for."""
    return hmac.digest(secret, data, "sha256")[:TAG_BYTES].hex()


class MemorySeals(Seals):
    """For tests and embedding: gone with the process."""

    def __init__(self) -> None:
        self.used = False
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._known: dict[str, bytes] = {}

    def check(self) -> None:
        """Always."""

    def seal(self, data: bytes) -> str:
        """Keep it."""
        self.used = True
        tag = tag_of(data, self._secret)
        self._known[tag] = data
        return tag

    def open(self, tag: str) -> bytes:
        """What was kept."""
        if tag not in self._known:
            raise Unsealed("it isn't among what the run's process has kept in memory")
        return self._known[tag]

    def all(self) -> list[bytes]:
        """All of it."""
        return list(self._known.values())


class _Line(Struct, omit_defaults=True):
    """A line of the file: the run's own secret in the first, a sealed value in each other."""

    secret: str = ""
    tag: str = ""
    data: Raw = Raw(b"null")


_decode = msgspec.json.Decoder(_Line).decode


class FileSeals(Seals):
    """One file of JSON lines with mode 0600, made when the first value is sealed, only ever added to.

    For one process, the one that writes the run. A line that a crash cut is taken off: no record can name its value.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.used = False
        self._path = path
        self._durable = durable
        self._secret = b""
        self._known: dict[str, bytes] = {}
        self._whole_bytes = -1
        self._damaged = False

    def check(self) -> None:
        """A run that can be written can be sealed, too."""

    def seal(self, data: bytes) -> str:
        """Keep it. Raises JournalError."""
        self.used = True
        with files.system_errors("write", self._path):
            there = self._path.exists()
            if there and self._whole_bytes < 0:
                self._load()
            secret = self._secret or secrets.token_bytes(SECRET_BYTES)
            tag = tag_of(data, secret)
            if there and tag in self._known:
                return tag
            added = {tag: data} if there else {**self._known, tag: data}
            self._append(_lines(added, b"" if there and self._secret else secret))
        self._secret = secret
        self._known[tag] = data
        return tag

    def open(self, tag: str) -> bytes:
        """What was sealed; the file is read again for what isn't known, since a person may have put it back."""
        trouble = "doesn't hold it"
        if tag not in self._known:
            trouble = self._trouble()
        if tag not in self._known:
            raise Unsealed(f"{self._path} {trouble}; restore that file from a backup")
        return self._known[tag]

    def all(self) -> list[bytes]:
        """All that is in the file and whole."""
        if self._whole_bytes < 0:
            self._trouble()
        return list(self._known.values())

    def _trouble(self) -> str:
        """Read the file; what is wrong with it, where something is missing in it."""
        try:
            self._load()
        except FileNotFoundError:
            return "is gone"
        except OSError as error:
            return f"can't be read: {error.strerror or error}"
        return "is damaged" if self._damaged else "doesn't hold it"

    def _load(self) -> None:
        """Raises OSError."""
        whole, newline, _ = files.read_file(self._path).rpartition(b"\n")
        self._whole_bytes = len(whole) + len(newline)
        for line in whole.split(b"\n"):
            self._take(line)

    def _take(self, line: bytes) -> None:
        """A line that was changed is as good as gone: its tag says what its data was."""
        try:
            found = _decode(line)
            data = bytes(found.data)
            if found.secret:
                self._secret = bytes.fromhex(found.secret)
            elif tag_of(data, self._secret) == found.tag:
                self._known[found.tag] = data
            else:
                self._damaged = True
        except ValueError:
            self._damaged = True

    def _append(self, lines: bytes) -> None:
        """Behind the last whole line. Raises OSError."""
        descriptor = files.open_file(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            os.fchmod(descriptor, files.FILE_MODE)
            whole_bytes = min(max(self._whole_bytes, 0), os.fstat(descriptor).st_size)
            os.ftruncate(descriptor, whole_bytes)
            files.write_all(descriptor, lines)
            if self._durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if whole_bytes == 0 and self._durable:
            files.sync_folder(self._path.parent)
        self._whole_bytes = whole_bytes + len(lines)


def _lines(values: Mapping[str, bytes], secret: bytes) -> bytes:
    lines = [_Line(tag=tag, data=Raw(data)) for tag, data in values.items()]
    if secret:
        lines.insert(0, _Line(secret=secret.hex()))
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
