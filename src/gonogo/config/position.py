"""Where in a file a character of a scalar's text is.

A scalar's text is not the file's: block scalars lose their indentation, folded lines become spaces, quoted
scalars have escapes. The text is laid beside the file from the scalar's start; white space matches white
space of any kind. Used for messages only. Where the two can't be matched the scalar's own start is the
answer.
"""

from __future__ import annotations

import re

from gonogo.config.nodes import Scalar, place_of
from gonogo.errors import Place

_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r?\n[ \t]*|.)", re.DOTALL)
_CONTINUED = re.compile(r"\\\n[ \t]*")  # stands for nothing
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
_SPACE = " \t\r\n"


def place_within(scalar: Scalar, line: int, column: int) -> Place:
    """The place of the character at `line` and `column` (from 1) of the scalar's text."""
    target = _offset(scalar.text, line, column)
    source = "\n".join(scalar.source.lines)
    start = _offset_of_line(scalar.source.lines, scalar.line) + scalar.column - 1
    found = _matched(scalar, source, start, target)
    if found is None:
        return place_of(scalar)
    before = source[:found]
    return Place(scalar.source.file, before.count("\n") + 1, found - (before.rfind("\n") + 1) + 1)


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return min(_offset_of_line(lines, line) + column - 1, len(text))


def _offset_of_line(lines: list[str], line: int) -> int:
    return sum(len(text) + 1 for text in lines[: line - 1])


def _matched(scalar: Scalar, source: str, at: int, target: int) -> int | None:
    """The offset in `source` that matches offset `target` of the scalar's text."""
    style, text = scalar.style, scalar.text
    at = _behind(_PROPERTIES, source, at)
    if style in ("|", ">"):
        at = source.find("\n", at) + 1 or len(source)
    elif style:
        at += 1
    if target == 0 or not text:
        return _skip_space(source, at)
    for character in text[:target]:
        at = _next(style, character, source, at)
        if at < 0:
            return None
    if not text[target : target + 1].strip():
        return at
    return _skip_space(source, _behind(_CONTINUED, source, at) if style == '"' else at)


def _next(style: str, character: str, source: str, at: int) -> int:
    """The offset behind what stands for `character` at or after `at`; -1 when nothing does."""
    if style == '"':
        at = _behind(_CONTINUED, source, at)
    if not (style == '"' and source[at : at + 1] == "\\"):
        if character in _SPACE:
            return _skip_space(source, at)
        at = _skip_space(source, at)
        at = _behind(_CONTINUED, source, at) if style == '"' else at
    if style == '"' and source[at : at + 1] == "\\":
        escape = _ESCAPE.match(source, at)
        return escape.end() if escape else -1
    if style == "'" and source[at : at + 2] == "''":
        return at + 2
    return at + 1 if source[at : at + 1] == character else -1


def _behind(pattern: re.Pattern[str], source: str, at: int) -> int:
    found = pattern.match(source, at)
    return found.end() if found else at


def _skip_space(source: str, at: int) -> int:
    while at < len(source) and source[at] in _SPACE:
        at += 1
    return at
