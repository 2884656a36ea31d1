"""The table of what a file is refused for or warned about, row by row (spec A.6)."""

from __future__ import annotations

from typing import Any

import pytest

from gonogo.errors import Problem


def codes(problems: tuple[Problem, ...]) -> list[str]:
    """The codes, in order."""
    return [problem.code for problem in problems]


def one(keys: str) -> str:
    """A file whose step `a` has these keys; `b` is beside it."""
    return f"steps: {{a: {{type: noop, {keys}}}, b: {{type: noop}}}}"


@pytest.mark.parametrize(
    "text", ["steps: {a: {type: noop}}\nx-version: none", "version: '1.0'", "version: '1.0'\nsteps: {}"]
)
def test_A_6_row_1_a_version_and_steps_are_needed(refuse: Any, text: str) -> None:
    """A.6 row 1: version missing; neither checks nor steps."""
    assert codes(refuse(text)) in (["key.missing"], ["value.type"])


@pytest.mark.parametrize("kind", ["comand", "nothing-like-it"])
def test_A_6_row_2_an_unknown_type_is_refused(refuse: Any, kind: str) -> None:
    """A.6 row 2."""
    assert codes(refuse(f"steps: {{a: {{type: {kind}}}}}")) == ["type.unknown"]


@pytest.mark.parametrize(
    "keys",
    [
        "type: command",
        "type: http",
        "type: http, url: 'http://localhost/'",
        "type: http_client",
        "type: script",
    ],
)
def test_A_6_row_3_a_type_needs_its_keys(refuse: Any, keys: str) -> None:
    """A.6 row 3: command without exec, http without url or body, http_client without url, script without content."""
    found = refuse(f"steps: {{a: {{{keys}, criticality: info}}}}")
    assert found
    assert {problem.code for problem in found} <= {"key.missing", "value.invalid"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("type: http, url: 'http://localhost/', body: x", ["criticality.inferred"]),
        ("type: http_client, url: 'http://localhost/', method: PUT", ["criticality.inferred"]),
        ("type: http_client, url: 'http://localhost/', output_file: f", ["criticality.inferred"]),
        ("type: noop, mutates: true", ["criticality.inferred"]),
        ("type: http_client, url: 'http://localhost/'", []),
        ("type: http_client, url: 'http://localhost/', method: HEAD", []),
        ("type: noop, mutates: true, criticality: info", []),
        ("type: noop, mutates: true, critical: false", []),
    ],
)
def test_A_6_row_4_a_step_that_mutates_says_how_critical_it_is(
    warn: Any, refuse: Any, keys: str, expected: list[str]
) -> None:
    """A.6 row 4, G19: a warning and inference; an error under strict; reading needs no word."""
    text = f"steps: {{a: {{{keys}}}}}"
    assert codes(warn(text)) == expected
    if expected:
        assert codes(refuse(text, strict=True)) == expected


@pytest.mark.parametrize("criticality", ["external", "internal"])
@pytest.mark.parametrize(
    ("keys", "missing"),
    [("group: g", True), ("assume: 'true'", False), ("assume: ['true']", False), ("if: 'true'", False)],
)
def test_A_6_row_5_a_critical_step_says_what_it_assumes(
    warn: Any, refuse: Any, criticality: str, keys: str, missing: bool
) -> None:
    """A.6 row 5, G18: assume in either form, or if; an error under strict."""
    text = one(f"criticality: {criticality}, {keys}")
    expected = ["contract.missing_assume"] if missing else []
    assert codes(warn(text)) == expected
    if missing:
        assert codes(refuse(text, strict=True)) == expected


@pytest.mark.parametrize("criticality", ["external", "internal"])
@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ("group: g", True),
        ("guarantee: 'true'", False),
        ("guarantee: ['true']", False),
        ("schema: {type: object}", False),
    ],
)
def test_A_6_row_6_a_critical_step_says_what_it_gives(
    warn: Any, refuse: Any, criticality: str, keys: str, missing: bool
) -> None:
    """A.6 row 6, G18, H4: schema, or guarantee in either form; an error under strict."""
    text = f"steps: {{a: {{type: command, exec: x, criticality: {criticality}, assume: 'true', {keys}}}}}"
    expected = ["contract.missing_output"] if missing else []
    assert codes(warn(text)) == expected
    if missing:
        assert codes(refuse(text, strict=True)) == expected


def test_A_6_rows_5_and_6_policy_and_info_owe_nothing(warn: Any) -> None:
    """A.5: only external and internal do; what is inferred is told of otherwise."""
    for criticality in ("policy", "info"):
        assert warn(f"steps: {{a: {{type: command, exec: x, criticality: {criticality}}}}}") == ()


def test_A_6_row_7_on_finish_needs_a_list(refuse: Any) -> None:
    """A.6 row 7."""
    assert codes(refuse(one("on_finish: {run: [b]}"))) == ["key.needs"]


@pytest.mark.parametrize(
    "text",
    [
        one("tags: ['-x']"),
        one("on: [pr_closd]"),
        one("on: manual"),
        "max_parallelism: 0\n" + one("group: g"),
        "max_parallelism: many\n" + one("group: g"),
    ],
)
def test_A_6_row_8_tags_events_and_parallelism_are_checked(refuse: Any, text: str) -> None:
    """A.6 row 8."""
    assert len(refuse(text)) == 1


@pytest.mark.parametrize(
    "step",
    [
        "{type: command, exec: x, transform_js: 'return ('}",
        "{type: script, content: 'return ('}",
    ],
)
def test_A_6_row_9_scripts_are_parsed(refuse: Any, sandbox: Any, step: str) -> None:
    """A.6 row 9: transform_js and a script's content."""
    assert codes(refuse(f"steps: {{a: {step}}}", compile_expressions=sandbox.prepare)) == [
        "expression.syntax"
    ]


def test_A_6_row_10_a_dependency_is_a_step(refuse: Any) -> None:
    """A.6 row 10: every member of an OR group."""
    assert codes(refuse(one("depends_on: [nobody, b | nobodi]"))) == ["reference.unknown"] * 2


@pytest.mark.parametrize("block", ["on_success", "on_fail"])
@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("goto: nobody", "reference.unknown"),
        ("run: [nobody]", "reference.unknown"),
        ("run: [{step: nobody}]", "reference.unknown"),
        ("transitions: [{when: 'true', to: nobody}]", "reference.unknown"),
        ("goto: b, goto_event: nothing_known", "value.invalid"),
        ("transitions: [{when: 'true', to: b, goto_event: nothing_known}]", "value.invalid"),
    ],
)
def test_A_6_row_11_a_target_is_a_step_and_its_event_is_one(
    refuse: Any, block: str, says: str, code: str
) -> None:
    """A.6 row 11, I.1 8."""
    assert codes(refuse(one(f"{block}: {{{says}}}"))) == [code]


@pytest.mark.parametrize(
    "keys",
    [
        "if: 'event ('",
        "assume: 'event ('",
        "assume: ['true', 'event (']",
        "guarantee: 'event ('",
        "fail_if: 'event ('",
        "failure_conditions: {c: 'event ('}",
        "on_success: {transitions: [{when: 'event (', to: b}]}",
        "on_success: {goto_js: 'return ('}",
        "on_fail: {run_js: 'return ('}",
        "on_init: {run_js: 'return ('}",
    ],
)
def test_A_6_row_12_every_expression_is_parsed(refuse: Any, sandbox: Any, keys: str) -> None:
    """A.6 row 12."""
    assert codes(refuse(one(keys), compile_expressions=sandbox.prepare)) == ["expression.syntax"]


@pytest.mark.parametrize(
    "text",
    [
        one("criticality: high"),
        one("critical: 'yes'"),
        one("on_fail: {retry: {max: '2'}}"),
        one("on_fail: {retry: {max: 1, backoff: {mode: linear}}}"),
        one("on_fail: {retry: {max: 1, backoff: {delay_ms: soon}}}"),
        one("on_fail: {retry: {max: 1, retry_on: [sometimes]}}"),
        one("on_fail: {retry: {max: 1, count: never}}"),
        "routing: {max_loops: '3'}\n" + one("group: g"),
        "routing: {max_loops: 1.5}\n" + one("group: g"),
        one("forEach: 'true'"),
        one("fanout: both"),
        one("reduce: 1"),
        one("assume_mode: maybe"),
        one("guarantee_mode: warn"),
        one("schema_mode: warn"),
        one("continue_on_failure: yes"),
        "safety: paranoid\n" + one("group: g"),
    ],
)
def test_A_6_row_13_words_and_types_are_checked(refuse: Any, text: str) -> None:
    """A.6 row 13, G2: each with one error that says what would do."""
    [problem] = refuse(text)
    assert problem.code in ("value.type", "value.invalid")
    assert "expected" in problem.message


@pytest.mark.parametrize(("reduce", "fanout"), [("true", "map"), ("false", "reduce")])
def test_A_6_row_13_reduce_and_fanout_do_not_contradict_each_other(
    refuse: Any, reduce: str, fanout: str
) -> None:
    """A.4, H32: both set and unequal."""
    assert "key.clash" in codes(refuse(one(f"reduce: {reduce}, fanout: {fanout}")))


@pytest.mark.parametrize("keys", ["assume: output.ok", "assume: ['true', 'outputs.a.ok']"])
def test_A_6_row_14_assume_cannot_read_the_steps_own_output(warn: Any, refuse: Any, keys: str) -> None:
    """A.6 row 14, G33: a warning; an error under strict."""
    assert codes(warn(one(keys))) == ["expression.own_output"]
    assert codes(refuse(one(keys), strict=True)) == ["expression.own_output"]


@pytest.mark.parametrize(
    ("top", "keys", "expected"),
    [
        ("", "on_success: {goto: a}", ["routing.loop"]),
        ("", "on_success: {transitions: [{when: 'true', to: a}]}", ["routing.loop"]),
        ("", "on_fail: {retry: {max: 1, exhausted: {goto: a}}}", ["routing.loop"]),
        ("", "on_success: {goto: a}, max_runs: 3", []),
        ("", "on_success: {goto: a}, max_runs: 50", ["routing.loop"]),
        ("", "on_success: {goto: a}, loop_budget: 9", []),
        ("", "on_success: {goto: a}, loop_budget: 10", ["routing.loop"]),
        ("routing: {max_loops: 9}\n", "on_success: {goto: a}", []),
        ("routing: {max_loops: 11}\n", "on_success: {goto: a}", ["routing.loop"]),
        ("", "on_success: {goto: b}", []),
    ],
)
def test_A_6_row_15_a_loop_needs_a_budget_below_the_default(
    warn: Any, refuse: Any, top: str, keys: str, expected: list[str]
) -> None:
    """A.6 row 15, G20: a warning; an error under strict."""
    assert codes(warn(top + one(keys))) == expected
    if expected:
        assert codes(refuse(top + one(keys), strict=True)) == expected


@pytest.mark.parametrize(
    ("a", "b"), [("depends_on: b", "depends_on: a"), ("depends_on: b", "depends_on: [a | c]")]
)
def test_A_6_row_16_steps_do_not_wait_for_each_other(refuse: Any, a: str, b: str) -> None:
    """A.6 row 16: at load, with the way round."""
    text = f"steps: {{a: {{type: noop, {a}}}, b: {{type: noop, {b}}}, c: {{type: noop}}}}"
    [problem] = refuse(text)
    assert (problem.code, "a -> b -> a" in problem.message) == ("depends_on.cycle", True)


def test_A_6_all_rows_are_told_at_once(refuse: Any, sandbox: Any) -> None:
    """A.3 D: not the first one only; each with a dotted path and its line."""
    text = """
    steps:
      a: {type: comand}
      b: {type: noop, criticality: high}
      c: {type: noop, depends_on: nobody}
      d: {type: noop, on_success: {goto: nobody}}
      e: {type: noop, if: 'event ('}
    """
    problems = refuse(text, compile_expressions=sandbox.prepare)
    assert [problem.path.split(".")[1] for problem in problems] == ["a", "b", "c", "d", "e"]
    assert [problem.place.line for problem in problems if problem.place] == [2, 3, 4, 5, 6]
