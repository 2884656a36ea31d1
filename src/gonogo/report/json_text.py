"""JSON as indented text, in pieces: what is made while it is written (`journal/lazily.py`) is never whole in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from gonogo.journal.lazily import Elements, Members

BATCH = 500
"""Elements of a list that are written at a time."""
_INDENT = "  "
_NOT_PLAIN = re.compile("[^\n -~]")


def json_text(value: Any, *, unicode: bool = True) -> str:
    """A value as one indented JSON document, ending in a line end."""
    return "".join(json_pieces(value, unicode=unicode))


def json_pieces(value: Any, *, unicode: bool = True) -> Iterator[str]:
    """As `json_text`, bit by bit. `unicode`: whether other signs than ASCII's may be in it."""
    pieces = _pieces(value, "\n")
    yield from pieces if unicode else map(_escaped, pieces)
    yield "\n"


def _pieces(value: Any, line_end: str) -> Iterator[str]:
    """`line_end` with the indentation of the line that the value begins on."""
    if isinstance(value, Members):
        yield from _members(value.each(), line_end)
    elif isinstance(value, Elements):
        yield from _elements(iter(value.each()), line_end)
    else:
        yield _plain(value).replace("\n", line_end)


def _members(members: Iterable[tuple[str, Any]], line_end: str) -> Iterator[str]:
    before = "{"
    for name, value in members:
        yield f"{before}{line_end}{_INDENT}{_plain(name)}: "
        yield from _pieces(value, line_end + _INDENT)
        before = ","
    yield f"{line_end}}}" if before == "," else "{}"


def _elements(elements: Iterator[Any], line_end: str) -> Iterator[str]:
    before = "["
    while batch := list(islice(elements, BATCH)):
        yield before + _plain(batch)[1:-2].replace("\n", line_end)
        before = ","
    yield f"{line_end}]" if before == "," else "[]"


def _plain(value: Any) -> str:
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=len(_INDENT)).decode()
    except (UnicodeEncodeError, OverflowError):
        # Half a character, as the name of a file may hold, or a whole number beyond 64 bits.
        return json.dumps(value, indent=len(_INDENT), ensure_ascii=False, allow_nan=False)


def _escaped(text: str) -> str:
    """Outside of texts JSON is ASCII, so every other sign may be written as its escape."""
    return _NOT_PLAIN.sub(lambda sign: json.dumps(sign[0])[1:-1], text)
