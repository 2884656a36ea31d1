"""The tree a YAML file becomes: plain values that still know where they were written.

What crosses to other rooms is plain data and `Place`s; nodes stay inside config. A node may be shared (an
alias points at its anchor's node), so nobody changes one after it is built; merging makes new mappings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from gonogo.errors import Place

Path = Sequence[str | int]


class Source:
    """A text that was read: `file` as messages name it, `text` without a byte order mark."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends, counted as YAML counts them."""
        text = self.text.replace("\r\n", "\n").replace("\r", "\n")
        return text.replace("\x85", "\n").replace("\u2028", "\n").replace("\u2029", "\n").split("\n")

    def line(self, number: int) -> str | None:
        """The line `number` (from 1), None past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else None


class Scalar(Struct, eq=False):
    """A text, number, boolean or null. `text` is as YAML read it; `style` is the quote or block sign, or empty."""

    value: Any
    text: str
    style: str
    source: Source
    line: int
    column: int


class Listing(Struct, eq=False):
    """A YAML sequence."""

    items: list[Node]
    source: Source
    line: int
    column: int


class Entry(Struct, eq=False):
    """A key (as text) with the place where it is written, and its value."""

    key: str
    source: Source
    line: int
    column: int
    node: Node


class Mapping(Struct, eq=False):
    """A YAML mapping; the order is the file's."""

    entries: dict[str, Entry]
    source: Source
    line: int
    column: int

    def get(self, key: str) -> Node | None:
        """The value under `key`, None when there is none."""
        entry = self.entries.get(key)
        return entry.node if entry else None


Node = Scalar | Listing | Mapping


def plain(node: Node) -> Any:
    """The node as dicts, lists and scalars; shared nodes are copied, so nothing is shared afterwards."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return {key: plain(entry.node) for key, entry in node.entries.items()}


def place_of(at: Node | Entry) -> Place:
    """Where a node or key was written."""
    return Place(at.source.file, at.line, at.column)


def child(node: Node, step: str | int) -> Node | None:
    """The node one step down; None when there is none (a text given where a list may stand, for one)."""
    if isinstance(node, Mapping):
        return node.get(str(step))
    if isinstance(node, Listing) and isinstance(step, int) and -1 < step < len(node.items):
        return node.items[step]
    return None


def walk(node: Node, path: Path) -> Node:
    """The node at `path`, or the deepest one on the way that exists."""
    for step in path:
        below = child(node, step)
        if below is None:
            return node
        node = below
    return node


def find(node: Node, path: Path) -> Node | None:
    """The node at `path`, None when it isn't there."""
    here: Node | None = node
    for step in path:
        if here is None:
            return None
        here = child(here, step)
    return here


def key_at(node: Node, path: Path) -> Entry | None:
    """The key that `path` ends in, for messages about the key itself."""
    if not path:
        return None
    parent = walk(node, path[:-1])
    return parent.entries.get(str(path[-1])) if isinstance(parent, Mapping) else None


def texts(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Scalar]]:
    """Every text below `node` with its path, in file order."""
    if isinstance(node, Scalar):
        if isinstance(node.value, str):
            yield path, node
    elif isinstance(node, Listing):
        for index, item in enumerate(node.items):
            yield from texts(item, (*path, index))
    else:
        for key, entry in node.entries.items():
            yield from texts(entry.node, (*path, key))
