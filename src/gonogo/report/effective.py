"""A plan as a reader wants it: what a workflow file and all it extends come to, expressions as text again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gonogo.core.plan import Plan

_ONE = frozenset(
    {
        "if_condition",
        "fail_if",
        "when",
        "run_js",
        "goto_js",
        "on_init_js",
        "idempotency_key",
        "expression",
        "value",
        "value_js",
    }
)
_MANY = frozenset({"assume", "guarantee"})
_BY_NAME = frozenset({"templates"})
_LEFT_OUT = frozenset({"line", "expressions", "digest"})
_FREE = frozenset({"config", "env", "inputs", "memory", "schema", "arguments", "outputs"})
"""Values of the author's own: nothing in them is a position among the expressions."""


def effective(plan: Plan) -> dict[str, Any]:
    """The plan as plain data: defaults left out, each expression's text in place of its number."""
    return _workflow(msgspec.to_builtins(plan))


def _workflow(plan: dict[str, Any]) -> dict[str, Any]:
    sources = [expression["source"] for expression in plan.get("expressions", ())]
    told = {
        key: _told(key, value, sources) for key, value in plan.items() if key not in (*_LEFT_OUT, "workflows")
    }
    if plan.get("workflows"):
        told["workflows"] = {name: _workflow(inner) for name, inner in plan["workflows"].items()}
    return told


def _told(key: str, value: Any, sources: list[str]) -> Any:
    if key in _FREE:
        return value
    if key in _ONE and isinstance(value, int) and not isinstance(value, bool):
        return sources[value]
    if key in _MANY and isinstance(value, list | tuple):
        return [sources[index] for index in value]
    if key in _BY_NAME and isinstance(value, Mapping):
        return {name: sources[index] for name, index in value.items()}
    if isinstance(value, Mapping):
        return {name: _told(name, inner, sources) for name, inner in value.items() if name not in _LEFT_OUT}
    if isinstance(value, list | tuple):
        return [_told("", inner, sources) for inner in value]
    return value
