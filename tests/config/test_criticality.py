"""Criticality and effects, said or inferred (spec A.5, A.6, C.8, G8, G34)."""

from __future__ import annotations

from typing import Any

import pytest

POST = "type: http_client, url: 'http://localhost/', method: POST"
GET = "type: http_client, url: 'http://localhost/'"


@pytest.mark.parametrize(
    ("keys", "criticality", "origin", "effects"),
    [
        (f"{POST}", "external", "inferred", "mutates"),
        (f"{GET}", "info", "inferred", "reads"),
        ("type: noop", "info", "inferred", "reads"),
        ("type: noop, forEach: true", "internal", "inferred", "reads"),
        ("type: noop, on_success: {goto_js: 'null'}", "internal", "inferred", "reads"),
        ("type: noop, on_fail: {retry: {max: 1}}", "info", "inferred", "reads"),
        ("type: noop, criticality: policy", "policy", "explicit", "reads"),
        ("type: noop, criticality: external, if: 'true'", "external", "explicit", "mutates"),
        ("type: noop, criticality: external, mutates: false, if: 'true'", "external", "explicit", "reads"),
        ("type: noop, critical: true, if: 'true'", "internal", "explicit", "reads"),
        (f"{POST}, critical: true, if: 'true', guarantee: 'true'", "external", "explicit", "mutates"),
        (f"{POST}, critical: false", "info", "explicit", "mutates"),
        ("type: noop, tags: [critical], if: 'true'", "internal", "tag", "reads"),
        ("type: noop, mutates: true, tags: [critical], if: 'true'", "external", "tag", "mutates"),
        ("type: noop, tags: [external], if: 'true'", "external", "tag", "mutates"),
        ("type: noop, tags: [external], mutates: false, if: 'true'", "external", "tag", "reads"),
        ("type: noop, tags: [slow, info]", "info", "tag", "reads"),
        ("type: noop, tags: [external], criticality: info", "info", "explicit", "reads"),
        ("type: command, exec: x, mutates: true", "external", "inferred", "mutates"),
        (
            "type: http_client, url: 'http://localhost/', method: POST, mutates: false",
            "info",
            "inferred",
            "idempotent",
        ),
    ],
)
def test_criticality_and_effects(
    load_text: Any, keys: str, criticality: str, origin: str, effects: str
) -> None:
    """A.5 D, G6, G8, G36, H2: explicit over shorthand over tag over inference; semantics.md 18: external mutates."""
    step = load_text(f"steps: {{a: {{{keys}}}}}").plan.steps["a"]
    assert (step.criticality, step.criticality_source, step.effects) == (criticality, origin, effects)


@pytest.mark.parametrize(
    ("keys", "tolerates"),
    [
        ("criticality: info", True),
        ("criticality: info, continue_on_failure: false", False),
        ("critical: false", True),
        ("criticality: policy", False),
        ("tags: [info]", False),
        ("group: g", False),
    ],
)
def test_only_a_written_info_tolerates_failure(load_text: Any, keys: str, tolerates: bool) -> None:
    """H46: semantics.md 1."""
    assert load_text(f"steps: {{a: {{type: noop, {keys}}}}}").plan.steps["a"].continue_on_failure is tolerates


def test_critical_and_criticality_clash(refuse: Any) -> None:
    """G8: both keys are an error."""
    text = "steps: {a: {type: noop, critical: false, criticality: info}}"
    assert [problem.code for problem in refuse(text)] == ["key.clash"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "type: command, exec: x, criticality: internal",
            ["contract.missing_assume", "contract.missing_output"],
        ),
        ("type: command, exec: x, criticality: internal, if: 'true', guarantee: [output.a]", []),
        ("type: command, exec: x, criticality: internal, assume: 'true', schema: {type: object}", []),
        ("type: noop, criticality: internal", ["contract.missing_assume"]),
        ("type: command, exec: x, criticality: policy", []),
        (POST, ["criticality.inferred"]),
        (GET, []),
    ],
)
def test_what_a_critical_step_should_say(warn: Any, refuse: Any, keys: str, expected: list[str]) -> None:
    """A.6 D, G18, G19, H4: warnings, errors under strict; a list is a guarantee too; GET needs no word."""
    text = f"steps: {{a: {{{keys}}}}}"
    assert [problem.code for problem in warn(text)] == expected
    if expected:
        assert [problem.code for problem in refuse(text, strict=True)] == expected


CHILD = "version: '1'\nid: child\nsteps: {s: {type: noop, %s}}"


@pytest.mark.parametrize(
    ("child", "keys", "criticality", "mutates", "codes"),
    [
        ("group: g", "workflow: child", "info", False, []),
        ("mutates: true, criticality: info", "workflow: child", "external", True, ["criticality.inferred"]),
        ("mutates: true, criticality: info", "workflow: child, mutates: false", "info", False, []),
        ("mutates: true, criticality: info", "workflow: child, criticality: info", "info", True, []),
        ("group: g", "workflow: '{{ inputs.which }}'", "external", True, ["criticality.inferred"]),
        ("group: g", "config: other.yaml", "external", True, ["criticality.inferred"]),
    ],
)
def test_G_19_a_workflow_is_as_critical_as_what_it_runs(
    tmp_path: Any, providers: Any, child: str, keys: str, criticality: str, mutates: bool, codes: list[str]
) -> None:
    """A.6 row 4, G7, G19: what a child changes is held back like what a step of this file changes."""
    from gonogo.config import load

    for name in ("child.yaml", "other.yaml"):
        (tmp_path / name).write_text(CHILD % child)
    main = tmp_path / "main.yaml"
    main.write_text(f"version: '1'\nimports: child.yaml\nsteps: {{a: {{type: workflow, {keys}}}}}")
    loaded = load(main, providers=providers, compile_expressions=lambda all_: [None] * len(all_))
    step = loaded.plan.steps["a"]
    assert (step.criticality, step.mutates, step.effects) == (criticality, mutates, "idempotent")
    assert [problem.code for problem in loaded.problems] == codes
