"""What stands for a secret in events, state and records: where it came from, and a tag that nobody can guess.

    [secret login.token 5f0c0e0f8a9b4c6d7e8f9a0b1c2d3e4f]

A text, so that expressions can hand it on and put it into longer texts. Only the host of its run knows what it stands
for (`sealing.py`); and since a handle can be copied from a journal, what comes in from outside is `shortened` first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from gonogo.core.secrecy import HANDLE as PATTERN
from gonogo.core.secrecy import HANDLE_BEGINNING as BEGINNING

__all__ = ["handle", "may_hold", "named", "replaced", "shortened"]

NAME_MAX = 160
_HANDLE = re.compile(PATTERN)
_UNFIT = re.compile(r"[^\w.-]")
_encode = msgspec.json.Encoder().encode


def handle(name: str, tag: str) -> str:
    """The handle of a secret. `name`: step and path, in whatever characters; `tag`: 32 hex digits."""
    return f"{BEGINNING}{named(name)} {tag}]"


def named(name: str) -> str:
    """A name as a handle has it."""
    return _UNFIT.sub("_", name)[:NAME_MAX]


def may_hold(value: Any) -> bool:
    """Whether there may be a handle in a JSON value, at any depth: a search in C, not a walk."""
    if isinstance(value, str):
        return BEGINNING in value
    if value is None or isinstance(value, bool | int | float):
        return False
    try:
        return BEGINNING.encode() in _encode(value)
    except (TypeError, ValueError, RecursionError):
        return True  # no JSON as a whole: look at each part


def shortened(value: Any) -> Any:
    """A JSON value with handles that say where a secret came from and mean nothing any more; else the same object."""
    return replaced(value, lambda name, tag: f"[secret {name}]")


def replaced(value: Any, by: Callable[[str, str], Any]) -> Any:
    """A JSON value with each handle replaced by what `by(name, tag)` gives; the same object where there is none.

    A text that is nothing but a handle becomes the value itself; within a longer text, and in a key, its text.
    """
    return _replaced(value, by) if may_hold(value) else value


def _replaced(value: Any, by: Callable[[str, str], Any]) -> Any:
    if isinstance(value, str):
        return _in_text(value, by) if BEGINNING in value else value
    if isinstance(value, dict):
        return {_text_of(_replaced(key, by)): _replaced(part, by) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_replaced(part, by) for part in value])
    return value


def _in_text(text: str, by: Callable[[str, str], Any]) -> Any:
    whole = _HANDLE.fullmatch(text)
    if whole is not None:
        return by(whole[1], whole[2])
    return _HANDLE.sub(lambda found: _text_of(by(found[1], found[2])), text)


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()
