"""Faults that random plans found in the core, each in its smallest form: event in, decision out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Parks, Script, Unclear, block, plan, step

from gonogo.core import decisions as d
from gonogo.core.commands import ClearTimer, StartCall
from gonogo.core.events import (
    UNSET,
    AnswerGiven,
    CallDone,
    CallFailed,
    CallLost,
    CallParked,
    CancelAsked,
    GivenOutput,
    RerunAsked,
    Resumed,
)
from gonogo.core.faults import Fault
from gonogo.core.plan import Budget, Retry

MAP: dict[str, Any] = {"fanout": "map"}


def lists(*keys: Any, **more: Any) -> Any:
    """A forEach step `list` and its options."""
    return step("list", *keys, for_each=True, **more)


def executions(script: Script, name: str) -> list[tuple[str, int]]:
    """Scope and execution of each start of a step."""
    return [(found.scope, found.execution) for found in script.decided(d.Started, name)]


def test_items_of_a_fan_out_sent_round_again_get_new_intents() -> None:
    """Law 3: the same item in a later wave is another execution, so its key is another one."""
    steps = [lists(on_finish=block(when=[("again", "work")])), step("work", "list", **MAP)]
    answers = iter([True, False])
    script = Script(plan(*steps), calls={"list": [1]}, answers={"again": lambda names: next(answers)})
    assert executions(script, "work") == [("list#1[0]", 1), ("list#1[0]", 2)]


def test_a_mutating_call_that_acted_and_failed_is_not_retried() -> None:
    """Law 3, semantics 16: repeated on effect none alone."""
    pay = step("pay", effects="mutates", on_fail=block(retry=2))
    script = Script(plan(pay), calls={"pay": Never()})
    script.tell(CallFailed(call=1, fault=TRANSIENT, effect="done"))
    assert (script.started, script.verdict) == (["pay"], "NO-GO")


def test_a_mutating_call_that_did_nothing_is_retried() -> None:
    """The other side of it."""
    pay = step("pay", effects="mutates", on_fail=block(retry=1))
    script = Script(plan(pay), calls={"pay": lambda c: TRANSIENT if c.attempt == 1 else 1})
    assert (script.started, script.verdict) == (["pay", "pay"], "GO")


def test_children_that_are_taken_up_again_wait_for_a_slot() -> None:
    """A resume starts no more calls than there are slots."""
    steps = [step("a"), step("b")]
    parks = {name: lambda c: Parks(child="x") if c.call <= 2 else Never() for name in ("a", "b")}
    script = Script(plan(*steps, max_parallelism=1), calls=parks)
    script.tell(Resumed())
    assert len(script.state.calls) == 1


def test_a_call_that_parks_while_the_run_stops_is_cancelled() -> None:
    """semantics 4: a run that stops doesn't wait."""
    script = Script(plan(step("a"), step("b"), fail_fast=True), calls={"a": Never(), "b": LOGICAL})
    script.tell(CallParked(call=1))
    assert (script.outcome("a"), script.verdict) == ("cancelled", "NO-GO")


def test_a_call_lost_after_a_halt_is_not_made_again() -> None:
    """Nothing starts after a halt, a repeat neither."""
    stop = step("b", conditions=[{"name": "stop", "when": "x", "halt": True}])
    script = Script(plan(step("a"), stop), calls={"a": Never(), "b": 1})
    script.tell(Resumed()).tell(CallLost(call=1))
    assert script.started == ["a", "b"]
    assert script.outcome("a") == "cancelled"


def test_a_step_that_goes_back_to_itself_before_any_call_uses_its_loops() -> None:
    """Law 2: an assumption that fails and routes to itself ends too."""
    again = step("a", assume=["x"], assume_mode="fail", on_fail=block(goto="a"))
    script = Script(plan(again, max_loops=2), answers={"x": False})
    assert script.verdict == "NO-GO"
    assert len(script.decided(d.Routed)) == 2


def test_lists_that_run_each_other_per_item_end() -> None:
    """Law 2: items aren't opened within items of the same list."""
    keys = {"for_each": True, "fanout": "map", "fanout_explicit": True}
    one = step("one", **keys, on_finish=block(run=["two"]))
    two = step("two", **keys, on_finish=block(run=["one"]))
    script = Script(
        plan(step("begin", on_success=block(run=["one"])), one, two), calls={"one": [1, 2], "two": [3, 4]}
    )
    assert script.state.finished is not None


def test_the_grace_timer_of_a_cancel_is_cleared_at_the_host_too() -> None:
    """No timer outlives a run."""
    script = Script(plan(step("a"), step("tidy", "a", if_="x", always=True)), calls={"a": Never()})
    script.tell(CancelAsked()).tell(CallFailed(call=1, fault=Fault("x", "cancelled", "x", "stopped")))
    assert [command.timer for command in script.commands if isinstance(command, ClearTimer)] == [1]
    assert not script.state.timers


def test_a_backoff_given_up_for_a_route_clears_its_timer() -> None:
    """The host must not keep a timer that nobody waits for."""
    flaky = step("flaky", on_fail=block(retry=Retry(1, delay_s=60)))
    script = Script(
        plan(flaky, step("b", on_success=block(goto="flaky"))),
        calls={"flaky": lambda c: TRANSIENT if c.execution == 1 else 1, "b": Never()},
    )
    call = next(c for c in script.commands if isinstance(c, StartCall) and c.step == "b")
    script.tell(CallDone(call=call.call, output=1))
    assert not script.state.timers


def test_steps_behind_a_fan_out_are_not_in_its_group() -> None:
    """semantics 8: on_finish can't wait for what waits for it."""
    steps = [
        lists(on_finish=block(run=["note"])),
        step("sum", "list"),
        step("late", "list", "sum", **MAP),
        step("note"),
    ]
    script = Script(plan(*steps), calls={"list": [1]})
    assert set(script.outcomes().values()) == {"passed"}
    assert script.verdict == "GO"


def test_the_on_success_of_a_fan_out_speaks_once() -> None:
    """semantics 8: once, on the whole."""
    steps = [lists(), step("work", "list", **MAP, on_success=block(run=["note"])), step("note")]
    script = Script(plan(*steps), calls={"list": [1, 2]})
    assert script.started.count("note") == 1


def test_a_cancelled_fan_out_goes_on_with_the_items_it_had_left() -> None:
    """Law 3: items that passed before a cancel aren't performed again."""
    steps = [lists(), step("work", "list", **MAP)]
    script = Script(plan(*steps), calls={"list": [1, 2], "work": lambda c: Never() if c.call == 3 else 1})
    script.tell(CancelAsked()).tell(CallFailed(call=3, fault=Fault("x", "cancelled", "x", "stopped")))
    script.tell(Resumed())
    assert [scope for scope, _ in executions(script, "work")].count("list#1[0]") == 1
    assert script.verdict == "GO"


def test_the_second_item_in_the_queue_is_counted_once() -> None:
    """A halt ends a fan-out whose next item waits for a slot."""
    stop = {"name": "stop", "when": "x", "halt": True}
    steps = [lists(), step("work", "list", **MAP, concurrency=2, conditions=[stop])]
    script = Script(plan(*steps, max_parallelism=1), calls={"list": [1, 2]})
    assert (script.outcome("work"), script.verdict) == ("failed", "NO-GO")


def test_a_map_over_a_list_that_was_filtered_out_is_skipped() -> None:
    """spec C.2 R7: missing dependencies are soft under a tag filter."""
    steps = [lists(tags=("slow",)), step("work", "list", **MAP)]
    script = Script(plan(*steps, include_tags=("fast",)))
    assert script.node("work").reason == "forEach_empty"


def test_a_queued_step_waits_for_a_dependency_that_runs_again() -> None:
    """semantics 6: settled means that no requested re-run includes it, also for a step that waits for a slot."""
    steps = [step("base"), step("user", "base"), step("other", on_success=block(run=["base"]))]
    script = Script(plan(*steps, max_parallelism=1), calls={"base": UNSET})
    starts = [found.step for found in script.decided(d.Started)]
    assert starts.index("user") > starts.index("base")
    assert script.verdict == "GO"


def test_answers_to_an_earlier_run_of_a_step_are_dropped() -> None:
    """What was asked before a re-run says nothing about it."""
    first = step(
        "a", on_fail=block(when=[("one", None)]), on_success=block(when=[("two", None), ("three", None)])
    )
    script = Script(plan(first), calls={"a": 1}, answers={"two": False, "three": False})
    assert script.node("a").asked == script.state.last_batch


def test_the_run_of_a_list_leaves_the_items_of_a_fan_out_under_way() -> None:
    """semantics 7: a run target brings no re-run of dependents; they keep the items they began with."""
    steps = [
        lists(),
        step("quick", "list", on_success=block(run=["list"])),
        step("work", "list", **MAP),
    ]
    script = Script(plan(*steps, max_parallelism=2), calls={"list": lambda c: [c.execution, c.execution]})
    assert {scope for scope, _ in executions(script, "work")} == {"list#1[0]", "list#1[1]"}
    assert script.verdict == "GO"


def test_again_after_a_cancel_doesnt_repeat_a_call_in_doubt() -> None:
    """Nothing starts after a stop, a repeat neither."""
    pay = step("pay", effects="mutates")
    script = Script(plan(pay), calls={"pay": Never()})
    script.tell(CallFailed(call=1, fault=TRANSIENT, effect="unknown")).tell(CancelAsked())
    assert script.verdict == "HOLD"
    script.tell(AnswerGiven(step="pay", text="again"))
    assert (script.started, script.verdict) == (["pay"], "NO-GO")


def test_a_step_skipped_while_its_if_was_asked_is_not_asked_again_after_a_crash() -> None:
    """What a stop has ended stays ended."""
    script = Script(plan(step("s0", if_="true"), step("s1"), fail_fast=True), calls={"s1": LOGICAL})
    assert script.outcome("s0") in ("passed", "skipped")
    script.tell(Resumed())
    assert script.verdict == "NO-GO"


def test_a_run_that_is_out_of_calls_forgets_what_it_was_asking() -> None:
    """The stop comes in the turn that asks: nothing is left to be answered, and the run ends."""
    script = Script(
        plan(step("a"), step("b", "a"), step("c", "a", if_="true"), budget=Budget(calls=1)),
    )
    assert (script.started, script.verdict) == (["a"], "NO-GO")


def test_a_call_that_parks_though_its_step_was_asked_for_again_asks_nobody() -> None:
    """Semantics 7: a member that is running finishes and is superseded, whatever it came to."""
    steps = [step("p"), step("s", on_success=block(goto="p"))]
    script = Script(plan(*steps), calls={"p": lambda command: Parks() if command.execution == 1 else "fine"})
    assert script.started == ["p", "s", "p"]
    assert script.verdict == "GO"


def test_a_step_whose_dependency_fails_while_it_waits_for_a_slot_does_not_start() -> None:
    """The gate is what its dependencies came to at last."""
    steps = [step("s0"), step("s2", "s0"), step("s1", "s0", on_init=["s0"])]
    script = Script(
        plan(steps[0], steps[2], steps[1], max_parallelism=1),
        calls={"s0": lambda command: "fine" if command.execution == 1 else LOGICAL},
    )
    assert script.started == ["s0", "s0"]
    assert (script.outcome("s2"), script.outcome("s1")) == ("skipped", "failed")


def test_a_fan_out_does_not_begin_over_a_list_that_was_sent_round_again() -> None:
    """What its `if` was asked about may be running again when the answer comes."""
    steps = [
        step("l", for_each=True),
        step("m", "l", if_="true", fanout="map"),
        step("o", on_init=["l", "l"]),
    ]
    script = Script(plan(*steps, max_parallelism=1), calls={"l": lambda command: [command.execution]})
    assert [each.execution for each in script.decided(d.Expanded, "m")] == [script.node("l").execution]
    assert script.verdict == "GO"


# --- what runs in the items of a list that is made again


def visited(result: Any, **keys: Any) -> Script:
    """`last` has the list made again, and `work` run in its item; then `kick` sends the whole round once more."""
    made_again = Script(
        plan(
            step("kick", on_success=block(goto="list")),
            step("list", for_each=True),
            step("work", "list", fanout_explicit=True, **MAP, **keys),
            step("last", "list|work", on_init=["list", "work"], **MAP),
            max_parallelism=2,
        ),
        calls={
            "kick": Parks(),
            "list": [0],
            "work": lambda call: result if call.scope == "list#2[0]" else "fine",
        },
    )
    assert made_again.started == ["kick", "list", "work@list#1[0]", "list", "work@list#2[0]"]
    return made_again.tell(AnswerGiven(step="kick", text="go", by="me"))


def test_a_wait_in_an_item_of_a_list_that_is_made_again_is_given_up() -> None:
    """Semantics 7: also where a route runs a step in an item of a fan-out that is over; no timer outlives the run."""
    script = visited(Parks(timeout_s=50.0))
    assert [command.timer for command in script.commands if isinstance(command, ClearTimer)] == [1]
    assert (script.state.timers, script.verdict, script.now) == ({}, "GO", 0.0)
    (given_up,) = [one for one in script.decided(d.Ended, "work") if one.outcome == "cancelled"]
    assert (given_up.scope, given_up.reason) == ("list#2[0]", "superseded")


@pytest.mark.parametrize(("word", "verdict"), [("done", "GO"), ("failed", "NO-GO")])
def test_a_doubt_in_an_item_of_a_list_that_is_made_again_stays(word: str, verdict: str) -> None:
    """Law 3, semantics 16: nobody knows whether it was done, whatever became of the item."""
    script = visited(Unclear(), effects="mutates")
    assert script.verdict == "HOLD"
    script.tell(AnswerGiven(step="work", scope="list#2[0]", text=word, by="me"))
    assert script.verdict == verdict


def test_a_call_in_an_item_of_a_list_that_is_made_again_comes_to_its_end() -> None:
    """Semantics 7: what runs finishes, in the place in which it began."""
    script = visited(Never())
    (call,) = script.state.calls
    script.tell(CallDone(call=call, output="late"))
    assert (script.state.slots, script.verdict) == (0, "GO")
    assert (script.node("work", "list#2[0]").output, script.outcome("work")) == ("late", "passed")


def test_an_item_is_no_member_where_its_whole_list_is_one() -> None:
    """Semantics 7: a route from deep inside takes in a list, and what it ran in an item of that list goes with it."""
    script = Script(
        plan(
            lists(on_finish=block(goto="list")),
            step("sum", "list"),
            step("inner", "list", "sum", for_each=True, on_finish=block(run=["list"]), **MAP),
            step("work", "inner", on_fail=block(run=["inner"]), **MAP),
            max_loops=1,
            max_parallelism=1,
        ),
        calls={"list": [0, 0], "inner": [0], "work": lambda call: LOGICAL if call.call > 9 else "fine"},
    )
    whole = [one for one in script.decided(d.Routed) if one.action == "goto" and ("inner", "") in one.members]
    assert whole
    assert not any(name == "inner" and scope for one in whole for name, scope in one.members)


def test_an_output_that_is_given_may_send_its_own_list_round() -> None:
    """Semantics 7: an item that no fan-out waits for any more speaks, and settles where it stands."""
    script = given_in_an_old_item(("list#4[0]", "x"))
    assert (script.state.slots, script.node("list").execution > 4) == (0, True)


def test_an_output_for_an_item_that_another_given_output_made_again_is_passed_over() -> None:
    """A person's two outputs: what follows the first makes the list of the second again."""
    script = given_in_an_old_item(("list#4[0]", "x"), ("list#4[1]", "y"))
    assert [one.scope for one in script.decided(d.Given)] == ["list#4[0]"]
    assert script.state.slots == 0


def given_in_an_old_item(*outputs: tuple[str, str]) -> Script:
    """Outputs of `work` in items of a list that `last` had made again beforehand; each pass makes the list again."""
    script = Script(
        plan(
            lists(),
            step("work", "list", fanout_explicit=True, on_success=block(goto="list"), **MAP),
            step("last", "list|work", on_init=["list", "work"], **MAP),
            max_loops=2,
        ),
        calls={"list": [0, 1]},
    )
    assert script.node("list").execution == 4
    given = tuple(GivenOutput("work", output, scope) for scope, output in outputs)
    return script.tell(RerunAsked(by="me", steps=(("last", ""),), outputs=given))
