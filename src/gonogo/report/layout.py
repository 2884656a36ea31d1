"""Text on a terminal or in a pipe: widths in cells, wrapping, colours, symbols, and nothing that isn't printable.

What a run says (messages, names, prompts) is hostile: escape sequences in it are shown, never sent.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from types import MappingProxyType

from msgspec import Struct

JOINERS = "\u200c\u200d"
"""Invisible, but parts of words and of emoji."""

_CODES = MappingProxyType(
    {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36",
     "GO": "1;30;42", "NO-GO": "1;37;41", "HOLD": "1;30;43"}
)  # fmt: skip
_SYMBOLS = MappingProxyType(
    {
        "passed": ("✓", "+", "green"),
        "failed": ("✗", "x", "red"),
        "tolerated": ("!", "!", "yellow"),
        "skipped": ("–", "-", "dim"),
        "cancelled": ("■", "#", "red"),
        "waiting": ("?", "?", "yellow"),
        "in_doubt": ("‽", "?", "yellow"),
        "running": ("▸", ">", "cyan"),
        "cut_off": ("▪", "#", "red"),
        "excluded": ("·", ".", "dim"),
    }
)


class Style(Struct, frozen=True):
    """How text may look. `width` in cells, None for lines of any length; `colour`: escape codes may be used;
    `unicode`: the stream can show more than ASCII.
    """

    width: int | None = None
    colour: bool = False
    unicode: bool = True

    def paint(self, text: str, *names: str) -> str:
        """`text` in colours, where they are allowed."""
        if not self.colour or not text:
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def symbol(self, outcome: str) -> str:
        """The sign of an outcome, one cell wide."""
        sign, ascii_sign, colour = _SYMBOLS[outcome]
        return self.paint(sign if self.unicode else ascii_sign, colour)

    def typography(self, text: str) -> str:
        """Our own texts without the signs that ASCII lacks; what others say is left to the stream."""
        if self.unicode:
            return text
        for sign, plain_sign in (("…", "..."), ("→", "->"), ("·", "-"), ("–", "-"), ("×", "x")):
            text = text.replace(sign, plain_sign)
        return text


def plain(text: str) -> str:
    """`text` on one line: line ends and tabs are spaces, what can't be printed is an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(sign) for sign in text)


def _shown(sign: str) -> str:
    if sign in "\n\t\r":
        return " "
    if sign.isprintable() or sign in JOINERS:
        return sign
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def brief(text: str, length_max: int) -> str:
    """`text` on one line of at most `length_max` characters, single spaces between its words."""
    line = " ".join(plain(text[: length_max * 4]).split())
    return line if len(line) <= length_max else line[: length_max - 1] + "…"


def cells(text: str) -> int:
    """How many columns a terminal needs for it (no escape codes in it)."""
    return len(text) if text.isascii() else sum(_cell(sign) for sign in text)


def _cell(sign: str) -> int:
    if unicodedata.combining(sign) or sign in JOINERS or "\ufe00" <= sign <= "\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1


def padded(text: str, width: int) -> str:
    """`text` filled up with spaces to `width` cells."""
    return text + " " * (width - cells(text))


def wrapped(text: str, width: int | None) -> list[str]:
    """`text` in lines of at most `width` cells, broken between words where it can be; one line for None."""
    if width is None or cells(text) <= width:
        return [text]
    width = max(1, width)
    lines = [""]
    for word in text.split(" "):
        for part in _pieces(word, width):
            candidate = f"{lines[-1]} {part}" if lines[-1] else part
            if cells(candidate) <= width:
                lines[-1] = candidate
            else:
                lines.append(part)
    return lines


def _pieces(word: str, width: int) -> Iterator[str]:
    """A word in pieces no wider than `width`."""
    piece, used = "", 0
    for sign in word:
        size = _cell(sign)
        if used + size > width and piece:
            yield piece
            piece, used = "", 0
        piece += sign
        used += size
    yield piece


def duration(milliseconds: int) -> str:
    """`35 ms`, `1.2 s`, `3 m 05 s`, `2 h 10 m`."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def count(number: int, noun: str) -> str:
    """`1 step`, `3 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
