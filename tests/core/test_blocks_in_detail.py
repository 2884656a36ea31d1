"""What blocks do at the edges: when the run stops meanwhile, when nothing is left to say, when another was first."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Parks, Script, Unclear, block, plan, step

from gonogo.core import commands as c
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.plan import Hold, Reminder, Retry, Target
from gonogo.expressions.results import Value


def routes(script: Script, *actions: str) -> list[tuple[str, str]]:
    """Who sent the run where, of these actions, or of all."""
    found = script.decided(d.Routed)
    return [(one.step, one.target) for one in found if not actions or one.action in actions]


def executions(script: Script, name: str) -> list[tuple[str, int]]:
    """Scope and execution of each start of a step."""
    return [(found.scope, found.execution) for found in script.decided(d.Started, name)]


# --- a run that stops meanwhile


@pytest.mark.parametrize(
    "says",
    [
        block(when=[("answer", "b")]),
        block(goto_js="name"),
        block(run_js="names"),
        block(run=[Target("b", {}, {"text": 0})]),
    ],
)
def test_semantics_4_a_block_answered_after_a_stop_sends_the_run_nowhere(says: dict[str, Any]) -> None:
    """semantics 4: its question was on its way when the cancel came."""
    for cancelled in (False, True):
        script = Script(
            plan(step("first", if_="never"), step("a", on_success=says), step("b", start="routed")),
            calls={"a": Never()},
            answers={"never": False, "name": "b", "names": Value(["b"])},
        )
        script.tell(e.CallDone(call=1), *([e.CancelAsked(by="me")] if cancelled else ()))
        assert routes(script) == ([] if cancelled else [("a", "b")])


def test_semantics_4_what_fails_while_the_run_stops_is_not_mended() -> None:
    """semantics 4: a call that had failed before it could be stopped."""
    script = Script(plan(step("a", on_fail=block(run=["mend"])), step("mend")), calls={"a": Never()})
    script.tell(e.CancelAsked(by="me"), e.CallFailed(call=1, fault=LOGICAL))
    assert routes(script) == []


def test_semantics_4_an_on_finish_whose_runs_were_cancelled_goes_nowhere() -> None:
    """semantics 4: nor is what `if` skipped judged again."""
    script = Script(
        plan(
            step("list", for_each=True, on_finish=block(run=["mend"], goto="list")),
            step("report", if_="ready"),
            step("mend"),
        ),
        calls={"list": [1], "mend": Never()},
        answers={"ready": False},
    )
    script.tell(e.CancelAsked(by="me"))
    assert routes(script) == [("list", "mend")]


def test_semantics_8_a_fan_out_that_passes_while_the_run_stops_tells_nobody() -> None:
    """semantics 4 and 8: under fail_fast what runs may end, and that is all."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", on_success=block(run=["tell"])),
            step("bad", "list"),
            step("tell"),
            fail_fast=True,
            max_parallelism=2,
        ),
        calls={"list": [1], "bad": LOGICAL, "work": Never()},
    )
    script.tell(e.CallDone(call=2))
    assert (script.outcome("work"), routes(script)) == ("passed", [])


# --- items and the whole


def test_semantics_7_an_item_that_fails_after_its_list_was_asked_for_is_not_mended() -> None:
    """semantics 7: nothing routes from a fan-out that was sent round again."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", on_fail=block(run=["mend"])),
            step("kick", "list", on_success=block(when=[("again", "list")])),
            step("mend"),
            max_parallelism=2,
        ),
        calls={"list": [1], "work": lambda command: Never() if command.call == 2 else "fine"},
        answers={"again": lambda names: not names["outputs_history"]["kick"][1:]},
    )
    script.tell(e.CallFailed(call=2, fault=LOGICAL))
    assert ("work", "mend") not in routes(script)


def test_semantics_6_what_waits_for_a_fan_out_waits_for_its_on_success() -> None:
    """semantics 6: settled is what has no routing left to decide."""
    again = iter([True, False])
    script = Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", on_success=block(when=[("again", "list")])),
            step("after", "work"),
        ),
        calls={"list": [1]},
        answers={"again": lambda names: next(again)},
    )
    assert executions(script, "after") == [("", 1)]
    assert script.started[-1] == "after"


def test_semantics_7_a_fan_out_inside_one_that_was_sent_round_again_is_superseded() -> None:
    """semantics 7: its reason says so."""
    again = iter([True, False])
    script = Script(
        plan(
            step("outer", for_each=True),
            step("inner", "outer", fanout="map", for_each=True),
            step("work", "inner", fanout="map"),
            step("kick", "inner", on_success=block(when=[("again", "outer")])),
            max_parallelism=2,
        ),
        calls={
            "outer": [0],
            "inner": [0, 1],
            "work": lambda command: Never() if command.scope.startswith("outer#1") else "fine",
        },
        answers={"again": lambda names: next(again)},
    )
    script.tell(e.CallDone(call=3))
    ended = [one for one in script.decided(d.Ended, "work") if one.scope == "outer#1[0]"]
    assert [(one.outcome, one.reason) for one in ended] == [("cancelled", "superseded")]


def test_semantics_4_a_fan_out_ends_after_its_items_when_the_run_stops() -> None:
    """semantics 4: under fail_fast what runs may end, and counts in what the fan-out comes to."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", concurrency=2),
            step("bad", "list"),
            fail_fast=True,
            max_parallelism=3,
        ),
        calls={"list": [1, 2, 3], "bad": LOGICAL, "work": Never()},
    )
    script.tell(e.CallDone(call=2))
    assert not script.node("work").complete
    script.tell(e.CallFailed(call=3, fault=LOGICAL))
    assert (script.outcome("work"), script.node("work").reason) == ("failed", "partial")


@pytest.mark.parametrize(("count", "reason"), [(1, "fail_fast"), (2, None)])
def test_C_13_R5_a_fan_out_some_of_whose_items_never_opened_is_cancelled(
    count: int, reason: str | None
) -> None:
    """C.13 R5: it has not passed, though nothing in it failed."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", concurrency=count),
            step("bad", "list"),
            fail_fast=True,
            max_parallelism=3,
        ),
        calls={"list": [1, 2], "bad": LOGICAL, "work": Never()},
    )
    script.tell(*(e.CallDone(call=call) for call in range(2, 2 + count)))
    outcome = "cancelled" if reason else "passed"
    assert (script.outcome("work"), script.node("work").reason) == (outcome, reason)


def test_C_13_R5_a_fan_out_all_of_whose_items_were_cancelled_is_cancelled() -> None:
    """C.13 R5: whether or not any of them was left unopened."""
    script = Script(
        plan(step("list", for_each=True), step("work", "list", fanout="map")),
        calls={"list": [1], "work": Never()},
    )
    script.tell(e.CancelAsked(by="me"))
    assert (script.outcome("work"), script.node("work").reason) == ("cancelled", "cancelled")


def test_semantics_3_a_fan_out_waits_for_the_word_about_an_item_in_doubt() -> None:
    """semantics 3: a cancel doesn't tell whether the item's call was made."""
    script = Script(
        plan(step("list", for_each=True), step("pay", "list", fanout="map", effects="mutates")),
        calls={"list": [1], "pay": Unclear()},
    )
    script.tell(e.CancelAsked(by="me"))
    assert (script.verdict, script.node("pay").complete) == ("HOLD", False)
    script.tell(e.AnswerGiven(step="pay", scope="list#1[0]", text="done"))
    assert (script.verdict, script.outcome("pay")) == ("NO-GO", "passed")


def test_semantics_7_items_that_wait_for_a_slot_are_not_run_for_an_older_list() -> None:
    """semantics 7: a fan-out is looked at anew when none of its items has a slot in view any more."""
    again = iter([True, False])
    script = Script(
        plan(
            step("list", for_each=True),
            step("kick", "list", on_success=block(when=[("again", "list")])),
            step("work", "list", fanout="map", concurrency=2),
            max_parallelism=1,
        ),
        calls={"list": [1, 2]},
        answers={"again": lambda names: next(again)},
    )
    assert executions(script, "work") == [("list#2[0]", 1), ("list#2[1]", 1)]


def test_semantics_6_after_a_resume_an_item_is_judged_by_what_came_of_its_dependency() -> None:
    """semantics 6: that it was on its way before the cancel doesn't let it pass the gate."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("first", "list", fanout="map"),
            step("then", "first", fanout="map"),
        ),
        calls={"list": [1], "first": lambda command: Never() if command.call == 2 else LOGICAL},
    )
    script.tell(e.CancelAsked(by="me")).tell(e.Resumed())
    assert "then@list#1[0]" not in script.started
    assert script.node("then", "list#1[0]").reason == "dependency_failed"


# --- runs


def test_C_10_R1_a_block_waits_for_all_it_runs() -> None:
    """C.10 R1: the retry comes after the last of them."""
    script = Script(
        plan(step("a", on_fail=block(run=["x", "y"], retry=1)), step("x"), step("y"), max_parallelism=2),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else "fine", "y": Never()},
    )
    assert script.started == ["a", "x", "y"]
    script.tell(e.CallDone(call=3))
    assert script.started == ["a", "x", "y", "a"]


def test_C_10_R1_a_block_that_has_waited_has_its_slot_back() -> None:
    """C.10 R1: what comes after its runs is decided as before them."""
    script = Script(
        plan(step("a", on_success=block(run=["x"], when=[("more", "b")])), step("x"), step("b")),
        answers={"more": False},
    )
    assert len(script.decided(d.Routing, "a")) == 2


def test_C_10_R1_only_a_block_with_more_to_say_waits_for_its_runs() -> None:
    """semantics 6: dependents of the step go on, though an `if` was false somewhere."""
    script = Script(
        plan(step("no", if_="never"), step("a", on_success=block(run=["x"])), step("x")),
        answers={"never": False},
    )
    assert script.decided(d.Remediating) == []


def test_C_14_R3_an_on_finish_waits_for_its_runs_where_something_was_skipped() -> None:
    """C.14 R3: and nowhere else, if it has no more to say."""
    steps = [
        step("list", for_each=True, on_finish=block(run=["mend"])),
        step("work", "list", fanout="map"),
        step("report", if_="ready"),
        step("mend"),
    ]
    waits = [
        len(Script(plan(*steps), calls={"list": [1]}, answers={"ready": ready}).decided(d.Remediating))
        for ready in (True, False)
    ]
    assert waits == [0, 1]


def test_B_8_R2_only_a_script_says_what_to_run_by_its_value() -> None:
    """B.8 R2: an argument that is rendered to names is an argument."""
    script = Script(
        plan(
            step("a", on_success=block(run=[Target("x", {}, {"others": 0})])),
            step("x", start="routed"),
            step("y", start="routed"),
            fail_if="list",
        ),
        answers={"list": Value(["y"])},
    )
    assert routes(script) == [("a", "x")]


def test_C_15_R3_a_routed_one_shot_step_has_its_run() -> None:
    """C.15 R3: the first time; afterwards it isn't even asked for."""
    script = Script(
        plan(
            step("a", on_success=block(run=["once"])),
            step("b", "a", on_success=block(run=["once"])),
            step("once", tags=("one_shot",), start="routed"),
        ),
    )
    assert script.started.count("once") == 1
    assert routes(script) == [("a", "once")]


def test_C_15_R3_each_item_has_the_one_run_of_its_own() -> None:
    """C.15 R3, C.10 R5: where one has had it, the others are still to come."""
    script = Script(
        plan(
            step("list", for_each=True, on_finish=block(run=["once"])),
            step("first", "list", fanout="map", on_fail=block(run=["once"])),
            step("once", tags=("one_shot",), start="routed", fanout="map", fanout_explicit=True),
        ),
        calls={"list": [1, 2], "first": lambda command: LOGICAL if command.scope.endswith("[0]") else 1},
    )
    assert executions(script, "once") == [("list#1[0]", 1), ("list#1[1]", 1)]


def test_a_reminder_is_routed_in_its_own_name() -> None:
    """The record tells why somebody was told."""
    hold = Hold(remind=Reminder("tell", 60.0, 1))
    script = Script(plan(step("ask", hold=hold), step("tell")), calls={"ask": Parks()})
    script.pass_time(60.0)
    assert [(one.trigger, one.target) for one in script.decided(d.Routed)] == [("remind", "tell")]


# --- loops


def test_C_12_a_step_that_has_not_come_to_anything_yet_is_no_loop() -> None:
    """C.12: it is asked for while it waits, and there is no budget for loops."""
    script = Script(
        plan(
            step("a", on_success=block(run=["b"])),
            step("also a", on_success=block(run=["b"])),
            step("wait"),
            step("b", "wait", if_="yes"),
            max_loops=0,
        ),
        calls={"wait": Never()},
    )
    assert script.decided(d.Refused) == []
    script.tell(e.CallDone(call=3))
    assert executions(script, "b") == [("", 1)]


def test_C_12_what_has_run_is_a_loop_though_the_target_has_not() -> None:
    """C.12: whichever of those that are to run again it is."""
    script = Script(
        plan(
            step("before", start="routed"),
            step("b", "before|a"),
            step("a"),
            step("c", "b", on_success=block(goto="before")),
            max_loops=0,
        )
    )
    assert [refused.limit for refused in script.decided(d.Refused, "c")] == ["max_loops"]


def test_G_4_a_loop_refused_to_an_on_finish_leaves_the_list_its_outcome() -> None:
    """G4: under strict safety the run is NO-GO for the refusal."""
    script = Script(
        plan(step("list", for_each=True, on_finish=block(goto="list")), safety="strict", max_loops=1),
        calls={"list": [1]},
    )
    assert (script.outcome("list"), script.verdict) == ("passed", "NO-GO")


def test_C_10_R7_a_goto_to_nobody_is_no_way_out() -> None:
    """C.10 R7, G27: the failure stands, so somebody is told."""
    script = Script(
        plan(step("a", on_fail=block(goto_js="name", escalate="page")), step("page")),
        calls={"a": LOGICAL},
        answers={"name": "nobody"},
    )
    assert script.started == ["a", "page"]


def test_semantics_7_the_timer_of_a_step_that_is_asked_for_is_cleared() -> None:
    """semantics 7: by a command, since it is the host's."""
    script = Script(
        plan(
            step("a", on_fail=block(retry=Retry(1, delay_s=100.0, jitter=0.0))),
            step("b", on_success=block(goto="a")),
        ),
        calls={"a": lambda command: TRANSIENT if command.call == 1 else "fine"},
    )
    (set_timer,) = [command for command in script.commands if isinstance(command, c.SetTimer)]
    cleared = [command for command in script.commands if isinstance(command, c.ClearTimer)]
    assert cleared == [c.ClearTimer(set_timer.timer)]
