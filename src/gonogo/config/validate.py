"""Reads plain data as a Struct and turns what is wrong with it into problems with places and advice.

Every error is reported at once: keys with errors are left out and the rest is used, so that later checks find
theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.keys import noun_of, unknown_key
from gonogo.config.nodes import Node, Path, child, walk
from gonogo.config.shapes import Wrong
from gonogo.config.structs import Noun

Model = TypeVar("Model", bound=msgspec.Struct)

_TRUE_WORDS = frozenset(("yes", "on", "y", "true", "1"))
_FALSE_WORDS = frozenset(("no", "off", "n", "false", "0"))


def check(model: type[Model], data: dict[str, Any], notes: Collector, path: Path) -> Model | None:
    """A model of `data`; what is wrong is reported and left out. None when the rest makes none."""
    wrong: list[Wrong] = []
    made = Noun(model=model).read(data, (), wrong)
    for one in wrong:
        _report(one, _written_at(one, notes.root, path), notes)
    return made if isinstance(made, model) else None


def check_whole(
    model: type[Model],
    data: dict[str, Any],
    notes: Collector,
    path: Path,
    ignore: Callable[[tuple[str | int, ...]], bool],
) -> Model | None:
    """A model of `data`, None when anything is wrong with it; what is wrong at a path to `ignore` isn't reported."""
    wrong: list[Wrong] = []
    made = Noun(model=model).read(data, (), wrong)
    for one in wrong:
        found = _written_at(one, notes.root, path)
        if not ignore(found):
            _report(one, found, notes)
    return made if isinstance(made, model) and not wrong else None


def _written_at(wrong: Wrong, root: Node, base: Path) -> tuple[str | int, ...]:
    """The path in the file; a spelled-out value has items that aren't written there."""
    node, found = walk(root, base), [*base]
    keep_last = wrong.kind in ("missing", "unknown")
    for index, part in enumerate(wrong.path):
        below = child(node, part)
        if below is not None:
            node = below
            found.append(part)
        elif keep_last and index == len(wrong.path) - 1:
            found.append(part)
    return tuple(found)


def _report(wrong: Wrong, path: tuple[str | int, ...], notes: Collector) -> None:
    if notes.only_counted():
        return
    if wrong.kind == "unknown":
        message, suggestion = unknown_key(str(path[-1]), noun_of(path), wrong.words)
        notes.add_key("error", "key.unknown", message, path, suggestion)
    elif wrong.kind == "missing":
        message = f"the key {shown(path[-1])} is missing"
        notes.add_key("error", "key.missing", message, path, f"add {path[-1]}:")
    elif wrong.kind == "twice":
        message = f"{path[-1]} means the same as {wrong.said}"
        notes.add_key("error", "key.clash", message, path, "keep one of them")
    elif wrong.kind == "type":
        message = f"expected {wrong.said}, found {kind_of(wrong.value)}"
        notes.error("value.type", message, path, _instead(wrong.said, wrong.value))
    elif wrong.kind == "word":
        near = nearest(wrong.value, wrong.words) if isinstance(wrong.value, str) else None
        message = f"expected {wrong.said}, found {kind_of(wrong.value)}"
        notes.error("value.invalid", message, path, f"did you mean {near}?" if near else None)
    else:
        found = kind_of(wrong.value) if wrong.said.endswith("found ") else ""
        notes.error("value.invalid", wrong.said + found, path)


def _instead(expected: str, value: Any) -> str | None:
    """What to write instead of a value of the wrong type, where that is plain."""
    if expected == "true or false":
        word = str(value).lower()
        return "write true" if word in _TRUE_WORDS else "write false" if word in _FALSE_WORDS else None
    if expected == "text" and isinstance(value, (bool, int, float)):
        return f'write "{str(value).lower() if isinstance(value, bool) else value}"'
    if expected == "a list" and isinstance(value, str) and len(value) < 40:
        return f"write [{value}]"
    if (
        expected == "a whole number"
        and isinstance(value, str)
        and value.strip().isdecimal()
        and len(value) < 20
    ):
        return f"write {value.strip()}"
    return None


def kind_of(value: Any) -> str:
    """What a value is, in YAML's words, with the value itself where it is short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"
