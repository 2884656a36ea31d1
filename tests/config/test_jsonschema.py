"""config/jsonschema.py: what editors check is a subset of what loading checks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gonogo.config.jsonschema import workflow_schema
from gonogo.config.nodes import plain
from gonogo.config.schema.step import Step
from gonogo.config.schema.top import Document
from gonogo.config.structs import keys_of
from gonogo.config.yaml import parse

TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def validator(providers: Any) -> Any:
    """The schema, compiled."""
    return jsonschema_rs.validator_for(workflow_schema(providers))


def test_the_schema_is_a_schema(providers: Any) -> None:
    """Of the dialect it names."""
    jsonschema_rs.meta.validate(workflow_schema(providers))


def full() -> Any:
    """The largest example of the tests."""
    found = re.search(r'FULL = """\n(.*?)"""', (TESTS / "test_compile.py").read_text(), re.DOTALL)
    assert found is not None
    node = parse(f"version: '1'\n{found[1]}", "full")
    assert node is not None
    return plain(node)


@pytest.mark.parametrize(
    "text",
    [
        "version: 1.0\nsteps: {a: {type: noop}}",
        "version: '1'\nx-mine: 1\nchecks: {a: {type: logger, message: hi, x-y: 1}}",
        "version: '1'\nslack: {}\ntask_x: 1\nsteps: {a: {type: noop, timeout: 5s, assume: true, depends_on: b}}",
        "extends: base.yaml\nsteps: {a: {group: g}, b: }",
        "version: '1'\nsteps: {a: {type: http_client, url: x, method: GET, headers: {A: '{{ x }}'}}}",
        "version: '1'\nsteps: {a: {type: noop, on_fail: {run: b, retry: {max: 1, backoff: {delay: 1s}}, x-why: 1}}}",
        "version: '1'\nsteps: {a: {type: noop, failure_conditions: {f: output.x}, forEach: true, concurrency: 3}}",
        "version: '1'\nsteps: {a: {type: human-input, prompt: x, timeout: 5000}}",
    ],
)
def test_what_loads_is_accepted(validator: Any, text: str) -> None:
    """Editors must not complain about good files."""
    node = parse(text, "a.yaml")
    assert node is not None
    assert [error.message for error in validator.iter_errors(plain(node))] == []


def test_every_key_of_the_largest_example_is_accepted(validator: Any) -> None:
    """All of A.4."""
    assert [error.message for error in validator.iter_errors(full())] == []


@pytest.mark.parametrize(
    "step",
    [
        {"type": "command", "exek": "x"},
        {"type": "noop", "exec": "x"},
        {"type": "noop", "forEach": "yes"},
        {"type": "nonsense"},
        {"type": "noop", "on_fail": {"retry": {"maximum": 1}}},
        {"type": "noop", "on": ["push"]},
        {"type": "noop", "continue_on_failure": "yes"},
    ],
)
def test_plain_mistakes_are_seen_in_the_editor(validator: Any, step: dict[str, Any]) -> None:
    """Unknown keys, keys of another type, wrong types, wrong words."""
    assert not validator.is_valid({"version": "1", "steps": {"a": step}})


def test_every_key_is_described(providers: Any) -> None:
    """A hover says what a key does."""
    schema = workflow_schema(providers)
    properties = schema["$defs"]["Step"]["properties"]
    assert [key for key in keys_of(Step) if key in properties and not described(properties[key])] == []
    assert [key for key in keys_of(Document) if not described(schema["properties"][key])] == []


def described(schema: Any) -> bool:
    """A schema with words for people; a noun has its own."""
    return schema is True or bool(schema.get("description") or schema.get("$ref"))


def test_a_step_without_a_type_is_one_that_asks_a_model(providers: Any) -> None:
    """A.4: its keys are known to editors, too."""
    schema = workflow_schema(providers)
    branches = schema["$defs"]["Step"]["allOf"]
    always = [each["then"]["properties"] for each in branches if "required" not in each["if"]]
    assert [("prompt" in each) for each in always] == [True]
