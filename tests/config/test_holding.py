"""The keys of waits for people: who may answer, how many must, who is told meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from gonogo.core.graph import Graph
from gonogo.core.plan import Handover, Hold, Reminder

TEXT = """
steps:
  ask: {{type: human-input, prompt: "go?", {keys}}}
  tell: {{type: noop}}
  ship: {{type: noop, depends_on: ask}}
"""


def test_the_keys_of_a_wait_are_its_terms_in_the_plan(load_text: Any) -> None:
    """Durations in seconds, days among them."""
    keys = """approvers: [ana, "team-*"], quorum: 2, timeout: 3d, remind: {every: 4h, run: tell, max: 3},
    escalate: {after: 1d, run: tell, approvers: boss, quorum: 1}"""
    plan = load_text(TEXT.format(keys=keys)).plan
    assert plan.steps["ask"].hold == Hold(
        ("ana", "team-*"), 2, Reminder("tell", 14400.0, 3), Handover(86400.0, "tell", ("boss",), 1)
    )
    assert plan.steps["ask"].timeout_s == 3 * 86400.0


def test_a_step_that_says_nothing_has_no_terms(load_text: Any) -> None:
    """Anybody answers with any text."""
    assert load_text(TEXT.format(keys="timeout: 1h")).plan.steps["ask"].hold is None


def test_who_is_told_runs_only_when_it_is_time(load_text: Any) -> None:
    """It is held back like what on_fail runs."""
    for keys in ("remind: {every: 1h, run: tell}", "escalate: {after: 1h, run: tell}"):
        assert Graph(load_text(TEXT.format(keys=keys)).plan).held_back == {"tell"}


@pytest.mark.parametrize(
    ("keys", "codes"),
    [
        ("quorum: 2", []),
        ('approvers: [ana, "*"], quorum: 5', []),
        ("approvers: [ana, ben], quorum: 2", []),
        ("approvers: [ana], quorum: 2", ["hold.quorum"]),
        ('approvers: [ana, " ANA "], quorum: 2', ["hold.quorum"]),
        ("approvers: [ana], quorum: 2, escalate: {after: 1h, approvers: [ben]}", []),
        ("remind: {every: 1h, run: ask}", ["hold.own"]),
        ("escalate: {after: 1h, run: ask}", ["hold.own"]),
        ("remind: {every: 1h, run: ship}", ["hold.order"]),
        ("remind: {every: 1h, run: nobody}", ["reference.unknown"]),
        ("escalate: {after: 1h, approvers: [boss]}", ["hold.approvers"]),
        ("escalate: {after: 1h, quorum: 1}", ["hold.quorum"]),
        ("quorum: 2, escalate: {after: 1h, quorum: 2}", ["hold.quorum"]),
        ("escalate: {after: 1h}", ["value.invalid"]),
        ("quorum: 0", ["value.invalid"]),
        ('quorum: 2, default: "perhaps"', ["hold.default"]),
        ('quorum: 2, default: "no"', []),
        ('approvers: [""]', ["value.invalid"]),
    ],
)
def test_terms_that_cant_be_met_are_refused(load_text: Any, refuse: Any, keys: str, codes: list[str]) -> None:
    """Each says what to change."""
    text = TEXT.format(keys=keys)
    if not codes:
        assert load_text(text).plan.steps["ask"].hold is not None
        return
    problems = refuse(text)
    assert [problem.code for problem in problems] == codes
    assert all(problem.suggestion for problem in problems if problem.code.startswith("hold."))


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("timeout: 1h, remind: {every: 1h, run: tell}", "key.idle"),
        ("timeout: 1h, escalate: {after: 2h, run: tell}", "key.idle"),
        ('timeout: 1h, quorum: 2, default: "yes"', "hold.silence"),
    ],
)
def test_terms_that_are_hardly_meant_are_told(load_text: Any, keys: str, code: str) -> None:
    """What comes after the end of the wait; an approval by silence."""
    assert code in [problem.code for problem in load_text(TEXT.format(keys=keys)).problems]


@pytest.mark.parametrize("key", ["approvers: [a]", "quorum: 2", "remind: {every: 1h, run: tell}"])
def test_a_step_that_asks_nobody_has_no_terms(refuse: Any, key: str) -> None:
    """The key would do nothing."""
    problems = refuse(f"steps: {{a: {{type: noop, {key}}}, tell: {{type: noop}}}}")
    assert [problem.code for problem in problems] == ["key.needs"]


def test_what_reminds_may_run_often(load_text: Any) -> None:
    """It is counted, so it is no loop without a budget."""
    text = """
    steps:
      ask: {type: human-input, prompt: p, remind: {every: 1h, run: tell}}
      tell: {type: noop}
      after: {type: noop, depends_on: tell}
    """
    assert [problem.code for problem in load_text(text).problems] == []
