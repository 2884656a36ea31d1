"""A run's memory: named values in namespaces, changed only by operations, in the order their records have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gonogo.expressions.results import MemoryOp

DEFAULT = "default"


class Space(dict[str, Any]):
    """The entries of one namespace. Once `shown` to a reader it isn't changed any more; a change makes another."""

    __slots__ = ("shown",)

    def __init__(self, entries: Mapping[str, Any]) -> None:
        super().__init__(entries)
        self.shown = False


def show(memory: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Memory as expressions get it. What has not changed since the last time is the same object."""
    for space in memory.values():
        if type(space) is Space:
            space.shown = True
    return {**memory, "$namespace": DEFAULT}


def apply_operation(memory: dict[str, dict[str, Any]], operation: MemoryOp) -> Any:
    """Change `memory`; returns the operation's result (spec E.4). Values are replaced, never changed in place."""
    if operation.op == "clear" and operation.namespace is None:
        memory.clear()
        return None
    name = operation.namespace or DEFAULT
    if operation.op == "clear":
        memory[name] = Space({})
        return None
    space = _changeable(memory, name)
    key = operation.key or ""
    if operation.op == "delete":
        return space.pop(key, _MISSING) is not _MISSING
    space[key] = _changed(space.get(key, _MISSING), operation)
    return space[key]


def _changeable(memory: dict[str, dict[str, Any]], name: str) -> Space:
    """A namespace nobody was shown yet: mostly the one that is there."""
    space = memory.get(name, {})
    if type(space) is not Space or space.shown:
        space = memory[name] = Space(space)
    return space


class _Missing:
    """No value, which is different from null."""


_MISSING = _Missing()


def _changed(old: Any, operation: MemoryOp) -> Any:
    if operation.op == "append":
        return [*_as_list(old), operation.value]
    if operation.op == "increment":
        start = old if _is_number(old) else 0
        amount = operation.value if _is_number(operation.value) else 1
        return start + amount
    return operation.value


def _as_list(value: Any) -> list[Any]:
    if value is _MISSING:
        return []
    return value if isinstance(value, list) else [value]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
