"""C.4 and C.5: the stages of one step, skips, and the gate between steps."""

from __future__ import annotations

import pytest
from tests.whole import Ran, RunYaml

from gonogo.core import decisions as d

# --- C.4


def test_C_4_R1_if_comes_before_the_gate(run_yaml: RunYaml) -> None:
    """C.4 R1: with a failed dependency and a false `if` the reason is if_condition."""
    ran = run_yaml("""
steps:
  bad: {type: command, exec: exit 1}
  both: {type: noop, depends_on: bad, if: "false"}
  gate: {type: noop, depends_on: bad, if: "true"}
""")
    assert ran.why("both") == ("skipped", "if_condition")
    assert ran.why("gate") == ("skipped", "dependency_failed")


def test_C_4_R2_the_stages_come_in_order(run_yaml: RunYaml) -> None:
    """C.4 R2: if, assume, call, then guarantee with the detectors, then routing, as records of their own."""
    ran = run_yaml("""
fail_if: "false"
failure_conditions: {everywhere: "false"}
steps:
  a:
    type: script
    content: "return 1"
    if: "true"
    assume: "true"
    guarantee: "true"
    fail_if: "false"
    failure_conditions: {here: "false"}
    on_success: {transitions: [{when: "true", to: b}]}
  b: {type: noop, start: routed}
""")
    told = [
        one.construct if isinstance(one, d.Judged) else type(one).__name__
        for record in ran.records
        for one in record.decisions
        if getattr(one, "step", None) == "a" and isinstance(one, d.Judged | d.Started | d.Ended | d.Routed)
    ]
    checks = told[3:-3]
    assert told[:3] == ["if", "assume", "Started"]
    assert told[-3:] == ["Ended", "when", "Routed"]
    assert sorted(checks) == ["condition", "condition", "fail_if", "global_fail_if", "guarantee"]
    assert checks.index("guarantee") < checks.index("fail_if") < checks.index("condition")


def test_C_4_R2_the_result_is_committed_before_routing(run_yaml: RunYaml) -> None:
    """C.4 R2 D: what a route starts sees the output of the step that routed."""
    ran = run_yaml("""
steps:
  a: {type: script, content: "return 7", on_success: {run: [b]}}
  b: {type: script, content: "return [outputs.a, outputs_history.a]"}
""")
    assert ran.output("b") == [7, [7]]


def test_C_4_R3_a_false_assume_leaves_no_trace_of_a_run(run_yaml: RunYaml) -> None:
    """C.4 R3, H15: no call, no issue, no on_fail, no retry."""
    ran = run_yaml("""
steps:
  a:
    type: command
    exec: echo ran >> ran
    assume: "false"
    on_fail: {run: [cleanup], retry: {max: 3}}
  cleanup: {type: command, exec: echo cleanup >> ran}
""")
    assert ran.lines("ran") == []
    assert (ran["a"].runs, ran.rules("a"), ran.decisions(d.Retrying)) == (0, [], [])


def test_C_4_R4_contracts_are_judged_after_a_failed_call(run_yaml: RunYaml) -> None:
    """C.4 R4: guarantee and fail_if on every executed run, also when the call failed."""
    ran = run_yaml("""
steps:
  a: {type: command, exec: exit 3, guarantee: output_meta.exit_code === 3, fail_if: output.exit_code === 3}
""")
    assert len(ran.judged("guarantee")) == len(ran.judged("fail_if")) == 1
    assert "a_fail_if" in ran.rules("a")
    assert "contract/guarantee_failed" not in ran.rules("a")


def test_C_4_R5_stages_of_items_and_of_the_whole(run_yaml: RunYaml) -> None:
    """C.4 R5: contracts and detectors per item; routing on success once on the aggregate."""
    ran = run_yaml("""
steps:
  list: {type: script, content: "return [1, 2, 3]", forEach: true}
  each:
    type: script
    fanout: map
    depends_on: list
    content: "return outputs.list"
    assume: outputs.list !== 2
    guarantee: output > 0
    fail_if: output > 9
    on_success: {run: [once]}
  once: {type: command, exec: echo x >> once}
""")
    assert [judged.scope for judged in ran.judged("assume")] == ["list#1[0]", "list#1[1]", "list#1[2]"]
    assert len(ran.judged("guarantee")) == len(ran.judged("fail_if")) == 2
    assert ran.lines("once") == ["x"]


def test_C_4_R6_nothing_leaks_from_call_to_call(run_yaml: RunYaml) -> None:
    """C.4 R6, I.1 row 1: a transform of one command never shows in the output of another."""
    ran = run_yaml("""
max_parallelism: 1
steps:
  one: {type: command, exec: "echo '{\\"a\\": 1}'", transform_js: "({a: 100, leaked: true})"}
  two: {type: command, exec: "echo '{\\"b\\": 2}'"}
""")
    assert ran.output("one") == {"a": 100, "leaked": True}
    assert ran.output("two") == {"b": 2}


def test_C_4_R7_a_guard_step_fails_hard_and_assume_mode_fail_too(run_yaml: RunYaml) -> None:
    """C.4 R7, G1: a guard's exit code blocks; `assume_mode: fail` fails without a call and routes, unretried."""
    ran = run_yaml("""
steps:
  guard: {type: command, exec: exit 1}
  behind: {type: noop, depends_on: guard}
  strict:
    type: command
    exec: echo ran >> ran
    assume: "false"
    assume_mode: fail
    on_fail: {run: [told], retry: {max: 2}}
  told: {type: noop}
""")
    assert ran.why("behind") == ("skipped", "dependency_failed")
    assert ran["strict"].outcome == "failed"
    assert ran.rules("strict") == ["contract/assume_failed"]
    assert ran["strict"].fault is not None
    assert ran["strict"].fault.fault_class == "logical"
    assert ran["told"].outcome == "passed"
    assert (ran.lines("ran"), ran.decisions(d.Retrying)) == ([], [])


def test_C_4_stage_8_a_providers_issues_are_completed(run_yaml: RunYaml) -> None:
    """C.4 stage 8: check, group and prefixed rule; a missing rule is `unknown` or the type's own; never fatal."""
    ran = run_yaml("""
steps:
  found:
    type: command
    group: g
    exec: |
      printf '{"issues": [{"message": "m", "ruleId": "timeout/error"}, {"message": "n"}]}'
""")
    assert [issue.rule_id.split("/")[0] for issue in ran["found"].issues] == ["found", "found"]
    assert ran["found"].issues[0].rule_id == "found/timeout/error"
    assert {issue.group for issue in ran["found"].issues} == {"g"}
    assert ran["found"].outcome == "passed"


def test_C_4_stage_4_an_empty_list_maps_to_nothing(run_yaml: RunYaml) -> None:
    """C.4 stage 4: the decision to fan out comes before assume; over nothing the step is skipped."""
    ran = run_yaml("""
steps:
  list: {type: script, content: "return []", forEach: true}
  each: {type: noop, fanout: map, depends_on: list, assume: "false"}
""")
    assert ran.why("each") == ("skipped", "forEach_empty")
    assert ran.judged("assume") == []


# --- C.5

SKIPS = """
{top}
steps:
  first: {{type: {first}}}
  after: {{type: noop, depends_on: first}}
"""


def gate(
    run_yaml: RunYaml, first: str, top: str = ""
) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
    """What becomes of a step and of the one behind it."""
    ran = run_yaml(SKIPS.format(first=first, top=top))
    return ran.why("first"), ran.why("after")


BLOCKED, PASSED = ("skipped", "dependency_failed"), ("passed", None)


@pytest.mark.parametrize("tolerant", [False, True])
@pytest.mark.parametrize(("key", "reason"), [("if", "if_condition"), ("assume", "assume")])
def test_C_5_a_skip_by_condition_blocks_unless_tolerated(
    run_yaml: RunYaml, key: str, reason: str, tolerant: bool
) -> None:
    """C.5, skip reasons if_condition and assume: block, unless continue_on_failure, for both alike (D, H16)."""
    more = ", continue_on_failure: true" if tolerant else ""
    found = gate(run_yaml, f'noop, {key}: "false"{more}')
    assert found == (("skipped", reason), PASSED if tolerant else BLOCKED)


def test_C_5_dependency_failed_cascades(run_yaml: RunYaml) -> None:
    """C.5, skip reason dependency_failed: blocks in turn, and names the root."""
    ran = run_yaml("""
steps:
  root: {type: command, exec: exit 1}
  one: {type: noop, depends_on: root}
  two: {type: noop, depends_on: one}
""")
    assert ran.why("one") == ran.why("two") == BLOCKED
    assert [skip.because for skip in ran.decisions(d.Skipped)] == ["root", "root"]


def test_C_5_forEach_empty_lets_pass(run_yaml: RunYaml) -> None:
    """C.5, skip reason forEach_empty: does not block; a failed parent gives dependency_failed instead."""
    ran = run_yaml("""
steps:
  none: {type: script, content: "return []", forEach: true}
  map_none: {type: noop, fanout: map, depends_on: none}
  behind: {type: noop, depends_on: map_none, fanout: reduce}
  bad: {type: command, exec: exit 1, forEach: true}
  map_bad: {type: noop, fanout: map, depends_on: bad}
""")
    assert ran.why("map_none") == ("skipped", "forEach_empty")
    assert ran.why("behind") == PASSED
    assert ran.why("map_bad") == BLOCKED


def test_C_5_fail_fast_is_a_reason(run_yaml: RunYaml) -> None:
    """C.5, skip reason fail_fast, D: set for what no longer runs."""
    ran = run_yaml("""
fail_fast: true
max_parallelism: 1
steps:
  bad: {type: command, exec: exit 1}
  later: {type: noop}
  behind: {type: noop, depends_on: bad}
""")
    assert ran.why("later") == ("skipped", "fail_fast")
    assert ran["behind"].outcome == "skipped"


def test_C_5_R1_the_producer_opens_its_edges_or_one_edge_opens_itself(run_yaml: RunYaml) -> None:
    """C.5 R1 D, H33: continue_on_failure opens all outgoing edges; `on_failure: continue` this one only."""
    ran = run_yaml("""
steps:
  tolerated: {type: command, exec: exit 1, continue_on_failure: true}
  bad: {type: command, exec: exit 1}
  a: {type: noop, depends_on: tolerated}
  b: {type: noop, depends_on: [{step: bad, on_failure: continue}]}
  c: {type: noop, depends_on: bad}
""")
    assert [ran.why(name) for name in "abc"] == [PASSED, PASSED, BLOCKED]
    assert ran["tolerated"].outcome == "tolerated"


def test_C_5_R2_the_latest_run_decides(run_yaml: RunYaml) -> None:
    """C.5 R2 D, I.1 row 23: failed, then passed: dependents run, once."""
    ran = run_yaml("""
steps:
  flaky:
    type: command
    exec: "echo x >> tries; [ $(wc -l < tries) -ge 2 ]"
    on_fail: {retry: {max: 2}}
  after: {type: noop, depends_on: flaky}
""")
    assert ran.why("after") == PASSED
    assert (ran.calls["flaky"], ran.calls["after"]) == (2, 1)


def test_C_5_R3_a_skip_is_recorded_and_is_no_run(run_yaml: RunYaml) -> None:
    """C.5 R3 D, H17, I.1 row 22: CheckSkipped with reason and expression; no run counted; an earlier run's counts
    stay (D.3, row 22).
    """
    ran = run_yaml("""
steps:
  a: {type: noop, if: "1 > 2"}
  twice:
    type: noop
    if: outputs_history.twice.length === 0
    on_success: {goto: twice}
""")
    assert (ran["a"].runs, ran.calls["a"]) == (0, 0)
    assert [skip.reason for skip in ran.decisions(d.Skipped, "a")] == ["if_condition"]
    assert ran.view.plan.expressions[ran.judged("if", "a")[0].expression].source == "1 > 2"
    assert ran["twice"].runs == 1


def test_C_5_R4_an_unplanned_dependency_is_satisfied(run_yaml: RunYaml) -> None:
    """C.5 R4: a dependency that isn't in the plan doesn't block."""
    ran = run_yaml(
        """
tag_filter: {exclude: [x]}
steps:
  gone: {type: command, exec: exit 1, tags: [x]}
  a: {type: noop, depends_on: gone}
"""
    )
    assert ran.why("a") == PASSED


def test_C_5_R5_an_or_group_needs_one(run_yaml: RunYaml) -> None:
    """C.5 gate and R5: every token needs one satisfied member; a skipped member counts as not satisfied."""
    ran = run_yaml("""
steps:
  good: {type: noop}
  bad: {type: command, exec: exit 1}
  behind_bad: {type: noop, depends_on: bad}
  one_of: {type: noop, depends_on: "bad | good"}
  none_of: {type: noop, depends_on: "bad|behind_bad"}
  both: {type: noop, depends_on: [good, "bad|behind_bad"]}
""")
    assert ran.why("one_of") == PASSED
    assert ran.why("none_of") == ran.why("both") == BLOCKED


def test_C_5_a_remediation_may_depend_on_what_failed(run_yaml: RunYaml) -> None:
    """C.5 gate, first member rule: what on_fail.run starts passes the gate of the step that failed."""
    ran: Ran = run_yaml("""
steps:
  bad: {type: command, exec: exit 1, on_fail: {run: [fix]}}
  fix: {type: noop, depends_on: bad}
  other: {type: noop, depends_on: bad}
""")
    assert ran.why("fix") == PASSED
    assert ran.why("other") == BLOCKED
