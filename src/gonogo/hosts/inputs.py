"""A workflow's inputs: defaults filled in, each checked against its schema (spec E.10 R1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gonogo.core.plan import Plan
from gonogo.hosts.schemas import Schemas

_NAME_CHARACTERS_MAX = 80
_NAMES_MAX = 10


def checked(plan: Plan, given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The inputs of a run of this plan, and what is wrong with them. A plan that declares none takes any."""
    if not plan.inputs:
        return dict(given), ()
    schemas = Schemas()
    inputs: dict[str, Any] = {}
    wrong = [_unknown(name, plan) for name in given if name not in plan.inputs]
    for name, declared in plan.inputs.items():
        if name in given:
            inputs[name] = given[name]
            if declared.get("schema"):
                wrong.extend(f"{name}: {error}" for error in _errors(schemas, name, declared, given[name]))
        elif "default" in declared:
            inputs[name] = declared["default"]
        elif declared.get("required", True):
            wrong.append(f"{name}: expected a value, the workflow needs it")
    return inputs, tuple(wrong)


def _errors(schemas: Schemas, name: str, declared: Mapping[str, Any], value: Any) -> tuple[str, ...]:
    try:
        return tuple(schemas.errors(name, declared["schema"], value)[:3])
    except ValueError:  # a program may hand over any object
        return (f"expected plain data, found {type(value).__name__}",)


def _unknown(name: str, plan: Plan) -> str:
    """Of an input that isn't declared, with what was probably meant."""
    from difflib import get_close_matches

    near = get_close_matches(name[:_NAME_CHARACTERS_MAX], plan.inputs, n=1)
    advice = f"did you mean {near[0]}?" if near else f"it has {', '.join(list(plan.inputs)[:_NAMES_MAX])}"
    return f"{name[:_NAME_CHARACTERS_MAX]}: the workflow has no such input ({advice})"
