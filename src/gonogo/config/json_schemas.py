"""JSON Schemas that a file holds: whether they compile, and whether a value that is known fits. Nothing is fetched."""

from __future__ import annotations

from typing import Any

_TEXT_CHARACTERS_MAX = 200


def schema_problem(said: Any) -> str | None:
    """Why `said` is no JSON Schema that can be compiled; remote references are refused."""
    import jsonschema_rs

    try:
        _validator(said)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return f"not a JSON Schema: {str(error).splitlines()[0][:_TEXT_CHARACTERS_MAX]}"
    return None


def misfit(schema: Any, value: Any) -> str | None:
    """Why a value doesn't fit a schema that compiles; None when it does."""
    import jsonschema_rs

    try:
        _validator(schema).validate(value)
    except jsonschema_rs.ValidationError as error:
        return str(error.message)[:_TEXT_CHARACTERS_MAX]
    return None


def _validator(schema: Any) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(schema, retriever=_refuse)


def _refuse(uri: str) -> Any:
    raise ValueError(f"remote references are not fetched: {uri[:_TEXT_CHARACTERS_MAX]}")
