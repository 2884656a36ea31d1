"""GitHub's published description of the operations that tests use: validates both sides, and makes small samples."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema_rs

API: Mapping[str, Any] = json.loads(Path(__file__).with_name("github_api.json").read_text())
_SAMPLES = {"integer": 1, "number": 1.0, "boolean": False, "array": [], "null": None, "string": ""}
_FORMATS = {"date-time": "2026-01-01T00:00:00Z", "uri": "https://api.github.test/"}


def operation_for(method: str, path: str) -> tuple[str, dict[str, str]] | None:
    """The operation of a request, with the parts of its path."""
    for pattern, wanted, name in _patterns():
        matched = pattern.fullmatch(path)
        if matched is not None and method == wanted:
            return name, matched.groupdict()
    return None


def known_path(path: str) -> bool:
    """Whether any operation has this path."""
    return any(pattern.fullmatch(path) for pattern, _, _ in _patterns())


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[re.Pattern[str], str, str]]:
    return [
        (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(made["path"]))), made["method"], name)
        for name, made in API["operations"].items()
    ]


def problems_of_request(name: str, query: Mapping[str, str], body: object) -> list[str]:
    """What in a request isn't as the description has it."""
    operation = API["operations"][name]
    told = [f"{name}: there is no query parameter '{key}'" for key in query if key not in operation["query"]]
    if body is not None and operation["body"] is None:
        told.append(f"{name}: takes no body")
    return told + (
        _problems(f"{name} request", operation["body"], body) if operation["body"] and body else []
    )


def problems_of_answer(name: str, status: int, body: object) -> list[str]:
    """What in an answer isn't as the description has it."""
    responses = API["operations"][name]["responses"]
    if str(status) not in responses:
        return []  # limits, refusals and breakdowns aren't told for each operation
    schema = responses[str(status)]
    if schema is None:
        return [] if body is None else [f"{name} {status}: has no body"]
    return _problems(f"{name} {status}", schema, body)


def _problems(where: str, schema: Any, value: object) -> list[str]:
    return [
        f"{where}: {problem.message[:300]} at {problem.instance_path}"
        for problem in _validator(json.dumps(schema)).iter_errors(value)
    ]


@lru_cache(maxsize=200)
def _validator(schema: str) -> Any:
    return jsonschema_rs.Draft202012Validator({**json.loads(schema), "schemas": API["schemas"]})


def sample(schema_name: str, **fields: Any) -> dict[str, Any]:
    """The smallest instance of a named schema, with some fields filled in."""
    made: dict[str, Any] = _merged(_minimal(API["schemas"][schema_name]), fields)
    return made


def _merged(base: Any, fields: Any) -> Any:
    if isinstance(base, dict) and isinstance(fields, dict):
        return {**base, **{key: _merged(base.get(key), value) for key, value in fields.items()}}
    return fields


def _minimal(schema: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _minimal(API["schemas"][schema["$ref"].rpartition("/")[2]])
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("allOf"):
        made: dict[str, Any] = {}
        for part in schema["allOf"]:
            made |= _minimal(part)
        return made
    if "properties" in schema or schema.get("type") == "object":
        properties = schema.get("properties", {})
        return {name: _minimal(properties.get(name, {})) for name in schema.get("required", ())}
    for choice in ("anyOf", "oneOf"):
        if schema.get(choice):
            return _minimal(schema[choice][0])
    kind = schema.get("type")
    if kind == "string":
        return _FORMATS.get(schema.get("format", ""), "x" if schema.get("minLength") else "")
    return _SAMPLES.get(kind) if isinstance(kind, str) else None
