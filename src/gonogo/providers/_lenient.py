"""Objects as people print them: `{ok: true, name: 'x y', items: [1, two]}` (spec E.2 rule 4, the lenient form).

Reads plain values only; anything it isn't sure about it refuses.
"""

from __future__ import annotations

import re
from typing import Any

DEPTH_MAX = 64
CHARACTERS_MAX = 64 * 1024

_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>[{}\[\],:])
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>-?(?:0|[1-9]\d{0,15})(?:\.\d{1,20})?(?![\w.$-]))
    |(?P<word>[A-Za-z_$][\w$.-]*))""",
    re.VERBOSE,
)
_CONSTANTS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class NotLenient(Exception):  # noqa: N818 - the name says what happened
    """The text isn't an object in lenient spelling."""


def read_lenient(text: str) -> Any:
    """The object in this text. Raises NotLenient; a list must hold objects, or any `[word]` in prose would count."""
    if len(text) > CHARACTERS_MAX:
        raise NotLenient
    reader = _Reader(text)
    value = reader.value(0)
    reader.end()
    objects = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    if not (isinstance(value, dict) or objects):
        raise NotLenient
    return value


class _Reader:
    """Recursive descent over tokens, one look ahead."""

    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._at = 0
        self._kind, self._lexeme = "", ""
        self._next()

    def value(self, depth: int) -> Any:
        """The value that starts here."""
        if depth > DEPTH_MAX:
            raise NotLenient
        kind, lexeme = self._kind, self._lexeme
        self._next()
        if lexeme == "{" and kind == "sign":
            return self._object(depth)
        if lexeme == "[" and kind == "sign":
            return self._list(depth)
        return _scalar(kind, lexeme)

    def end(self) -> None:
        """Nothing may follow."""
        if self._kind:
            raise NotLenient

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._closes("}"):
            if self._kind not in ("string", "word", "number"):
                raise NotLenient
            key = self._lexeme if self._kind != "string" else _unquoted(self._lexeme)
            self._next()
            self._expect(":")
            found[key] = self.value(depth + 1)
            self._comma("}")
        return found

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while not self._closes("]"):
            found.append(self.value(depth + 1))
            self._comma("]")
        return found

    def _closes(self, sign: str) -> bool:
        if self._kind == "sign" and self._lexeme == sign:
            self._next()
            return True
        return False

    def _comma(self, closer: str) -> None:
        if not (self._kind == "sign" and self._lexeme == closer):
            self._expect(",")

    def _expect(self, sign: str) -> None:
        if self._kind != "sign" or self._lexeme != sign:
            raise NotLenient
        self._next()

    def _next(self) -> None:
        if self._at >= len(self._text):
            self._kind, self._lexeme = "", ""
            return
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise NotLenient
        self._at = found.end()
        self._kind = str(found.lastgroup)
        self._lexeme = found[self._kind]


def _scalar(kind: str, lexeme: str) -> Any:
    if kind == "string":
        return _unquoted(lexeme)
    if kind == "number":
        return float(lexeme) if "." in lexeme else int(lexeme)
    if kind == "word":
        return _CONSTANTS.get(lexeme, lexeme)
    raise NotLenient


def _unquoted(lexeme: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), lexeme[1:-1], flags=re.DOTALL)
