"""Examples 6, 11, 12 and 14: fan-outs that drive routing, and retries of single items."""

from __future__ import annotations

from typing import Any

import pytest
from tests.guide import twins
from tests.guide.conftest import Play, Played
from tests.guide.stage import Fails, Turns

from gonogo.core import decisions as d

# --- Example 6: verification with a loopback


def verified(play: Play, holds: list[bool], event: str, **more: Any) -> Played:
    """Play example 6 with a claim for each of `holds`."""
    answers = {
        "claims": [{"no": number} for number in range(len(holds))],
        "check-claim": lambda call: {"holds": holds[call.names["item"]["no"]]},
    }
    return play(twins.VERIFICATION_LOOPBACK, {**answers, **more}, event=event)


@pytest.mark.parametrize(
    ("event", "reached"),
    [("issue_opened", "tell-author"), ("issue_comment", "tell-commenter"), ("manual", None)],
)
def test_a_wrong_claim_leads_to_who_can_mend_it(play: Play, event: str, reached: str | None) -> None:
    """Example 6, H10, H11: the event's name chooses among the transitions; the first true one wins."""
    ran = verified(play, [True, False, True], event)
    tellers = [step for step in ran.started if step.startswith("tell-")]
    assert tellers == ([reached] if reached else [])
    assert len(ran.stage.called("check-claim")) == 3


def test_right_claims_lead_nowhere(play: Play) -> None:
    """Example 6: no transition is true, there is no goto to fall back to."""
    ran = verified(play, [True, True], "issue_opened")
    assert ran.why("tell-author") == ran.why("tell-commenter") == ("skipped", "not_routed")
    assert ran.verdict == "GO"


def test_on_finish_speaks_after_every_item_is_checked(play: Play) -> None:
    """Example 6, I.1 14, H24: once, after all, however early the wrong one was."""
    ran = verified(play, [False, False, True], "issue_opened")
    assert ran.started == ["claims", *["check-claim"] * 3, "tell-author"]
    assert [one.trigger for one in ran.decisions(d.Routing)] == ["on_finish", "on_success"]


@pytest.mark.parametrize("claims", [[], None])
def test_no_claims_are_nothing_wrong(play: Play, claims: object) -> None:
    """Example 6, H25, H28: on_finish is asked over an empty list too, and `any` of nothing is false."""
    ran = play(twins.VERIFICATION_LOOPBACK, {"claims": claims}, event="issue_opened")
    assert ran.why("check-claim") == ("skipped", "forEach_empty")
    assert [judged.result for judged in ran.judged("when")] == [False, False]
    assert ran.verdict == "GO"


def test_a_route_may_change_the_event(play: Play) -> None:
    """Example 6, G29: what is reached runs under `goto_event`; the first event stays readable beside it."""
    seen: dict[str, Any] = {}
    summary = {"summary": lambda call: seen.update(call.names["event"])}
    ran = verified(play, [False], "issue_opened", **{"tell-author": {"wish": "look_again"}, **summary})
    assert (ran["summary"].outcome, seen["name"], seen["original"]["name"]) == (
        "passed",
        "pr_updated",
        "issue_opened",
    )


def test_without_the_wish_nothing_is_summed_up(play: Play) -> None:
    """Example 6: `?.` on no output is undefined, so the transition is false."""
    assert verified(play, [False], "issue_opened").why("summary") == ("skipped", "not_routed")


# --- Examples 11 and 14: a control-plane list

LISTS = [twins.CONTROL_LIST_BY_TAGS, twins.CONTROL_LIST]


@pytest.mark.parametrize("text", LISTS)
@pytest.mark.parametrize(("open_doors", "mended"), [((), 0), (("east",), 1), (("north", "south"), 1)])
def test_one_bad_item_calls_the_remedy_once(
    play: Play, text: str, open_doors: tuple[str, ...], mended: int
) -> None:
    """Examples 11 and 14: however many items were bad, the transition is taken once."""
    ran = play(text, {"lock": lambda call: {"shut": call.names["item"] not in open_doors}})
    assert (len(ran.stage.called("lock")), len(ran.stage.called("locksmith"))) == (3, mended)
    assert ran.verdict == "GO"


def test_a_failed_item_is_isolated(play: Play) -> None:
    """Example 14: the others are done, the failed one is told, and it is NO-GO."""
    ran = play(
        twins.CONTROL_LIST, {"lock": lambda call: Fails() if call.names["item"] == "east" else {"shut": True}}
    )
    assert [item.outcome for item in ran["lock"].items or ()] == ["passed", "failed", "passed"]
    assert ran.verdict == "NO-GO"


@pytest.mark.parametrize(("limit", "rounds"), [(0, 1), (1, 2), (8, 9)])
def test_a_loop_over_all_of_history_ends_at_its_budget(play: Play, limit: int, rounds: int) -> None:
    """I.2 control-plane, H42, examples 11 and 14: one bad item stays in history for ever; N rounds more, no N + 1."""
    text = twins.CONTROL_LIST.replace("max_loops: 8", f"max_loops: {limit}").replace(
        "to: locksmith", "to: doors"
    )
    ran = play(text, {"lock": Turns({"shut": False}, {"shut": True})})
    assert len(ran.stage.called("doors")) == rounds
    assert ran.own_rules == ["doors/routing/loop_budget_exceeded"]
    assert ran.verdict == "NO-GO"


def test_a_loop_over_the_latest_wave_ends_when_it_is_good(play: Play) -> None:
    """H42: `outputs_wave` forgets what an earlier round said."""
    text = twins.CONTROL_LIST.replace("outputs_history", "outputs_wave").replace("to: locksmith", "to: doors")
    ran = play(text, {"lock": Turns({"shut": False}, {"shut": True})})
    assert (len(ran.stage.called("doors")), ran.verdict, ran.own_rules) == (2, "GO", [])


def test_without_start_routed_a_target_runs_with_the_rest(play: Play) -> None:
    """H41, examples 11 and 14 as printed: a transition's target isn't held back; when it is reached it runs again."""
    printed = twins.CONTROL_LIST.replace("start: routed, ", "")
    assert len(play(printed).stage.called("locksmith")) == 1
    assert len(play(printed, {"lock": {"shut": False}}).stage.called("locksmith")) == 2


# --- Example 12: retries of items


def test_only_the_failed_item_is_tried_again(play: Play) -> None:
    """Example 12, G23, I.1 4: independent retries; partial success."""
    turns = {"red": Turns({}), "blue": Turns(Fails(), {})}
    ran = play(twins.ITEM_RETRIES, {"weigh": lambda call: turns[call.names["item"]].next()})
    assert [(call.names["item"], call.attempt) for call in ran.stage.called("weigh")] == [
        ("red", 1),
        ("blue", 1),
        ("blue", 2),
    ]
    assert ran.verdict == "GO"


def test_an_items_retries_are_bounded_by_themselves(play: Play) -> None:
    """Example 12, G23: each item has its own count; while one waits the next has its turn."""
    ran = play(twins.ITEM_RETRIES, {"weigh": Fails()})
    seen = sorted((call.names["item"], call.attempt) for call in ran.stage.called("weigh"))
    assert seen == [("blue", 1), ("blue", 2), ("red", 1), ("red", 2)]
    assert (ran["weigh"].outcome, ran.verdict) == ("failed", "NO-GO")


def test_a_lost_item_is_wrong_not_unlucky(play: Play) -> None:
    """Example 12, H29: fail_if is judged per item; a logical failure isn't retried."""
    ran = play(twins.ITEM_RETRIES, {"weigh": lambda call: {"lost": call.names["item"] == "red"}})
    assert [item.outcome for item in ran["weigh"].items or ()] == ["failed", "passed"]
    assert len(ran.stage.called("weigh")) == 2
    assert [(issue.rule_id, issue.scope) for issue in ran["weigh"].issues] == [
        ("weigh_fail_if", "parcels#1[0]")
    ]


def test_the_wait_is_fixed_give_or_take_a_tenth(play: Play) -> None:
    """Example 12: mode fixed."""
    ran = play(twins.ITEM_RETRIES, {"weigh": Fails()})
    assert [4.5 <= one.delay_s * 1000 <= 5.5 for one in ran.decisions(d.Retrying)] == [True, True]


@pytest.mark.parametrize(("fanout", "calls"), [("reduce", 1), ("map", 2)])
def test_a_reduce_sees_all_a_map_each(play: Play, fanout: str, calls: int) -> None:
    """G30, example 12: what comes behind is chosen by `fanout`; the aggregate holds every item's result in order."""
    more = f"  total: {{type: command, depends_on: weigh, fanout: {fanout}, exec: echo}}\n"
    ran = play(twins.ITEM_RETRIES + more, {"weigh": lambda call: {"of": call.names["item"]}})
    seen = [call.names["outputs"]["weigh"] for call in ran.stage.called("total")]
    assert len(seen) == calls
    assert seen == (
        [[{"of": "red"}, {"of": "blue"}]] if fanout == "reduce" else [{"of": "red"}, {"of": "blue"}]
    )
