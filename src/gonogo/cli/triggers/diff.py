"""Reads what `git diff` prints: the list of files (`-z --raw --numstat`) and the patches. Computes only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gonogo.cli.triggers.shape import ChangedFile, readable

_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


class Entry(Struct, frozen=True):
    """One line of the listing. `patched`: lines were counted, so there is a patch worth reading."""

    filename: str
    status: str
    previous: str | None
    additions: int
    deletions: int
    patched: bool


def listed(data: bytes) -> list[Entry]:
    """The entries of `git diff -z --raw --numstat`: all raw ones, then as many counts."""
    tokens = iter(data.split(b"\0"))
    raw: list[tuple[str, bytes | None, bytes]] = []
    counted: dict[bytes, tuple[int, int, bool]] = {}
    for token in tokens:
        if token.startswith(b":"):
            raw.append(_raw(token, tokens))
        elif token:
            name, count = _count(token, tokens)
            counted[name] = count
    return [_entry(status, old, new, counted) for status, old, new in raw]


def _raw(token: bytes, tokens: Iterator[bytes]) -> tuple[str, bytes | None, bytes]:
    letter = token.rsplit(b" ", 1)[-1][:1].decode("ascii", "replace")
    first = next(tokens, b"")
    if letter in ("R", "C"):
        return letter, first, next(tokens, b"")
    return letter, None, first


def _count(token: bytes, tokens: Iterator[bytes]) -> tuple[bytes, tuple[int, int, bool]]:
    """`added TAB deleted TAB name`; the name is empty and follows as two tokens for a rename; binary is `-`."""
    added, deleted, name = token.split(b"\t", 2)
    if not name:
        next(tokens, b"")
        name = next(tokens, b"")
    if added == b"-":
        return name, (0, 0, False)
    return name, (int(added), int(deleted), bool(int(added) + int(deleted)))


def _entry(letter: str, old: bytes | None, new: bytes, counted: dict[bytes, tuple[int, int, bool]]) -> Entry:
    additions, deletions, patched = counted.get(new, (0, 0, False))
    previous = readable(old) if old is not None and letter == "R" else None
    return Entry(readable(new), _STATUS.get(letter, "changed"), previous, additions, deletions, patched)


def patches(data: bytes) -> list[str | None]:
    """The hunks of each file, in the listing's order; None for a file without (binary, mode only).

    A line of a hunk starts with a space, `+`, `-` or a backslash, so `diff --git ` at a line's start is git's own.
    """
    parts = (b"\n" + data).split(b"\ndiff --git ")[1:]
    return [_hunks(part) for part in parts]


def _hunks(part: bytes) -> str | None:
    start = part.find(b"\n@@ ")
    return readable(part[start + 1 :]) if start >= 0 else None


def joined(entries: Sequence[Entry], found: Sequence[str | None]) -> Iterator[ChangedFile]:
    """Entries with their patches; without them when there aren't as many (the tree changed meanwhile)."""
    texts = found if len(found) == len(entries) else [None] * len(entries)
    for entry, text in zip(entries, texts, strict=True):
        yield ChangedFile(
            entry.filename, entry.status, entry.additions, entry.deletions, entry.previous, text
        )
