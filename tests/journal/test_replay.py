"""Replay decides again, calls nothing, and shows every difference (law 1, semantics.md 12)."""

from __future__ import annotations

import msgspec
import pytest

from gonogo.core.decisions import Ended, Started
from gonogo.core.events import AnswerGiven, CallDone, CallLost, CallParked, Evaluated, Resumed
from gonogo.core.plan import Edge, Expression, Need, Plan, Step
from gonogo.errors import JournalError
from gonogo.journal.codec import decode_line, encode_line
from gonogo.journal.replay import replay

PLAN = Plan(
    "test",
    {
        "list": Step("list", "script", for_each=True),
        "work": Step("work", "noop", depends_on=(Need((Edge("list"),)),), fanout="map", guarantee=(0,)),
        "sum": Step("sum", "noop", depends_on=(Need((Edge("work"),)),), if_condition=0),
    },
    expressions=(Expression("output != null", "condition"),),
)


def three_items(command):
    """`list` gives three items, everything else its scope."""
    return [1, 2, 3] if command.step == "list" else command.scope


@pytest.fixture
def records(drive):
    """A finished run, read back from its lines."""
    return [decode_line(encode_line(one)) for one in drive(PLAN, three_items)]


def test_a_run_replayed_within_its_version_has_no_difference(records) -> None:
    """Law 1: same plan, state and event in, same decisions out."""
    assert len(records) > 8
    assert replay(records) == []


def changed(records, seq: int, decision: int, **fields):
    """The records with one decision changed."""
    decisions = list(records[seq].decisions)
    decisions[decision] = msgspec.structs.replace(decisions[decision], **fields)
    record = msgspec.structs.replace(records[seq], decisions=tuple(decisions))
    return [*records[:seq], record, *records[seq + 1 :]]


def test_a_decision_that_differs_is_named_with_its_place(records) -> None:
    """The report says where, what was recorded and what is decided now."""
    ended = next(n for n, one in enumerate(records) if isinstance(one.decisions[0], Ended))
    (found,) = replay(changed(records, ended, 0, outcome="failed"))
    assert (found.seq, found.position, found.event) == (ended, 0, "call_done")
    assert found.sentence() == (
        f"record {ended} (call_done), decision 1: recorded list: failed; decided again: list: passed"
    )


def test_a_decision_too_few_or_too_many_is_a_difference(records) -> None:
    """Both sides are compared to their ends."""
    short = msgspec.structs.replace(records[0], decisions=records[0].decisions[:-1])
    (found,) = replay([short, *records[1:]])
    assert found.recorded is None
    assert isinstance(found.decided, Started)
    assert "recorded nothing; decided again: list: started" in found.sentence()


def test_what_follows_from_a_difference_is_not_reported(records) -> None:
    """One cause, one report: later records follow from a state that is no longer theirs."""
    assert len(replay(changed(records, 1, 0, outcome="failed"))) == 1


def test_an_event_that_makes_no_sense_is_a_difference_not_a_crash(records) -> None:
    """A batch with too few answers, say."""
    asked = next(n for n, one in enumerate(records) if isinstance(one.event, Evaluated))
    odd = msgspec.structs.replace(records[asked], event=Evaluated(batch=1, results=()))
    (found,) = replay([*records[:asked], odd, *records[asked + 1 :]])
    assert found.error is not None
    assert "deciding again failed" in found.sentence()


def test_a_resumed_run_is_replayed_from_its_fold(drive) -> None:
    """What is derived and not recorded is found again, as the resuming host did."""
    lost = iter([True, False])

    def outcome(command):
        if command.step == "list":
            return [1, 2, 3]
        doubtful = command.scope.endswith("[1]") and next(lost, False)
        return CallLost(call=command.call) if doubtful else command.scope

    records = drive(PLAN, outcome, events=[Resumed()])
    assert replay(records) == []


def test_after_a_resume_differences_are_found_again(drive) -> None:
    """The resuming host began from the recorded decisions, and so does the replay."""
    parked = Plan("parked", {"ask": Step("ask", "human-input"), "b": Step("b", "noop")})

    def outcome(command):
        return CallParked(call=command.call) if command.step == "ask" else None

    records = drive(parked, outcome, events=[Resumed(), AnswerGiven(step="ask", text="yes")])
    assert replay(records) == []
    ended = next(n for n, one in enumerate(records) if isinstance(one.decisions[0], Ended))
    last = len(records) - 1
    odd = changed(changed(records, ended, 0, reason="odd"), last, -1, verdict="HOLD")
    assert [found.seq for found in replay(odd)] == [ended, last]


def test_another_plan_shows_what_would_differ(records) -> None:
    """`replay --with`: the same events meet another workflow."""
    steps = {**PLAN.steps, "list": msgspec.structs.replace(PLAN.steps["list"], for_each=False)}
    found = replay(records, plan=msgspec.structs.replace(PLAN, steps=steps))
    assert found
    assert found[0].seq == 0 or found[0].event == "call_done"


def test_the_same_plan_shows_nothing(records) -> None:
    """`replay --with` the run's own plan."""
    assert replay(records, plan=PLAN) == []


def test_records_without_a_start_cannot_be_replayed(records) -> None:
    """The plan is in the first record."""
    for part in ([], records[1:]):
        with pytest.raises(JournalError, match="the start of the run is missing"):
            replay(part)


def test_parked_runs_replay_too(drive) -> None:
    """HOLD is a decision like any other."""
    assert replay(drive(PLAN, lambda command: CallParked(call=command.call, prompt="?"))) == []


def test_values_of_any_shape_replay(drive) -> None:
    """What was journaled reads back equal, and so decides alike."""
    odd = {"a": [1.5, None, "é\u2028", {"": True}], "n": 10**30}
    records = drive(PLAN, lambda command: CallDone(call=command.call, output=odd))
    assert replay([decode_line(encode_line(one)) for one in records]) == []
