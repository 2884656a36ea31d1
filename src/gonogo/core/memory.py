"""A run's memory: named values in namespaces, changed only by operations, in the order their records have."""

from __future__ import annotations

from typing import Any

from gonogo.expressions.results import MemoryOp

DEFAULT = "default"


def apply_operation(memory: dict[str, dict[str, Any]], operation: MemoryOp) -> Any:
    """Change `memory`; returns the operation's result (spec E.4). Values are replaced, never changed in place."""
    if operation.op == "clear" and operation.namespace is None:
        memory.clear()
        return None
    space = memory.setdefault(operation.namespace or DEFAULT, {})
    key = operation.key or ""
    if operation.op == "clear":
        space.clear()
        return None
    if operation.op == "delete":
        return space.pop(key, _MISSING) is not _MISSING
    space[key] = _changed(space.get(key, _MISSING), operation)
    return space[key]


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
