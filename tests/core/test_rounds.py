"""Going round again: what waits inside is given up, what `if` skipped is judged anew (semantics 7 and 8, C.14 R3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Parks, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.plan import Retry

SLOWLY = Retry(1, delay_s=100.0, jitter=0.0)


def once(first: Any, then: Any) -> Any:
    """An answer that differs the first time."""
    answers: Iterator[Any] = iter([first])
    return lambda _: next(answers, then)


# --- waits inside a fan-out that is sent round again


def sent_round(first: Any, **keys: Any) -> Script:
    """A list whose first item waits when another step sends the run back to the list."""
    return Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", **keys),
            step("kick", "list", on_success=block(when=[("again", "list")])),
            max_parallelism=2,
        ),
        calls={"list": [0], "work": lambda command: first if command.scope.startswith("list#1") else "fine"},
        answers={"again": once(True, False)},
    )


@pytest.mark.parametrize(
    ("first", "keys"),
    [(TRANSIENT, {"on_fail": block(retry=SLOWLY)}), (Parks(timeout_s=50.0), {}), (Parks(), {})],
)
def test_semantics_7_a_list_that_goes_round_again_waits_for_no_item(first: Any, keys: dict[str, Any]) -> None:
    """Semantics 7: timers and persons of its items are given up, and recorded as superseded."""
    script = sent_round(first, **keys)
    ended = [one for one in script.decided(d.Ended, "work") if one.outcome == "cancelled"]
    assert [(one.scope, one.reason) for one in ended] == [("list#1[0]", "superseded")]
    assert (script.now, script.state.timers, script.verdict) == (0.0, {}, "GO")
    assert script.node("work", "list#2[0]").outcome == "passed"


def test_semantics_7_nor_for_items_of_the_lists_within_it() -> None:
    """Semantics 7: at any depth."""
    script = Script(
        plan(
            step("outer", for_each=True),
            step("inner", "outer", fanout="map", for_each=True),
            step("work", "inner", fanout="map", on_fail=block(retry=SLOWLY)),
            step("kick", "inner", on_success=block(when=[("again", "outer")])),
            max_parallelism=2,
        ),
        calls={
            "outer": [0],
            "inner": [0],
            "work": lambda command: TRANSIENT if command.scope.startswith("outer#1") else "fine",
        },
        answers={"again": once(True, False)},
    )
    assert (script.now, script.verdict) == (0.0, "GO")
    assert script.started.count("work@outer#2[0]/inner#1[0]") == 1


def test_semantics_7_a_step_that_is_asked_for_gives_up_its_own_wait() -> None:
    """Semantics 7: it runs at once, and its timer is forgotten."""
    script = Script(
        plan(
            step("a", on_fail=block(retry=SLOWLY)),
            step("b", on_success=block(goto="a")),
        ),
        calls={"a": once(TRANSIENT, "fine")},
    )
    assert (script.started, script.now, script.state.timers) == (["a", "b", "a"], 0.0, {})


# --- judged anew after on_finish


def finished(*, on_finish: dict[str, Any], ready: Any, **more: Any) -> Script:
    """A list whose end runs something, and a step that its `if` has skipped meanwhile."""
    return Script(
        plan(
            step("list", for_each=True, on_finish=on_finish),
            step("work", "list", fanout="map"),
            step("report", if_="ready"),
            step("mend"),
            **more,
        ),
        calls={"list": [0]},
        answers={"ready": ready, "again": once(True, False), "no": False},
    )


def judged_again(script: Script) -> list[Any]:
    """The decisions to have an `if` judged once more."""
    return [one for one in script.decided(d.Routed) if one.action == "if"]


def test_C_14_R3_what_if_skipped_is_judged_again_after_what_on_finish_ran() -> None:
    """C.14 R3: once, in a wave of its own, after the runs have come to their end."""
    script = finished(on_finish=block(run=["mend"]), ready=once(False, True))
    (again,) = judged_again(script)
    assert (again.trigger, again.members, again.wave) == ("on_finish", (("report", ""),), 2)
    assert script.started[-2:] == ["mend", "report"]
    assert script.outcome("report") == "passed"


def test_C_14_R3_a_step_that_stays_skipped_is_not_asked_for_ever() -> None:
    """C.14 R3, law 2: once."""
    script = finished(on_finish=block(run=["mend"]), ready=False)
    assert len(judged_again(script)) == 1
    assert (script.outcome("report"), script.verdict) == ("skipped", "GO")


def test_C_14_R3_only_on_finish_has_steps_judged_again() -> None:
    """C.14 R3: not an on_success, nor an on_finish that ran nothing, nor where nothing was skipped."""
    other = Script(
        plan(step("report", if_="ready"), step("a", on_success=block(run=["mend"])), step("mend")),
        answers={"ready": False},
    )
    nothing = finished(on_finish=block(when=[("no", "mend")]), ready=False)
    ready = finished(on_finish=block(run=["mend"]), ready=True)
    assert judged_again(other) == judged_again(ready) == judged_again(nothing) == []
    assert other.decided(d.Remediating) == []


def test_C_14_R2_an_on_finish_that_goes_elsewhere_judges_nothing_again() -> None:
    """C.14 R2: a transition that matches takes the place of it, the first time."""
    script = finished(on_finish=block(run=["mend"], when=[("again", "list")]), ready=False)
    assert script.started.count("list") == 2
    assert len(judged_again(script)) == 1
    script = finished(on_finish=block(run=["mend"], when=[("again", "mend")]), ready=False)
    assert script.started.count("mend") == 2
    assert judged_again(script) == []


# --- small print of routes


def test_C_9_R11_the_reason_tells_that_retries_were_used_up() -> None:
    """C.9 R11: a tolerated failure says what it was tolerated for."""
    retry = Retry(1, exhausted="continue")
    assert Script(plan(step("a", on_fail=block(retry=retry))), calls={"a": TRANSIENT}).node("a").reason == (
        "retries_exhausted"
    )


def test_C_15_R3_a_goto_that_is_spared_is_no_way_out() -> None:
    """C.15 R3, G27: the failure stands, so somebody is told."""
    script = Script(
        plan(
            step("once", tags=("one_shot",)),
            step("a", "once", on_fail=block(goto="once", escalate="page")),
            step("page"),
        ),
        calls={"a": LOGICAL},
    )
    assert script.started == ["once", "a", "page"]


def test_G_4_a_loop_refused_to_a_whole_fan_out_leaves_its_outcome() -> None:
    """G4, C.6: under strict the step fails that asked; of a fan-out the items have spoken already."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("work", "list", fanout="map", on_success=block(goto="list")),
            max_loops=1,
            safety="strict",
        ),
        calls={"list": [0]},
    )
    assert (script.outcome("work"), script.verdict) == ("passed", "NO-GO")


@pytest.mark.parametrize("given", [{"n": 1}, None, "text", [1]])
def test_B_8_R2_arguments_that_are_no_mapping_are_none(given: Any) -> None:
    """B.8 R2: what a script returns is hostile input."""
    item = {"step": "b", "with": given, "as": 7}
    script = Script(
        plan(step("a", on_success=block(run_js="more")), step("b", start="routed")),
        answers={"more": [item, 3, {}]},
    )
    assert script.outcome("b") == "passed"
    assert script.node("b").arguments == (given if isinstance(given, dict) else {})


def test_C_10_R8_what_on_init_runs_is_routed_in_its_name() -> None:
    """C.10 R8: the journal tells it from a block of the step."""
    script = Script(plan(step("a", on_init=["before"]), step("before", start="routed")))
    (routed,) = [one for one in script.decided(d.Routed) if one.target == "before"]
    assert (routed.trigger, routed.action) == ("on_init", "init")


def test_semantics_7_a_list_within_one_that_goes_round_again_ends_after_its_running_items() -> None:
    """Semantics 7: one that is running finishes, is recorded as superseded, and its fan-out ends with it."""
    script = Script(
        plan(
            step("outer", for_each=True),
            step("inner", "outer", fanout="map", for_each=True),
            step("work", "inner", fanout="map"),
            step("kick", "inner", on_success=block(when=[("again", "outer")])),
        ),
        calls={
            "outer": [0],
            "inner": [0, 1],
            "work": lambda command: Never() if command.scope.startswith("outer#1") else "fine",
        },
        answers={"again": once(True, False)},
    )
    assert script.node("work", "outer#1[0]").outcome is None
    (call,) = script.state.calls
    script.tell(e.CallDone(call=call))
    ended = [one.reason for one in script.decided(d.Ended, "work") if one.scope == "outer#1[0]"]
    assert (ended, script.verdict) == (["superseded"], "GO")
