"""A person has steps run again: what goes with them, what stays, and what counts anew (semantics 7, 17, 20)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, Never, Parks, Returns, Script, Unclear, block, plan, step

from gonogo.core import decisions as d
from gonogo.core.asking_again import Look, Unfit, look_at
from gonogo.core.commands import StartCall
from gonogo.core.events import (
    AnswerGiven,
    CallLost,
    CancelAsked,
    GateWaits,
    GivenOutput,
    RerunAsked,
    Resumed,
)
from gonogo.core.plan import Budget


def again(*steps: str, **more: Any) -> RerunAsked:
    """`again("a", "each@list#1[0]")`: these run again, for ann."""
    outputs = tuple(GivenOutput(name, value) for name, value in more.pop("outputs", {}).items())
    places = tuple((name.partition("@")[0], name.partition("@")[2]) for name in steps)
    return RerunAsked(by="ann", steps=places, outputs=outputs, **more)


def fails_once(command: StartCall) -> Any:
    """A failure that somebody has mended since."""
    return LOGICAL if command.execution == 1 else "mended"


def look(script: Script, event: RerunAsked) -> Look:
    """What the wish would take."""
    return look_at(script.folded(), event)


def refusal(script: Script, event: RerunAsked) -> Unfit:
    """Why it can't be."""
    with pytest.raises(Unfit) as raised:
        look(script, event)
    return raised.value


def test_the_step_and_what_depends_on_it_run_again_and_nothing_else() -> None:
    """RES-2: what is paid for stays; the intents of the calls are new."""
    script = Script(plan(step("a"), step("b", "a"), step("c", "b"), step("z", "a")), calls={"b": fails_once})
    assert script.verdict == "NO-GO"
    script.tell(again("b"))
    assert script.started == ["a", "b", "z", "b", "c"]
    assert script.verdict == "GO"
    intents = [command.intent for command in script.commands if isinstance(command, StartCall)]
    assert len(set(intents)) == len(intents)
    assert intents[-2:] == ["run/b/2", "run/c/1"]


def test_a_run_that_was_go_can_be_run_again_from_a_step() -> None:
    """A finished step and those behind it; with the record of who wanted it."""
    script = Script(plan(step("a"), step("b", "a"), step("c", "b"))).tell(again("b"))
    assert script.started == ["a", "b", "c", "b", "c"]
    [asked] = [each for _, decisions in script.records for each in decisions if isinstance(each, d.Rerun)]
    assert (asked.by, asked.members) == ("ann", (("b", ""), ("c", "")))
    assert asked.sentence() == "ann has b run again, and with that c"


def test_a_given_output_stands_in_for_the_run_and_is_not_judged() -> None:
    """The step passes by a person's word; those behind it see the output."""
    script = Script(
        plan(step("a"), step("b", "a", guarantee=["never"]), step("c", "b")), answers={"never": False}
    )
    script.tell(again(outputs={"b": {"n": 7}}))
    assert (script.started, script.verdict) == (["a", "b", "c"], "GO")
    node = script.node("b")
    assert (node.outcome, node.reason, node.output) == ("passed", "set by ann", {"n": 7})
    assert node.meta == {"set_by": "ann"}


def test_what_follows_a_pass_follows_a_given_output() -> None:
    """on_success speaks, as after an answer about a call in doubt."""
    on_success = block(run=["tell"])
    script = Script(plan(step("a", on_success=on_success), step("tell")), calls={"a": LOGICAL})
    script.tell(again(outputs={"a": 1}))
    assert (script.started, script.verdict) == (["a", "tell"], "GO")


def test_a_given_list_is_fanned_out_over_with_new_intents() -> None:
    """forEach: the items are those of the person."""
    script = Script(
        plan(step("list", for_each=True), step("each", "list", fanout="map")), calls={"list": [1]}
    )
    script.tell(again(outputs={"list": [1, 2]}))
    assert script.started == ["list", "each@list#1[0]", "each@list#2[0]", "each@list#2[1]"]
    assert script.verdict == "GO"


def test_one_item_of_a_list_runs_again_alone() -> None:
    """And what joins the items, after it."""
    steps = [step("list", for_each=True), step("each", "list", fanout="map"), step("sum", "each")]
    wrong = {"each": lambda c: LOGICAL if c.scope == "list#1[1]" and c.execution == 1 else 1}
    script = Script(plan(*steps), calls={"list": [5, 6, 7], **wrong})
    assert script.verdict == "NO-GO"
    before = len(script.started)
    script.tell(again("each@list#1[1]"))
    assert script.started[before:] == ["each@list#1[1]", "sum"]
    assert script.verdict == "GO"


def test_limits_of_runs_and_loops_count_anew() -> None:
    """A step that may run once, and a loop that was used up: a person may ask all the same."""
    steps = [step("a", max_runs=1, on_success=block(goto="z")), step("z", max_runs=2)]
    script = Script(plan(*steps, max_loops=1)).tell(again("a"))
    assert script.outcome("a") == "passed"
    assert script.verdict == "GO"


def test_what_runs_for_the_first_time_after_a_wish_has_its_limits_from_the_start() -> None:
    """C.12 R6: items of a list that was made anew have never run."""
    steps = [
        step("list", for_each=True),
        step("each", "list", fanout="map", max_runs=1, on_fail=block(goto="each")),
    ]
    script = Script(plan(*steps), calls={"list": [0], "each": LOGICAL}).tell(again("list"))
    assert script.started == ["list", "each@list#1[0]", "list", "each@list#2[0]"]
    assert script.node("each", "list#2[0]").reason == "max_runs"


def test_what_fail_fast_kept_from_running_runs_with_it() -> None:
    """A verdict GO over steps that never ran would be none."""
    script = Script(plan(step("a"), step("b"), fail_fast=True, max_parallelism=1), calls={"a": fails_once})
    assert script.started == ["a"]
    script.tell(again("a"))
    assert (script.started, script.verdict) == (["a", "a", "b"], "GO")


def test_a_run_that_a_step_stopped_goes_on_only_with_that_step() -> None:
    """Its failure would stand, so the way is said."""
    script = Script(plan(step("a"), step("b"), fail_fast=True, max_parallelism=1), calls={"b": LOGICAL})
    problem = refusal(script, again("a"))
    assert "'b' stopped the run (fail_fast)" in problem.message
    assert "--from b" in problem.advice


def test_a_cancelled_run_goes_on_with_the_wish() -> None:
    """What the cancel ended runs, too."""
    script = Script(
        plan(step("a"), step("b", "a"), step("c")),
        calls={
            "b": lambda c: Never() if c.execution == 1 else 1,
            "c": lambda c: Never() if c.execution == 1 else 1,
        },
    )
    script.tell(CancelAsked(by="me")).tell(again("a"))
    assert script.started == ["a", "c", "b", "a", "c", "b"]
    assert script.verdict == "GO"


def test_what_was_undone_counts_as_not_done() -> None:
    """Semantics 20: the compensated step runs again, though nobody names it, and may act without being asked for."""
    steps = [step("order", effects="mutates", compensate="undo"), step("ship", "order"), step("undo")]
    script = Script(plan(*steps), calls={"ship": fails_once})
    assert script.started == ["order", "ship", "undo"]
    found = look(script, again("ship"))
    assert found.members == {("ship", ""): "asked", ("order", ""): "undone"}
    assert (found.acts_again, found.unrouted) == ((), (("undo", ""),))
    script.tell(again("ship"))
    assert script.started == ["order", "ship", "undo", "order", "ship"]
    assert script.node("undo").reason == "not_routed"
    assert script.verdict == "GO"


def test_a_remedy_waits_for_its_route_again() -> None:
    """It was run by a failure that is no more; its own old failure doesn't count either."""
    script = Script(
        plan(step("a", on_fail=block(run=["mend"])), step("mend", "a?"), step("b", "a")),
        calls={"a": fails_once, "mend": LOGICAL},
    )
    assert script.verdict == "NO-GO"
    script.tell(again("a"))
    assert script.started == ["a", "mend", "a", "b"]
    assert (script.node("mend").reason, script.verdict) == ("not_routed", "GO")


def test_steps_behind_that_have_acted_are_listed() -> None:
    """So that nobody mails twice by naming what comes before the mail; what is named, is."""
    steps = [step("a"), step("mail", "a", effects="mutates"), step("log", "mail")]
    script = Script(plan(*steps))
    assert look(script, again("a")).acts_again == (("mail", ""),)
    assert look(script, again("mail")).acts_again == ()
    assert look(script, again("a", outputs={"mail": None})).acts_again == ()


def test_a_workflow_that_has_acted_is_listed_though_its_step_is_named() -> None:
    """Who names it has named none of the steps within, one of which may have paid."""
    script = Script(plan(step("flow", type="workflow", effects="mutates"), step("after", "flow")))
    assert look(script, again("flow")).acts_again == (("flow", ""),)


def test_a_one_shot_step_runs_again_only_by_name() -> None:
    """C.15: no route runs it twice, nor does a wish about something before it."""
    steps = [step("a"), step("mail", "a", tags=("one_shot",)), step("z", "mail")]
    script = Script(plan(*steps, include_tags=("one_shot",)))
    assert look(script, again("a")).spared == (("mail", ""),)
    script.tell(again("a"))
    assert script.started == ["a", "mail", "z", "a", "z"]
    script.tell(again("mail"))
    assert script.started[-2:] == ["mail", "z"]


def test_a_one_shot_step_that_was_undone_has_not_had_its_run() -> None:
    """Semantics 20 before C.15: else what comes after it would build on what is no longer there."""
    order = step("order", effects="mutates", compensate="undo", tags=("one_shot",))
    script = Script(
        plan(order, step("ship", "order"), step("undo"), include_tags=("one_shot",)),
        calls={"ship": fails_once},
    )
    found = look(script, again("ship"))
    assert (found.spared, found.members) == ((), {("ship", ""): "asked", ("order", ""): "undone"})
    script.tell(again("ship"))
    assert script.started == ["order", "ship", "undo", "order", "ship"]
    script.tell(again("ship"))
    assert script.started[5:] == ["ship"]


def test_an_answer_kept_by_a_key_is_not_given_to_the_step_that_was_asked_for() -> None:
    """What is asked for is a call; those behind it are answered from what they paid for."""
    keyed = {"effects": "mutates", "idempotency_key": 0}
    script = Script(
        plan(step("a", **keyed), step("b", "a", **keyed)),
        calls={name: Returns(1, key=f"key {name}") for name in "ab"},
    )
    assert set(script.state.answers) == {("a", "key a"), ("b", "key b")}
    state = script.folded()
    look_at(state, again("a"))
    script = Script(
        plan(step("a", **keyed), step("b", "a", **keyed)),
        calls={"a": Returns(1, key="key a"), "b": Returns(1, key="key b")},
    )
    script.results = {}
    script.tell(again("a"))
    assert set(script.state.answers) == {("b", "key b")}


def test_a_budget_that_was_used_up_stops_the_run_again() -> None:
    """Nothing is forgiven; with a changed workflow that allows more it goes on."""
    steps = [step("a"), step("b", "a"), step("c", "b")]
    script = Script(plan(*steps, budget=Budget(calls=2)))
    assert script.verdict == "NO-GO"
    script.tell(again("b"))
    assert (script.started, script.verdict) == (["a", "b"], "NO-GO")
    script.tell(again(plan=plan(*steps, budget=Budget(calls=9))))
    assert (script.started, script.verdict) == (["a", "b", "b", "c"], "GO")


def test_a_hold_of_a_step_that_runs_again_is_given_up() -> None:
    """Its timer, too; it asks anew."""
    script = Script(
        plan(step("a"), step("ask", "a")),
        calls={"ask": lambda c: Parks(60.0) if c.execution == 1 else "fine"},
    )
    script.tell(again("a"))
    assert script.state.timers == {}
    assert (script.started, script.verdict) == (["a", "ask", "a", "ask"], "GO")


def test_other_holds_stay() -> None:
    """The run is HOLD as long as one waits."""
    script = Script(plan(step("a"), step("ask")), calls={"ask": Parks()})
    script.tell(again("a"))
    assert (script.started, script.verdict) == (["a", "ask", "a"], "HOLD")
    script.tell(AnswerGiven(step="ask", text="yes", by="bob"))
    assert script.verdict == "GO"


def test_nobody_knows_what_a_step_did_so_it_is_not_run_again() -> None:
    """Semantics 16: the doubt is settled first; an output that is given settles it."""
    script = Script(plan(step("a"), step("post", "a", effects="mutates")), calls={"post": Unclear()})
    problem = refusal(script, again("a"))
    assert "nobody knows whether post was done" in problem.message
    assert problem.advice.endswith("gonogo answer run post 'done|again|failed|unknown'")
    script.tell(again(outputs={"post": "sent"}))
    assert (script.outcome("post"), script.verdict) == ("passed", "GO")


def test_a_call_that_was_lost_is_not_made_for_a_run_that_does_not_count() -> None:
    """A reading call in flight at a crash: the step runs once, for the wish."""
    script = Script(
        plan(step("a"), step("b", "a")), calls={"b": lambda c: Never() if c.execution == 1 else 1}
    )
    script.tell(again("b"), CallLost(call=2))
    assert (script.started, script.verdict) == (["a", "b", "b"], "GO")


def test_a_critical_step_that_is_mended_keeps_nothing_back() -> None:
    """C.8: suppression ends with the failure."""
    steps = [step("gate", criticality="internal"), step("ship", "gate?", effects="mutates")]
    script = Script(plan(*steps), calls={"gate": fails_once})
    assert script.node("ship").reason == "suppressed"
    script.tell(again("gate"))
    assert (script.started, script.verdict) == (["gate", "gate", "ship"], "GO")


def test_what_a_run_said_about_a_step_is_forgotten_with_its_run() -> None:
    """A workflow's own detector made the run NO-GO without failing the step."""
    script = Script(plan(step("a"), fail_if="bad"), answers={"bad": True})
    assert script.verdict == "NO-GO"
    script.answers["bad"] = False
    script.tell(again("a"))
    assert (script.verdict, script.state.run_issues) == ("GO", [])


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (again("nobody"), "there is no step 'nobody'"),
        (again("later"), "step 'later' is no part of this run: event_filter"),
        (again("a@list#1[0]"), "step 'a' hasn't run in list#1[0]"),
        (again(outputs={"each": 1}), "step 'each' runs once per item"),
        (again(), "nothing of this run would run"),
    ],
)
def test_a_wish_that_cannot_be_is_refused(event: RerunAsked, message: str) -> None:
    """With what is there instead."""
    steps = [
        step("a"),
        step("later", on=("push",)),
        step("list", for_each=True),
        step("each", "list", fanout="map"),
    ]
    script = Script(plan(*steps), calls={"list": [1]}, trigger={"name": "pr"})
    problem = refusal(script, event)
    assert message in problem.message
    assert problem.advice


def test_the_records_rebuild_the_same_state() -> None:
    """What was decided is complete: the fold of it is the state."""
    from gonogo.testing.canonical import difference

    steps = [step("list", for_each=True), step("each", "list", fanout="map"), step("sum", "each", if_="x")]
    script = Script(
        plan(*steps), calls={"list": [5, 6], "each": lambda c: LOGICAL if c.execution == 1 else 1}
    )
    script.tell(again("list", outputs={"sum": 3})).tell(again("each"))
    assert difference(script.folded(), script.state) is None


def test_a_lost_call_that_waits_for_a_slot_is_not_made_for_a_run_that_does_not_count() -> None:
    """Its gate had waited for long, so it held none; the wish takes its place in the queue."""
    once = {name: (lambda c: Never() if c.call < 3 else 1) for name in "bc"}
    script = Script(plan(step("b"), step("c"), max_parallelism=1), calls=once)
    script.tell(GateWaits(call=1, wait_s=60.0, target="t"))
    assert script.started == ["b", "c"]
    script.tell(Resumed(), CallLost(call=1))
    assert script.node("b").status == "paused"
    script.tell(again("b"), CallLost(call=2))
    assert sorted(script.started) == ["b", "b", "c", "c"]
    assert (script.node("b").execution, script.verdict) == (2, "GO")
