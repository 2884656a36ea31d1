"""B.4 to B.6: what `output` is in a detector, what the helpers give, what false and an error mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.whole import Ran, RunYaml, runner

from gonogo.core import decisions as d

# --- B.4

OUTPUTS = {
    "list": ("[1, 2]", "Array.isArray(output) && output.length === 2 && output.items === undefined"),
    "object": ("{error: 'x', n: 1}", "output.error === 'x' && output.n === 1"),
    "number": ("7", "output === 7"),
    "boolean": ("true", "output === true"),
    "text": ("'done {\"error\": true}'", "typeof output === 'string' && output.error === undefined"),
    "null": ("null", "output === null"),
}


@pytest.mark.parametrize("construct", ["guarantee", "fail_if"])
def test_B_4_output_is_unchanged_in_contract_and_detector(run_yaml: RunYaml, construct: str) -> None:
    """B.4 D (its R1 to R7 are the peer's): the provider's output as it is, in both constructs (H14)."""
    steps = "".join(
        f"  {name}: {{type: script, content: {json.dumps('return ' + value)}, {construct}: {json.dumps(test)}}}\n"
        for name, (value, test) in OUTPUTS.items()
    )
    ran = run_yaml(f"max_parallelism: 9\nsteps:\n{steps}")
    expected = "passed" if construct == "guarantee" else "failed"
    assert ran.outcomes == dict.fromkeys(OUTPUTS, expected)


def test_B_4_findings_show_beside_an_object_only(run_yaml: RunYaml) -> None:
    """B.4 D: `output.issues` is an overlay on an object that has none of its own; the stored output stays as it was."""
    ran = run_yaml("""
steps:
  found:
    type: command
    exec: |
      printf '{"n": 1, "issues": [{"message": "bad", "severity": "warning", "file": "a.py", "line": 3}]}'
    guarantee: output.issues.length === 1 && output.issues[0].message === 'bad' && output.n === 1
""")
    assert ran["found"].outcome == "passed"
    assert "issues" not in ran.output("found")


# --- B.5

HELPERS: dict[str, tuple[str, ...]] = {
    "contains": (
        "contains('Hello', 'ELL')",
        "contains(['a', 'bc'], 'bc')",
        "!contains(['abc'], 'b')",
        "contains([1], 1)",
    ),
    "startsWith": ("startsWith('Feature/x', 'feature/')", "!startsWith('x', 'y')"),
    "endsWith": ("endsWith('A.PY', '.py')", "!endsWith('a.js', '.py')"),
    "length": (
        "length('abc') === 3",
        "length([1]) === 1",
        "length({a: 1, b: 2}) === 2",
        "length(null) === 0 && length(7) === 0",
    ),
    "status": ("always()", "success()", "!failure()"),
    "hasIssue": (
        "hasIssue([{severity: 'error'}], 'severity', 'error')",
        "!hasIssue([{n: '1'}], 'n', 1)",
        "!hasIssue('x', 'a', 'b')",
    ),
    "countIssues": ("countIssues([{s: 1}, {s: 1}, {s: 2}], 's', 1) === 2", "countIssues(null, 's', 1) === 0"),
    "hasFileMatching": (
        "hasFileMatching([{file: 'src/a.py'}], 'src/')",
        "!hasFileMatching([{file: 'a'}], '*')",
    ),
    "any": ("any([1, 2], x => x > 1)", "!any([], x => true)", "!any('no list', x => true)"),
    "all": ("all([2, 3], x => x > 1)", "all([], x => false)", "!all(null, x => true)"),
    "none": ("none([1], x => x > 1)", "none([], x => true)", "!none(undefined, x => false)"),
    "count": (
        "count([1, 2, 3], x => x > 1) === 2",
        "count([], x => true) === 0",
        "count('x', x => true) === 0",
    ),
    "permissions": (
        "isMember() && isCollaborator() && isContributor()",
        "!isOwner() && !isFirstTimer()",
        "hasMinPermission('MEMBER') && hasMinPermission('NONE') && !hasMinPermission('OWNER')",
    ),
    "log": ("log('seen') === undefined",),
    "memory": (
        "memory.get('k') === 'v' && memory.has('k') && !memory.has('x')",
        "memory.list().length === 1 && memory.getAll().k === 'v'",
        "memory.get('k', 'other') === 'w'",
    ),
}


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One run that judges every line about every helper."""
    steps = "".join(
        f"  {name}: {{type: noop, depends_on: put_other, guarantee: {json.dumps(list(lines))}}}\n"
        for name, lines in HELPERS.items()
    )
    return runner(tmp_path_factory.mktemp("helpers"))(
        f"""
max_parallelism: 20
steps:
  put: {{type: memory, operation: set, key: k, value: v}}
  put_other: {{type: memory, operation: set, key: k, value: w, namespace: other, depends_on: put}}
{steps}""",
        context={"pr": {"authorAssociation": "MEMBER"}},
    )


@pytest.mark.parametrize("helper", HELPERS)
def test_B_5_each_helper_gives_what_is_written(helped: Ran, helper: str) -> None:
    """B.5, each helper: its results, on empty and wrong values too."""
    assert [issue.message for issue in helped[helper].issues] == []
    assert len(helped.judged("guarantee", helper)) == len(HELPERS[helper])


def test_B_5_a_guarantee_that_differs_is_found(run_yaml: RunYaml) -> None:
    """B.5: the lines above are really judged: a wrong one is an issue."""
    assert run_yaml("steps:\n  a: {type: noop, guarantee: length('ab') === 3}\n")["a"].outcome == "failed"


def test_B_5_nobody_known_is_nobody(run_yaml: RunYaml) -> None:
    """B.5, I.1 row 7: without an association every permission is denied, in CI or out of it."""
    ran = run_yaml("""
steps:
  a: {type: noop, guarantee: "!isMember() && !isOwner() && !hasMinPermission('CONTRIBUTOR') && !isContributor()"}
""")
    assert ran["a"].outcome == "passed"


def test_B_5_success_and_failure_look_at_the_dependencies(run_yaml: RunYaml) -> None:
    """B.5 D: success = no failed dependency, failure = some dependency failed; always runs both ways."""
    ran = run_yaml("""
steps:
  good: {type: noop}
  bad: {type: command, exec: exit 1}
  after_good: {type: noop, depends_on: good, if: success()}
  not_after_good: {type: noop, depends_on: good, if: failure()}
  after_bad: {type: noop, depends_on: bad, if: failure()}
  not_after_bad: {type: noop, depends_on: bad, if: success()}
""")
    assert [ran[name].outcome for name in ("after_good", "after_bad")] == ["passed", "passed"]
    assert ran.why("not_after_good") == ran.why("not_after_bad") == ("skipped", "if_condition")


def test_B_5_log_is_in_the_journal(run_yaml: RunYaml) -> None:
    """B.5 D: log(…) goes to the decision's record too, secrets masked."""
    ran = run_yaml("steps:\n  a: {type: noop, if: \"(log('seen', 7), true)\"}\n")
    assert ran["a"].outcome == "passed"
    assert any("seen 7" in str(record.event) for record in ran.records)


def test_B_5_history_is_oldest_first_without_skips_and_with_the_current_run(run_yaml: RunYaml) -> None:
    """B.5 D (H23): commit first, then route: goto_js sees its own result in outputs and in history."""
    ran = run_yaml("""
steps:
  count:
    type: script
    content: "return outputs_history.count.length + 1"
    on_success:
      goto_js: |
        if (outputs.count !== output) return 'wrong';
        return outputs_history.count.length < 3 ? 'count' : null
  never: {type: noop, if: "false"}
  reads:
    type: script
    depends_on: count
    content: "return [outputs_history.count, outputs.history.count, outputs_history.never]"
""")
    assert ran.verdict == "GO"
    assert ran.output("reads") == [[1, 2, 3], [1, 2, 3], []]


def test_B_5_raw_is_the_whole_list(run_yaml: RunYaml) -> None:
    """B.5: inside an item outputs_raw[parent] is the list of the forEach step."""
    ran = run_yaml("""
steps:
  list: {type: script, content: "return [5, 6]", forEach: true}
  each: {type: script, fanout: map, depends_on: list, content: "return [outputs.list, outputs_raw.list]"}
""")
    assert ran.output("each") == [[5, [5, 6]], [6, [5, 6]]]


def test_B_5_time_stamps_stay_out_of_the_output(run_yaml: RunYaml) -> None:
    """B.5 D: `ts` is in outputs_meta, not in the output."""
    ran = run_yaml("""
steps:
  a: {type: script, content: "return {x: 1}"}
  b: {type: script, depends_on: a, content: "return [outputs.a, typeof outputs_meta.a.ts]"}
""")
    assert ran.output("b") == [{"x": 1}, "number"]


def test_B_5_run_js_sees_all_history(run_yaml: RunYaml) -> None:
    """B.5 D: run_js reads what earlier waves gave, whatever event they ran under."""
    ran = run_yaml(
        """
steps:
  a: {type: script, on: [pr_opened, pr_updated], content: "return 1", on_success: {goto: b, goto_event: pr_updated}}
  b:
    type: noop
    on: [pr_opened, pr_updated]
    start: routed
    on_success: {run_js: "return outputs_history.a.length === 1 ? ['c'] : []"}
  c: {type: noop, start: routed}
""",
        event="pr_opened",
    )
    assert ran["c"].outcome == "passed"


# --- B.6

MISSING = "output.missing.deep"


def test_B_6_if_false_skips_quietly_and_an_error_is_told(run_yaml: RunYaml) -> None:
    """B.6, row if: false and error both skip as `if_condition`; the error is an issue and NO-GO (semantics 2)."""
    ran = run_yaml('steps:\n  quiet: {type: noop, if: "false"}\n')
    assert (ran.verdict, ran.why("quiet"), ran.rules("quiet")) == ("GO", ("skipped", "if_condition"), [])
    ran = run_yaml(
        "steps:\n  told: {type: noop, if: outputs.none.deep}\n  none: {type: noop, depends_on: told}\n"
    )
    assert ran.why("told") == ("skipped", "if_condition")
    assert ran.rules("told") == ["expression/error"]
    assert (ran.verdict, ran.view.because) == ("NO-GO", ("told",))


def test_B_6_assume_stops_at_the_first_that_fails(run_yaml: RunYaml) -> None:
    """B.6, row assume: a false entry skips as `assume` without a call; an error too, with its issue."""
    ran = run_yaml("""
steps:
  quiet: {type: command, exec: echo x >> ran, assume: ["true", "false", "true"]}
  told: {type: command, exec: echo x >> ran, assume: ["outputs.later.deep"]}
  later: {type: noop, depends_on: told}
""")
    assert (ran.why("quiet"), ran.rules("quiet")) == (("skipped", "assume"), [])
    assert (ran.why("told"), ran.rules("told")) == (("skipped", "assume"), ["expression/error"])
    assert ran.lines("ran") == []
    assert ran.verdict == "NO-GO"


def test_B_6_every_guarantee_is_judged_and_an_error_breaks_it(run_yaml: RunYaml) -> None:
    """B.6, row guarantee: one issue per failing entry, the list is evaluated to its end; an error is a violation."""
    ran = run_yaml(f"""
steps:
  a: {{type: script, content: "return {{}}", guarantee: ["false", "true", "{MISSING}", "1 > 2"]}}
""")
    assert ran.rules("a") == ["contract/guarantee_failed"] * 3
    assert [bool(judged.error) for judged in ran.judged("guarantee")] == [False, False, True, False]
    assert ran["a"].outcome == "failed"


def test_B_6_a_detectors_error_is_not_triggered_but_told(run_yaml: RunYaml) -> None:
    """B.6, rows fail_if and failure_conditions, G26, H43: not triggered, a system issue of severity warning, not
    fatal.
    """
    ran = run_yaml(f"""
steps:
  a: {{type: script, content: "return {{}}", fail_if: "{MISSING}"}}
  b: {{type: script, content: "return {{}}", failure_conditions: {{bad: "{MISSING}"}}}}
""")
    assert ran.verdict == "GO"
    for name in "ab":
        assert [(issue.rule_id, issue.severity) for issue in ran[name].issues] == [
            ("expression/error", "warning")
        ]
    assert all(judged.error for kind in ("fail_if", "condition") for judged in ran.judged(kind))


@pytest.mark.parametrize("criticality", ["external", "internal", "policy"])
def test_B_6_a_critical_steps_detector_may_not_err(run_yaml: RunYaml, criticality: str) -> None:
    """B.6, H43: for critical steps an error in fail_if is a failure of class logical."""
    ran = run_yaml(f"""
steps:
  a: {{type: script, content: "return {{}}", criticality: {criticality}, fail_if: "{MISSING}"}}
""")
    assert ran["a"].outcome == "failed"
    assert ran["a"].fault is not None
    assert ran["a"].fault.fault_class == "logical"


def test_B_6_a_rule_that_errs_is_false(run_yaml: RunYaml) -> None:
    """B.6, row transitions.when: an error counts as false, the next rule is looked at, the error is recorded."""
    ran = run_yaml(f"""
steps:
  a:
    type: script
    content: "return {{}}"
    on_success:
      transitions:
        - {{when: "{MISSING}", to: wrong}}
        - {{when: "true", to: right}}
  wrong: {{type: noop, start: routed}}
  right: {{type: noop, start: routed}}
""")
    assert (ran["right"].outcome, ran["wrong"].outcome) == ("passed", "skipped")
    assert [bool(judged.error) for judged in ran.judged("when")] == [True, False]


@pytest.mark.parametrize(
    "text", ["return output.missing.deep", "return 7", "return undefined", "const x = 1"]
)
def test_B_6_goto_js_without_a_name_falls_back(run_yaml: RunYaml, text: str) -> None:
    """B.6, row goto_js: an error, or no string returned, leaves the static goto."""
    ran = run_yaml(f"""
steps:
  a: {{type: script, content: "return {{}}", on_success: {{goto_js: "{text}", goto: static}}}}
  static: {{type: noop, start: routed}}
""")
    assert ran["static"].outcome == "passed"


@pytest.mark.parametrize("text", ["return output.missing.deep", "return 'b'", "return {step: 'b'}"])
def test_B_6_run_js_without_a_list_runs_nothing(run_yaml: RunYaml, text: str) -> None:
    """B.6, row run_js: not a list runs nothing; an error neither, and it is recorded."""
    ran = run_yaml(f"""
steps:
  a: {{type: script, content: "return {{}}", on_success: {{run_js: "{text}"}}}}
  b: {{type: noop, start: routed}}
""")
    assert ran.why("b") == ("skipped", "not_routed")
    assert [bool(judged.error) for judged in ran.judged("run")] == [True] * ("missing" in text)


PROVIDER_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "transform_js": (
        {"type": "command", "exec": "echo 1", "transform_js": "nothing.here"},
        "command/transform_js_error",
    ),
    "script": ({"type": "script", "content": "null.x"}, "script/execution_error"),
    "memory value_js": (
        {"type": "memory", "operation": "set", "key": "k", "value_js": "null.x"},
        "memory/operation_error",
    ),
}


@pytest.mark.parametrize("row", PROVIDER_ROWS)
def test_B_6_an_error_in_a_providers_expression_fails_the_step(run_yaml: RunYaml, row: str) -> None:
    """B.6 and C.6, rows transform_js, script, memory value_js: a failure with its rule, never a quiet null."""
    config, rule = PROVIDER_ROWS[row]
    if row == "transform_js":
        config = {**config, "transform_js": "null.x"}
    ran = run_yaml(f"steps:\n  a: {json.dumps(config)}\n")
    assert ran["a"].outcome == "failed"
    assert ran.rules("a") == [f"a/{rule}"] or ran.rules("a") == [rule]


def test_B_6_a_missing_property_of_nothing_is_an_error_not_false(run_yaml: RunYaml) -> None:
    """B.6, last row: `undefined.x` is an error (so a guarantee about it breaks with the message), `x?.y` is false."""
    ran = run_yaml("""
steps:
  hard: {type: script, content: "return {}", guarantee: output.a.b === 1}
  soft: {type: script, content: "return {}", guarantee: output.a?.b === undefined}
""")
    assert (ran["hard"].outcome, ran["soft"].outcome) == ("failed", "passed")
    assert "could not be evaluated" in ran["hard"].issues[0].message


def test_B_6_every_error_leaves_a_decision(run_yaml: RunYaml, tmp_path: Path) -> None:
    """B.6, H47, G25: whatever the safe side is, the record of the error is there."""
    ran = run_yaml(f"""
steps:
  a: {{type: script, content: "return {{}}", guarantee: "{MISSING}", fail_if: "{MISSING}"}}
""")
    errors = {judged.construct: judged.error for judged in ran.decisions(d.Judged)}
    assert set(errors) == {"guarantee", "fail_if"}
    assert all(errors.values())
