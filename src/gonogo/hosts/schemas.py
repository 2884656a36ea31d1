"""Outputs against a step's JSON Schema. Validators are compiled once; remote references are refused."""

from __future__ import annotations

from typing import Any

ERRORS_MAX = 20
_TEXT_CHARACTERS_MAX = 500


class Schemas:
    """The compiled schemas of a run, by step or input name."""

    def __init__(self) -> None:
        self._validators: dict[str, Any] = {}

    def errors(self, name: str, schema: Any, value: Any) -> tuple[str, ...]:
        """What is wrong with a value, each as `path: message`; empty when it fits.

        A schema that can't be compiled says so as an error: it never passes what it can't judge.
        """
        validator = self._validators.get(name)
        if validator is None:
            validator = self._validators[name] = _compiled(schema)
        if isinstance(validator, str):
            return (validator,)
        found = []
        for error in validator.iter_errors(value):
            found.append(_told(error))
            if len(found) == ERRORS_MAX:
                break
        return tuple(found)


def _compiled(schema: Any) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return f"not a JSON Schema: {str(error).splitlines()[0][:_TEXT_CHARACTERS_MAX]}"


def _refuse(uri: str) -> Any:
    raise ValueError(f"remote references are not fetched: {uri[:200]}")


def _told(error: Any) -> str:
    path = ".".join(str(part) for part in error.instance_path)
    message = str(error.message)[:_TEXT_CHARACTERS_MAX]
    return f"{path}: {message}" if path else message
