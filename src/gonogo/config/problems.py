"""Problems for people and for programs: as text with the line and a caret, and as plain data.

    gonogo.yaml:12:7: error: unknown key 'fail_iff' [key.unknown]
          fail_iff: output.n > 3
          ^
      did you mean fail_if?

Lines are cut around the caret, and control characters are shown as escapes: a file is hostile input.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from gonogo.errors import Problem

LINE_CHARS_MAX = 100
MESSAGE_CHARS_MAX = 2000
_CUT = "…"
_SEVERITIES = ("error", "warning", "info")


def text_of(problems: Iterable[Problem]) -> str:
    """All problems as text, a blank line between them, and the count at the end; empty for none."""
    listed = list(problems)
    if not listed:
        return ""
    return "\n\n".join([*(one_text(problem) for problem in listed), count_text(listed)])


def one_text(problem: Problem) -> str:
    """One problem as text of up to four lines."""
    place = problem.place
    where = f"{escaped(place.file)}:{place.line}:{place.column}: " if place else ""
    message = escaped(problem.message[:MESSAGE_CHARS_MAX])
    lines = [f"{where}{problem.severity}: {message} [{problem.code}]"]
    if place and problem.source is not None and problem.source.strip():
        shown, caret = excerpt(problem.source, place.column)
        lines += [f"    {shown}", f"    {' ' * caret}^"]
    if problem.suggestion:
        lines.append(f"  {escaped(problem.suggestion[:MESSAGE_CHARS_MAX])}")
    return "\n".join(lines)


def count_text(problems: Sequence[Problem]) -> str:
    """`2 errors, 1 warning`."""
    parts = []
    for severity in _SEVERITIES:
        count = sum(problem.severity == severity for problem in problems)
        if count:
            word = "note" if severity == "info" else severity
            parts.append(f"{count} {word}{'' if count == 1 else 's'}")
    return ", ".join(parts)


def excerpt(line: str, column: int) -> tuple[str, int]:
    """`line` cut around `column` (from 1) and escaped, and how many cells are before the caret."""
    at = min(max(column - 1, 0), len(line))
    start, end = 0, len(line)
    if len(line) > LINE_CHARS_MAX:
        start = max(0, min(at - LINE_CHARS_MAX // 2, len(line) - LINE_CHARS_MAX))
        end = start + LINE_CHARS_MAX
    before = (_CUT if start else "") + escaped(line[start:at])
    after = escaped(line[at:end]) + (_CUT if end < len(line) else "")
    return before + after, sum(_cells(character) for character in before)


def escaped(text: str) -> str:
    """`text` with everything that isn't printable shown as an escape; tabs become one space."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character == "\t":
        return " "
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cells(character: str) -> int:
    """How wide a terminal shows a character."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def data_of(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """All problems as plain data for `--format json`; keys without a value are null."""
    return [
        {
            "severity": problem.severity,
            "code": problem.code,
            "message": problem.message,
            "path": problem.path,
            "file": problem.place.file if problem.place else None,
            "line": problem.place.line if problem.place else None,
            "column": problem.place.column if problem.place else None,
            "suggestion": problem.suggestion,
        }
        for problem in problems
    ]
