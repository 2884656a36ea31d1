"""Makes every value JSON before the core sees it, so that what a run saw and what its journal says are the same.

The rules (one JSON round trip; values that would not come back equal are refused, with the path to them):

- null, booleans, numbers, text, lists and objects with text keys are stored. Integers may have any number of
  digits up to `DIGITS_MAX`. Tuples become lists; subclasses of the plain types become the plain types.
- Half a surrogate pair (bytes that were no UTF-8, a cut emoji) becomes U+FFFD; two halves that fit are
  joined.
- NaN, Infinity, sets, bytes, dates, keys that are no text, lists that contain themselves, nesting deeper than
  `DEPTH_MAX` and objects of any other type are refused with `NotStorable`. Objects are never printed: their
  `repr` may be hostile.

Redaction is `redact.py`'s; moving large outputs out of the way is `blobs.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct

from gonogo.core.events import AnyEvent

__all__ = [
    "DEPTH_MAX",
    "DIGITS_MAX",
    "SIZE_BYTES_MAX",
    "NotStorable",
    "normalise",
    "normalise_event",
    "to_json",
]

DEPTH_MAX = 200
"""Levels of lists and objects. Readers recurse (templates, redaction, other JSON parsers), so this stays well
below their limits.
"""
DIGITS_MAX = 4300
"""Digits of an integer: Python's own limit for turning text into integers."""
SIZE_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of one value as JSON, the default; `Limits.output_bytes_max` of a plan says otherwise."""

_ADVICE: dict[type, str] = {
    set: "a set; return a sorted list",
    frozenset: "a set; return a sorted list",
    bytes: "bytes; decode them, or return base64 text",
    bytearray: "bytes; decode them, or return base64 text",
    memoryview: "bytes; decode them, or return base64 text",
}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_E = TypeVar("_E", bound=Struct)


@lru_cache(maxsize=64)
def _decoder_of(kind: type[AnyEvent]) -> Callable[[bytes], AnyEvent]:
    """Made for the kinds of events that a run has, when they are first met: one for all kinds takes milliseconds."""
    return msgspec.json.Decoder(kind).decode


class NotStorable(ValueError):  # noqa: N818 - the name says what is wrong
    """A value that JSON can't hold. `path` leads to it (`output.items[3]`), `reason` says what it is and what
    to return.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is {reason}")
        self.path = path
        self.reason = reason


def normalise(value: Any, path: str = "output", *, size_bytes_max: int = SIZE_BYTES_MAX) -> Any:
    """`value` as plain JSON data, a copy that shares nothing with it; UNSET stays UNSET.

    Raises:
        NotStorable: a part of it can't be stored (see the module's rules), or it is larger than
        `size_bytes_max`.
    """
    if value is UNSET:
        return value
    return _round_trip(value, path, size_bytes_max)[1]


def to_json(value: Any, path: str = "output", *, size_bytes_max: int = SIZE_BYTES_MAX) -> bytes:
    """Like `normalise`, but the JSON text; decoding it gives what `normalise` gives."""
    return _round_trip(value, path, size_bytes_max)[0]


def normalise_event(event: AnyEvent, *, size_bytes_max: int = SIZE_BYTES_MAX) -> AnyEvent:
    """An event exactly as a reader of the journal will see it: every field went through one JSON round trip.

    Raises:
        NotStorable: with a path that starts at the field (`output.items[3]`, `meta.headers`), or the event as a
            whole is larger than `size_bytes_max`.
    """
    try:
        data = _encode(event)
        again = _decoder_of(type(event))(data)
        faithful = again == event and not (_openers(data) > DEPTH_MAX and _too_deep(_decode(data)))
    except Exception:  # noqa: BLE001 - a foreign __eq__ may raise anything; the walk below names the place
        faithful = False
    if not faithful:
        data = _encode(_clean_struct(event, "", ()))
        again = _decoder_of(type(event))(data)
    _check_size(data, "the event", size_bytes_max)
    return again


def _round_trip(value: Any, path: str, size_bytes_max: int) -> tuple[bytes, Any]:
    """The JSON of a value and what it reads back as. The fast path is all in C: a value that comes back equal
    is fine.
    """
    try:
        data = _encode(value)
        again = _decode(data)
        faithful = again == value and not (_openers(data) > DEPTH_MAX and _too_deep(again))
    except Exception:  # noqa: BLE001 - a foreign __eq__ may raise anything; the walk below names the place
        faithful = False
    if not faithful:
        data = _encode(_clean(value, path, ()))
        again = _decode(data)
    _check_size(data, path, size_bytes_max)
    return data, again


def _check_size(data: bytes, path: str, size_bytes_max: int) -> None:
    if len(data) > size_bytes_max:
        size = f"{len(data)} bytes as JSON, more than the limit of {size_bytes_max}; write it to a file"
        raise NotStorable(path, size)


def _openers(data: bytes) -> int:
    """No value is deeper than its opening brackets are many, and these are cheap to count."""
    return data.count(b"[") + data.count(b"{")


def _too_deep(value: Any) -> bool:
    """Whether lists and objects nest deeper than `DEPTH_MAX`."""
    level = [value]
    for _ in range(DEPTH_MAX):
        parts = [part for whole in level for part in (whole.values() if type(whole) is dict else whole)]
        level = [part for part in parts if type(part) is dict or type(part) is list]
        if not level:
            return False
    return True


def _clean(value: Any, path: str, inside: tuple[int, ...]) -> Any:
    """`value` with its text repaired; raises at the first part that can't be stored. `inside`: ids of what
    contains it.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return _number(value, path)
    if not isinstance(value, list | tuple | dict | Struct):
        reason = _ADVICE.get(type(value), f"a Python object of type {_type_name(value)}; return plain data")
        raise NotStorable(path, reason)
    if id(value) in inside:
        raise NotStorable(path, "a value that contains itself; return a copy of the part that matters")
    if len(inside) >= DEPTH_MAX:
        raise NotStorable(path, f"nested deeper than {DEPTH_MAX} levels; return a flatter value")
    return _clean_container(value, path, (*inside, id(value)))


def _clean_container(value: Any, path: str, inside: tuple[int, ...]) -> Any:
    if isinstance(value, dict):
        return _clean_object(value, path, inside)
    if isinstance(value, Struct):
        return _clean_struct(value, f"{path}.", inside)
    items = [_clean(item, f"{path}[{index}]", inside) for index, item in enumerate(value)]
    return tuple(items) if isinstance(value, tuple) else items


def _clean_object(value: dict[Any, Any], path: str, inside: tuple[int, ...]) -> dict[str, Any]:
    cleaned: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise NotStorable(path, f"an object with a key of type {_type_name(key)}; use text keys")
        name = _text(key)
        if name in cleaned:
            raise NotStorable(path, "an object whose keys differ only in bytes that are no text; rename one")
        cleaned[name] = _clean(item, f"{path}.{name}", inside)
    return cleaned


def _clean_struct(value: _E, prefix: str, inside: tuple[int, ...]) -> _E:
    """A record type of ours: its fields keep their types, so tuples stay tuples."""
    parts = {name: getattr(value, name) for name in value.__struct_fields__}
    stated = {name: part for name, part in parts.items() if part is not UNSET}
    cleaned = {name: _clean(part, f"{prefix}{name}", inside) for name, part in stated.items()}
    return msgspec.structs.replace(value, **cleaned)


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str.__str__(text)


def _number(value: float, path: str) -> float:
    if not isinstance(value, int):
        if not math.isfinite(value):
            raise NotStorable(path, f"{float(value)}; return null or text instead")
        return float(value)
    if value.bit_length() > DIGITS_MAX * 3.3:
        raise NotStorable(path, f"an integer of more than {DIGITS_MAX} digits; return it as text")
    return int(value)


def _type_name(value: Any) -> str:
    return type(value).__name__
