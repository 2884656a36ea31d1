"""What a plain YAML scalar means: the YAML 1.2 core schema, and nothing of YAML 1.1.

Only the spellings of true and false are booleans; `on`, `off`, `yes`, `no`, `y` and `n` are text. Numbers
must be JSON numbers, because a plan is journaled as JSON: no infinity, no NaN, integers within 64 bits.
"""

from __future__ import annotations

import math
import re
from typing import Any

_WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_STARTS = frozenset("0123456789+-.")
_DIGITS_MAX = 40  # longer can't fit 64 bits, and Python's int() of a long text is slow
_FITS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
_TAG_PREFIX = "tag:yaml.org,2002:"
_TAGS = frozenset(_TAG_PREFIX + name for name in ("str", "int", "float", "bool", "null", "seq", "map"))


def plain_value(text: str) -> Any:
    """The value of an unquoted scalar. Raises ValueError for a number that JSON or 64 bits can't hold."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return _real(text)
    if _NOT_JSON.fullmatch(text):
        raise ValueError(f"{text} is not a JSON number; quote it if text is meant")
    return text


def _integer(text: str) -> int:
    value = int(text, 0 if text[:2] in ("0o", "0x") else 10) if len(text) <= _DIGITS_MAX else 2**64
    if not -(2**63) <= value < 2**63:
        raise ValueError("this integer doesn't fit 64 bits; quote it if text is meant")
    return value


def _real(text: str) -> float:
    value = float(text) if len(text) <= 10 * _DIGITS_MAX else math.inf
    if math.isinf(value):
        raise ValueError("this number is too large; quote it if text is meant")
    return value


def tag_allowed(tag: str | None) -> bool:
    """True for no tag, `!` and the tags of YAML's core schema."""
    return tag is None or tag == "!" or tag in _TAGS


def tagged_value(tag: str, text: str) -> Any:
    """The value of a scalar with an explicit core tag. Raises ValueError when it doesn't fit."""
    kind = tag.removeprefix(_TAG_PREFIX)
    if kind in ("str", "!"):
        return text
    value = plain_value(text)
    if type(value) not in _FITS.get(kind, ()):
        raise ValueError(f"{text[:40]!r} is not of the type its tag !!{kind} says")
    return float(value) if kind == "float" else value
