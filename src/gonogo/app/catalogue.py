"""What there is to use, for people and editors: step types, the schema of workflow files, a working sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from gonogo.app.parts import built_in_table, new_sandbox
from gonogo.provider import Provider


class Key(Struct, frozen=True):
    """One key of a step type. `template`: its texts are rendered before the call."""

    name: str
    description: str
    required: bool
    template: bool


class StepType(Struct, frozen=True):
    """A step type. `effects` is what its calls do outside, None when that depends on the step; `built_in` is False
    for one that an installed package brings; `problem` says why it can't be used.
    """

    name: str
    aliases: tuple[str, ...]
    summary: str
    effects: str | None
    keys: tuple[Key, ...]
    built_in: bool = True
    problem: str | None = None


def step_types() -> Iterator[StepType]:
    """Every step type, the built-in ones first."""
    from gonogo.providers.table import UnknownType

    table = built_in_table()
    for name in table.names():
        yield _step_type(table.get(name), built_in=True)
    for name in table.outside():
        try:
            yield _step_type(table.get(name), built_in=False)
        except UnknownType as problem:
            yield StepType(name, (), "", None, (), built_in=False, problem=str(problem))


def _step_type(provider: Provider, *, built_in: bool) -> StepType:
    from gonogo.config.structs import fields_of

    templates = provider.templates | provider.late_templates
    keys = tuple(
        Key(field.keys[0], field.description, field.required, field.name in templates)
        for field in fields_of(provider.config)
    )
    effects = provider.effects if isinstance(provider.effects, str) else None
    return StepType(provider.name, provider.aliases, provider.summary, effects, keys, built_in)


def workflow_schema() -> dict[str, Any]:
    """The JSON schema of workflow files with all built-in step types."""
    from gonogo.config.jsonschema import workflow_schema as schema_for

    return schema_for(built_in_table())


def evaluate_once(source: str) -> Any:
    """The value of a JavaScript expression, in a sandbox of its own; None when it has none.

    Raises:
        SandboxError: the sandbox doesn't start.
    """
    from gonogo.expressions.results import Value
    from gonogo.expressions.sandbox import Request

    sandbox = new_sandbox(0.0)
    try:
        [result] = sandbox.evaluate([Request(source, "value", {}, 5.0)])
    finally:
        sandbox.close()
    return result.value if isinstance(result, Value) else None
