"""Cut the operations that tests use out of GitHub's published OpenAPI description, for `github_api.json`.

Run by hand when the description or the list changes:
`python -m tests.servers.extract_github path/to/api.github.com.json`. Prose, examples and vendor keys are left out;
schemas become JSON Schema (OpenAPI 3.0 says `nullable` where JSON Schema says null).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

OUT = Path(__file__).with_name("github_api.json")
OPERATIONS = """
    users/get-authenticated rate-limit/get
    issues/get issues/list-comments issues/create-comment issues/get-comment issues/update-comment issues/delete-comment
    issues/list-labels-on-issue issues/add-labels issues/set-labels issues/remove-label issues/remove-all-labels
    pulls/get pulls/list-files pulls/list-reviews pulls/create-review pulls/get-review pulls/submit-review
    pulls/dismiss-review pulls/delete-pending-review pulls/list-comments-for-review pulls/list-review-comments
    pulls/create-review-comment
    checks/create checks/get checks/update checks/list-for-ref checks/list-annotations
    repos/create-commit-status repos/get-combined-status-for-ref repos/list-commit-statuses-for-ref
""".split()
_PROSE = frozenset(
    {"description", "example", "examples", "title", "externalDocs", "summary", "tags", "deprecated"}
)
_NAMES = frozenset({"properties", "schemas", "patternProperties"})
"""Below these every key is a name, even `title`."""


def extract(description: Mapping[str, Any]) -> dict[str, Any]:
    """The operations with every schema that they need."""
    operations: dict[str, Any] = {}
    for path, item in description["paths"].items():
        for method, operation in item.items():
            if isinstance(operation, dict) and operation.get("operationId") in OPERATIONS:
                operations[operation["operationId"]] = _operation(description, path, method, operation)
    missing = set(OPERATIONS) - operations.keys()
    assert not missing, f"the description doesn't have {sorted(missing)}"
    schemas: dict[str, Any] = {}
    waiting = list(_references(operations))
    while waiting:
        name = waiting.pop()
        if name not in schemas:
            schemas[name] = _plain(description["components"]["schemas"][name])
            waiting += _references(schemas[name])
    return {
        "operations": {name: operations[name] for name in OPERATIONS},
        "schemas": {name: schemas[name] for name in sorted(schemas)},
    }


def _operation(
    description: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]
) -> dict[str, Any]:
    """Method, path, query parameters, body and answers of one operation."""
    parameters = [_resolved(description, parameter) for parameter in operation.get("parameters", ())]
    responses = {
        status: _schema_of(_resolved(description, response))
        for status, response in operation["responses"].items()
    }
    body = operation.get("requestBody")
    return {
        "method": method.upper(),
        "path": path,
        "query": {
            parameter["name"]: _plain(parameter["schema"])
            for parameter in parameters
            if parameter["in"] == "query"
        },
        "body": _schema_of(body) if body else None,
        "responses": responses,
    }


def _schema_of(content: Mapping[str, Any]) -> Any:
    media = content.get("content", {})
    schema = next((media[kind].get("schema") for kind in media if "json" in kind), None)
    return _plain(schema) if schema is not None else None


def _resolved(description: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in node:
        return node
    found: Any = description
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    assert isinstance(found, dict)
    return found


def _plain(node: Any, *, names: bool = False) -> Any:
    """A schema without prose, with null as a type."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": "#/schemas/" + node["$ref"].rpartition("/")[2]}
    kept = {
        key: _plain(value, names=key in _NAMES and not names)
        for key, value in node.items()
        if names or not (key in _PROSE or key.startswith("x-") or key == "nullable")
    }
    if names or not node.get("nullable"):
        return kept
    return {"anyOf": [{"type": "null"}, kept]}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def main() -> None:
    """Write the cut."""
    description = json.loads(Path(sys.argv[1]).read_text())
    about = {
        "about": "Parts of GitHub's OpenAPI description, cut by extract_github.py from @octokit/openapi "
        + description["info"]["version"],
        "licence": "MIT, see github_api.LICENSE.md",
    }
    cut = extract(description)
    sections = [f'"{key}": {json.dumps(value)}' for key, value in about.items()]
    for name in ("operations", "schemas"):
        lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in cut[name].items())
        sections.append(f'"{name}": {{\n{lines}\n  }}')
    OUT.write_text("{\n  " + ",\n  ".join(sections) + "\n}\n")


if __name__ == "__main__":
    main()
