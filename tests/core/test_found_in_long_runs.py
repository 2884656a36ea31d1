"""Faults that long campaigns of random plans found in the core, each in its smallest form."""

from __future__ import annotations

from typing import Any

from tests.core.script import LOGICAL, Never, Parks, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core.events import AnswerGiven, CancelAsked, RerunAsked, Resumed

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


# --- what routes run inside the items of a list


def mended(*steps: Any, **calls: Any) -> Script:
    """A list whose on_finish reports, over items in which a route runs `mend`, which waits for a person."""
    return Script(
        plan(
            step("list", for_each=True, on_finish=block(run=["report"])),
            *steps,
            step("report", start="routed"),
        ),
        calls={"list": [0, 1], "mend": Parks(), **calls},
    )


def test_semantics_8_an_on_finish_waits_for_what_a_route_runs_in_an_item() -> None:
    """Semantics 6 and 8: a step over the items that was sent for isn't settled, though it runs by routes only."""
    work = step("work", "list", fanout="map", on_fail=block(run=["mend"]))
    script = mended(work, step("mend", "list", fanout="map"), work=LOGICAL)
    assert script.started == ["list", "work@list#1[0]", "work@list#1[1]", "mend@list#1[0]", "mend@list#1[1]"]
    for index in (0, 1):
        assert script.verdict == "HOLD"
        assert script.decided(d.Routing, "list") == []
        script.tell(AnswerGiven(step="mend", scope=f"list#1[{index}]", text="ok", by="me"))
    assert script.started.count("report") == 1


def test_semantics_8_an_on_finish_waits_for_what_a_route_runs_in_items_of_an_inner_list() -> None:
    """Semantics 8: settled is what all of its routes have come to, in lists within its items, too."""
    inner = step("inner", "list", fanout="map", for_each=True, on_finish=block(run=["mend"]))
    script = mended(inner, step("mend", "inner", fanout="map"), inner=[0])
    for index in (0, 1):
        assert script.decided(d.Routing, "list") == []
        place = f"list#1[{index}]/inner#1[0]"
        script.tell(AnswerGiven(step="mend", scope=place, text="ok", by="me"))
    assert (script.started.count("report"), script.verdict) == (1, "GO")


def test_semantics_8_an_on_finish_waits_for_an_item_of_a_fan_out_that_was_skipped() -> None:
    """Semantics 8: a goto may run in an item what was skipped as a whole."""
    script = Script(
        plan(
            step("list", for_each=True, on_finish=block(run=["report"])),
            step("mend", "list", fanout="map", if_="wanted"),
            step("work", "list", fanout="map", on_fail=block(goto="mend")),
            step("report", start="routed"),
        ),
        calls={"list": [0], "work": LOGICAL, "mend": Parks()},
        answers={"wanted": False},
    )
    assert script.outcome("mend") == "skipped"
    assert script.decided(d.Routing, "list") == []
    script.tell(AnswerGiven(step="mend", scope="list#1[0]", text="ok", by="me"))
    assert script.started.count("report") == 1


def test_semantics_8_an_on_finish_does_not_wait_for_items_of_an_older_execution() -> None:
    """Semantics 8: once per execution, when what runs in its own items is settled."""
    work = step("work", "list", fanout="map", on_fail=block(run=["mend"]))
    again = step("again", on_success=block(goto="list"))
    script = mended(
        work,
        step("mend", "list", fanout="map"),
        again,
        work=lambda call: LOGICAL if call.scope.startswith("list#1") else "fine",
        again=Parks(),
    )
    script.tell(AnswerGiven(step="again", text="go", by="me"))
    assert script.started.count("report") == 1


# --- lists of a run that stopped


def stopped(work: Any, **keys: Any) -> Script:
    """A list whose on_finish reports, in a run that is stopped while its second item runs."""
    return Script(
        plan(
            step("list", for_each=True, on_finish=block(run=["report"])),
            step("work", "list", **MAP),
            step("report", start="routed"),
            step("after", "list"),
            max_parallelism=1,
            **keys,
        ),
        calls={"list": [0, 1], "work": lambda call: work if call.call == 3 else "fine"},
    )


def test_semantics_8_an_on_finish_that_a_cancel_kept_from_speaking_speaks_after_a_resume() -> None:
    """Semantics 8: once for each execution, when its items are settled; what waits for the list waits for that."""
    script = stopped(Never()).tell(CancelAsked(by="me"))
    assert spoke(script, "list") == []
    script.tell(Resumed(by="me"))
    assert script.started[3:] == ["work@list#1[1]", "report", "after"]
    assert (spoke(script, "list"), script.verdict) == ([""], "GO")


def test_semantics_8_an_on_finish_that_fail_fast_kept_from_speaking_speaks_when_a_person_goes_on() -> None:
    """Semantics 8: the same, when the item that failed runs again."""
    script = stopped(LOGICAL, fail_fast=True)
    assert (spoke(script, "list"), script.verdict) == ([], "NO-GO")
    script.tell(RerunAsked(by="me", steps=(("work", "list#1[1]"),)))
    assert script.started[3:] == ["work@list#1[1]", "report", "after"]
    assert (spoke(script, "list"), script.verdict) == ([""], "GO")


def test_semantics_7_a_fan_out_whose_item_is_sent_round_while_its_block_speaks_speaks_after_that() -> None:
    """Semantics 6 and 7: its outcome isn't final, so the item runs again; what is said about the whole comes then."""
    again = iter([True])
    script = Script(
        plan(
            step("list", for_each=True),
            step("inner", "list", for_each=True, on_finish=block(when=[("again", "inner")]), **MAP),
            step("work", "inner", on_success=block(when=[("ready", "report")]), **MAP),
            step("report", start="routed"),
            max_parallelism=1,
        ),
        calls={"list": [0], "inner": [0]},
        answers={"again": lambda _: next(again, False)},
    )
    assert script.started.count("work@list#1[0]/inner#2[0]") == 1
    assert script.started[-1] == "report"
    assert (script.started.count("report"), script.verdict) == (1, "GO")
