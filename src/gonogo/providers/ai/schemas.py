"""Whether a value fits a JSON Schema, in words that a model can use. Remote references are never fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ERRORS_MAX = 5
_CHARACTERS_MAX = 300


class Checker:
    """One schema, compiled when it is first needed."""

    __slots__ = ("_schema", "_validator")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._validator: Any = None

    def wrong(self, value: Any) -> str | None:
        """What doesn't fit, the first few; None when it fits. A schema that can't be read fits nothing."""
        if self._validator is None:
            self._validator = _compiled(self._schema)
        if isinstance(self._validator, str):
            return self._validator
        told = []
        for error in self._validator.iter_errors(value):
            told.append(_told(error))
            if len(told) == ERRORS_MAX:
                break
        return "; ".join(told) or None


def _compiled(schema: Mapping[str, Any]) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return f"the schema is no JSON Schema: {str(error).splitlines()[0][:_CHARACTERS_MAX]}"


def _refuse(uri: str) -> Any:
    raise ValueError(f"remote references are not fetched: {uri[:200]}")


def _told(error: Any) -> str:
    path = ".".join(str(part) for part in error.instance_path)
    message = str(error.message)[:_CHARACTERS_MAX]
    return f"{path}: {message}" if path else message
