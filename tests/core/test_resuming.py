"""Going on after a stop (semantics 6, 12; cli.md resume)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Parks, Script, Unclear, block, plan, step

from gonogo.core import decisions as d
from gonogo.core import machine
from gonogo.core.commands import SetTimer, StartCall
from gonogo.core.events import AnswerGiven, CancelAsked, Resumed
from gonogo.core.plan import Retry


def test_what_is_in_flight_is_read_from_the_state() -> None:
    """A resumed host takes up calls and timers."""
    steps = [step("a"), step("b", on_fail=block(retry=Retry(1, delay_s=9)))]
    script = Script(plan(*steps), calls={"a": Never(), "b": TRANSIENT})
    script_state = script.folded()
    commands = machine.outstanding(script_state)
    assert [command.call for command in commands if isinstance(command, StartCall)] == list(
        script.state.calls
    )
    assert all(isinstance(command, SetTimer | StartCall) for command in commands)


def test_a_cancelled_run_can_go_on() -> None:
    """What was cancelled runs; what was complete is kept."""
    script = Script(
        plan(step("a"), step("b", "a"), step("c", "b")), calls={"b": lambda c: Never() if c.call == 2 else 1}
    )
    script.tell(CancelAsked(interrupted=True))
    assert script.verdict == "NO-GO"
    script.tell(Resumed())
    assert (script.started, script.verdict) == (["a", "b", "b", "c"], "GO")


def test_evaluations_in_flight_are_asked_again() -> None:
    """They are pure, so asking twice is safe."""
    script = Script(plan(step("a", if_="x")))
    state = script.folded()
    first = script.records[0][1]
    assert any(isinstance(decision, d.Asked) for decision in first)
    assert state.batches == {}


def test_a_child_run_that_held_is_taken_up_again() -> None:
    """The parent asks its child how it stands."""
    script = Script(
        plan(step("flow")), calls={"flow": lambda c: Parks(child="run.flow") if c.call == 1 else "done"}
    )
    assert script.verdict == "HOLD"
    script.tell(Resumed())
    assert (script.started, script.verdict) == (["flow", "flow"], "GO")


def test_resuming_a_finished_run_changes_nothing() -> None:
    """There is nothing to do."""
    script = Script(plan(step("a")))
    script.tell(Resumed())
    assert (script.started, script.verdict) == (["a"], "GO")


@pytest.mark.parametrize("after", [(), ("w",)])
def test_C_2_R4_a_resume_runs_nothing_that_waits_for_a_route(after: tuple[str, ...]) -> None:
    """C.2 R4: a remedy, whom to tell and what undoes were skipped by the cancel; nothing has asked for them yet."""
    on_fail = block(run=["mend"], escalate="page")
    script = Script(
        plan(
            step("w"),
            step("a", "w", effects="mutates", compensate="undo", on_fail=on_fail),
            *(step(name, *after) for name in ("mend", "page", "undo")),
            step("z", "mend"),
        ),
        calls={"w": lambda command: Parks() if command.execution == 1 else "fine"},
    )
    script.tell(CancelAsked(by="me"), Resumed(by="me"))
    assert script.started == ["w", "w", "a"]
    assert script.verdict == "GO"


def test_C_2_R4_a_route_after_a_resume_still_finds_its_target() -> None:
    """C.2 R4: and what depends on it runs then."""
    script = Script(
        plan(step("w"), step("a", "w", on_fail=block(run=["mend"])), step("mend"), step("z", "mend")),
        calls={"w": lambda command: Parks() if command.execution == 1 else "fine", "a": LOGICAL},
    )
    script.tell(CancelAsked(by="me"), Resumed(by="me"))
    assert script.started == ["w", "w", "a", "mend", "z"]


def test_an_answer_about_a_cancelled_run_leaves_it_cancelled() -> None:
    """Law 7, semantics 16: who says what became of a call doesn't ask for the next ones."""
    steps = [step("post", effects="mutates"), step("next", "post")]
    script = Script(plan(*steps), calls={"post": Unclear()})
    script.tell(CancelAsked(by="me"))
    assert script.verdict == "HOLD"
    script.tell(Resumed(reopens=False), AnswerGiven(step="post", text="done", by="me"))
    assert (script.started, script.node("next").reason) == (["post"], "cancelled")
    assert (script.outcome("post"), script.verdict) == ("passed", "NO-GO")
    script.tell(Resumed(by="me"))
    assert (script.started, script.verdict) == (["post", "next"], "GO")
