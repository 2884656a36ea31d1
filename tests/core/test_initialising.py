"""What a step runs before itself (spec C.10 R8, H35)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Parks, Script, block, error, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.plan import Retry
from gonogo.core.state import Init
from gonogo.expressions.results import Value
from gonogo.testing.canonical import difference


def played(script: Script) -> Script:
    """The same script, after a look at whether its records tell all of it."""
    assert difference(script.folded(), script.state) is None
    return script


def test_H_35_items_run_in_order_each_to_completion() -> None:
    """H35, C.10 R8: and before the step; who depends on the step waits for it alone."""
    script = played(Script(plan(step("a", on_init=["x", "y"]), step("x"), step("y"), step("next", "a"))))
    assert script.started == ["x", "y", "a", "next"]
    assert script.verdict == "GO"


def test_C_10_R8_it_comes_before_assume() -> None:
    """C.10 R8: stage 6 sees what on_init gave."""
    script = Script(
        plan(step("a", on_init=["x"], assume=["ready"]), step("x")),
        calls={"x": "yes"},
        answers={"ready": lambda names: names["outputs"]["x"] == "yes"},
    )
    assert script.outcome("a") == "passed"


def test_C_10_R8_nothing_runs_for_a_step_that_does_not() -> None:
    """C.10 R8: `if` and the gate come first."""
    skipped = Script(plan(step("a", on_init=["x"], if_="no"), step("x")), answers={"no": False})
    gated = Script(plan(step("f"), step("a", "f", on_init=["x"]), step("x")), calls={"f": LOGICAL})
    assert "x" not in skipped.started
    assert "x" not in gated.started


def test_C_10_R8_results_may_have_another_name() -> None:
    """C.10 R8: `as`; one step may be run twice, each time under its own name."""
    seen: dict[str, Any] = {}

    def look(names: Any) -> bool:
        seen.update(names["outputs"])
        return True

    script = played(
        Script(
            plan(
                step(
                    "a",
                    on_init=[
                        {"step": "x", "arguments": {"n": 1}, "alias": "one"},
                        {"step": "x", "arguments": {"n": 2}, "alias": "two"},
                    ],
                    guarantee=["look"],
                ),
                step("x"),
                step("b", "a", guarantee=["other"]),
            ),
            calls={"x": lambda command: command.execution},
            answers={"look": look, "other": lambda names: "one" not in names["outputs"]},
        )
    )
    assert (seen["one"], seen["two"], seen["x"]) == (1, 2, 2)
    assert script.verdict == "GO"


def test_C_10_R8_a_result_without_another_name_is_kept_nowhere_else() -> None:
    """C.10 R8: it is the item's own output."""
    script = Script(
        plan(step("a", on_init=["x", {"step": "y", "alias": "why"}]), step("x"), step("y")),
        calls={"x": 1, "y": 2},
    )
    assert script.node("a").init == Init(results={"why": 2}, done=True, numbered=False)


def test_C_10_R8_arguments_are_rendered_and_seen_by_the_item() -> None:
    """C.10 R8: `with`."""
    item = {"step": "x", "arguments": {"plain": 1}, "templates": {"made": "text"}}
    script = Script(plan(step("a", on_init=[item]), step("x")), answers={"text": "rendered"})
    assert script.node("x").arguments == {"plain": 1, "made": "rendered"}


def test_C_10_R8_a_script_may_give_items() -> None:
    """C.10 R8: run_js gives names and {step, with, as}, after those that are written."""
    script = Script(
        plan(
            step("a", on_init=["x"], on_init_js="more", guarantee=["named"]),
            *(step(name, start="routed") for name in "xyz"),
        ),
        calls={"z": 3},
        answers={
            "more": Value(["y", {"step": "z", "with": {"k": 1}, "as": "last"}]),
            "named": lambda names: names["outputs"]["last"] == 3,
        },
    )
    assert script.started == ["x", "y", "z", "a"]
    assert script.node("z").arguments == {"k": 1}
    assert script.outcome("a") == "passed"


def test_C_10_R8_an_item_with_rendered_arguments_keeps_its_other_name() -> None:
    """C.10 R8: `with` and `as` together; an `as` that is no text, which a script may give, is none."""
    item = {"step": "x", "templates": {"made": "text"}, "alias": "other"}
    script = Script(
        plan(step("a", on_init=[item], on_init_js="more"), step("x")),
        answers={"text": "rendered", "more": Value([{"step": "x", "as": 5}])},
    )
    (targets,) = [one.targets for one in script.decided(d.Initialising, "a") if one.targets]
    assert [target.alias for target in targets] == ["other", None]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (["nobody"], "a/on_init/unknown_target"),
        (["a"], "a/on_init/circle"),
        (["x"] * 51, "a/on_init/too_many"),
    ],
)
def test_C_10_R8_a_script_that_gives_what_can_not_run_fails_the_step(given: list[str], rule: str) -> None:
    """C.10 R8, law 2: names must be steps, no step waits for itself, at most 50 items."""
    script = played(Script(plan(step("a", on_init_js="js"), step("x")), answers={"js": Value(given)}))
    assert (script.outcome("a"), script.rules("a")) == ("failed", [rule])
    assert "a" not in script.started


def test_C_10_R8_fifty_items_are_allowed() -> None:
    """C.10 R8: and they are no loops."""
    script = Script(
        plan(step("a", on_init_js="js"), step("x", start="routed")), answers={"js": Value(["x"] * 50)}
    )
    assert script.started == ["x"] * 50 + ["a"]
    assert script.verdict == "GO"


def test_law_4_what_can_not_be_evaluated_fails_the_step() -> None:
    """Law 4: nobody knows what should have run before it."""
    script = Script(plan(step("a", on_init_js="js")), answers={"js": error()})
    assert (script.outcome("a"), script.rules("a")) == ("failed", ["a/on_init/error"])
    assert script.decided(d.Judged, "a")[0].error == "boom"


def test_law_2_steps_that_run_each_other_first_end() -> None:
    """Law 2: two steps that each run the other before themselves."""
    script = played(Script(plan(step("a", on_init=["b"]), step("b", on_init=["a"]))))
    assert script.verdict == "NO-GO"
    assert "round in a circle" in (script.node("b").fault or script.node("a").fault).message  # type: ignore[union-attr]


# --- failures


@pytest.mark.parametrize("fault", [TRANSIENT, LOGICAL])
def test_C_10_R8_a_failing_item_fails_the_step(fault: Any) -> None:
    """C.10 R8: with the class of the item's fault; the step isn't called, nor is the next item."""
    script = played(
        Script(plan(step("a", on_init=["x", "y"]), step("x"), step("y"), step("n", "a")), calls={"x": fault})
    )
    found = script.node("a").fault
    assert found is not None
    assert (found.kind, found.fault_class, found.rule_id) == (
        "on_init",
        fault.fault_class,
        "a/on_init/failed",
    )
    assert script.started == ["x"]
    assert script.outcome("n") == "skipped"


def test_C_10_R8_a_tolerated_item_and_one_with_nothing_to_do_are_fine() -> None:
    """C.10 R8: an item that tolerates failure says so; a false `if` is no failure."""
    script = Script(
        plan(step("a", on_init=["x", "y"]), step("x", continue_on_failure=True), step("y", if_="no")),
        calls={"x": LOGICAL},
        answers={"no": False},
    )
    assert script.outcome("a") == "passed"


def test_C_10_R8_an_item_that_may_not_run_fails_the_step() -> None:
    """C.10 R8: what it needs has failed."""
    script = Script(
        plan(step("f"), step("a", on_init=["x"]), step("x", "f")),
        calls={"f": LOGICAL},
    )
    assert script.rules("a") == ["a/on_init/failed"]


def test_C_10_R8_an_item_that_waits_for_the_step_can_not_run() -> None:
    """Law 2: a deadlock is a failure with its reason."""
    script = played(Script(plan(step("a", on_init=["x"]), step("x", "a"))))
    assert script.rules("a") == ["a/on_init/stuck"]
    assert script.verdict == "NO-GO"


def test_C_10_R8_it_comes_once_an_execution() -> None:
    """C.10 R8: a retry of the call doesn't run it again, another execution does."""
    script = played(
        Script(
            plan(step("a", on_init=["x"], on_fail=block(retry=Retry(2))), step("x")),
            calls={"a": lambda command: TRANSIENT if command.attempt < 3 else "fine"},
        )
    )
    again = Script(
        plan(step("a", on_init=["x"]), step("b", "a", on_fail=block(goto="a")), step("x")),
        calls={"b": lambda command: LOGICAL if command.execution == 1 else "fine"},
    )
    assert script.started == ["x", "a", "a", "a"]
    assert again.started == ["x", "a", "b", "x", "a", "b"]
    assert [each.execution for each in again.decided(d.Started, "a")] == [1, 2]


def test_C_10_R8_a_retry_after_a_failed_item_begins_anew() -> None:
    """C.10 R8: what should come before the call has not come; attempts count on, the intent stays."""
    script = played(
        Script(
            plan(step("a", on_init=["x", "y"], on_fail=block(retry=Retry(2))), step("x"), step("y")),
            calls={"y": lambda command: TRANSIENT if command.execution == 1 else "fine"},
        )
    )
    assert script.started == ["x", "y", "x", "y", "a"]
    assert [(each.execution, each.attempt) for each in script.decided(d.Started, "a")] == [(1, 2)]


def test_C_12_R6_max_runs_counts_executions_as_before() -> None:
    """C.12 R6: nothing runs before a step that may not run again."""
    script = Script(
        plan(step("a", on_init=["x"], max_runs=1), step("b", "a", on_fail=block(goto="a")), step("x")),
        calls={"b": LOGICAL},
    )
    assert script.started == ["x", "a", "b"]
    assert script.node("a").reason == "max_runs"


# --- items


def listed(*more: Any, **keys: Any) -> Any:
    """A list of two, and a step over it."""
    return plan(step("l", for_each=True), step("a", "l", fanout="map", **keys), *more)


def test_C_10_R8_a_fan_out_runs_it_once_for_all_items() -> None:
    """C.10 R8: once per step run."""
    script = played(Script(listed(step("x"), on_init=[{"step": "x", "alias": "s"}], guarantee=["g"]),
                    calls={"l": [1, 2], "x": "set up"},
                    answers={"g": lambda names: names["outputs"]["s"] == "set up"}))  # fmt: skip
    assert script.started == ["l", "x", "a@l#1[0]", "a@l#1[1]"]
    assert script.verdict == "GO"
    assert script.node("a").execution == 1


def test_C_10_R8_a_mapped_item_runs_once_per_item() -> None:
    """C.10 R8: only targets with `fanout: map`; a failure there is that item's alone (law 5)."""
    script = played(
        Script(
            listed(step("x"), step("y", fanout="map", fanout_explicit=True), on_init=["x", "y"]),
            calls={"l": [1, 2], "y": lambda command: LOGICAL if command.scope == "l#1[0]" else "fine"},
        )
    )
    assert script.started == ["l", "x", "y@l#1[0]", "y@l#1[1]", "a@l#1[1]"]
    assert (script.outcome("a", "l#1[0]"), script.outcome("a", "l#1[1]")) == ("failed", "passed")
    assert script.node("y", "l#1[1]").arguments == {"item": 2, "index": 1}


def test_C_10_R8_an_empty_list_runs_nothing() -> None:
    """C.10 R8: stage 4 comes first."""
    script = Script(listed(step("x"), on_init=["x"]), calls={"l": []})
    assert script.started == ["l"]


def test_C_10_R8_a_failed_setup_of_a_fan_out_may_be_tried_again() -> None:
    """C.10 R8: the whole fan-out fails, and its block speaks once."""
    script = played(
        Script(
            listed(step("x"), on_init=["x"], on_fail=block(retry=Retry(1))),
            calls={"l": [1], "x": lambda command: TRANSIENT if command.execution == 1 else "fine"},
        )
    )
    assert script.started == ["l", "x", "x", "a@l#1[0]"]
    assert script.verdict == "GO"


# --- waits and stops


def test_C_10_R8_it_holds_no_slot() -> None:
    """C.10 R8: with one slot, what it runs has it."""
    script = Script(plan(step("a", on_init=["x"]), step("x"), max_parallelism=1), calls={"x": "fine"})
    assert script.verdict == "GO"
    assert script.state.slots == 0


def test_C_10_R8_an_item_may_wait_for_a_person() -> None:
    """semantics 3: the run is HOLD; the answer lets the step go on."""
    script = Script(plan(step("a", on_init=["x"]), step("x")), calls={"x": Parks()})
    assert (script.verdict, script.node("a").status) == ("HOLD", life.INITIALISING)
    script.tell(e.AnswerGiven(step="x", text="go"))
    assert played(script).verdict == "GO"
    assert script.started == ["x", "a"]


def test_semantics_4_a_stop_ends_the_wait() -> None:
    """semantics 4, law 7: the step is skipped, and no call of it follows."""
    script = Script(plan(step("a", on_init=["x"]), step("x")), calls={"x": Parks()})
    script.tell(e.CancelAsked(by="me"))
    assert (script.outcome("a"), script.node("a").reason) == ("skipped", "cancelled")
    script.tell(e.Resumed())
    assert played(script).started == ["x", "x"]


def test_C_10_R8_a_resume_goes_on_with_it() -> None:
    """C.10 R8: the item that was under way runs again; the ones before it don't."""
    script = Script(plan(step("a", on_init=["x", "y"]), step("x"), step("y")), calls={"y": Parks()})
    script.tell(e.Resumed()).tell(e.AnswerGiven(step="y", text="go"))
    assert played(script).started == ["x", "y", "a"]


def test_semantics_7_a_step_asked_for_meanwhile_begins_anew() -> None:
    """semantics 7: a route to a step that waits for its on_init."""
    script = played(
        Script(
            plan(
                step("p"),
                step("a", on_init=["x"]),
                step("x", "p"),
                step("b", on_success=block(run=["a"])),
            ),
        )
    )
    assert script.verdict == "GO"
    assert script.node("a").complete
