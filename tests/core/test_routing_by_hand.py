"""Parts of routing asked directly: what a run hardly ever comes to, or what shows in its commands alone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Script, block, plan, step

from gonogo.core import commands as c
from gonogo.core import decisions as d
from gonogo.core import lifecycle as life
from gonogo.core import routing
from gonogo.core.plan import Retry
from gonogo.core.state import Node
from gonogo.core.turn import Turn
from gonogo.expressions.results import Value


def backing_off() -> tuple[Script, Node, Node]:
    """A fan-out whose first item waits for its retry, and whose second is at work; with the first item's node."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", concurrency=2, on_fail=block(retry=Retry(1, delay_s=5.0))),
        ),
        calls={"list": [1, 2], "work": Never()},
    )
    script.state.calls.clear()
    item, fan_out = script.node("work", "list#1[0]"), script.node("work")
    item.fault, item.status, item.timer = TRANSIENT, life.BACKING_OFF, 7
    script.state.timers[7] = (5.0, item)
    return script, fan_out, item


def test_semantics_7_an_item_that_waits_in_a_fan_out_sent_round_again_is_over() -> None:
    """Semantics 7: its end is as of one that is superseded, and the host needn't wake the run for it."""
    script, fan_out, item = backing_off()
    turn = Turn(script.state)
    routing.abandon_waits(turn, fan_out)
    assert turn.commands == [c.ClearTimer(7)]
    assert (item.outcome, item.reason, item.fault) == ("cancelled", "superseded", TRANSIENT)
    assert script.outcome("work", "list#1[1]") is None


def test_semantics_7_a_fan_out_that_is_to_run_again_is_looked_at_at_once() -> None:
    """Semantics 7: where nothing of it is under way it is over, though no item had to be given up."""
    script = Script(
        plan(step("list", for_each=True), step("work", "list", fanout="map")),
        calls={"list": [1, 2], "work": Never()},
    )
    turn = Turn(script.state)
    routing.abandon_waits(turn, script.node("work"))
    assert (list(turn.refills), turn.decisions) == ([script.node("work")], [])


def test_C_10_R1_what_was_run_in_an_item_that_is_history_is_not_waited_for() -> None:
    """C.10 R1: a list around it has run again, and its items are gone."""
    script = Script(plan(step("list", for_each=True), step("a", "list", fanout="map")), calls={"list": [1]})
    node = script.node("list")
    node.waits_for = (("a", "list#0[0]"), ("a", "list#1[0]"))
    assert routing.runs_are_complete(Turn(script.state), node)
    script.node("a", "list#1[0]").complete = False
    assert not routing.runs_are_complete(Turn(script.state), node)


def test_C_10_R1_a_block_whose_runs_are_spared_waits_for_nothing() -> None:
    """C.10 R1, C.15 R3: it goes on at once, whatever else is at work."""
    script = Script(
        plan(
            step("once", tags=("one_shot",)),
            step("a", "once", on_fail=block(run=["once"], goto="b")),
            step("b", start="routed"),
            step("slow"),
            max_parallelism=4,
        ),
        calls={"a": LOGICAL, "slow": Never()},
    )
    assert script.started == ["once", "slow", "a", "b"]
    assert script.decided(d.Remediating) == []


def test_law_4_answers_that_do_not_fit_the_questions_are_refused() -> None:
    """Law 4: none is taken for an answer to another question."""
    script = Script(plan(step("a", on_fail=block(when=[("one", "b"), ("two", "c")])), step("b"), step("c")))
    node = script.node("a")
    with pytest.raises(ValueError, match="shorter"):
        routing.transition(Turn(script.state), node, node.site.part.step.block("on_fail"), [Value(False)])


def test_G_4_a_refused_loop_of_a_step_whose_block_does_not_speak_is_no_failure_of_it() -> None:
    """G4: its outcome was final before."""
    script = Script(plan(step("a"), safety="strict"))
    turn = Turn(script.state)
    routing.fail_for_loops(turn, script.node("a"), d.Refused("a", "", "a", "max_loops", 1, 1))
    assert (turn.decisions, script.outcome("a")) == ([], "passed")


def test_C_14_R1_a_group_that_is_settled_is_settled_once() -> None:
    """C.14 R1: nothing is told twice."""
    script = Script(plan(step("list", for_each=True), step("a", "list", fanout="map")), calls={"list": [1]})
    turn = Turn(script.state)
    script.node("a").settled = False
    routing.end_group(turn, script.node("list"))
    assert turn.decisions == [d.Settled("a", "")]


@pytest.mark.parametrize(
    ("trigger", "expected"), [("on_finish", True), ("on_success", False), ("on_fail", False)]
)
def test_C_14_R3_only_an_on_finish_waits_to_look_again(trigger: str, expected: bool) -> None:
    """C.14 R3: no other block changes the mind of a step that its `if` has skipped."""
    script = Script(plan(step("list", for_each=True), step("report", if_="ready")), answers={"ready": False})
    node = script.node("list")
    node.trigger = trigger
    assert routing.looks_again(Turn(script.state), node) is expected


@pytest.mark.parametrize(
    ("ready", "stopping", "members"),
    [(False, None, [(("report", ""),)]), (True, None, []), (False, "cancelled", [])],
)
def test_C_14_R3_nothing_is_judged_again_where_nothing_was_skipped_or_the_run_stops(
    ready: bool, stopping: str | None, members: list[Any]
) -> None:
    """C.14 R3: no decision is taken about no step."""
    script = Script(plan(step("list", for_each=True), step("report", if_="ready")), answers={"ready": ready})
    script.state.stopping = stopping
    turn = Turn(script.state)
    routing.look_again(turn, script.node("list"))
    assert [one.members for one in turn.decisions if isinstance(one, d.Routed)] == members
    assert len(turn.decisions) == len(members)


def test_C_14_R1_what_an_on_finish_that_makes_its_own_list_again_leaves_as_it_is_is_settled() -> None:
    """C.14 R1: what waits for it goes on at once, not after the on_finish has spoken anew."""
    lists = iter([["list"], []])
    script = Script(
        plan(
            step("list", for_each=True, on_finish=block(run_js="more", goto="out")),
            step("work", "list", fanout="map"),
            step("after", "work"),
            step("out", start="routed"),
        ),
        calls={"list": [1]},
        answers={"more": lambda _: next(lists)},
    )
    assert script.started == ["list", "work@list#1[0]", "list", "after", "out"]
    settled = [one.step for one in script.decided(d.Settled)]
    assert settled.index("work") < settled.index("list")
