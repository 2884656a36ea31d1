"""Contracts and detectors (spec C.6, C.7, G1)."""

from __future__ import annotations

from typing import Any

from tests.core.script import LOGICAL, Returns, Script, block, error, plan, step

from gonogo.core import decisions as d
from gonogo.core.faults import Issue
from gonogo.core.plan import Step


def one(answers: dict[str, Any] | None = None, result: Any = None, **keys: Any) -> Script:
    """A step under test and one behind it."""
    return Script(plan(step("a", **keys), step("after", "a")), calls={"a": result}, answers=answers)


def test_C_7_R1_each_failing_guarantee_is_an_issue_and_the_step_fails() -> None:
    """The whole list is judged; the rule id has no step prefix."""
    script = one(guarantee=["x", "y", "z"], answers={"x": False, "z": False})
    assert script.rules("a") == ["contract/guarantee_failed"] * 2
    assert script.outcomes() == {"a": "failed", "after": "skipped"}


def test_a_broken_guarantee_takes_the_on_fail_path() -> None:
    """H1: it is a failure, not a success with an issue."""
    script = Script(
        plan(step("a", guarantee=["x"], on_fail=block(run=["fix"])), step("fix")), answers={"x": False}
    )
    assert script.started == ["a", "fix"]


def test_B_6_a_guarantee_that_errors_counts_as_broken() -> None:
    """Fail closed."""
    assert one(guarantee=["bad"], answers={"bad": error()}).outcome("a") == "failed"


def test_guarantee_mode_issue_reports_without_failing() -> None:
    """architecture.md 2.1: `guarantee_mode: issue`."""
    script = one(guarantee=["x"], guarantee_mode="issue", answers={"x": False})
    assert (script.outcome("a"), script.rules("a")) == ("passed", ["contract/guarantee_failed"])


def test_C_7_R2_schema_errors_fail_the_step_with_the_first_three() -> None:
    """The message joins at most three."""
    script = one(result=Returns(1, schema_errors=("one", "two", "three", "four")))
    assert script.rules("a") == ["contract/schema_validation_failed"]
    assert script.node("a").issues[0].message == "one; two; three"


def test_schema_mode_issue_reports_without_failing() -> None:
    """The schema's own mode."""
    assert one(result=Returns(1, schema_errors=("one",)), schema_mode="issue").outcome("a") == "passed"


def test_C_7_R5_fail_if_true_fails_with_the_steps_rule() -> None:
    """Exactly one issue, named after the step."""
    script = one(fail_if="bad", answers={"bad": True})
    assert (script.outcome("a"), script.rules("a")) == ("failed", ["a_fail_if"])


def test_B_6_fail_if_that_errors_is_not_triggered_but_never_silent() -> None:
    """A warning issue `expression/error` is left."""
    script = one(fail_if="bad", answers={"bad": error()})
    assert (script.outcome("a"), script.rules("a")) == ("passed", ["expression/error"])
    assert script.node("a").issues[0].severity == "warning"


def test_H43_fail_if_that_errors_fails_a_critical_step() -> None:
    """Fail-secure where it matters."""
    assert one(fail_if="bad", criticality="external", answers={"bad": error()}).outcome("a") == "failed"


def test_C_7_R6_the_global_fail_if_makes_the_run_no_go_without_gating() -> None:
    """The step passes and what follows runs."""
    script = Script(
        plan(step("a"), step("b", "a"), fail_if="bad"),
        answers={"bad": lambda names: names["checkName"] == "a"},
    )
    assert (script.outcomes(), script.verdict) == ({"a": "passed", "b": "passed"}, "NO-GO")
    assert [issue.rule_id for issue in script.state.run_issues] == ["global_fail_if"]


def test_C_7_R7_a_step_condition_replaces_the_global_one_of_its_name() -> None:
    """Global conditions come first, then the step's own."""
    shared = [
        {"name": "big", "when": "g", "severity": "error"},
        {"name": "odd", "when": "o", "severity": "warning"},
    ]
    script = Script(
        plan(step("a", conditions=[{"name": "big", "when": "own", "severity": "info"}]), conditions=shared),
        answers={"g": True, "o": True, "own": True},
    )
    assert script.rules("a") == ["a_odd", "a_big"]
    assert script.outcome("a") == "passed"


def test_C_6_a_condition_of_severity_error_fails_less_is_an_issue() -> None:
    """warning and info don't fail."""
    assert one(conditions=[{"name": "c", "when": "x", "severity": "error"}]).outcome("a") == "failed"
    assert one(conditions=[{"name": "c", "when": "x", "severity": "warning"}]).outcome("a") == "passed"


def test_C_7_R8_every_evaluated_contract_leaves_a_record() -> None:
    """With construct, expression number and result."""
    judged = one(guarantee=["x"], fail_if="y", answers={"y": False}).decided(d.Judged, "a")
    assert [(decision.construct, decision.result) for decision in judged] == [
        ("guarantee", True),
        ("fail_if", False),
    ]


def test_C_4_R4_contracts_are_judged_after_a_failed_call_too() -> None:
    """The first fault stays the step's fault."""
    script = one(result=LOGICAL, guarantee=["x"], answers={"x": False})
    assert script.node("a").fault == LOGICAL
    assert "contract/guarantee_failed" in script.rules("a")


def test_C_4_provider_issues_get_the_steps_name_before_their_rule() -> None:
    """Stage 8; and an ordinary issue, whatever it is called, isn't fatal (I.1 row 18)."""
    issues = (Issue("error", "looks fatal"), Issue("timeout", "so does this"))
    script = one(result=Returns(1, issues=issues))
    assert (script.rules("a"), script.outcome("a")) == (["a/error", "a/timeout"], "passed")


def test_G1_assume_mode_fail_makes_an_unmet_precondition_a_failure() -> None:
    """No call; a logical fault; on_fail routes."""
    keys = {"assume": ["no"], "assume_mode": "fail", "on_fail": block(run=["fix"])}
    script = Script(plan(step("a", **keys), step("fix")), answers={"no": False})
    assert script.started == ["fix"]
    assert (script.outcome("a"), script.rules("a")) == ("failed", ["contract/assume_failed"])


def test_GAT_4_a_detector_acts_on_a_fan_out_parent_before_anything_follows() -> None:
    """One issue each, evaluated once, followers skipped."""
    steps = [step("list", for_each=True, fail_if="bad"), step("after", "list", fanout="map")]
    script = Script(plan(*steps), calls={"list": [1, 2]}, answers={"bad": True})
    assert script.rules("list") == ["list_fail_if"]
    assert (script.node("after").reason, script.started) == ("dependency_failed", ["list"])


def test_C_6_a_forEach_step_without_an_output_fails_and_is_routed() -> None:
    """Unlike the peer's early exit."""
    steps = [step("list", for_each=True, on_fail=block(run=["fix"])), step("fix")]
    script = Script(plan(*steps), calls={"list": Returns()})
    assert (script.rules("list"), script.started) == (["forEach/execution_error"], ["list", "fix"])


def test_findings_keep_the_names_of_all_parts() -> None:
    """A named issue carries scope and attempt."""
    script = one(result=Returns(1, issues=(Issue("r", "m"),)))
    issue = script.node("a").issues[0]
    assert (issue.check_name, issue.attempt, isinstance(script.state.graph.steps["a"], Step)) == (
        "a",
        1,
        True,
    )
