"""Contracts and detectors (spec C.6, C.7, G1)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.core.script import LOGICAL, Never, Returns, Script, block, error, plan, step

from gonogo.core import commands as c
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.contracts import conclude
from gonogo.core.faults import Fault, Issue
from gonogo.core.plan import Step
from gonogo.core.turn import Turn
from gonogo.expressions.analyse import Reading


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


# --- what is reported, exactly


def items(*keys: Any, answers: dict[str, Any] | None = None, result: Any = None, **more: Any) -> Script:
    """One item of a list under test."""
    return Script(
        plan(step("list", for_each=True), step("each", "list", fanout="map", **more)),
        calls={"list": [1], "each": result},
        answers=answers,
    )


def engine(rule: str, message: str, **more: Any) -> Issue:
    """An issue of gonogo's own about step a."""
    return Issue(rule, message, **{"check_name": "a", "engine": True, **more})


def test_a_broken_guarantee_is_reported_with_what_it_read() -> None:
    """C.7 R1, D.1: rule, text, step and attempt; what gonogo itself says is never suppressed."""
    script = one(guarantee=["x"], answers={"x": False})
    expected = engine("contract/guarantee_failed", "x does not hold", attempt=1)
    assert script.node("a").issues == (expected,)
    fault = script.node("a").fault
    assert fault == Fault("contract.guarantee", "logical", "contract/guarantee_failed", "x does not hold")


def test_a_guarantee_that_cannot_be_evaluated_says_why() -> None:
    """B.6: the error is in the text."""
    script = one(guarantee=["x"], answers={"x": error("no such thing")})
    assert script.node("a").issues[0].message == "x could not be evaluated: no such thing"
    assert script.decided(d.Judged, "a") == [d.Judged("a", "", "guarantee", 0, None, "no such thing")]


def test_a_broken_assumption_is_a_logical_fault_of_its_own_kind() -> None:
    """G1: it says which precondition."""
    script = one(assume=["yes", "no"], assume_mode="fail", answers={"no": False})
    assert script.node("a").fault == Fault(
        "contract.assume", "logical", "contract/assume_failed", "no does not hold"
    )


def test_a_triggered_fail_if_is_a_logical_fault() -> None:
    """C.7 R5: named after the step."""
    script = one(fail_if="bad", answers={"bad": True})
    assert script.node("a").fault == Fault("detector.fail_if", "logical", "a_fail_if", "fail_if is true: bad")


def test_schema_errors_are_a_logical_fault() -> None:
    """C.7 R2."""
    fault = one(result=Returns(1, schema_errors=("wrong",))).node("a").fault
    assert fault == Fault("contract.schema", "logical", "contract/schema_validation_failed", "wrong")


def test_a_schema_has_nothing_to_say_about_a_failed_call() -> None:
    """C.7 R2: there is no output; the call's own fault is the only one."""
    script = one(result=LOGICAL)
    assert script.node("a").issues == (engine(LOGICAL.rule_id, LOGICAL.message, attempt=1),)


def test_B_6_a_detector_that_errors_is_reported_with_its_error() -> None:
    """B.6: rule, text, severity, step; no scope outside of items."""
    script = one(fail_if="bad", answers={"bad": error("oops")})
    text = "fail_if of a could not be evaluated: oops"
    assert script.node("a").issues == (engine("expression/error", text, severity="warning"),)


def test_B_6_a_detector_that_errors_in_an_item_names_the_item() -> None:
    """B.6, D.1."""
    script = items(fail_if="bad", answers={"bad": error("oops")})
    assert [issue.scope for issue in script.node("each", "list#1[0]").issues] == ["list#1[0]"]


@pytest.mark.parametrize("criticality", ["external", "internal", "policy"])
def test_H43_an_erring_fail_if_fails_each_kind_of_critical_step(criticality: str) -> None:
    """H43: with severity error and a fault of its own kind."""
    script = one(fail_if="bad", criticality=criticality, answers={"bad": error("oops")})
    text = "fail_if of a could not be evaluated: oops"
    assert script.node("a").fault == Fault("detector.error", "logical", "expression/error", text)
    assert script.node("a").issues == (engine("expression/error", text, attempt=1),)


@pytest.mark.parametrize(
    "keys", [{"conditions": [{"name": "c", "when": "bad", "severity": "error"}]}, {"guarantee": ["fine"]}]
)
def test_H43_only_the_steps_own_fail_if_fails_secure(keys: dict[str, Any]) -> None:
    """H43: a condition or the workflow's own fail_if that errs is a warning, in a critical step too."""
    script = Script(
        plan(step("a", criticality="external", **keys), fail_if="bad"), answers={"bad": error("oops")}
    )
    assert script.outcome("a") == "passed"
    assert {issue.severity for issue in script.node("a").issues} == {"warning"}
    assert {issue.rule_id for issue in script.node("a").issues} == {"expression/error"}


def test_C_7_R6_the_global_fail_if_is_an_issue_of_the_run() -> None:
    """C.7 R6, D.1: which step it was true for."""
    script = Script(plan(step("a"), fail_if="bad"), answers={"bad": True})
    text = "fail_if of the workflow is true: bad"
    assert script.state.run_issues == [engine("global_fail_if", text)]
    assert script.state.breaches == [("a", "")]


def test_C_7_R6_what_else_was_found_is_none_of_the_global_fail_if() -> None:
    """C.7 R6: while it is false the run is GO, with a mild finding and a guarantee that holds beside it."""
    mild = [{"name": "c", "when": "x", "severity": "warning"}]
    script = Script(
        plan(step("a", guarantee=["fine"], conditions=mild), fail_if="bad"), answers={"bad": False}
    )
    assert script.rules("a") == ["a_c"]
    assert (script.state.run_issues, script.state.breaches, script.verdict) == ([], [], "GO")


@pytest.mark.parametrize("severity", ["info", "warning"])
def test_C_6_a_mild_condition_is_reported_with_its_severity(severity: str) -> None:
    """C.6, D.1: with its own message, else its expression."""
    own = one(conditions=[{"name": "c", "when": "x", "severity": severity, "message": "hm"}])
    plain = one(conditions=[{"name": "c", "when": "x", "severity": severity}])
    assert own.node("a").issues == (engine("a_c", "hm", severity=severity),)
    assert plain.node("a").issues == (engine("a_c", "x", severity=severity),)


def test_C_6_a_condition_of_an_item_names_the_item() -> None:
    """D.1."""
    script = items(conditions=[{"name": "c", "when": "x", "severity": "info"}])
    assert [issue.scope for issue in script.node("each", "list#1[0]").issues] == ["list#1[0]"]


@pytest.mark.parametrize("severity", ["error", "critical"])
def test_C_6_a_grave_condition_is_a_logical_fault(severity: str) -> None:
    """C.6: error and critical fail the step."""
    fault = one(conditions=[{"name": "c", "when": "x", "severity": severity}]).node("a").fault
    assert fault == Fault("detector.condition", "logical", "a_c", "x")


def test_C_6_a_condition_that_is_false_says_nothing() -> None:
    """C.6: and each condition has its own answer."""
    conditions = [
        {"name": "no", "when": "n", "severity": "error"},
        {"name": "yes", "when": "y", "severity": "info"},
    ]
    assert one(conditions=conditions, fail_if="n", answers={"n": False}).rules("a") == ["a_yes"]


def test_C_6_a_halt_is_told_first_and_stops_the_run() -> None:
    """C.6: whatever its severity; the condition itself is an issue, too."""
    script = one(conditions=[{"name": "c", "when": "x", "severity": "info", "halt": True, "message": "stop"}])
    assert script.node("a").fault == Fault("detector.halt", "logical", "a_halt_execution", "halted: stop")
    assert [(one.rule_id, one.severity) for one in script.node("a").issues] == [
        ("a_halt_execution", "error"),
        ("a_c", "error"),
    ]
    assert (script.state.stopping, script.state.stopped_by) == ("halted", "a")


def test_C_6_too_many_items_are_a_logical_fault() -> None:
    """Law 2: as many as allowed are fine."""
    steps = [step("list", for_each=True), step("each", "list", fanout="map")]
    assert Script(plan(*steps, max_items=2), calls={"list": [1, 2]}).outcome("list") == "passed"
    script = Script(plan(*steps, max_items=2), calls={"list": [1, 2, 3]})
    text = "a list of 3 items is more than limits.max_items (2) allows"
    assert script.node("list").fault == Fault("forEach.too_many", "logical", "forEach/too_many_items", text)


def test_C_6_no_list_at_all_is_a_transient_fault() -> None:
    """C.6: the next attempt may give one; a failed call is its own fault alone."""
    one_list = plan(step("list", for_each=True))
    fault = Script(one_list, calls={"list": Returns()}).node("list").fault
    text = "a forEach step must give a list"
    assert fault == Fault("forEach.undefined", "transient", "forEach/execution_error", text)
    assert Script(one_list, calls={"list": LOGICAL}).rules("list") == [LOGICAL.rule_id]


def test_C_4_nothing_of_a_providers_issue_is_lost() -> None:
    """Stage 8: the step's name before the rule once, its name, group, scope and attempt added, the rest kept."""
    given = Issue(
        "r",
        "m",
        severity="warning",
        file="f.py",
        line=3,
        end_line=5,
        category="style",
        check_name="made up",
        group="made up",
        suggestion="do",
        replacement="done",
        engine=True,
    )
    script = items(result=Returns(1, issues=(given, structs.replace(given, rule_id="each/r"))), group="g")
    expected = structs.replace(
        given, rule_id="each/r", check_name="each", group="g", scope="list#1[0]", attempt=1
    )
    assert script.node("each", "list#1[0]").issues == (expected, expected)


def test_C_4_a_providers_issue_without_a_rule_is_unknown() -> None:
    """Stage 8; outside of items there is no scope."""
    (issue,) = one(result=Returns(1, issues=(Issue("", "m"),))).node("a").issues
    assert (issue.rule_id, issue.scope, issue.engine) == ("a/unknown", None, False)


def test_C_7_R1_one_finding_is_reported_once() -> None:
    """The same rule with the same text isn't doubled; another text is another finding."""
    script = one(guarantee=["x", "x", "y"], answers={"x": False, "y": False})
    assert [issue.message for issue in script.node("a").issues] == ["x does not hold", "y does not hold"]


def test_C_7_R8_a_message_tells_the_values_an_expression_read() -> None:
    """C.7 R8: and so does the record."""
    read = Reading(names=("output",), paths=(("output", "n"),))
    checked = plan(step("a", fail_if="bad", guarantee=["good"]))
    expressions = tuple(structs.replace(each, reading=read) for each in checked.expressions)
    script = Script(
        structs.replace(checked, expressions=expressions), calls={"a": {"n": 3}}, answers={"good": False}
    )
    assert [issue.message for issue in script.node("a").issues] == [
        "good does not hold (output.n = 3)",
        "fail_if is true: bad (output.n = 3)",
    ]
    assert [one.evidence for one in script.decided(d.Judged)] == [{"output.n": 3}] * 2


def test_a_cancelled_call_ends_cancelled_though_the_step_tolerates_failure() -> None:
    """Semantics 5: a cancel is no failure."""
    stopped = Fault("run.cancelled", "cancelled", "a/cancelled", "told to stop")
    script = one(result=stopped, continue_on_failure=True)
    assert script.outcome("a") == "cancelled"


def test_on_success_speaks_for_the_fan_out_and_on_fail_for_each_item() -> None:
    """Semantics 8."""
    blocks = {"on_success": block(run=["good"]), "on_fail": block(run=["bad"])}
    script = Script(
        plan(
            step("list", for_each=True),
            step("each", "list", fanout="map", **blocks),
            step("good", start="routed"),
            step("bad", start="routed"),
        ),
        calls={"list": [1, 2]},
    )
    assert script.started == ["list", "each@list#1[0]", "each@list#1[1]", "good"]


@pytest.mark.parametrize(("tolerant", "outcome"), [(True, "tolerated"), (False, "failed")])
def test_on_fail_speaks_for_a_tolerated_failure_too(tolerant: bool, outcome: str) -> None:
    """C.9: continue_on_failure is about dependents."""
    script = Script(
        plan(
            step("a", continue_on_failure=tolerant, on_fail=block(run=["fix"])), step("fix", start="routed")
        ),
        calls={"a": LOGICAL},
    )
    assert (script.outcome("a"), script.started) == (outcome, ["a", "fix"])


def test_C_6_only_a_list_must_give_something() -> None:
    """C.6: any other step may be silent, with issues beside it."""
    told = Issue("hint", "look here", severity="warning")
    script = one(result=Returns(issues=(told,)))
    assert (script.rules("a"), script.outcome("a")) == (["a/hint"], "passed")


def test_C_6_a_list_that_failed_need_not_say_that_it_gave_nothing() -> None:
    """C.6: why it failed is what counts."""
    script = Script(plan(step("a", for_each=True)), calls={"a": Never()})
    script.tell(e.CallFailed(call=1, fault=LOGICAL, issues=(Issue("hint", "look here"),)))
    assert script.rules("a") == ["a/hint", LOGICAL.rule_id]


def test_law_4_answers_that_do_not_fit_the_questions_are_refused() -> None:
    """Law 4: none is taken for an answer to another question."""
    script = one(guarantee=["fine"], result=Never())
    asks = (c.Ask("a", "", "guarantee", 0),)
    with pytest.raises(ValueError, match="shorter"):
        conclude(Turn(script.state), script.node("a"), asks, ())


def test_semantics_4_a_call_that_was_cancelled_is_not_mended() -> None:
    """Semantics 4: nothing went wrong with it, though the run goes on."""
    gone = Fault("call.cancelled", "cancelled", "call/cancelled", "somebody stopped it")
    script = Script(
        plan(step("a", on_fail=block(run=["mend"])), step("mend", start="routed")), calls={"a": gone}
    )
    assert (script.started, script.outcome("a")) == (["a"], "cancelled")


@pytest.mark.parametrize("keys", [{"if_": "x"}, {"assume": ["x"]}])
def test_B_6_a_precondition_that_errors_is_an_error(keys: dict[str, Any]) -> None:
    """B.6: the step doesn't run, and the reason isn't a mere warning."""
    script = one({"x": error()}, **keys)
    assert [(issue.rule_id, issue.severity) for issue in script.node("a").issues] == [
        ("expression/error", "error")
    ]
