"""What was done is undone when a run doesn't end well (semantics 20, G12)."""

from __future__ import annotations

import pytest
from msgspec import UNSET
from tests.core.script import LOGICAL, TRANSIENT, Never, Parks, Returns, Script, block, plan, step
from tests.core.test_fault_events import told

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core import machine
from gonogo.core.compensation import is_due
from gonogo.core.faults import Fault
from gonogo.core.plan import Budget, Plan, Retry
from gonogo.core.state import Undoable


def booking(*more: object, last: dict | None = None, **keys: object) -> Plan:
    """Two steps that can be undone, and one that may fail."""
    return plan(
        step("book", effects="mutates", compensate="unbook"),
        step("pay", "book", effects="mutates", compensate="refund"),
        step("last", "pay", **(last or {})),
        step("unbook", effects="mutates"),
        step("refund", effects="mutates", on_fail=block(retry=Retry(1))),
        *more,  # type: ignore[arg-type]
        **keys,
    )


def test_G_12_what_was_done_is_undone_the_latest_first() -> None:
    """G12, semantics 20: each undoing sees what the step gave."""
    script = Script(booking(), calls={"book": {"seat": 4}, "last": LOGICAL})
    assert script.started == ["book", "pay", "last", "refund", "unbook"]
    assert script.node("unbook").arguments == {
        "step": "book",
        "scope": "",
        "output": {"seat": 4},
        "inputs": None,
    }
    assert script.verdict == "NO-GO"
    assert script.state.undone == {("pay", ""): "refund", ("book", ""): "unbook"}


def test_G_12_what_gave_no_output_is_undone_too() -> None:
    """G12: the undoing is told null, which can be written down."""
    script = Script(booking(), calls={"book": UNSET, "last": LOGICAL})
    assert script.node("unbook").arguments["output"] is None


def test_G_12_a_run_that_is_go_keeps_what_it_did() -> None:
    """G12: nothing is undone, and what undoes isn't started by itself."""
    script = Script(booking())
    assert script.started == ["book", "pay", "last"]


def test_G_12_what_failed_is_not_undone() -> None:
    """G12: only successes."""
    script = Script(booking(), calls={"pay": LOGICAL})
    assert script.started == ["book", "pay", "unbook"]


def test_G_12_a_halt_undoes() -> None:
    """G12: though nothing else starts any more."""
    halt = {"conditions": [{"name": "stop", "when": "yes", "halt": True}]}
    script = Script(booking(last=halt))
    assert script.started == ["book", "pay", "last", "refund", "unbook"]


def test_semantics_20_a_cancel_undoes_only_where_the_workflow_says_so() -> None:
    """Semantics 20: not on cancel, unless compensate_on names it."""
    for reasons, undone in ((("no_go", "halted"), []), (("no_go", "cancelled"), ["refund", "unbook"])):
        script = Script(booking(compensate_on=reasons), calls={"last": Parks()})
        script.tell(e.CancelAsked(by="me"))
        assert script.started[3:] == undone


def test_semantics_20_a_hold_undoes_nothing() -> None:
    """Semantics 20 and 3: while somebody is waited for nothing is final."""
    script = Script(booking(step("ask")), calls={"last": LOGICAL, "ask": Parks()})
    assert script.verdict == "HOLD"
    assert "refund" not in script.started
    script.tell(e.AnswerGiven(step="ask", text="yes", by="me"))
    assert script.started[-2:] == ["refund", "unbook"]


def test_semantics_20_an_undoing_that_fails_stops_no_other() -> None:
    """Semantics 20: its failure is its own; retried as it says; the verdict stays NO-GO."""
    script = Script(booking(), calls={"last": LOGICAL, "refund": TRANSIENT})
    assert script.started == ["book", "pay", "last", "refund", "refund", "unbook"]
    assert [(one.step, one.outcome) for one in script.decided(d.Undone)] == [
        ("pay", "failed"),
        ("book", "passed"),
    ]
    assert told(script, "refund") == ["detected", "recovery.attempted", "recovery.failed"]


def test_semantics_20_undoing_has_its_own_reserve() -> None:
    """Semantics 20: a run that has used up its budget and its runs still tidies up."""
    script = Script(booking(budget=Budget(calls=2), max_runs=1))
    assert script.started == ["book", "pay", "refund", "unbook"]


def test_semantics_20_each_run_of_a_step_is_undone() -> None:
    """Semantics 20: what was done twice is undone twice."""
    again = iter([True, False])
    script = Script(
        plan(
            step("book", effects="mutates", compensate="unbook", on_success=block(when=[("again", "book")])),
            step("last", "book"),
            step("unbook"),
        ),
        calls={"last": LOGICAL},
        answers={"again": lambda _: next(again)},
    )
    assert script.started == ["book", "book", "last", "unbook", "unbook"]


def test_semantics_20_items_are_undone_one_by_one_in_their_scope() -> None:
    """Semantics 20: latest item first."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("book", "list", fanout="map", effects="mutates", compensate="unbook"),
            step("last", "book"),
            step("unbook"),
        ),
        calls={"list": [1, 2], "last": LOGICAL},
    )
    assert script.started[-2:] == ["unbook@list#1[1]", "unbook@list#1[0]"]
    assert script.node("unbook", "list#1[0]").arguments["scope"] == "list#1[0]"


def test_semantics_20_what_undoes_sends_the_run_nowhere() -> None:
    """Semantics 20: the run is over; only its own retry counts."""
    script = Script(
        plan(
            step("book", compensate="unbook"),
            step("last", "book"),
            step("unbook", on_success=block(goto="book")),
        ),
        calls={"last": LOGICAL},
    )
    assert script.started == ["book", "last", "unbook"]


def test_G_21_safe_mode_has_nothing_to_undo() -> None:
    """G21: nothing was done."""
    script = Script(booking(), calls={"last": LOGICAL}, safe_mode=True)
    assert script.started == ["book", "pay", "last"]


def test_G_16_compensation_is_told_after_the_end_of_the_fault() -> None:
    """G16: exactly one end, then what was undone for it."""
    script = Script(booking(), calls={"last": LOGICAL})
    assert told(script) == ["detected", "recovery.failed", "compensated", "compensated"]


@pytest.mark.parametrize("stop_after", range(1, 12))
def test_the_state_folds_back_in_the_middle_of_it(stop_after: int) -> None:
    """Law 1 and 3: after a crash each undoing goes on where it was."""
    script = Script(booking(), calls={"last": LOGICAL})
    del script.records[stop_after:]
    folded = script.folded()
    assert len(folded.undoable) + (folded.undoing is not None) + len(folded.undone) <= 2


# --- when, and in which words


def test_semantics_20_a_second_cancel_leaves_the_rest_as_it_is() -> None:
    """Semantics 5 and 20: whoever cancels twice wants the end now."""
    one = booking(compensate_on=("no_go", "cancelled"))
    script = Script(one, calls={"last": Parks(), "refund": Never()})
    script.tell(e.CancelAsked(by="me"))
    assert script.started == ["book", "pay", "last", "refund"]
    script.tell(e.CancelAsked(by="me"))
    assert script.state.stopping == "cancelled_hard"
    assert [one.target for one in script.decided(d.Routed)] == ["refund"]
    assert script.verdict == "NO-GO"


@pytest.mark.parametrize(
    ("reasons", "after_a_failure", "after_a_halt"),
    [(("no_go",), ["refund", "unbook"], []), (("halted",), [], ["refund", "unbook"]), ((), [], [])],
)
def test_semantics_20_the_workflow_says_which_ends_are_undone(
    reasons: tuple[str, ...], after_a_failure: list[str], after_a_halt: list[str]
) -> None:
    """Semantics 20: `compensate_on` names the ends."""
    failed = Script(booking(compensate_on=reasons), calls={"last": LOGICAL})
    halt = {"conditions": [{"name": "stop", "when": "yes", "halt": True}]}
    halted = Script(booking(last=halt, compensate_on=reasons))
    assert (failed.started[3:], halted.started[3:]) == (after_a_failure, after_a_halt)


def test_G_16_faults_still_open_end_before_anything_is_undone() -> None:
    """G16: the end of each fault comes before `compensated`."""
    last = {"on_fail": block(run=["mend"])}
    script = Script(booking(step("mend"), last=last), calls={"last": LOGICAL})
    assert told(script) == [
        "detected",
        "recovery.attempted",
        "recovery.failed",
        "compensated",
        "compensated",
    ]
    assert script.state.open_faults == {}


def test_G_16_compensated_says_by_what_and_which_run_was_undone() -> None:
    """G16: an undoing that failed compensates nothing, and isn't what the others are undone for."""
    script = Script(booking(), calls={"last": LOGICAL, "refund": LOGICAL})
    compensated = [one for one in script.decided(d.FaultEvent) if one.event == "compensated"]
    assert [(one.step, one.fault, one.detail) for one in compensated] == [
        ("book", 1, {"by": "unbook", "execution": 1})
    ]


def call_of(script: Script, name: str) -> int:
    """The number of the latest call of a step."""
    return script.decided(d.Started, name)[-1].call


@pytest.mark.parametrize("budget", [Budget(calls=3), Budget(time_s=5.0)])
def test_semantics_20_no_alarm_ends_an_undoing(budget: Budget) -> None:
    """Semantics 20: neither the run's time nor the grace for its cleanup counts any more."""
    script = Script(
        booking(step("tidy", always=True), budget=budget), calls={"last": LOGICAL, "refund": Never()}
    )
    assert (script.state.timers, script.node("refund").status) == ({}, life.RUNNING)
    script.tell(e.CallDone(call=call_of(script, "refund")))
    assert script.state.undone == {("pay", ""): "refund", ("book", ""): "unbook"}


def test_semantics_20_what_an_undoing_uses_breaks_no_budget() -> None:
    """Semantics 20: its reserve is its own, for tokens and money as for calls."""
    refund = Returns({}, meta={"usage": {"tokens": 100, "cost": 1.0}})
    script = Script(booking(budget=Budget(tokens=50, money=0.5)), calls={"last": LOGICAL, "refund": refund})
    assert (script.state.run_issues, script.state.stopping) == ([], None)


def test_semantics_20_an_undoing_that_ends_after_a_cancel_is_written_down() -> None:
    """Semantics 20: nothing more is undone, but what was undone is no longer done."""
    script = Script(booking(), calls={"last": LOGICAL, "refund": Never()})
    script.tell(e.CancelAsked(by="me"))
    script.tell(e.CallDone(call=call_of(script, "refund")))
    assert script.started == ["book", "pay", "last", "refund"]
    assert (script.state.undone, script.verdict) == ({("pay", ""): "refund"}, "NO-GO")


def test_semantics_20_an_undoing_that_was_cancelled_goes_on_after_a_resume() -> None:
    """Semantics 20: it isn't over, and the run is NO-GO still."""
    script = Script(
        booking(), calls={"last": LOGICAL, "refund": lambda call: Never() if call.execution == 1 else None}
    )
    script.tell(e.CancelAsked(by="me"), e.CancelAsked(by="me"))
    assert (script.outcome("refund"), script.decided(d.Undone)) == ("cancelled", [])
    script.tell(e.Resumed(by="me"))
    assert script.started[3:] == ["refund", "refund", "unbook"]
    assert script.state.undone == {("pay", ""): "refund", ("book", ""): "unbook"}


def later(call: object) -> object:
    """A first call that waits for a person; those after a resume return."""
    return Parks() if call.execution == 1 else "fine"  # type: ignore[attr-defined]


def test_semantics_20_what_a_cancel_had_undone_is_done_again_after_a_resume() -> None:
    """Semantics 20: a compensated step counts as not done for a later resume."""
    script = Script(booking(compensate_on=("no_go", "cancelled")), calls={"last": later})
    script.tell(e.CancelAsked(by="me"))
    script.tell(e.Resumed(by="me"))
    assert script.started == ["book", "pay", "last", "refund", "unbook", "book", "pay", "last"]
    assert (script.state.undone, script.verdict) == ({}, "GO")


def test_semantics_20_a_one_shot_step_that_a_cancel_had_undone_is_done_again_after_a_resume() -> None:
    """Semantics 20 before C.15: what was undone has not had its one run."""
    book = step("book", effects="mutates", compensate="unbook", tags=("one_shot",))
    script = Script(
        plan(
            book,
            step("last", "book"),
            step("unbook", tags=("one_shot",)),
            compensate_on=("cancelled",),
            include_tags=("one_shot",),
        ),
        calls={"last": later},
    )
    script.tell(e.CancelAsked(by="me")).tell(e.Resumed(by="me"))
    assert script.started == ["book", "last", "unbook", "book", "last"]


def test_semantics_20_a_run_that_has_failed_does_nothing_again_to_undo_it_once_more() -> None:
    """Semantics 20: it can't be GO any more."""
    script = Script(
        booking(step("bad", "book"), compensate_on=("no_go", "cancelled")),
        calls={"last": later, "bad": LOGICAL},
    )
    script.tell(e.CancelAsked(by="me"))
    script.tell(e.Resumed(by="me"))
    assert [name for name in script.started if name in ("book", "pay")] == ["book", "pay"]
    assert script.verdict == "NO-GO"


def test_semantics_20_an_undoing_cut_short_by_a_second_cancel_is_gone_on_with_by_a_resume() -> None:
    """Semantics 20: what isn't undone counts as done, so it is undone first; the next resume does it again."""
    script = Script(
        booking(compensate_on=("no_go", "cancelled")),
        calls={"last": later, "refund": lambda call: Never() if call.execution == 1 else None},
    )
    script.tell(e.CancelAsked(by="me"))
    script.tell(e.CancelAsked(by="me"))
    script.tell(e.Resumed(by="me"))
    assert script.started[3:] == ["refund", "refund", "unbook"]
    assert (script.state.undoing, script.verdict) == (None, "NO-GO")
    script.tell(e.Resumed(by="me"))
    assert script.started[6:] == ["book", "pay", "last"]
    assert script.verdict == "GO"


def judging(cancels: int) -> Script:
    """A run that was cancelled, and cancelled again while it was judged whether `refund` may undo `pay`."""
    script = Script(
        plan(
            step("pay", effects="mutates", compensate="refund"),
            step("last", "pay"),
            step("refund", effects="mutates", assume=["fit"]),
            compensate_on=("cancelled",),
        ),
        calls={"last": later},
    )
    return script.tell(*[e.CancelAsked(by="me")] * cancels)


def test_semantics_20_an_undoing_that_a_second_cancel_came_before_is_gone_on_with_by_a_resume() -> None:
    """Semantics 20: it undoes, and isn't run by itself in a run that keeps what it did."""
    script = judging(cancels=2)
    assert (script.started, script.verdict) == (["pay", "last"], "NO-GO")
    script.tell(e.Resumed(by="me"))
    assert script.started == ["pay", "last", "refund"]
    assert (script.state.undone, script.verdict) == ({("pay", ""): "refund"}, "NO-GO")


def test_semantics_16_an_undoing_that_was_cancelled_after_it_acted_is_not_made_again() -> None:
    """Semantics 16 and 20: it has failed, and no resume repeats it."""
    script = Script(booking(), calls={"last": LOGICAL, "refund": Never()})
    script.tell(e.CancelAsked(by="me"))
    stopped = Fault("run.cancelled", "cancelled", "cancelled", "told to stop")
    script.tell(e.CallFailed(call=call_of(script, "refund"), fault=stopped, effect="done"))
    script.tell(e.Resumed(by="me"))
    assert script.started[3:] == ["refund", "unbook"]


def amid_undoing(*, refund: dict | None = None, cancels: int = 1) -> Script:
    """A run that was cancelled, and whose process died while `refund` was called."""
    script = Script(
        plan(
            step("book", effects="mutates", compensate="unbook"),
            step("pay", "book", effects="mutates", compensate="refund"),
            step("last", "pay"),
            step("unbook", effects="mutates"),
            step("refund", **{"effects": "mutates", **(refund or {})}),
            compensate_on=("no_go", "cancelled"),
        ),
        calls={"last": later, "refund": lambda call: Never() if call.call == 4 else None},
    )
    script.tell(e.CancelAsked(by="me"))
    assert script.started == ["book", "pay", "last", "refund"]
    if cancels == 2:
        script.state = script.folded()
        machine.advance(
            script.state, e.CancelAsked(by="me")
        )  # the process dies before the call is told to stop
    return script.tell(e.Resumed(by="me"), e.CallLost(call=4))


@pytest.mark.parametrize("cancels", [1, 2])
@pytest.mark.parametrize(
    ("word", "undone"),
    [
        ("done", {("pay", ""): "refund", ("book", ""): "unbook"}),
        ("again", {("pay", ""): "refund", ("book", ""): "unbook"}),
        ("failed", {("book", ""): "unbook"}),
    ],
)
def test_law_3_an_undoing_lost_in_a_crash_of_a_cancelled_run_is_asked_about(
    word: str, undone: dict, cancels: int
) -> None:
    """Law 3, semantics 16 and 20: nobody knows whether it was done; the rest is undone after the answer."""
    script = amid_undoing(cancels=cancels)
    assert (script.verdict, script.node("refund").status) == ("HOLD", life.IN_DOUBT)
    assert script.started == ["book", "pay", "last", "refund"]
    script.tell(e.Resumed(by="me"))
    assert (script.verdict, script.node("refund").status) == ("HOLD", life.IN_DOUBT)
    script.tell(e.AnswerGiven(step="refund", text=word, by="me"))
    assert script.started[4:] == (["refund", "unbook"] if word == "again" else ["unbook"])
    assert (script.state.undone, script.verdict) == (undone, "NO-GO")


@pytest.mark.parametrize("refund", [{"effects": "idempotent"}, {"idempotency_key": 0}])
@pytest.mark.parametrize("cancels", [1, 2])
def test_law_3_a_lost_undoing_that_may_be_repeated_is(refund: dict, cancels: int) -> None:
    """Semantics 16 and 20: where it does nothing twice nobody need be asked; then the run can begin again."""
    script = amid_undoing(refund=refund, cancels=cancels)
    assert script.started[3:] == ["refund", "refund", "unbook"]
    assert script.verdict == "NO-GO"
    script.tell(e.Resumed(by="me"))
    assert script.started[6:] == ["book", "pay", "last"]
    assert (script.state.undone, script.verdict) == ({}, "GO")


def test_law_3_what_was_to_be_undone_is_not_done_twice_for_a_crash_before_the_undoing() -> None:
    """Law 3, semantics 20: an undoing that was only decided about goes on; what it is for counts as done until then."""
    script = judging(cancels=1)
    judged = next(number for number, (event, _) in enumerate(script.records) if type(event) is e.Evaluated)
    del script.records[judged:]
    del script.started[2:]
    script.state = script.folded()
    script.tell(e.Resumed(by="me"))
    assert script.started == ["pay", "last", "refund"]
    assert (script.state.undone, script.verdict) == ({("pay", ""): "refund"}, "NO-GO")


def test_semantics_20_a_run_that_was_superseded_is_undone_too() -> None:
    """Semantics 7 and 20: its outcome doesn't count, what it did is there."""
    script = Script(
        plan(
            step("book", effects="mutates", compensate="unbook"),
            step("other", on_success=block(goto="book")),
            step("last", "book"),
            step("unbook"),
            max_parallelism=2,
        ),
        calls={"book": lambda call: Never() if call.execution == 1 else "second", "last": LOGICAL},
    )
    script.tell(e.CallDone(call=1, output="first"))
    assert script.started.count("unbook") == 2


def test_semantics_20_what_undoes_may_run_something_before_itself() -> None:
    """Semantics 20, C.10 R8: in a run that was halted, too."""
    halt = {"conditions": [{"name": "stop", "when": "yes", "halt": True}]}
    script = Script(
        plan(
            step("book", effects="mutates", compensate="unbook"),
            step("last", "book", **halt),
            step("unbook", on_init=["token"]),
            step("token"),
        )
    )
    assert script.started[2:] == ["token", "unbook"]


def test_semantics_20_undoing_is_a_route_of_its_own_wave() -> None:
    """Journal: trigger, action and wave tell what an undoing is."""
    script = Script(booking(), calls={"last": LOGICAL})
    routes = [(one.trigger, one.action, one.target, one.wave) for one in script.decided(d.Routed)]
    assert routes == [("compensate", "compensate", "refund", 1), ("compensate", "compensate", "unbook", 2)]


def test_semantics_20_an_undoing_runs_more_often_than_max_runs_allows_anything_else() -> None:
    """Semantics 20: its reserve is one run for each success."""
    twice = iter([True, False])
    script = Script(
        plan(
            step("book", compensate="unbook", on_success=block(when=[("again", "book")])),
            step("last", "book"),
            step("unbook", max_runs=1),
        ),
        calls={"last": LOGICAL},
        answers={"again": lambda _: next(twice)},
    )
    assert script.started.count("unbook") == 2


def test_semantics_20_undoing_has_calls_when_the_run_has_none_left() -> None:
    """Semantics 20: also where the budget was just enough for what failed."""
    script = Script(booking(budget=Budget(calls=3)), calls={"last": LOGICAL})
    assert script.started == ["book", "pay", "last", "refund", "unbook"]
    assert (script.state.run_issues, script.state.stopping) == ([], None)


@pytest.mark.parametrize("ends", [("no_go",), ("no_go", "cancelled")])
def test_semantics_5_nothing_is_undone_after_a_second_cancel(ends: tuple[str, ...]) -> None:
    """semantics 5: it stops all, whatever the workflow would have undone."""
    script = Script(booking(compensate_on=ends), calls={"last": Never()})
    script.tell(e.CancelAsked(by="me"), e.CancelAsked(by="me"))
    assert script.started == ["book", "pay", "last"]


def test_semantics_20_nothing_else_is_due_while_something_is_undone() -> None:
    """Semantics 20: one after the other, whoever asks meanwhile."""
    state = Script(booking(), calls={"book": LOGICAL}).state
    first, second = Undoable("book", "", 1, None, None), Undoable("pay", "", 1, None, None)
    state.undoable = [first]
    assert is_due(state)
    state.undoing = second
    assert not is_due(state)


@pytest.mark.parametrize("ends", [("no_go", "halted", "cancelled"), ("no_go",), ("cancelled",)])
@pytest.mark.parametrize(
    ("stopping", "why"),
    [
        (None, "no_go"),
        ("halted", "halted"),
        ("budget", "no_go"),
        ("cancelled", "cancelled"),
        ("cancelled_hard", None),
    ],
)
def test_semantics_20_what_is_undone_depends_on_how_the_run_ends(
    stopping: str | None, why: str | None, ends: tuple[str, ...]
) -> None:
    """Semantics 20: a run that was cancelled twice undoes nothing, whatever the workflow says."""
    state = Script(booking(compensate_on=ends), calls={"book": LOGICAL}).state
    state.undoable, state.stopping = [Undoable("book", "", 1, None, None)], stopping
    assert is_due(state) is (why in ends)
