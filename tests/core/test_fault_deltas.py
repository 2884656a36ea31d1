"""What each decision about faults, budgets, people and undoing changes in a run's state (semantics 12, law 1)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, Never, Parks, Script, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.apply import apply
from gonogo.core.fault_decisions import Vote
from gonogo.core.faults import Issue
from gonogo.core.gated import Gated
from gonogo.core.replays import keep
from gonogo.core.state import Node, State, Undoable
from gonogo.errors import Bug

ISSUE = Issue("budget/exceeded", "enough")


def running() -> tuple[State, Node]:
    """A run whose step is called."""
    script = Script(plan(step("a")), calls={"a": Never()})
    return script.state, script.node("a")


def holding(**keys: Any) -> tuple[State, Node]:
    """A run whose step waits for a person, by a timer if `keys` name one."""
    state, node = running()
    apply(state, d.Held("a", "", "well?", **keys))
    return state, node


def clocked(limit_s: float = 50.0) -> State:
    """A run at second 30 that has used seven seconds before, and whose alarm 9 was set at second 10."""
    state, _ = running()
    state.at, state.spent.time_s = 10.0, 7.0
    apply(state, d.TimeLimited(timer=9, due_s=limit_s))
    state.at = 30.0
    return state


def known(state: State) -> Any:
    """What a refusal or a remark leaves."""
    return state.run_issues, state.breaches


# --- budgets


@pytest.mark.parametrize("kind", [d.Refused, d.Flagged])
def test_what_is_fatal_is_a_breach_and_its_issue_is_the_runs(kind: Any) -> None:
    """Where it was met is kept."""
    state, _ = running()
    assert apply(state, kind("a", "l#1[0]", issue=ISSUE)) is None
    assert known(state) == ([ISSUE], [("a", "l#1[0]")])


@pytest.mark.parametrize("kind", [d.Refused, d.Flagged])
def test_what_is_not_fatal_is_no_breach(kind: Any) -> None:
    """It is worth saying all the same."""
    state, _ = running()
    apply(state, kind("a", "", issue=ISSUE, fatal=False))
    assert known(state) == ([ISSUE], [])


@pytest.mark.parametrize("kind", [d.Refused, d.Flagged])
def test_without_an_issue_none_is_kept(kind: Any) -> None:
    """The breach alone."""
    state, _ = running()
    apply(state, kind("a", ""))
    assert known(state) == ([], [("a", "")])


def test_an_alarm_is_remembered_and_the_time_counts_from_then() -> None:
    """The timer is the run's, not a step's."""
    state = clocked()
    assert (state.budget_timer, state.active_since, state.timers[9]) == (9, 10.0, (50.0, None))


def test_when_the_time_is_up_the_time_since_the_alarm_was_set_is_spent() -> None:
    """On top of what was spent before; there is no alarm any more."""
    state = clocked()
    apply(state, d.Refused("", "", limit="budget.time_s", issue=ISSUE))
    assert (state.budget_timer, state.spent.time_s) == (None, 27.0)


def test_another_limit_leaves_the_alarm_alone() -> None:
    """The run's clock goes on."""
    state = clocked()
    apply(state, d.Refused("", "", limit="budget.calls", issue=ISSUE))
    assert (state.budget_timer, state.spent.time_s) == (9, 7.0)


def test_a_cleared_alarm_stops_the_clock() -> None:
    """Semantics 23: the time a run is parked doesn't count."""
    state = clocked()
    assert apply(state, d.TimerCleared(9)) is None
    assert (state.budget_timer, state.spent.time_s) == (None, 27.0)
    assert 9 not in state.timers


def test_a_cleared_timer_of_a_step_leaves_the_clock_alone() -> None:
    """And the step has none any more."""
    state, node = holding(timer=4, due_s=9.0)
    state.budget_timer, state.active_since, state.at = 9, 1.0, 3.0
    apply(state, d.TimerCleared(4))
    assert (state.budget_timer, state.spent.time_s, node.timer) == (9, 0.0, None)
    assert state.timers == {}


def test_clearing_a_timer_that_has_gone_off_changes_no_other() -> None:
    """It was forgotten as it did."""
    state, node = holding(timer=4, due_s=9.0)
    apply(state, d.TimerCleared(3))
    assert (state.timers, node.timer) == ({4: (9.0, node)}, 4)


# --- waits for people


def test_a_step_that_waits_for_a_person_holds_no_slot_and_keeps_the_question() -> None:
    """The decision itself is what is known of the wait."""
    state, node = running()
    held = d.Held("a", "", "well?")
    assert apply(state, held) is node
    assert (node.status, node.hold, node.timer, state.slots) == (life.HOLDING, held, None, 0)


@pytest.mark.parametrize(
    ("keys", "due_s"),
    [({"due_s": 9.0, "wake_s": 4.0}, 4.0), ({"wake_s": 4.0}, 4.0), ({"due_s": 9.0}, 9.0),
     ({"wake_s": 0.0, "due_s": 9.0}, 0.0)],
)  # fmt: skip
def test_a_wait_wakes_at_what_comes_first_or_at_its_end(keys: dict[str, float], due_s: float) -> None:
    """Without `wake_s` there is only the end to come."""
    state, node = holding(timer=4, **keys)
    assert (state.timers, node.timer, state.last_timer) == ({4: (due_s, node)}, 4, 4)


@pytest.mark.parametrize("keys", [{"timer": 4}, {"due_s": 9.0}, {"wake_s": 9.0}, {}])
def test_a_wait_without_a_timer_or_a_time_sets_none(keys: dict[str, Any]) -> None:
    """It lasts until somebody answers."""
    state, node = holding(**keys)
    assert (state.timers, node.timer) == ({}, None)


def test_a_wait_for_a_run_beneath_makes_that_run_known() -> None:
    """What it does is in its own journal."""
    state, _ = holding(details={"child": "run-2"})
    assert list(state.known_children) == ["run-2"]


@pytest.mark.parametrize("details", [{}, {"child": 3}, {"other": "run-2"}])
def test_a_wait_for_a_person_makes_no_run_known(details: dict[str, Any]) -> None:
    """Details are hostile input."""
    state, _ = holding(details=details)
    assert state.known_children == {}


def test_votes_are_kept_in_their_order() -> None:
    """One after the other, and nothing else changes."""
    state, node = holding(quorum=2)
    before = node.hold
    assert apply(state, d.Voted("a", "", "yes", "ana")) is node
    apply(state, d.Voted("a", "", "no", "ben"))
    assert node.hold is not None
    assert before is not None
    assert node.hold.votes == (Vote("ana", "yes"), Vote("ben", "no"))
    assert (node.hold.quorum, node.hold.prompt) == (before.quorum, before.prompt)


def test_a_reminder_says_when_the_next_one_is_due() -> None:
    """And how many there were."""
    state, node = holding(remind_s=5.0)
    assert apply(state, d.Reminded("a", "", 2, 12.0)) is node
    assert node.hold is not None
    assert (node.hold.reminders, node.hold.remind_s) == (2, 12.0)


def test_a_handover_changes_who_may_answer_and_comes_once() -> None:
    """No other handover is to come."""
    state, node = holding(approvers=("ana",), quorum=2, escalate_s=5.0)
    assert apply(state, d.HandedOver("a", "", ("ana", "zoe"), 1)) is node
    assert node.hold is not None
    assert (node.hold.approvers, node.hold.quorum, node.hold.escalate_s) == (("ana", "zoe"), 1, None)


def test_a_wait_that_goes_on_has_its_next_timer() -> None:
    """The one before has gone off."""
    state, node = holding(timer=4, due_s=30.0, wake_s=5.0)
    del state.timers[4]
    assert apply(state, d.WaitsOn("a", "", 5, 12.0)) is node
    assert node.hold is not None
    assert (node.hold.timer, node.hold.wake_s, node.hold.due_s) == (5, 12.0, 30.0)
    assert (node.timer, state.timers) == (5, {5: (12.0, node)})


@pytest.mark.parametrize(("timer", "wake_s"), [(None, None), (None, 12.0), (5, None)])
def test_a_wait_that_goes_on_with_nothing_to_come_has_no_timer(
    timer: int | None, wake_s: float | None
) -> None:
    """It lasts until somebody answers."""
    state, node = holding(timer=4, wake_s=5.0)
    del state.timers[4]
    apply(state, d.WaitsOn("a", "", timer, wake_s))
    assert node.hold is not None
    assert (node.hold.timer, node.hold.wake_s, node.timer, state.timers) == (timer, wake_s, None, {})


@pytest.mark.parametrize(
    "decision", [d.Voted("a", ""), d.Reminded("a", ""), d.HandedOver("a", ""), d.WaitsOn("a", "")]
)
def test_nothing_is_said_of_a_wait_that_is_not_there(decision: Any) -> None:
    """Law 4: a record that can't be is a bug, and says of which step."""
    state, _ = running()
    with pytest.raises(Bug, match=r"step a in scope \(run\) waits for nobody"):
        apply(state, decision)


def test_a_call_in_doubt_keeps_why() -> None:
    """What a person must know for an answer; no slot is held meanwhile."""
    state, node = running()
    assert apply(state, d.Doubted("a", "", "the line broke")) is node
    assert (node.status, node.reason, state.slots) == (life.IN_DOUBT, "the line broke", 0)


# --- answers


def answered(**keys: Any) -> tuple[State, Node]:
    """A wait with a timer, whose gate was not done, and which is answered at second 6."""
    state, node = holding(timer=4, due_s=9.0)
    node.gate, node.effect, state.at = Gated(), "unknown", 6.0
    assert apply(state, d.Answered("a", "", "yes", "ana", **keys)) is node
    return state, node


def test_an_answer_is_what_the_call_came_to() -> None:
    """As if the call had given it now, with the name of who did."""
    _, node = answered(output={"text": "yes"})
    assert node.result == e.CallDone(at=6.0, call=0, output={"text": "yes"}, meta={"answered_by": "ana"})
    assert node.effect == "done"


def test_an_answer_may_be_the_calls_failure() -> None:
    """A person says that it did nothing, or the time is over."""
    _, node = answered(fault=LOGICAL)
    assert node.result == e.CallFailed(at=6.0, call=0, fault=LOGICAL)
    assert node.effect == "none"


@pytest.mark.parametrize("keys", [{"output": 1}, {"fault": LOGICAL}])
def test_an_answer_ends_the_wait(keys: dict[str, Any]) -> None:
    """Its timer, its question and what the call's gate still waited for are forgotten."""
    state, node = answered(**keys)
    assert (node.timer, node.hold, node.gate, state.timers) == (None, None, None, {})


def test_a_choice_ends_the_wait_and_is_no_result() -> None:
    """What comes after it is decided next."""
    state, node = holding(timer=4, due_s=9.0)
    assert apply(state, d.Chosen("a", "", "accept", "ana")) is node
    assert (node.timer, node.hold, node.result, state.timers) == (None, None, None, {})


# --- undoing


def undoing() -> State:
    """A run in the middle of undoing what a step did under a key."""
    state, _ = running()
    state.undoing = Undoable("a", "", 1, None, None)
    keep(state, "a", "", e.CallDone(call=1, key="k"))
    return state


def test_what_is_undone_is_known_with_who_undid_it() -> None:
    """Its keys are good for another call."""
    state = undoing()
    assert apply(state, d.Undone("a", "", 1, "undo")) is None
    assert (state.undoing, state.undone, state.answers) == (None, {("a", ""): "undo"}, {})


def test_what_could_not_be_undone_is_still_there() -> None:
    """Nothing is forgotten of it, though its turn is over."""
    state = undoing()
    apply(state, d.Undone("a", "", 1, "undo", outcome="failed"))
    assert (state.undoing, state.undone, list(state.answers)) == (None, {}, [("a", "k")])


@pytest.mark.parametrize("decision", [d.OneShotSkip("a", "", "b"), d.NotTaken("a", "", "ana", "words")])
def test_what_only_explains_changes_nothing(decision: Any) -> None:
    """It is there for people to read."""
    state, node = holding(timer=4, due_s=9.0)
    before = (node.status, node.hold, dict(state.timers), node.outcome)
    assert apply(state, decision) is None
    assert (node.status, node.hold, state.timers, node.outcome) == before


def test_a_person_is_asked_about_the_step_in_its_scope() -> None:
    """Another item waits on."""
    script = Script(
        plan(step("l", for_each=True), step("a", "l", fanout="map")), calls={"l": [1, 2], "a": Parks()}
    )
    state = script.state
    apply(state, d.Chosen("a", "l#1[1]", "accept", "ana"))
    assert script.node("a", "l#1[0]").hold is not None
    assert script.node("a", "l#1[1]").hold is None
