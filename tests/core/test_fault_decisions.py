"""What decisions about faults, budgets, people and undoing say to whoever reads the journal."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL

from gonogo.core import decisions as d
from gonogo.core.faults import Issue

ISSUE = Issue("budget/calls_exceeded", "the run has used 3 calls of its budget of 2 (calls)")


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        (d.Refused("a", "", "b", "max_runs", 3, 3, ISSUE), "refused to run b: max_runs allows 3"),
        (d.Refused("a", "", "b", "budget.calls", 3, 2, ISSUE), ISSUE.message),
        (d.Refused("a", "", "b", "budget.calls", 3, 2), "budget.calls is used up"),
        (d.OneShotSkip("a", "", "b"), "not run again for b: it is one_shot and has run"),
        (d.Flagged("a", "", ISSUE), ISSUE.message),
        (d.Flagged("a", ""), "flagged"),
        (d.Held("a", "", "ship it?"), "waits for a person: ship it?"),
        (d.Voted("a", "", "yes", "ana"), "ana said yes"),
        (d.NotTaken("a", "", "ana", "words"), "the answer of ana was not taken: it takes other words"),
        (d.NotTaken("a", "", "", "novel"), "the answer of a person was not taken: novel"),
        (d.Reminded("a", "", 2), "reminder 2"),
        (d.Reminded("a", "", 2, unsent="the run stops"), "reminder 2 not sent: the run stops"),
        (d.HandedOver("a", "", ("ana", "ben")), "may be answered by ana, ben"),
        (d.HandedOver("a", ""), "is escalated"),
        (d.HandedOver("a", "", unsent="the run stops"), "is escalated; nobody was told: the run stops"),
        (d.WaitsOn("a", ""), "waits on"),
        (d.Doubted("a", "", "the line broke"), "in doubt: the line broke"),
        (d.Answered("a", "", "yes", "ana", "out"), "answered by ana"),
        (d.Answered("a", "", "yes"), "answered by a person"),
        (d.Answered("a", "", "", "default", fault=LOGICAL), "answered by default"),
        (d.Chosen("a", "", "retry", "ana"), "ana chose: retry"),
        (d.Chosen("a", "", "retry"), "a person chose: retry"),
        (d.TimeLimited(4, 90.0), "has until 90 s"),
        (d.Undone("a", "", 1, "undo"), "undone by undo"),
        (d.Undone("a", "", 1, "undo", "failed"), "not undone: undo failed"),
    ],
)  # fmt: skip
def test_a_decision_says_what_was_decided(decision: d.AnyDecision, sentence: str) -> None:
    """In one sentence, with the names that it is about."""
    assert decision.sentence() == sentence


@pytest.mark.parametrize(
    ("event", "detail", "sentence"),
    [
        ("detected", {}, "fault 2 detected (a/exit)"),
        ("isolated", {}, "fault 2 isolated"),
        ("recovery.attempted", {"retry": 1}, "fault 2 recovery.attempted, retry: 1"),
        ("escalated", {"to": ["b", "c"], "by": ("d", 1)}, "fault 2 escalated, to: b, c, by: d, 1"),
    ],
)
def test_a_fault_event_says_which_fault_it_is_about(
    event: str, detail: dict[str, object], sentence: str
) -> None:
    """By its number; the rule is named where it begins."""
    told = d.FaultEvent("a", "", event, 2, 1, "command.exit", "logical", "a/exit", detail)
    assert told.sentence() == sentence


def test_a_fault_without_a_rule_is_named_by_its_kind() -> None:
    """Something must tell it apart."""
    assert (
        d.FaultEvent("a", "", "detected", 1, 1, "command.exit").sentence()
        == "fault 1 detected (command.exit)"
    )


def test_a_refusal_and_a_remark_are_fatal_unless_they_say_otherwise() -> None:
    """Law 4: what nobody has thought about counts as bad."""
    assert d.Refused("a", "").fatal
    assert d.Flagged("a", "").fatal
