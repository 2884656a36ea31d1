"""Faults that long campaigns of random plans found in the core, each in its smallest form."""

from __future__ import annotations

from typing import Any

from tests.core.script import LOGICAL, Parks, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core.events import AnswerGiven, RerunAsked

MAP: dict[str, Any] = {"fanout": "map"}
LIST: dict[str, Any] = {"for_each": True}


def began(script: Script) -> list[tuple[str, str]]:
    """Where an on_finish began to speak, in order."""
    return [(each.step, each.scope) for each in script.decided(d.Routing) if each.trigger == "on_finish"]


def spoke(script: Script, name: str) -> list[str]:
    """The scopes in which the on_finish of a list has begun to speak."""
    return [scope for step_name, scope in began(script) if step_name == name]


def test_items_of_a_list_within_a_list_are_judged_when_their_list_is_there() -> None:
    """Law 5: whether an inner list is empty is known item by item, however many slots there are."""
    steps = [
        step("outer", **LIST),
        step("inner", "outer", **LIST, **MAP),
        step("work", "inner", **MAP),
        step("tell", "work", **MAP),
    ]
    script = Script(plan(*steps), calls={"outer": [1, 2], "inner": lambda c: [5] if "[1]" in c.scope else []})
    assert script.node("tell", "outer#1[0]").reason == "forEach_empty"
    assert script.outcome("tell", "outer#1[1]/inner#1[0]") == "passed"


def test_a_run_whose_undoing_mended_what_had_failed_stays_no_go() -> None:
    """semantics 20: the run ended NO-GO and was undone for that; the undoing is no remedy."""
    steps = [step("switch", effects="mutates", compensate="back"), step("back")]
    script = Script(plan(*steps), calls={"back": lambda c: LOGICAL if c.execution == 1 else 1})
    script.tell(RerunAsked(by="me", steps=(("back", ""),)))
    assert [(undone.step, undone.outcome) for undone in script.decided(d.Undone)] == [("switch", "passed")]
    assert (script.outcome("back"), script.verdict) == ("passed", "NO-GO")
    assert script.state.finished is not None
    assert script.state.finished.because == ("undone",)


def test_all_is_undone_though_the_first_undoing_mended_what_had_failed() -> None:
    """semantics 20: each success is undone, not only the latest."""
    steps = [
        step("one", effects="mutates", compensate="back"),
        step("two", "one", effects="mutates", compensate="back"),
        step("back"),
    ]
    script = Script(plan(*steps), calls={"back": lambda c: LOGICAL if c.execution == 1 else 1})
    script.tell(RerunAsked(by="me", steps=(("back", ""),)))
    assert [undone.step for undone in script.decided(d.Undone)] == ["two", "one"]


def test_a_run_that_was_undone_is_go_when_a_person_has_all_of_it_run_again() -> None:
    """semantics 20: what was undone counts as not done, and is done again."""
    steps = [step("switch", effects="mutates", compensate="back"), step("check", "switch"), step("back")]
    script = Script(plan(*steps), calls={"check": lambda c: LOGICAL if c.execution == 1 else 1})
    assert script.verdict == "NO-GO"
    assert script.tell(RerunAsked(by="me", steps=(("check", ""),))).verdict == "GO"
    assert script.outcome("switch") == "passed"


def test_an_on_finish_that_has_its_own_list_made_again_speaks_anew_when_it_is() -> None:
    """semantics 8: once per execution of the list; its rules wait for the execution that it asked for."""
    made_again = iter([["list"], []])
    asked: list[int] = []

    def rule(names: dict[str, Any]) -> bool:
        asked.append(len(asked))
        return False

    spoken = block(run_js="again", when=[("rule", "list")])
    script = Script(
        plan(step("list", **LIST, on_finish=spoken)),
        calls={"list": [1]},
        answers={"again": lambda names: next(made_again), "rule": rule},
    )
    assert (script.started, began(script)) == (["list", "list"], [("list", "")] * 2)
    assert (script.verdict, asked) == ("GO", [0])


def nested(inner: dict[str, Any], **more: Any) -> tuple[Any, ...]:
    """A list within a list, each with an on_finish, and a step over the items of both."""
    return (
        step("outer", **LIST, on_finish=block(run=["last"])),
        step("inner", "outer", **LIST, **MAP, on_finish=inner),
        step("work", "inner", **MAP, **more),
        step("last"),
        step("mend"),
    )


def test_semantics_8_an_outer_on_finish_waits_until_the_rules_of_inner_ones_are_judged() -> None:
    """An inner list whose on_finish is still asking isn't settled, and may yet be sent round again."""
    steps = nested(block(when=[("again", "inner")]))
    answers = iter([True, False, False])
    script = Script(
        plan(*steps),
        calls={"outer": [1, 2], "inner": [3]},
        answers={"again": lambda names: next(answers)},
    )
    assert began(script) == [
        ("inner", "outer#1[0]"),
        ("inner", "outer#1[1]"),
        ("inner", "outer#1[0]"),
        ("outer", ""),
    ]
    assert (script.started[-1], script.verdict) == ("last", "GO")


def test_semantics_8_an_outer_on_finish_waits_for_what_an_inner_one_runs_and_waits_for() -> None:
    """A person in what the inner one runs holds up the outer one, too."""
    steps = nested(block(run=["mend"], when=[("never", None)]))
    script = Script(
        plan(*steps), calls={"outer": [1], "inner": [3], "mend": Parks()}, answers={"never": False}
    )
    assert (script.verdict, spoke(script, "outer")) == ("HOLD", [])
    script.tell(AnswerGiven(step="mend", scope="outer#1[0]", by="me", text="yes"))
    assert spoke(script, "outer") == [""]
    assert (script.started[-1], script.verdict) == ("last", "GO")


def test_semantics_8_an_outer_on_finish_does_not_wait_for_lists_of_other_items() -> None:
    """Law 5: a group is that of one item; its neighbour's list may still be talking."""
    steps = (
        step("top", **LIST),
        step("outer", "top", **LIST, **MAP, on_finish=block(run=["last"])),
        step("inner", "outer", **LIST, **MAP, on_finish=block(run=["mend"], when=[("never", None)])),
        step("last"),
        step("mend"),
    )
    script = Script(
        plan(*steps),
        calls={
            "top": [1, 2],
            "outer": [1],
            "inner": [3],
            "mend": lambda c: 1 if "top#1[1]" in c.scope else Parks(),
        },
        answers={"never": False},
    )
    assert spoke(script, "outer") == ["top#1[1]"]


def test_semantics_8_an_on_finish_that_has_spoken_says_nothing_again_for_what_is_skipped_behind_it() -> None:
    """Once per execution, though the step over its items is skipped item by item and then as a whole."""
    steps = (
        step("outer", **LIST),
        step("inner", "outer", **LIST, **MAP, on_finish=block(run=["mend"])),
        step("tell", "inner?", **MAP),
        step("mend"),
    )
    script = Script(plan(*steps), calls={"outer": [1], "inner": LOGICAL})
    assert began(script) == [("inner", "outer#1[0]")]
    assert script.started.count("mend@outer#1[0]") == 1
