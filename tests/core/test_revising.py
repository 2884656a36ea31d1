"""A changed workflow for a run under way: what ran and stays means the same, all else may change."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, Draft, Parks, Script, plan, step
from tests.core.test_asking_again import again, fails_once, look, refusal

from gonogo.core import decisions as d
from gonogo.core.events import AnswerGiven, Resumed
from gonogo.core.plan import Expression, Limits, Plan
from gonogo.core.revising import renumbered
from gonogo.testing.canonical import difference


def revised(script: Script, *drafts: Draft, **keys: Any) -> Plan:
    """A new plan for a script's run, with the old numbers of its expressions."""
    return renumbered(plan(*drafts, **keys), script.state.graph.plan)


def test_expressions_keep_their_numbers() -> None:
    """Older records refer to them; new ones come behind."""
    before = plan(step("a", if_="x"), step("b", guarantee=["y", "x"]))
    after = renumbered(plan(step("b", guarantee=["y", "z"]), step("a", if_="x")), before)
    assert [each.source for each in after.expressions] == ["x", "y", "x", "z"]
    assert (after.steps["a"].if_condition, after.steps["b"].guarantee) == (0, (1, 3))


def test_a_source_of_another_kind_is_another_expression() -> None:
    """`x` as a condition and as a template aren't the same."""
    before = Plan("w", {}, (Expression("x", "condition"),))
    after = renumbered(Plan("w", {}, (Expression("x", "template"),), fail_if=0), before)
    assert (after.fail_if, len(after.expressions)) == (1, 2)


def test_a_step_that_runs_again_may_change() -> None:
    """That is what the change is for."""
    script = Script(plan(step("a"), step("b", "a", config={"exec": "old"})), calls={"b": fails_once})
    new = revised(script, step("a"), step("b", "a", config={"exec": "new"}, guarantee=["fine"]))
    script.tell(again("b", plan=new))
    assert (script.started, script.verdict) == (["a", "b", "b"], "GO")
    assert script.state.graph.steps["b"].config == {"exec": "new"}


def test_steps_may_be_added_behind_and_between_what_runs_again() -> None:
    """They run; what is there stays."""
    script = Script(plan(step("a"), step("b", "a")), calls={"b": fails_once})
    new = revised(script, step("a"), step("new", "a"), step("b", "a", "new"), step("last", "b", if_="x"))
    script.tell(again("b", plan=new))
    assert script.started == ["a", "b", "new", "b", "last"]
    assert script.verdict == "GO"
    assert difference(script.folded(), script.state) is None


def test_a_step_that_never_ran_may_go() -> None:
    """Nothing rests on it."""
    script = Script(plan(step("a"), step("b", "a"), step("c", "b")), calls={"b": LOGICAL})
    script.results = {}
    script.tell(again("b", plan=revised(script, step("a"), step("b", "a"))))
    assert (script.started, script.verdict) == (["a", "b", "b"], "GO")
    assert "c" not in script.state.nodes


def test_a_step_that_ran_may_not_go() -> None:
    """Its outcome and what it did would have no owner."""
    script = Script(plan(step("a"), step("b", "a")))
    problem = refusal(script, again("b", plan=revised(script, step("b"))))
    assert problem.message == "step 'a' has run, and the changed workflow doesn't have it"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"config": {"exec": "new"}}, "exec"),
        ({"config": {}}, "exec"),
        ({"if_": "other"}, "if"),
        ({"guarantee": ["other"]}, "guarantee"),
        ({"continue_on_failure": True}, "continue_on_failure"),
        ({"effects": "mutates"}, "mutates"),
        ({"for_each": True}, "forEach"),
        ({"env": {"A": "2"}}, "env"),
        ({"assume": ["fine"]}, "assume"),
        ({"on_success": {"run": (), "when": (), "retry": None, "goto": "b"}}, "on_success"),
    ],
)
def test_a_step_that_ran_and_stays_keeps_what_its_outcome_rests_on(change: dict[str, Any], key: str) -> None:
    """The first difference is named, with the way to have it."""
    keys: dict[str, Any] = {"config": {"exec": "old"}, "if_": "x", "env": {"A": "1"}}
    script = Script(plan(step("a", **keys), step("b", "a")), calls={"b": LOGICAL})
    new = revised(script, step("a", **{**keys, **change}), step("b", "a"))
    problem = refusal(script, again("b", plan=new))
    assert (problem.step, problem.key) == ("a", key)
    assert f"`{key}` is changed" in problem.message
    assert "--from a" in problem.advice
    assert look(script, again("a", plan=new)).members == {("a", ""): "asked", ("b", ""): "behind"}


@pytest.mark.parametrize(
    "change",
    [
        {"timeout_s": 3.0}, {"tags": ()}, {"line": 9}, {"max_runs": 7}, {"concurrency": 2}, {"group": "g"},
        {"reliability": {"attempts": 2}}, {"criticality_source": "explicit"}, {"loop_budget": 3},
    ],
)  # fmt: skip
def test_limits_and_places_may_change(change: dict[str, Any]) -> None:
    """An outcome that is there doesn't rest on them."""
    script = Script(plan(step("a", if_="x"), step("b", "a")))
    found = look(script, again("b", plan=revised(script, step("a", if_="x", **change), step("b", "a"))))
    assert found.members == {("b", ""): "asked"}


@pytest.mark.parametrize(
    ("keys", "key"),
    [({"fail_if": "bad"}, "fail_if"), ({"safety": "strict"}, "safety")],
)
def test_what_a_workflow_says_for_all_steps_stays_while_one_of_them_does(
    keys: dict[str, Any], key: str
) -> None:
    """Where all run again it may change."""
    script = Script(plan(step("a"), step("b", "a")), calls={"b": LOGICAL}, answers={"bad": False})
    new = revised(script, step("a"), step("b", "a"), **keys)
    assert refusal(script, again("b", plan=new)).key == key
    assert len(look(script, again("a", plan=new)).members) == 2


@pytest.mark.parametrize("key", ["env", "inputs", "memory"])
def test_what_a_run_is_given_at_its_start_stays(key: str) -> None:
    """Even where all runs again: expressions see what the run was started with."""
    script = Script(plan(step("a")))
    assert refusal(script, again("a", plan=revised(script, step("a"), **{key: {"A": {}}}))).key == key


READS = ["inputs.who", "{{ inputs['who'] }}", "inputs?.who", "inputs.who-1", "all(inputs)", "inputs[name]"]
"""Ways to read an input: by its name, or not saying which."""


def test_an_input_that_is_added_with_a_default_has_it() -> None:
    """A step that is mended may need one; a replay comes to the same."""
    before = {"old": {"default": 1}}
    script = Script(plan(step("a", if_="inputs.old"), step("b", "a"), inputs=before), calls={"b": LOGICAL})
    keys = {**before, "who": {"default": "me"}, "maybe": {"required": False}}
    new = revised(script, step("a", if_="inputs.old"), step("b", "a", config={"exec": READS[0]}), inputs=keys)
    script.tell(again("b", plan=new))
    assert (script.started, script.state.inputs) == (["a", "b", "b"], {"who": "me"})
    assert difference(script.folded(), script.state) is None


def test_an_input_that_nobody_reads_may_go() -> None:
    """Nothing rests on it."""
    declared = {"who": {"default": 1}, "more": {"default": 1}}
    given = {"who": 2, "more": 3}
    script = Script(plan(step("a"), step("b", "a"), inputs=declared), calls={"b": LOGICAL}, inputs=given)
    new = revised(script, step("a"), step("b", "a"), inputs={"more": declared["more"]})
    assert look(script, again("b", plan=new)).members
    script.tell(again("b", plan=new))
    assert script.state.inputs == {"more": 3}


@pytest.mark.parametrize("where", ["if_", "config", "env", "fail_if"])
@pytest.mark.parametrize("text", READS)
@pytest.mark.parametrize("inputs", [({}, {"who": {"default": 1}}), ({"who": {"default": 1}}, {})])
def test_what_ran_and_stays_reads_no_input_that_is_added_or_removed(
    inputs: tuple[dict[str, Any], dict[str, Any]], text: str, where: str
) -> None:
    """It was judged without, or with it. Run again, it may."""
    keys: dict[str, Any] = {where: text if where.endswith("if_") or where == "fail_if" else {"exec": [text]}}
    script = Script(
        plan(step("a", **keys), step("b", "a"), inputs=inputs[0]),
        calls={"b": LOGICAL},
        answers={text: where == "if_"},
    )
    new = revised(script, step("a", **keys), step("b", "a"), inputs=inputs[1])
    problem = refusal(script, again("b", plan=new))
    assert (problem.step, "reads the input 'who'" in problem.message) == ("a", True)
    assert ("is new" in problem.message) == bool(inputs[1])
    assert len(look(script, again("a", plan=new)).members) == 2


def test_a_step_that_reads_another_input_may_stay() -> None:
    """Which one is seen by its name."""
    keys = {"config": {"exec": "inputs.whole, inputs.x-inputs.y, my_inputs"}}
    before = {name: {"default": 1} for name in ("whole", "x", "y")}
    script = Script(plan(step("a", **keys), step("b", "a"), inputs=before), calls={"b": LOGICAL})
    new = revised(script, step("a", **keys), step("b", "a"), inputs={**before, "who": {"default": 1}})
    assert look(script, again("b", plan=new)).members == {("b", ""): "asked"}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({}, {"who": {}}, "is new and has no default"),
        ({"who": {"default": 1}}, {"who": {"default": 2}}, "is changed; a run keeps its own"),
        ({}, {"who": {"default": 2}}, "was given one of that name before"),
    ],
)
def test_other_changes_of_inputs_are_refused(before: dict[str, Any], after: dict[str, Any], why: str) -> None:
    """The run has no value that was looked at for them."""
    script = Script(plan(step("a"), inputs=before), inputs={"who": 7})
    problem = refusal(script, again("a", plan=revised(script, step("a"), inputs=after)))
    assert (problem.key, why in problem.message) == ("inputs", True)


def test_other_limits_of_the_run_may_change() -> None:
    """And the host keeps to them."""
    script = Script(plan(step("a"), step("b", "a")))
    script.tell(again("b", plan=revised(script, step("a"), step("b", "a"), max_parallelism=9)))
    assert script.state.limit_of_slots == 9
    assert script.state.graph.plan.limits == Limits(max_parallelism=9)


def test_a_step_that_was_skipped_by_words_that_changed_is_looked_at_again() -> None:
    """Nobody need name it: it never ran, so nothing of it can stay."""
    script = Script(plan(step("a"), step("b", "a", if_="no"), step("c", "b?")), answers={"no": False})
    assert script.node("b").reason == "if_condition"
    new = revised(script, step("a"), step("b", "a", if_="yes"), step("c", "b?"))
    assert look(script, again(plan=new)).members == {("b", ""): "changed", ("c", ""): "behind"}
    script.tell(again(plan=new))
    assert script.started == ["a", "b", "c"]


def test_a_step_that_ran_may_not_be_left_out() -> None:
    """Its tags count for that, which may change otherwise."""
    script = Script(plan(step("a"), step("b", "a")))
    problem = refusal(script, again("b", plan=revised(script, step("a", tags=("slow",)), step("b"))))
    assert "'a' has run, and is left out now: tag_filter" in problem.message


def test_what_undoes_something_that_was_done_stays() -> None:
    """Else nobody could undo it any more."""
    script = Script(plan(step("a", effects="mutates", compensate="undo"), step("b", "a"), step("undo")))
    new = revised(script, step("a", effects="mutates"), step("b", "a"), step("undo"))
    assert refusal(script, again("a", plan=new)).key == "compensate"


def test_a_hold_goes_on_under_the_new_plan() -> None:
    """Items and holds find their step again."""
    steps = [step("list", for_each=True), step("ask", "list", fanout="map"), step("sum", "ask")]
    script = Script(plan(*steps), calls={"list": [1, 2], "ask": Parks()})
    new = revised(script, *steps[:2], step("more"), step("sum", "ask", "more", config={"exec": "new"}))
    script.tell(again(plan=new))
    assert script.verdict == "HOLD"
    script.tell(AnswerGiven(step="ask", scope="list#1[0]", text="a"))
    script.tell(Resumed(), AnswerGiven(step="ask", scope="list#1[1]", text="b"))
    assert (script.verdict, script.started[-2:]) == ("GO", ["more", "sum"])
    assert difference(script.folded(), script.state) is None


def test_the_journal_says_which_workflow_it_is_now() -> None:
    """By its digest."""
    script = Script(plan(step("a")))
    new = plan(step("a"), step("b"), digest="sha256:new")
    script.tell(again(plan=renumbered(new, script.state.graph.plan)))
    [told] = [each for _, decisions in script.records for each in decisions if isinstance(each, d.Rerun)]
    assert told.revised == "sha256:new"
    assert told.sentence() == "ann goes on with the run; the workflow is now sha256:new"


def test_a_plan_that_cannot_run_is_refused() -> None:
    """As at the start of a run."""
    script = Script(plan(step("a")))
    new = plan(step("a"), step("b", "c"), step("c", "b"))
    assert "wait for each other" in refusal(script, again("a", plan=new)).message
