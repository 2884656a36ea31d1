"""What random plans with on_init found, most of it in other rooms: each in its smallest form."""

from __future__ import annotations

from typing import Any

from tests.core.script import LOGICAL, Never, Parks, Script, Unclear, block, plan, step
from tests.core.test_found_by_simulation import MAP, executions, lists

from gonogo.core import decisions as d
from gonogo.core.events import AnswerGiven, CallDone, CancelAsked, Resumed
from gonogo.expressions.results import Value


def test_a_goto_to_what_never_runs_is_a_loop_all_the_same() -> None:
    """Law 2: a list that sends itself round by way of a step that can't run comes to an end."""
    steps = [
        lists(if_="yes"),
        step(
            "work",
            "list?",
            for_each=True,
            on_fail=block(escalate="list"),
            on_finish=block(goto="list"),
            **MAP,
        ),
    ]
    script = Script(plan(*steps, max_runs=2, max_loops=3), calls={"list": [1], "work": LOGICAL})
    assert script.verdict == "NO-GO"
    assert script.decided(d.Refused)


def test_an_item_of_an_older_list_that_is_run_again_has_an_intent_of_its_own() -> None:
    """Law 3: a step still at work in the older item may send the run there when the list has been made anew."""
    rounds = iter([True, False])
    steps = [
        step("told", on_success=block(run=["work"])),
        lists(on_finish=block(when=[("again", "list")])),
        step("work", "list", on_fail=block(escalate="told"), **MAP),
    ]
    script = Script(
        plan(*steps, max_parallelism=2),
        calls={"told": lambda c: Never() if c.scope else 1, "list": [1], "work": LOGICAL},
        answers={"again": lambda names: next(rounds)},
    )
    older = next(found.call for found in script.decided(d.Started, "told") if found.scope == "list#1[0]")
    script.tell(CallDone(call=older))
    found = executions(script, "work")
    assert found.count(("list#1[0]", 1)) == 1
    assert ("list#1[0]", 2) in found


def test_a_fan_out_one_of_whose_items_came_first_is_taken_up_after_a_cancel() -> None:
    """A route may run an item before the fan-out begins; a resume reopens both, in whatever order."""
    steps = [
        step("kick", on_success=block(run=["last"])),
        lists(),
        step("first", "list", on_fail=block(escalate="told"), **MAP),
        step("told", "list", **MAP),
        step("last", "told", **MAP),
    ]
    script = Script(
        plan(*steps, max_parallelism=1),
        calls={
            "kick": Parks(),
            "list": [1, 2],
            "first": LOGICAL,
            "told": lambda c: Never() if c.call == 5 else 1,
        },
    )
    script.tell(AnswerGiven(step="kick", text="go", by="me"))
    assert script.node("told").fan is not None
    script.tell(CancelAsked(by="me")).tell(Resumed())
    assert script.outcome("told") == "passed"
    assert script.outcome("last") == "passed"


def test_a_step_whose_assumptions_hold_waits_again_for_what_was_sent_round_meanwhile() -> None:
    """semantics 6: a step looks at the latest run of what it depends on, up to its call."""
    steps = [step("a"), step("again", "a", on_success=block(run=["a"])), step("b", "a", assume=["fine"])]
    script = Script(
        plan(*steps, max_parallelism=2), calls={"a": lambda c: Never() if c.execution == 2 else 1}
    )
    assert script.started == ["a", "again", "a"]
    script.tell(CallDone(call=3))
    assert script.started == ["a", "again", "a", "b"]
    assert len([judged for judged in script.decided(d.Judged, "b") if judged.construct == "assume"]) == 2


def test_a_fan_out_is_kept_back_item_by_item_whoever_was_first() -> None:
    """semantics 11: its items wait for the failure, the fan-out itself doesn't."""
    guard = step("guard", criticality="external")
    rest = [
        step("between", "guard", "list?", **MAP),
        step("act", "between", effects="mutates", **MAP),
    ]
    orders = [(guard, lists(), *rest), (lists(), guard, *rest)]
    scripts = [
        Script(plan(*steps, max_parallelism=1), calls={"list": [1], "guard": LOGICAL}) for steps in orders
    ]
    assert [(script.outcome("act"), script.node("act").reason) for script in scripts] == [
        ("skipped", "all_items")
    ] * 2
    assert [script.node("act", "list#1[0]").reason for script in scripts] == ["suppressed"] * 2


def test_a_remedy_within_an_item_is_not_kept_back_by_another_items_failure() -> None:
    """Law 5: what a route runs inside an item looks at what it waits for there."""
    steps = [
        lists(),
        step("work", "list", on_fail=block(run=["mend"]), **MAP),
        step("check", "list?", criticality="internal", **MAP),
        step("mend", "check", effects="mutates"),
    ]
    script = Script(
        plan(*steps, max_parallelism=1),
        calls={
            "list": [1, 2],
            "work": LOGICAL,
            "check": lambda c: LOGICAL if c.scope.endswith("[0]") else 1,
        },
    )
    assert script.node("mend", "list#1[0]").reason == "suppressed"
    assert script.outcome("mend", "list#1[1]") == "passed"


def test_a_remedy_within_an_item_is_kept_back_by_what_failed_outside_of_it() -> None:
    """semantics 19: whether the failure is next to it or further up its way."""
    steps = [
        step("guard", criticality="internal"),
        lists("guard?"),
        step("work", "list?", on_fail=block(run=["mend"]), **MAP),
        step("between", "guard?"),
        step("mend", "between?", effects="mutates"),
    ]
    script = Script(plan(*steps), calls={"list": [1], "work": LOGICAL, "guard": LOGICAL})
    assert script.node("mend", "list#1[0]").reason == "suppressed"


def test_a_one_shot_step_that_a_cancel_cut_short_has_its_run_after_a_resume() -> None:
    """C.15 R3: it has not had the one run it is to have."""
    script = Script(plan(step("a", tags=("one_shot",))), calls={"a": lambda c: Never() if c.call == 1 else 1})
    script.tell(CancelAsked(by="me")).tell(Resumed())
    assert executions(script, "a") == [("", 1), ("", 2)]
    assert script.verdict == "GO"


def test_steps_that_run_each_other_first_in_different_items_are_stopped() -> None:
    """Law 2: scripts may name who waits for whom, in one scope this way and in another that way."""

    def names_b(names: Any) -> Value:
        return Value([] if "item" in names["args"] else ["b"])

    def names_a(names: Any) -> Value:
        return Value(["a"] if "item" in names["args"] else [])

    steps = [
        lists(),
        step("a", on_init_js="first b"),
        step("work", "list", on_success=block(run=["b"]), on_fail=block(run=["b"]), **MAP),
        step("b", on_init_js="first a", start="routed"),
    ]
    script = Script(
        plan(*steps),
        calls={"list": [1], "a": Parks(), "b": Parks(), "work": LOGICAL},
        answers={"first a": names_a, "first b": names_b},
    )
    waiting = {(node.step, node.scope) for node in script.state.remediating.values()}
    assert waiting >= {("a", ""), ("b", "list#1[0]")}
    script.tell(CancelAsked(by="me"))
    assert script.verdict == "NO-GO"


def test_items_that_a_list_drops_as_they_end_have_no_consequences() -> None:
    """A list's on_finish may send it round again before the end of its last items has been told to everybody."""
    rounds: list[list[int]] = [[1], [], [1], []]
    steps = [
        lists(on_finish=block(goto="list")),
        step("inner", "list", for_each=True, on_finish=block(when=[("more", "last")]), **MAP),
        step("work", "inner", **MAP),
        step("last", "inner", **MAP),
    ]
    script = Script(
        plan(*steps, max_loops=3, max_parallelism=1),
        calls={
            "list": lambda c: rounds[c.execution - 1],
            "inner": lambda c: LOGICAL if c.call > 2 else [1, 2],
        },
        answers={"more": False},
    )
    assert script.verdict == "NO-GO"


def test_an_undoing_whose_cancel_was_taken_back_is_over_and_the_others_go_on() -> None:
    """semantics 20: what was done is undone, or was tried to be, before the run ends."""
    steps = [
        step("a", effects="mutates", compensate="undo a"),
        step("b", "a", effects="mutates", compensate="undo b"),
        step("c", "b"),
        step("undo a"),
        step("undo b"),
    ]
    script = Script(
        plan(*steps), calls={"c": LOGICAL, "undo b": lambda c: Never() if c.execution == 1 else 1}
    )
    script.tell(CancelAsked(by="me"), CancelAsked(by="me"), Resumed())
    assert [(undone.step, undone.outcome) for undone in script.decided(d.Undone)] == [
        ("b", "cancelled"),
        ("a", "passed"),
    ]


def test_an_item_whose_dependency_is_in_doubt_waits_for_the_answer() -> None:
    """Law 5: whoever answers about another item first, and before anybody has resumed the run."""
    steps = [lists(), step("pay", "list", effects="mutates", **MAP), step("tell", "pay", **MAP)]
    script = Script(plan(*steps), calls={"list": [1, 2], "pay": Unclear()})
    script.state = script.folded()
    script.tell(AnswerGiven(step="pay", scope="list#1[1]", text="failed"))
    assert script.verdict == "HOLD"
    script.tell(AnswerGiven(step="pay", scope="list#1[0]", text="done"))
    assert script.outcome("tell", "list#1[0]") == "passed"


def test_a_step_asked_for_while_it_waits_for_a_slot_is_judged_again_first() -> None:
    """semantics 9: `if` is judged when its dependencies are settled, in each round."""
    steps = [step("x"), step("a"), step("b", on_success=block(goto="c")), step("c", "a", if_="yes")]
    script = Script(plan(*steps, max_parallelism=2), calls={"x": Never(), "b": Never()})
    script.tell(CallDone(call=3))
    assert len([judged for judged in script.decided(d.Judged, "c") if judged.construct == "if"]) == 2
    assert script.started == ["x", "a", "b", "c"]


def test_a_remedy_within_an_item_is_kept_back_by_an_item_of_another_list() -> None:
    """semantics 19: from there it is behind a reduce."""
    steps = [
        step("others", for_each=True),
        step("guard", "others", criticality="internal", **MAP),
        lists("guard?"),
        step("work", "list", on_fail=block(run=["mend"]), **MAP),
        step("mend", "guard?", effects="mutates"),
    ]
    calls = {
        "list": [1],
        "others": [1, 2],
        "work": LOGICAL,
        "guard": lambda c: LOGICAL if c.scope.endswith("[0]") else 1,
    }
    script = Script(plan(*steps), calls=calls)
    assert script.node("mend", "list#1[0]").reason == "suppressed"


def test_a_remedy_within_an_item_is_kept_back_by_a_fan_out_that_never_began() -> None:
    """semantics 19: it has failed for all its items."""
    steps = [
        lists(),
        step("guard", "list", criticality="internal", on_init=["set up"], **MAP),
        step("set up"),
        step("work", "list", "guard?", on_fail=block(run=["mend"]), **MAP),
        step("mend", "guard?", effects="mutates"),
    ]
    script = Script(plan(*steps), calls={"list": [1], "set up": LOGICAL, "work": LOGICAL})
    assert script.node("mend", "list#1[0]").reason == "suppressed"


def test_a_fan_out_looks_at_every_failure_it_has_waited_for() -> None:
    """C.8: one that it hasn't waited for yet doesn't hide the next."""
    steps = [
        step("far", criticality="internal"),
        step("near", criticality="internal"),
        lists("near?"),
        step("between", "far?", "list", **MAP),
        step("act", "list", "between?", effects="mutates", **MAP),
    ]
    script = Script(plan(*steps, max_parallelism=1), calls={"list": [1], "far": LOGICAL, "near": LOGICAL})
    assert (script.node("act").reason, script.node("act").because) == ("suppressed", "near")
