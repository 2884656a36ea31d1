"""Example 20: every construct in one flow, from a list of statements to a comment."""

from __future__ import annotations

from typing import Any

import pytest
from tests.guide import twins
from tests.guide.conftest import Play, Played
from tests.guide.stage import Fails, Turns

GOOD: dict[str, Any] = {"publish": {"number": 12}, "digest": {"text": "all well"}}


def flow(play: Play, event: str = "issue_opened", text: str = twins.WHOLE_FLOW, **changes: Any) -> Played:
    """Play example 20; `changes` are answers by step, with `_` for `-`."""
    options = {"env": changes.pop("env", {}), "event": event}
    return play(
        text, {**GOOD, **{name.replace("_", "-"): answer for name, answer in changes.items()}}, **options
    )


def test_when_all_holds_the_comment_is_posted(play: Play) -> None:
    """Example 20: list, map, fan-in, transition, permission, comment; nobody is asked again."""
    ran = flow(play)
    assert ran.verdict == "GO"
    assert ran.started == ["statements", "digest", "verify", "verify", "tally", "permit", "publish"]
    assert ran.why("ask-author") == ran.why("ask-commenter") == ("skipped", "not_routed")


def test_a_comment_event_goes_as_far_as_the_permission(play: Play) -> None:
    """Example 20: `on` keeps the comment and the digest to opened issues."""
    ran = flow(play, "issue_comment")
    assert set(ran.view.excluded) == {"publish", "digest"}
    assert (ran["permit"].outcome, ran.stage.called("publish"), ran.verdict) == ("passed", [], "GO")


@pytest.mark.parametrize(
    ("event", "asked"), [("issue_opened", "ask-author"), ("issue_comment", "ask-commenter")]
)
def test_a_statement_that_doesnt_hold_goes_back_to_its_author(play: Play, event: str, asked: str) -> None:
    """Example 20: one item fails by its detector, isn't retried, and on_finish routes by the event."""
    ran = flow(
        play, event, verify=lambda call: {"holds": call.names["item"]["no"] == 1}, tally={"all_hold": False}
    )
    assert [item.outcome for item in ran["verify"].items or ()] == ["passed", "failed"]
    assert len(ran.stage.called("verify")) == 2
    assert [step for step in ran.started if step.startswith("ask-")] == [asked]
    assert ran.verdict == "NO-GO"


def test_nothing_is_posted_when_something_doesnt_hold(play: Play) -> None:
    """Example 20: no transition to the permission, so the comment's `if` is false or its gate closed."""
    ran = flow(play, verify={"holds": False}, tally={"all_hold": False})
    assert ran["permit"].outcome == ran["publish"].outcome == "skipped"
    assert ran.stage.called("publish") == []


def test_a_crashed_check_is_tried_once_more(play: Play) -> None:
    """Example 20: a transient fault of one item costs one more call, of that item."""
    turns = {1: Turns(Fails(), {"holds": True}), 2: Turns({"holds": True})}
    ran = flow(play, verify=lambda call: turns[call.names["item"]["no"]].next())
    seen = sorted((call.names["item"]["no"], call.attempt) for call in ran.stage.called("verify"))
    assert seen == [(1, 1), (1, 2), (2, 1)]
    assert ran.verdict == "GO"


@pytest.mark.parametrize(
    "statements",
    [
        [{"no": number, "text": "x"} for number in range(6)],
        [{"no": "1", "text": "x"}],
        {"no": 1, "text": "x"},
    ],
)
def test_a_list_of_the_wrong_shape_or_size_goes_nowhere(play: Play, statements: object) -> None:
    """Example 20, H14: `Array.isArray(output)` and the cap are judged on the list itself; no item is called."""
    ran = flow(play, statements=statements)
    assert (ran["statements"].outcome, ran.stage.called("verify")) == ("failed", [])
    assert ran.why("tally") == ("skipped", "dependency_failed")
    assert (ran.stage.called("publish"), ran.verdict) == ([], "NO-GO")


def test_a_fan_in_without_a_verdict_is_a_failure(play: Play) -> None:
    """Example 20: its guarantee asks for a boolean; without one on_success doesn't act."""
    ran = flow(play, tally={"all_hold": "yes"})
    assert (ran["tally"].outcome, ran.stage.called("permit")) == ("failed", [])
    assert ran.verdict == "NO-GO"


def test_a_permission_that_is_denied_is_no_failure(play: Play) -> None:
    """Example 20: the policy step passed and said no: the comment is skipped by its `if`, and that is GO."""
    ran = flow(play, permit={"granted": False})
    assert (ran.why("publish"), ran.verdict) == (("skipped", "if_condition"), "GO")


def test_a_permission_that_says_nothing_blocks_the_comment(play: Play) -> None:
    """Example 20: a broken guarantee of the policy gate: nothing is posted, and it is NO-GO."""
    ran = flow(play, permit={})
    assert (ran["permit"].outcome, ran.stage.called("publish"), ran.verdict) == ("failed", [], "NO-GO")


def test_a_rehearsal_stops_right_before_the_post(play: Play) -> None:
    """Example 20: `if` was true, `assume` isn't: the second belt."""
    ran = flow(play, env={"REHEARSAL": "true"})
    assert (ran.why("publish"), ran.stage.called("publish"), ran.verdict) == (("skipped", "assume"), [], "GO")


def test_a_post_without_a_number_fails_after_the_fact(play: Play) -> None:
    """Example 20: the guarantee after posting; one call."""
    ran = flow(play, publish={})
    assert (ran["publish"].outcome, len(ran.stage.called("publish")), ran.verdict) == ("failed", 1, "NO-GO")


def test_the_digest_may_fail_softly(play: Play) -> None:
    """Example 20: troubles are reported, and everything else goes on; GO."""
    ran = flow(play, digest={"troubles": ["too long"]})
    assert (ran["digest"].outcome, ran.rules("digest")) == ("tolerated", ["digest_fail_if"])
    assert (ran["publish"].outcome, ran.verdict) == ("passed", "GO")


def test_without_reduce_the_fan_in_runs_for_each_item(play: Play) -> None:
    """H44, example 20 as printed: a command behind a map maps on; the transition is still asked once, of the whole."""
    ran = flow(play, text=twins.WHOLE_FLOW.replace("    fanout: reduce\n", ""))
    assert len(ran.stage.called("tally")) == 2
    assert [judged.result for judged in ran.judged("when") if judged.step == "tally"] == [False]


def test_without_start_routed_the_permission_is_asked_too_early(play: Play) -> None:
    """H41, example 20 as printed: the permission runs in the first wave, before anything is known to hold."""
    ran = flow(play, text=twins.WHOLE_FLOW.replace("    start: routed\n    exec", "    exec"))
    assert ran.started.index("permit") < ran.started.index("tally")
    assert len(ran.stage.called("permit")) == 2
