"""JSON data that is made while it is written, so that a report of a hundred thousand items is never whole in memory.

`Members` is an object and `Elements` a list; what they give is plain data, or more of them. They can be gone through
again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

__all__ = ["Elements", "Members", "plain_data"]


class Members(Struct, frozen=True):
    """An object: names and values in order."""

    each: Callable[[], Iterable[tuple[str, Any]]]


class Elements(Struct, frozen=True):
    """A list: its elements in order, all of them plain data."""

    each: Callable[[], Iterable[Any]]


def plain_data(value: Any) -> Any:
    """The same as dicts and lists."""
    if isinstance(value, Members):
        return {name: plain_data(inner) for name, inner in value.each()}
    return list(value.each()) if isinstance(value, Elements) else value
