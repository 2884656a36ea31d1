"""A workflow's inputs: defaults filled in, each checked against its schema (spec E.10 R1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gonogo.core.plan import Plan
from gonogo.hosts.schemas import Schemas


def checked(plan: Plan, given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The inputs of a run of this plan, and what is wrong with them. A plan that declares none takes any."""
    if not plan.inputs:
        return dict(given), ()
    schemas = Schemas()
    inputs: dict[str, Any] = {}
    wrong = [f"{name}: the workflow has no such input" for name in given if name not in plan.inputs]
    for name, declared in plan.inputs.items():
        if name in given:
            inputs[name] = given[name]
            if declared.get("schema"):
                found = schemas.errors(name, declared["schema"], given[name])
                wrong.extend(f"{name}: {error}" for error in found[:3])
        elif "default" in declared:
            inputs[name] = declared["default"]
        elif declared.get("required", True):
            wrong.append(f"{name}: expected a value, the workflow needs it")
    return inputs, tuple(wrong)
