"""What a step says to the workflow it runs (E.10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gonogo.config import load
from gonogo.errors import ConfigError, Problem

CHILD = """
version: "1.0"
id: child
inputs:
  - {name: size, type: integer}
  - {name: label, required: false}
outputs:
  - {name: total, value_js: outputs.sum}
steps: {sum: {type: noop}}
"""
MAIN = """
version: "1.0"
imports: [child.yaml]
steps:
  a: {type: workflow, workflow: child, %s}
"""


@pytest.fixture
def problems_of(tmp_path: Path, providers: Any) -> Any:
    """The problems of a workflow beside a child."""

    def loading(text: str, child: str = CHILD) -> list[Problem]:
        (tmp_path / "child.yaml").write_text(child)
        (tmp_path / "main.yaml").write_text(text)
        try:
            loaded = load(
                tmp_path / "main.yaml",
                providers=providers,
                compile_expressions=lambda all_: [None] * len(all_),
            )
        except ConfigError as refusal:
            return [problem for problem in refusal.problems if problem.severity == "error"]
        return [problem for problem in loaded.problems if problem.severity != "info"]

    return loading


@pytest.mark.parametrize(
    "keys",
    [
        "args: {size: 1}",
        "args: {size: 1, label: x}",
        "args: {size: '{{ event.number }}'}",
        "args: {size: {expression: '1 + 1'}}",
        "workflow_inputs: {size: 1}",
        "args: {size: 1}, output_mapping: {sum: total, deep: total.x}",
        "args: {size: 1}, overrides: {sum: {}}",
    ],
)
def test_E_10_what_fits_is_accepted(problems_of: Any, keys: str) -> None:
    """E.10 R1: known values are checked now, the others when they are known."""
    assert problems_of(MAIN % keys) == []


@pytest.mark.parametrize(
    ("keys", "code", "path", "said"),
    [
        ("args: {size: 1, lable: x}", "workflow.input", "steps.a.args.lable", "did you mean label?"),
        ("args: {size: 1, zzz: x}", "workflow.input", "steps.a.args.zzz", "it has label, size"),
        ("args: {label: x}", "workflow.input", "steps.a.args", "add size: under args"),
        ("group: g", "workflow.input", "steps.a.args", "add size: under args"),
        ("args: {size: '5'}", "workflow.input", "steps.a.args.size", None),
        ("workflow_inputs: {size: null}", "workflow.input", "steps.a.workflow_inputs.size", None),
        (
            "args: {size: 1}, output_mapping: {x: totl.y}",
            "workflow.output",
            "steps.a.output_mapping.x",
            "did you mean total?",
        ),
        (
            "args: {size: 1}, overrides: {sun: {}}",
            "workflow.step",
            "steps.a.overrides.sun",
            "did you mean sum?",
        ),
    ],
)
def test_E_10_what_does_not_fit_is_refused(
    problems_of: Any, keys: str, code: str, path: str, said: str | None
) -> None:
    """E.10 R1: at load, with its place and what was probably meant."""
    [problem] = problems_of(MAIN % keys)
    assert (problem.code, problem.path, problem.suggestion) == (code, path, said)


def test_E_10_a_workflow_that_is_run_by_a_block_is_checked_too(problems_of: Any) -> None:
    """C.10 R3: `{workflow, with}`."""
    text = """
version: "1.0"
imports: [child.yaml]
steps:
  a: {type: noop, on_success: {run: [{workflow: child, with: {sice: 1}}]}}
"""
    found = [(problem.path, problem.suggestion) for problem in problems_of(text)]
    assert sorted(found) == [
        ("steps.a.on_success.run[0].with", "add size: under with"),
        ("steps.a.on_success.run[0].with.sice", "did you mean size?"),
    ]


def test_A_4_a_workflow_that_is_run_by_a_block_may_be_overridden_and_mapped(problems_of: Any) -> None:
    """A.4: `overrides` and `output_mapping` of a run item, checked like those of a step, and for workflows only."""
    item = "{workflow: child, with: {size: 1}, overrides: {%s: {}}, output_mapping: {x: %s}}"
    text = "version: '1.0'\nimports: [child.yaml]\nsteps: {a: {type: noop, on_init: {run: [%s]}}, b: {type: noop}}"
    found = [
        problem.code
        for problem in problems_of(text % (item % ("sum", "total")))
        if problem.severity == "error"
    ]
    assert found == []
    assert [each.code for each in problems_of(text % (item % ("sun", "totl")))] == [
        "workflow.step",
        "workflow.output",
    ]
    assert [each.code for each in problems_of(text % "{step: b, overrides: {}}")] == ["value.invalid"]


def test_E_10_a_workflow_that_declares_nothing_takes_anything_and_gives_its_steps(problems_of: Any) -> None:
    """E.10 R1: inputs as they come; outputs are those of its steps."""
    child = "version: '1.0'\nid: child\nsteps: {sum: {type: noop}}"
    assert problems_of(MAIN % "args: {any: 1}, output_mapping: {x: sum.y}", child) == []
    [problem] = problems_of(MAIN % "output_mapping: {x: total}", child)
    assert problem.suggestion == "it has sum"
