"""Evidence: the values an expression read, found by walking the names it saw along the paths the analyser found.

Kept small, since every decision carries some: at most 12 paths, texts cut at 200 characters, lists and maps as a size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gonogo.core.commands import Ask
from gonogo.core.secrecy import without_tags
from gonogo.core.state import State
from gonogo.core.values import names_for

PATHS_MAX = 12
TEXT_MAX = 200
MESSAGE_MAX = 60


def of(state: State, ask: Ask) -> dict[str, Any]:
    """What the expression of an ask read, as path → value."""
    reading = state.graph.plan.expressions[ask.expression].reading
    if reading is None or not reading.paths:
        return {}
    names = names_for(state, ask.step, ask.scope)
    return {_text(path): _small(_walk(names, path)) for path in reading.paths[:PATHS_MAX]}


def _text(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)


def _walk(names: Mapping[str, Any], path: tuple[str | int, ...]) -> Any:
    value: Any = names
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(str(part))
        elif isinstance(value, list | tuple) and isinstance(part, int) and 0 <= part < len(value):
            value = value[part]
        elif part == "length" and isinstance(value, str | list | tuple):
            value = len(value)
        else:
            return None
    return value


def _small(value: Any) -> Any:
    if isinstance(value, str):
        value = without_tags(value)  # evidence is for people
        return value if len(value) <= TEXT_MAX else f"{value[:TEXT_MAX]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return f"{{{len(value)} keys}}" if len(value) else {}
    if isinstance(value, list | tuple):
        return f"[{len(value)} items]" if len(value) else []
    return value


def as_text(value: Any) -> str:
    """A kept value in a message: short, and as JavaScript would write it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MESSAGE_MAX else f"{text[:MESSAGE_MAX]}…"
