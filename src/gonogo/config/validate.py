"""Checks plain data against a pydantic model and turns what it says into problems with places and advice.

Every error is reported at once: keys with errors are left out and the rest is used, so that later checks find
theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gonogo.config.collect import Collector, nearest, shown
from gonogo.config.keys import noun_of, nouns, unknown_key
from gonogo.config.nodes import Node, Path, child, walk

Model = TypeVar("Model", bound=BaseModel)

_TRUE_WORDS = frozenset(("yes", "on", "y", "true", "1"))
_FALSE_WORDS = frozenset(("no", "off", "n", "false", "0"))
_EXPECTED = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "nothing",
}
_LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
    "string_too_short": ("a length of at least", "min_length"),
    "string_too_long": ("a length of at most", "max_length"),
    "too_short": ("a length of at least", "min_length"),
    "too_long": ("a length of at most", "max_length"),
}


_ROUNDS_MAX = 5


def check(model: type[Model], data: dict[str, Any], notes: Collector, path: Path) -> Model | None:
    """A model of `data`; what is wrong is reported and left out. None when the rest makes none."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        wrong = report(error, notes, path)
    for _ in range(_ROUNDS_MAX):  # leaving a key out may leave something else incomplete
        data = _without(data, wrong)
        try:
            return model.model_validate(data)
        except ValidationError as error:
            wrong = [_culprit(detail, notes.root, path) for detail in error.errors(include_url=False)]
    return None


def _without(data: dict[str, Any], wrong: list[tuple[str | int, ...]]) -> dict[str, Any]:
    """A copy of `data` without what is at the paths `wrong`; the last of a list goes first."""
    data = deepcopy(data)
    places = dict.fromkeys(wrong)
    outermost = [at for at in places if not any(at[:cut] in places for cut in range(len(at)))]
    for at in reversed(outermost):
        _remove(data, at)
    return data


def _remove(data: Any, at: tuple[str | int, ...]) -> None:
    for part in at[:-1]:
        data = data[part] if _has(data, part) else None
    if at and _has(data, at[-1]):
        del data[at[-1]]


def _has(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and -1 < part < len(data)
    return isinstance(data, dict) and part in data


def _culprit(detail: Any, root: Node, base: Path) -> tuple[str | int, ...]:
    """The path below `base` of what must go for an error to go: of a missing key, what misses it."""
    kind, loc = detail["type"], tuple(detail["loc"])
    if kind == "missing" and len(loc) > 1:
        loc = loc[:-1]
    found = _resolved(root, base, loc, keep_last=kind == "extra_forbidden")
    return found[len(base) :] or loc[:1]


def report(
    error: ValidationError, notes: Collector, path: Path, ignore: Callable[[Path], bool] | None = None
) -> list[tuple[str | int, ...]]:
    """Report each error (several of one place are alternatives of a union). Returns what is wrong."""
    wrong: list[tuple[str | int, ...]] = []
    by_place: dict[tuple[str | int, ...], list[Any]] = {}
    for detail in error.errors(include_url=False):
        loc = detail["loc"]
        found = _resolved(notes.root, path, loc, keep_last=detail["type"] in ("missing", "extra_forbidden"))
        if ignore is not None and ignore(found):
            continue
        wrong.append(_culprit(detail, notes.root, path))
        by_place.setdefault(found, []).append(detail)
    for found, details in by_place.items():
        if notes.only_counted():
            continue
        _report_one(details, found, path, notes)
    return wrong


def _resolved(
    root: Node, path: Path, loc: tuple[str | int, ...], *, keep_last: bool
) -> tuple[str | int, ...]:
    """The path in the file for pydantic's `loc`, which also names alternatives of unions and spelled-out items."""
    node, found = walk(root, path), [*path]
    for index, part in enumerate(loc):
        below = child(node, part)
        if below is not None:
            node = below
            found.append(part)
        elif keep_last and index == len(loc) - 1:
            found.append(part)
    return tuple(found)


def _report_one(details: list[Any], path: tuple[str | int, ...], base: Path, notes: Collector) -> None:
    first = details[0]
    if first["type"] == "extra_forbidden":
        noun = noun_of(path)
        message, suggestion = unknown_key(str(path[-1]), noun, nouns()[noun])
        notes.add_key("error", "key.unknown", message, path, suggestion)
    elif first["type"] == "missing":
        notes.add_key(
            "error", "key.missing", f"the key {shown(path[-1])} is missing", path, f"add {path[-1]}:"
        )
    elif len(details) > 1 and all(detail["type"] in _EXPECTED for detail in details):
        expected = " or ".join(dict.fromkeys(_EXPECTED[detail["type"]] for detail in details))
        notes.error("value.type", f"expected {expected}, found {kind_of(first['input'])}", path)
    else:
        message, suggestion = _said(_best(details))
        notes.error(
            "value.type" if first["type"] in _EXPECTED else "value.invalid", message, path, suggestion
        )


def _best(details: list[Any]) -> Any:
    """Of a union's alternatives the one that says most."""
    telling = [detail for detail in details if detail["type"] not in _EXPECTED]
    return (telling or details)[0]


def _said(detail: Any) -> tuple[str, str | None]:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {kind_of(value)}", _instead(kind, value)
    if kind == "literal_error":
        words = str(context.get("expected", "")).replace("'", "")
        near = nearest(value, words.replace(" or ", ", ").split(", ")) if isinstance(value, str) else None
        return f"expected one of {words}, found {kind_of(value)}", f"did you mean {near}?" if near else None
    if kind in _LIMITS:
        word, limit = _LIMITS[kind]
        return f"expected {word} {context.get(limit)}, found {kind_of(value)}", None
    if kind == "string_pattern_mismatch":
        return f"expected text of the form {context.get('pattern')}, found {kind_of(value)}", None
    if kind == "value_error":
        return str(context.get("error", detail["msg"])), None
    return f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, found {kind_of(value)}", None


def _instead(kind: str, value: Any) -> str | None:
    """What to write instead of a value of the wrong type, where that is plain."""
    if kind.startswith("bool"):
        word = str(value).lower()
        return "true" if word in _TRUE_WORDS else "false" if word in _FALSE_WORDS else None
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        return f'"{str(value).lower() if isinstance(value, bool) else value}"'
    if kind == "list_type" and isinstance(value, str) and len(value) < 40:
        return f"[{value}]"
    if kind.startswith("int") and isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        return value.strip()
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
