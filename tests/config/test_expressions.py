"""Expressions in a file: syntax, names, places, and conditions that may not say what is meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gonogo.errors import Problem
from gonogo.expressions.sandbox import Sandbox


def at(problem: Problem) -> tuple[int, int]:
    """Line and column."""
    assert problem.place is not None
    return problem.place.line, problem.place.column


EXP_1 = [
    '"${{ outputs.a.ok }} == false"',
    "\"{{ outputs.a.ok }} == 'x'\"",
    "\"{{ 'false' }}\"",
    '"outputs.a.ok == false \'"',
    '"ok ok"',
    '"   "',
]


@pytest.mark.parametrize("key", ["if", "assume", "guarantee", "fail_if"])
@pytest.mark.parametrize("written", EXP_1)
def test_EXP_1_what_is_no_expression_is_refused_at_load(
    refuse: Any, sandbox: Sandbox, key: str, written: str
) -> None:
    """EXP-1: with file, line and column; templates with the words that help."""
    text = f"steps:\n  a: {{type: noop}}\n  b:\n    type: noop\n    depends_on: a\n    {key}: {written}\n"
    problems = refuse(text, compile_expressions=sandbox.prepare)
    assert {problem.place.line for problem in problems} == {6}
    if "{{" in written:
        assert "expression, not template" in problems[0].message


@pytest.mark.parametrize("key", ["assume", "guarantee", "fail_if"])
def test_EXP_1_an_empty_contract_is_refused(refuse: Any, key: str) -> None:
    """EXP-1: only an empty `if` is absent."""
    assert "found nothing" in refuse(f"steps: {{a: {{type: noop, {key}: ''}}}}")[0].message


def test_an_unknown_name_is_refused_with_its_place_and_what_was_meant(refuse: Any) -> None:
    """A.6: line and column of the name."""
    (problem,) = refuse("steps:\n  a:\n    type: noop\n    if: filesCount > 0 && outptus.a\n")
    assert problem.code == "expression.name"
    assert at(problem) == (4, 27)
    assert problem.suggestion == "did you mean outputs?"


@pytest.mark.parametrize(
    ("written", "line", "column"),
    [
        ("|\n      const a = 1;\n      return a + nmae;", 6, 18),
        (">\n      true &&\n      nmae", 6, 7),
        ('"true && \\\n      nmae"', 5, 7),
        ("'true && nmae'", 4, 23),
    ],
)
def test_places_inside_block_and_quoted_scalars_are_the_files(
    refuse: Any, written: str, line: int, column: int
) -> None:
    """An expression's line and column map back to the YAML file."""
    (problem,) = refuse(f"steps:\n  a:\n    type: noop\n    fail_if: {written}\n")
    assert at(problem) == (line, column)


def test_syntax_errors_of_all_constructs_are_reported_with_their_places(
    refuse: Any, sandbox: Sandbox
) -> None:
    """A.6: if, assume, guarantee, fail_if, when, goto_js, run_js, script content, transform_js."""
    text = """
    fail_if: a +
    steps:
      a:
        type: script
        content: |
          const x = {;
        if: output.(
        assume: [true, "x ==="]
        guarantee: ")"
        fail_if: "'"
        failure_conditions: {f: "1 +"}
        on_success:
          run_js: return [
          goto_js: "}"
          transitions: [{when: "&&", to: a}]
      b: {type: command, exec: x, transform_js: "(("}
    """
    problems = refuse(text, compile_expressions=sandbox.prepare)
    lines = [problem.place.line for problem in problems if problem.code == "expression.syntax"]
    assert lines == [1, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16]


def test_a_name_that_is_missing_is_a_syntax_error_alone(refuse: Any, sandbox: Sandbox) -> None:
    """The parser puts an empty name where it misses one; nobody wrote that."""
    problems = refuse("steps: {a: {type: noop, if: 'branch + ;'}}", compile_expressions=sandbox.prepare)
    assert [problem.code for problem in problems] == ["expression.syntax"]


def test_the_sandbox_is_asked_once_for_all(load_text: Any) -> None:
    """One frame; each source once."""
    asked: list[Sequence[Any]] = []

    def compile_expressions(sources: Sequence[Any]) -> list[None]:
        asked.append(sources)
        return [None] * len(sources)

    text = (
        "steps: {a: {type: noop, if: 'true', assume: ['true', 'false']}, b: {type: script, content: 'true'}}"
    )
    load_text(text, compile_expressions=compile_expressions)
    assert asked == [[("true", "condition"), ("false", "condition"), ("true", "script")]]


def test_a_file_without_expressions_starts_no_sandbox(load_text: Any) -> None:
    """Start-up budget."""
    load_text("steps: {a: {type: noop}}", compile_expressions=pytest.fail)


@pytest.mark.parametrize(
    ("condition", "env", "expected"),
    [
        ("env.X", "", 1),
        ("env.X", ", env: {X: 'false'}", 1),
        ("env.X", ", env: {X: 0}", 1),
        ("env.X", ", env: {X: no}", 1),
        ("'!env[\"X\"]'", ", env: {X: ' false'}", 1),
        ("env.X", ", env: {X: production}", 0),
        ("env.X === 'true'", "", 0),
    ],
)
def test_EXP_2_a_text_that_looks_false_is_warned_about(
    warn: Any, refuse: Any, condition: str, env: str, expected: int
) -> None:
    """EXP-2: `if: env.X` alone says to compare explicitly."""
    text = f"steps: {{a: {{type: noop, if: {condition}{env}}}}}"
    found = warn(text)
    assert [problem.code for problem in found] == ["expression.env_text"] * expected
    if expected:
        assert "compare explicitly" in (found[0].suggestion or "")
        assert refuse(text, strict=True)[0].severity == "error"


@pytest.mark.parametrize("condition", ["output.ok", "outputs.a.ok"])
def test_an_assume_that_reads_its_own_output_is_warned_about(warn: Any, condition: str) -> None:
    """A.6, G33."""
    found = warn(f"steps: {{a: {{type: noop, assume: {condition}}}}}")
    assert [problem.code for problem in found] == ["expression.own_output"]


def test_output_exitCode_is_warned_about(warn: Any) -> None:
    """H12."""
    found = warn("steps: {a: {type: command, exec: x, fail_if: output.exitCode > 0}}")
    assert [problem.code for problem in found] == ["expression.exit_code"]


ORDERED = """
steps:
  first: {type: noop}
  middle: {type: noop, depends_on: first}
  last: {type: noop, depends_on: middle, if: %s}
  aside: {type: noop, on_success: {run: [told]}}
  told: {type: noop, if: outputs.aside.ok}
"""


@pytest.mark.parametrize(
    ("condition", "codes"),
    [
        ("outputs.first.ok", []),
        ("outputs.history.middle.length > 0", []),
        ("outputs.last", []),
        ("outputs.aside.ok", ["reference.unordered"]),
        ("outputs_raw.aside.length > 0", ["reference.unordered"]),
        ("outputs.frist.ok", ["reference.unknown_output"]),
        ("'outputs[step.id]'", []),
    ],
)
def test_what_is_read_must_be_ordered(warn: Any, refuse: Any, condition: str, codes: list[str]) -> None:
    """semantics.md 10: a warning, an error under strict."""
    assert [problem.code for problem in warn(ORDERED % condition)] == codes
    if codes:
        assert [problem.code for problem in refuse(ORDERED % condition, strict=True)] == codes


def test_a_step_may_read_what_is_beneath_it(warn: Any) -> None:
    """semantics.md 10: on_finish reads the items' results."""
    text = """
    steps:
      list: {type: command, exec: x, forEach: true, on_finish: {goto_js: "outputs_wave.item.length ? null : null"}}
      item: {type: command, exec: x, depends_on: list}
    """
    assert warn(text) == ()


def test_a_cumulative_question_in_a_transition_is_warned_about(warn: Any) -> None:
    """H42."""
    text = """
    routing: {max_loops: 3}
    steps:
      a: {type: noop, on_success: {transitions: [{when: "any(outputs_history.a, x => x.bad)", to: a}]}}
    """
    assert [problem.code for problem in warn(text)] == ["expression.cumulative"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("exec: git push origin", ["effects.undeclared"]),
        ("exec: cd x && kubectl -n a apply", []),
        ("exec: kubectl apply -f x", ["effects.undeclared"]),
        ("exec: curl -sS -X POST http://localhost/", ["effects.undeclared"]),
        ("exec: curl http://localhost/", []),
        ("exec: git push, mutates: false", []),
        ("exec: git push, mutates: true, criticality: info", []),
        ("exec: make test", []),
    ],
)
def test_a_command_that_looks_mutating_is_asked_about(warn: Any, keys: str, expected: list[str]) -> None:
    """semantics.md 18: what declares nothing counts as repeatable, with a lint."""
    assert [problem.code for problem in warn(f"steps: {{a: {{type: command, {keys}}}}}")] == expected
