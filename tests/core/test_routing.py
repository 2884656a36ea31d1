"""Where a run goes after a step (spec C.10, C.11, B.8; semantics 6 and 7)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Returns, Script, block, error, plan, step

from gonogo.core import decisions as d
from gonogo.core.faults import Fault, Issue
from gonogo.core.plan import Retry, Target
from gonogo.expressions.results import Value


def test_C_10_R1_run_then_run_js_then_goto() -> None:
    """What a block runs comes first, to its end; then it goes elsewhere."""
    steps = [
        step("a", on_success=block(run=["x"], run_js="js", goto="z")),
        step("x"),
        step("y", start="routed"),
        step("z", start="routed"),
    ]
    script = Script(plan(*steps), answers={"js": Value(["y"])})
    assert script.started == ["a", "x", "y", "z"]


def test_C_10_R1_transitions_come_before_goto_js_and_goto() -> None:
    """G31: The first true rule wins."""
    steps = [step("a", on_success=block(when=[("no", "x"), ("yes", "y")], goto_js="js", goto="z"))]
    steps += [step(name, start="routed") for name in "xyz"]
    script = Script(plan(*steps), answers={"no": False})
    assert script.started == ["a", "y"]


def test_B_8_R3_a_matching_rule_to_null_stops_the_block() -> None:
    """`to: null`: goto_js and goto are not consulted."""
    steps = [
        step("a", on_success=block(when=[("yes", None)], goto_js="js", goto="z")),
        step("z", start="routed"),
    ]
    assert Script(plan(*steps), answers={"js": Value("z")}).started == ["a"]


def test_B_6_a_rule_that_errors_counts_as_false_and_is_recorded() -> None:
    """The next rule is looked at; a Judged decision keeps the error."""
    steps = [
        step("a", on_success=block(when=[("bad", "x"), ("yes", "y")])),
        step("x", start="routed"),
        step("y", start="routed"),
    ]
    script = Script(plan(*steps), answers={"bad": error("no such thing")})
    assert script.started == ["a", "y"]
    assert [judged.error for judged in script.decided(d.Judged)] == ["no such thing", None]


def test_B_8_R1_goto_js_names_the_target() -> None:
    """A non-empty text is the target."""
    steps = [
        step("a", on_success=block(goto_js="js", goto="y")),
        step("x", start="routed"),
        step("y", start="routed"),
    ]
    assert Script(plan(*steps), answers={"js": Value("x")}).started == ["a", "x"]


def test_B_8_R1_an_explicit_null_means_no_goto() -> None:
    """It suppresses the static target."""
    steps = [step("a", on_success=block(goto_js="js", goto="y")), step("y", start="routed")]
    assert Script(plan(*steps), answers={"js": Value(None)}).started == ["a"]


def test_B_6_goto_js_that_errors_or_gives_nothing_falls_back_to_goto() -> None:
    """The static target is the safe one."""
    steps = [step("a", on_success=block(goto_js="js", goto="y")), step("y", start="routed")]
    assert Script(plan(*steps), answers={"js": error()}).started == ["a", "y"]
    assert Script(plan(*steps), answers={"js": Value(None, undefined=True)}).started == ["a", "y"]


def test_B_8_R2_run_js_takes_names_and_objects_and_drops_the_rest() -> None:
    """Items are names or {step, with}."""
    steps = [step("a", on_success=block(run_js="js")), step("x", start="routed"), step("y", start="routed")]
    script = Script(plan(*steps), answers={"js": Value(["x", {"step": "y", "with": {"n": 1}}, 7, {"no": 1}])})
    assert script.started == ["a", "x", "y"]
    assert script.node("y").arguments == {"n": 1}


def test_B_6_run_js_that_gives_no_list_runs_nothing() -> None:
    """Neither does one that errors."""
    steps = [step("a", on_success=block(run_js="js")), step("x", start="routed")]
    assert Script(plan(*steps), answers={"js": Value("x")}).started == ["a"]
    assert Script(plan(*steps), answers={"js": error()}).started == ["a"]


def test_C_10_R3_arguments_reach_the_target() -> None:
    """Plain values pass as they are."""
    steps = [step("a", on_success=block(run=[Target("x", {"level": 3})])), step("x")]
    assert Script(plan(*steps)).node("x").arguments == {"level": 3}


def test_C_10_R6_a_remediation_sees_the_failed_item() -> None:
    """It runs in the item's scope with args.item and args.index, and outputs[parent] is the item."""
    seen: dict[str, object] = {}

    def fix(call: object) -> int:
        from gonogo.core.values import names_for

        names = names_for(script_box[0].state, "fix", "list#1[1]")
        seen.update(args=names["args"], parent=names["outputs"]["list"])
        return 1

    script_box: list[Script] = []

    class Late(Script):
        def go(self) -> Script:
            script_box.append(self)
            return super().go()

    steps = [
        step("list", for_each=True),
        step("each", "list", fanout="map", on_fail=block(run=["fix"])),
        step("fix"),
    ]
    script = Late(
        plan(*steps),
        calls={"list": ["a", "b"], "each": lambda c: LOGICAL if c.scope.endswith("[1]") else 1, "fix": fix},
    )
    assert script.started == ["list", "each@list#1[0]", "each@list#1[1]", "fix@list#1[1]"]
    assert seen == {"args": {"item": "b", "index": 1}, "parent": "b"}


def test_C_10_R5_a_target_with_its_own_fanout_runs_once_per_item() -> None:
    """on_success of a forEach step runs a `fanout: map` target for each item."""
    steps = [
        step("list", for_each=True, on_success=block(run=["each"])),
        step("each", fanout="map", fanout_explicit=True),
    ]
    assert Script(plan(*steps), calls={"list": [1, 2]}).started == [
        "list",
        "each@list#1[0]",
        "each@list#1[1]",
    ]


def test_C_10_R7_a_made_up_target_is_an_issue_and_no_go() -> None:
    """run_js and goto_js can name a step that isn't there; nothing is ignored."""
    script = Script(plan(step("a", on_success=block(goto_js="js"))), answers={"js": Value("ghost")})
    assert [issue.rule_id for issue in script.state.run_issues] == ["a/routing/unknown_target"]
    assert script.verdict == "NO-GO"


def test_C_9_R8_on_fail_run_alone_doesnt_run_the_step_again() -> None:
    """H21: never, unless retry or goto says so."""
    script = Script(plan(step("a", on_fail=block(run=["fix"])), step("fix")), calls={"a": LOGICAL})
    assert script.started == ["a", "fix"]
    assert script.verdict == "NO-GO"


def test_C_9_R7_remediation_comes_before_the_retry_and_dependents_after_both() -> None:
    """fix, then the step again, then what depends on it, once."""
    steps = [step("a", on_fail=block(run=["fix"], retry=1)), step("fix"), step("b", "a")]
    script = Script(
        plan(*steps, max_parallelism=4), calls={"a": lambda c: TRANSIENT if c.attempt == 1 else 1}
    )
    assert script.started == ["a", "fix", "a", "b"]


def test_a_remediation_may_depend_on_the_step_that_failed() -> None:
    """C.5: the failed step whose on_fail.run started this one is an allowed dependency."""
    script = Script(plan(step("a", on_fail=block(run=["fix"])), step("fix", "a")), calls={"a": LOGICAL})
    assert script.started == ["a", "fix"]


def test_I_1_row_5_a_goto_leaves_unrelated_steps_alone() -> None:
    """C.11 R1: a pending step outside the set still runs exactly once."""
    steps = [
        step("a"),
        step("check", "a", on_fail=block(goto="a")),
        step("other", "a"),
        step("last", "other"),
    ]
    script = Script(
        plan(*steps, max_parallelism=1), calls={"check": lambda c: LOGICAL if c.execution == 1 else 1}
    )
    assert script.started.count("last") <= 2
    assert script.outcomes() == dict.fromkeys(("a", "check", "other", "last"), "passed")


def test_C_11_R3_a_goto_takes_the_targets_dependents_along() -> None:
    """Everything behind the target runs again, once each."""
    steps = [step("a"), step("b", "a"), step("c", "b", on_fail=block(goto="a")), step("x")]
    script = Script(plan(*steps), calls={"c": lambda c: LOGICAL if c.execution == 1 else 1})
    assert script.started == ["a", "x", "b", "c", "a", "b", "c"]


def test_semantics_7_a_run_target_brings_no_rerun_of_dependents() -> None:
    """What already ran behind it stays as it is; what never ran follows by the normal gate."""
    steps = [step("a"), step("b", "a"), step("c", "b", on_success=block(run=["a"]))]
    script = Script(plan(*steps))
    assert script.started.count("b") == 1


def test_semantics_7_dependents_of_a_held_back_target_follow_it() -> None:
    """They wait for the route, then run."""
    steps = [step("a", on_success=block(run=["x"])), step("x"), step("y", "x")]
    assert Script(plan(*steps)).started == ["a", "x", "y"]


def test_semantics_7_a_set_takes_along_dependencies_that_never_ran() -> None:
    """A held-back step that a target needs runs first."""
    steps = [
        step("a", on_success=block(goto="x")),
        step("base", start="routed"),
        step("x", "base", start="routed"),
    ]
    assert Script(plan(*steps)).started == ["a", "base", "x"]


def test_semantics_7_a_running_member_finishes_and_runs_again_as_superseded() -> None:
    """Its first result doesn't count."""
    from tests.core.script import Never

    from gonogo.core.events import CallDone

    steps = [step("a", on_success=block(when=[("first", "slow")])), step("slow")]
    results = {"slow": lambda c: Never() if c.execution == 1 else "second"}
    script = Script(plan(*steps), calls=results)
    script.tell(CallDone(call=2, output="first"))
    assert script.started == ["a", "slow", "slow"]
    assert len(script.decided(d.Superseded)) == 1
    assert script.node("slow").output == "second"


def test_H22_a_goto_to_a_step_not_yet_run_doesnt_run_it_twice() -> None:
    """A forward goto is legal."""
    assert Script(plan(step("a", on_success=block(goto="b")), step("b", "a"))).started == ["a", "b"]


def test_C_11_R10_goto_event_names_the_event_of_the_new_wave() -> None:
    """Dependents that don't react to it stay out; the original event stays readable."""
    from gonogo.core.values import names_for

    steps = [
        step("a", on_success=block(goto="b", goto_event="pr_updated")),
        step("b", start="routed"),
        step("c", "b", on=("pr_updated", "pr_opened")),
        step("e", "b", on=("pr_opened",)),
    ]
    script = Script(plan(*steps), trigger={"name": "pr_opened", "event_name": "pr_opened"})
    event = names_for(script.state, "c", "")["event"]
    assert (event["name"], event["original"]["name"]) == ("pr_updated", "pr_opened")
    assert [step for step, _ in script.decided(d.Routed)[0].members] == ["b", "c"]


def test_history_holds_the_current_run_while_routing() -> None:
    """H23: commit first, then route."""
    steps = [step("a", on_success=block(when=[("now", "x")])), step("x", start="routed")]
    script = Script(
        plan(*steps), calls={"a": 7}, answers={"now": lambda names: names["outputs_history"]["a"] == [7]}
    )
    assert script.started == ["a", "x"]


def test_semantics_7_a_goto_from_within_nested_lists_ends_the_fan_outs_it_runs_again() -> None:
    """An inner fan-out waits for no item that can't come any more."""
    steps = [
        step("list", for_each=True),
        step("start"),
        step("inner", "start", "list", fanout="map", for_each=True),
        step("leaf", "inner", fanout="map", on_fail=block(goto="start")),
    ]
    failures = iter((LOGICAL,))
    calls = {"list": [1, 2], "inner": [8, 9], "leaf": lambda call: next(failures, 1)}
    script = Script(plan(*steps, max_parallelism=1), calls=calls)
    assert (script.outcome("leaf"), script.state.slots) == ("passed", 0)


# --- what is tried again


def acted(**keys: Any) -> Script:
    """A mutating step whose call was done, and whose guarantee doesn't hold."""
    retry = Retry(1, on=("logical",))
    one = step("a", effects="mutates", guarantee=["x"], on_fail=block(retry=retry), **keys)
    return Script(plan(one), calls={"a": Returns(1, effect="done")}, answers={"x": False})


def test_semantics_16_a_call_that_acted_is_not_made_again() -> None:
    """Semantics 16: a retry would do it twice."""
    assert acted().started == ["a"]


def test_semantics_16_a_call_that_did_nothing_is_made_again() -> None:
    """Semantics 16: the far side says so."""
    one = step("a", effects="mutates", on_fail=block(retry=Retry(1)))
    assert Script(plan(one), calls={"a": TRANSIENT}).started == ["a", "a"]


@pytest.mark.parametrize("effects", ["idempotent", "reads"])
def test_semantics_16_steps_that_may_be_repeated_are(effects: str) -> None:
    """Semantics 16: doing it twice is doing it once."""
    one = step("a", effects=effects, guarantee=["x"], on_fail=block(retry=Retry(1, on=("logical",))))
    assert Script(plan(one), calls={"a": Returns(1, effect="done")}, answers={"x": False}).started == [
        "a",
        "a",
    ]


# --- what is said of a route


def test_C_10_R7_a_made_up_target_is_reported_with_its_name() -> None:
    """C.10 R7, D.1: a breach, unless the step tolerates failure."""
    for tolerant, verdict in ((False, "NO-GO"), (True, "GO")):
        one = step("a", continue_on_failure=tolerant, on_success=block(run_js="js"))
        script = Script(plan(one), answers={"js": Value(["ghost"])})
        text = "step a routes to 'ghost', which isn't a step of this workflow"
        expected = Issue("a/routing/unknown_target", text, check_name="a", engine=True)
        assert script.state.run_issues == [expected]
        assert script.verdict == verdict


def test_C_10_R7_a_made_up_target_of_an_item_names_the_item() -> None:
    """C.10 R7, D.1: and the block goes on with what there is."""
    steps = [
        step("list", for_each=True),
        step("each", "list", fanout="map", on_fail=block(run_js="js")),
        step("fix", start="routed"),
    ]
    script = Script(
        plan(*steps), calls={"list": [1], "each": LOGICAL}, answers={"js": Value(["ghost", "fix"])}
    )
    assert [issue.scope for issue in script.state.run_issues] == ["list#1[0]"]
    assert script.started[-1] == "fix@list#1[0]"


def test_C_11_a_route_is_recorded_in_full() -> None:
    """Law 1: who, by which block and how, where to, in which wave, with which arguments."""
    steps = [
        step("a", on_success=block(run=[Target("x", {"n": 1})], goto="z", goto_event="later")),
        step("x", start="routed"),
        step("z", start="routed"),
    ]
    run, goto = Script(plan(*steps)).decided(d.Routed)
    assert run == d.Routed("a", "", "on_success", "run", "x", "", 1, (("x", ""),), {"n": 1}, None, False)
    assert goto == d.Routed("a", "", "on_success", "goto", "z", "", 2, (("z", ""),), {}, "later", False)


def test_C_12_a_step_that_was_skipped_counts_as_having_been_there() -> None:
    """C.12: sending the run to it again is a loop."""
    steps = [step("a", if_="no"), step("y"), step("z", "y"), step("b", "z", on_success=block(goto="a"))]
    script = Script(plan(*steps, max_loops=0), answers={"no": False})
    assert [refused.target for refused in script.decided(d.Refused)] == ["a"]


def test_G_4_strict_keeps_what_a_refused_step_had_found() -> None:
    """G4: its own issues, and the refusal as its fault."""
    script = Script(
        plan(step("a", fail_if="bad", on_fail=block(goto="a")), max_loops=0, safety="strict"),
        answers={"bad": True},
    )
    node = script.node("a")
    assert (node.outcome, node.reason) == ("failed", "max_loops")
    assert script.rules("a") == ["a_fail_if", "a/routing/loop_budget_exceeded"]
    assert node.fault is not None
    assert (node.fault.kind, node.fault.fault_class, node.fault.rule_id) == (
        "budget.loops",
        "logical",
        "a/routing/loop_budget_exceeded",
    )


def test_a_retry_has_a_timer_of_its_own_and_is_numbered() -> None:
    """C.9: number, wait and timer are recorded."""
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(2, delay_s=3.0, jitter=0.0)))), calls={"a": TRANSIENT}
    )
    assert script.decided(d.Retrying) == [
        d.Retrying("a", "", 1, 3.0, 1, 3.0),
        d.Retrying("a", "", 2, 3.0, 2, 6.0),
    ]


def test_C_9_what_the_far_side_asks_for_is_waited() -> None:
    """C.9: Retry-After goes before the plan's own delay."""
    busy = Fault("http.status", "transient", "a/429", "later", retry_after_s=7.0)
    script = Script(
        plan(step("a", on_fail=block(retry=Retry(1, delay_s=1.0, jitter=0.0)))), calls={"a": busy}
    )
    assert [one.delay_s for one in script.decided(d.Retrying)] == [7.0]


def test_B_8_R1_an_empty_name_falls_back_to_goto() -> None:
    """B.8 R1: as does anything that is no name; without a goto the block ends."""
    for value in ("", 7, ["x"]):
        with_goto = [step("a", on_success=block(goto_js="js", goto="y")), step("y", start="routed")]
        assert Script(plan(*with_goto), answers={"js": Value(value)}).started == ["a", "y"]
        without = [step("a", on_success=block(goto_js="js")), step("y", start="routed")]
        assert Script(plan(*without), answers={"js": Value(value)}).started == ["a"]


def test_B_8_a_rule_must_be_true_itself() -> None:
    """B.8 R3: what is merely truthy matches nothing."""
    steps = [step("a", on_success=block(when=[("maybe", "x")])), step("x", start="routed")]
    assert Script(plan(*steps), answers={"maybe": Value(1)}).started == ["a"]


def test_C_10_R3_rendered_arguments_join_plain_ones() -> None:
    """C.10 R3: one that can't be rendered is null."""
    checked = plan(
        step(
            "a",
            on_success=block(
                run=[Target("x", {"n": 1}, {"good": 0, "bad": 1})], when=[("w1", None), ("w2", None)]
            ),
        ),
        step("x"),
    )
    script = Script(checked, answers={"w1": "text", "w2": error()})
    assert script.node("x").arguments == {"n": 1, "good": "text", "bad": None}


def test_semantics_20_what_undoes_is_retried_and_runs_nothing_else() -> None:
    """Semantics 20: neither the runs of its block nor its goto; it is retried as often as it says."""
    undoer = step("unbook", on_fail=block(run=["mend"], retry=1, goto="book"))
    script = Script(
        plan(step("book", compensate="unbook"), step("last", "book"), undoer, step("mend", start="routed")),
        calls={"last": LOGICAL, "unbook": TRANSIENT},
    )
    assert script.started == ["book", "last", "unbook", "unbook"]
