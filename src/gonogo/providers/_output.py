"""From a command's text to its output (spec E.2 rule 4): JSON when it is, or holds, JSON; else the text.

Only `parse: auto` guesses. A guess that isn't wanted is turned off by `parse: text`, one that must hold by
`parse: json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from gonogo.providers._lenient import NotLenient, read_lenient

SEARCHED_CHARACTERS_MAX = 1024 * 1024
"""JSON inside other text is looked for in the last part only."""
_CANDIDATES_MAX = 20

_TOKENS = re.compile(r'"(?:[^"\\\n]+|\\.)*("?)|[{}\[\]]')
_BRACKETS = re.compile(r"[{}\[\]]")
_PHRASE = re.compile(r"\berror\s*[:=]\s*(true|false)\b", re.IGNORECASE)
_CLOSER = {"}": "{", "]": "["}


def read_json(text: str) -> Any:
    """Strict JSON (no NaN, no Infinity). Raises ValueError, also when it is nested too deeply."""
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse)
    except RecursionError as problem:
        raise ValueError("the JSON is nested too deeply") from problem


def json_or_text(text: str) -> Any:
    """What a template gave: JSON when all of it is, else the text, trimmed."""
    text = text.strip()
    try:
        return read_json(text)
    except ValueError:
        return text


def guess(text: str) -> Any:
    """`parse: auto` over trimmed text: the first that fits of

    all of it as JSON; the last balanced JSON in it; the same in a lenient spelling (single quotes, bare
    keys and words, objects only at the top); a phrase like `error: true`; the text itself.
    """
    if not text:
        return text
    try:
        return read_json(text)
    except ValueError:
        pass
    searched = text[-SEARCHED_CHARACTERS_MAX:]
    candidates = _balanced(searched)[: -_CANDIDATES_MAX - 1 : -1]
    for read in (read_json, read_lenient):
        for candidate in candidates:
            try:
                return read(candidate)
            except (ValueError, NotLenient):
                continue
    phrase = _PHRASE.search(searched)
    return {"error": phrase[1].lower() == "true"} if phrase else text


def _balanced(text: str) -> list[str]:
    """The outermost balanced brackets, in order; brackets inside double quotes don't count. Linear."""
    open_at: list[int] = []
    spans: list[tuple[int, int]] = []
    for at in _bracket_offsets(text):
        sign = text[at]
        if sign in "{[":
            open_at.append(at)
            continue
        if not open_at or text[open_at[-1]] != _CLOSER[sign]:
            open_at.clear()
            continue
        start = open_at.pop()
        while spans and spans[-1][0] > start:
            spans.pop()
        spans.append((start, at + 1))
    return [text[start:end] for start, end in spans]


def _bracket_offsets(text: str) -> Iterator[int]:
    """Where brackets are. A quote that its line doesn't close is no quote, and nor are those behind it in the
    line: each has a backslash before it, so starting again at each would only find the same end.
    """
    for token in _TOKENS.finditer(text):
        if text[token.start()] != '"':
            yield token.start()
        elif not token[1]:
            yield from (found.start() for found in _BRACKETS.finditer(text, token.start(), token.end()))


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} isn't JSON")
