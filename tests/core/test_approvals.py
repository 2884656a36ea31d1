"""Who may answer a wait, how many must, who is reminded, and who may answer after a while."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.script import LOGICAL, TRANSIENT, Parks, Script, block, plan, step

from gonogo.core import approvals
from gonogo.core import decisions as d
from gonogo.core.apply import apply
from gonogo.core.events import AnswerGiven, CancelAsked, Resumed
from gonogo.core.fault_decisions import Held, Vote
from gonogo.core.plan import Handover, Hold, Reminder, Retry

HOUR = 3600.0


def asking(hold: Hold | None = None, parks: Parks | None = None, **more: Any) -> Script:
    """A step that asks, one that is told of it, and one behind the answer."""
    notify = step("notify", **more.pop("notify", {}))
    steps = (step("ask", hold=hold, **more.pop("ask", {})), notify, step("ship", "ask"))
    calls = {"ask": parks or Parks(), **more.pop("calls", {})}
    return Script(plan(*steps, **more), calls=calls)


def said(text: str, by: str = "", step: str = "ask") -> AnswerGiven:
    """An answer."""
    return AnswerGiven(step=step, text=text, by=by)


def untaken(script: Script) -> list[str]:
    """The reasons why answers weren't taken."""
    return [decision.reason for decision in script.decided(d.NotTaken)]


# --- quorum


def test_an_approval_waits_for_its_quorum() -> None:
    """Two of them: after the first the run waits on, and says how far it is."""
    script = asking(Hold(quorum=2)).tell(said("yes", "ana"))
    assert script.verdict == "HOLD"
    assert script.state.finished is not None
    assert [(wait.approved, wait.quorum) for wait in script.state.finished.waits] == [(1, 2)]
    assert script.tell(said("yes", "ben")).verdict == "GO"


def test_the_output_of_an_approval_names_all_who_answered() -> None:
    """In the order in which they did."""
    script = asking(Hold(quorum=2)).tell(said("Yes ", "ana"), said("yes", "ben"))
    assert script.node("ask").output == {
        "text": "yes",
        "by": "ben",
        "answers": [{"by": "ana", "text": "yes"}, {"by": "ben", "text": "yes"}],
    }


def test_one_no_is_a_no_whatever_was_said_before() -> None:
    """The step passed; what it means is said by whoever reads the text."""
    script = asking(Hold(quorum=3)).tell(said("yes", "ana"), said("no", "ben"))
    assert (script.node("ask").output["text"], script.outcome("ask")) == ("no", "passed")


@pytest.mark.parametrize(
    "again",
    [
        "ana",
        "ANA",
        " ana ",
        "a\u200bna",
        "\u202eana",
        "ana\ufe0f",
        "ana\U000e0101",
        "a\u180bna",
        "ａｎａ",
        "a\nna",
        "\ufeffana",
    ],
)
def test_the_same_approver_counts_once(again: str) -> None:
    """However the name is written."""
    script = asking(Hold(quorum=2)).tell(said("yes", "ana"), said("yes", again))
    assert (script.verdict, untaken(script)) == ("HOLD", ["counted"])


@pytest.mark.parametrize(
    ("name", "again"), [("Jos\u00e9", "jose\u0301"), ("straße", "STRASSE"), ("ﬁona", "fiona"), ("ǅ", "ǆ")]
)
def test_a_name_is_the_same_however_unicode_writes_it(name: str, again: str) -> None:
    """Composed or not, with ligatures or without."""
    script = asking(Hold(quorum=2)).tell(said("yes", name), said("yes", again))
    assert (script.verdict, untaken(script)) == ("HOLD", ["counted"])


@pytest.mark.parametrize("by", ["", " ", "\u200b", "\u2066\u2069", "a" * 201])
def test_what_is_no_name_gives_no_vote(by: str) -> None:
    """Nothing that can be seen, or more than anybody is called."""
    script = asking(Hold(quorum=1)).tell(said("yes", by))
    assert (script.verdict, untaken(script)) == ("HOLD", ["unnamed"])


def test_no_other_sign_becomes_one_of_a_pattern() -> None:
    """Unicode has stars and question marks that normalising would make plain ones."""
    wild = [sign for sign in map(chr, range(0x110000)) if set(approvals.same(sign)) & set("*?")]
    assert wild == ["*", "?"]
    assert not approvals.is_listed(("＊",), "ana")


@given(st.text(max_size=20))
def test_a_name_as_it_is_compared_is_compared_as_it_is(name: str) -> None:
    """Once is enough."""
    assert approvals.same(approvals.same(name)) == approvals.same(name)


def test_whoever_said_yes_cannot_say_no_any_more() -> None:
    """An answer is an answer."""
    script = asking(Hold(quorum=2)).tell(said("yes", "ana"), said("no", "ana"))
    assert (script.verdict, untaken(script)) == ("HOLD", ["counted"])


def test_an_approval_takes_no_other_words_than_yes_and_no() -> None:
    """Nothing is guessed from what else somebody writes."""
    script = asking(Hold(quorum=1)).tell(said("yes, but not today", "ana"))
    assert (script.verdict, untaken(script)) == ("HOLD", ["words"])


def test_only_those_who_are_listed_count() -> None:
    """By name or by pattern, without regard to case."""
    hold = Hold(approvers=("ana", "release-*"), quorum=2)
    script = asking(hold).tell(said("yes", "mallory"), said("yes", "Ana"), said("yes", "release-bot"))
    assert (script.verdict, untaken(script)) == ("GO", ["not_listed"])


def test_a_question_may_have_approvers_without_being_an_approval() -> None:
    """Any text answers, of one of them."""
    script = asking(Hold(approvers=("ana",))).tell(said("later", "ben"), said("at nine", "ana"))
    assert (script.node("ask").output["text"], untaken(script)) == ("at nine", ["not_listed"])


@pytest.mark.parametrize("hold", [Hold(quorum=1), Hold(approvers=("*",))])
def test_an_answer_without_a_name_is_nobodys(hold: Hold) -> None:
    """Where it matters who answers; spaces are no name."""
    script = asking(hold).tell(said("yes"), said("yes", "  "))
    assert (script.verdict, untaken(script)) == ("HOLD", ["unnamed", "unnamed"])


def test_without_approvers_and_quorum_anybody_answers_with_anything() -> None:
    """As ever."""
    assert asking().tell(said("whatever")).verdict == "GO"


def test_a_choice_after_the_last_retry_is_the_approvers_too() -> None:
    """Else anybody could accept that an approval failed."""
    retry = block(retry=Retry(1, exhausted="hold"))
    script = asking(Hold(approvers=("ana",)), calls={"ask": TRANSIENT}, ask={"on_fail": retry})
    script.tell(said("accept", "mallory"))
    assert (script.verdict, untaken(script)) == ("HOLD", ["not_listed"])
    assert script.tell(said("accept", "ana")).outcome("ask") == "tolerated"


# --- answers that come too late, or again


def test_a_second_answer_is_told_that_the_first_was_taken() -> None:
    """Also when both came at the same moment."""
    script = asking().tell(said("one", "ana"), said("two", "ben"))
    assert (script.node("ask").output["by"], untaken(script)) == ("ana", ["answered"])


def test_an_answer_after_the_end_of_the_wait_is_too_late() -> None:
    """The timer has fired."""
    script = asking(parks=Parks(timeout_s=HOUR)).pass_time(HOUR).tell(said("yes", "ana"))
    assert (script.verdict, untaken(script)) == ("NO-GO", ["timeout"])


def test_an_answer_is_too_late_although_nothing_ran_to_notice() -> None:
    """The time counts, not the order in which a host finds timer and answer."""
    script = asking(parks=Parks(timeout_s=HOUR, default="no"))
    script.now = 2 * HOUR
    script.tell(said("yes", "ana"))
    assert (script.node("ask").output["text"], untaken(script)) == ("no", ["timeout"])


def test_an_answer_to_a_step_that_waits_for_nothing_says_so() -> None:
    """It isn't silent."""
    assert untaken(asking().tell(said("yes", step="notify"))) == ["nothing"]
    assert untaken(asking().tell(said("yes"), said("x", step="ship"))) == ["nothing"]


def test_another_word_for_a_choice_or_a_doubt_is_recorded_as_not_taken() -> None:
    """Nothing is guessed, and nothing is silent."""
    retry = block(retry=Retry(1, exhausted="hold"))
    script = asking(calls={"ask": TRANSIENT}, ask={"on_fail": retry}).tell(said("perhaps", "ana"))
    assert (script.verdict, untaken(script)) == ("HOLD", ["words"])


# --- the end of the wait


def test_an_approval_that_nobody_completes_ends_with_its_default() -> None:
    """Whatever was said before."""
    script = asking(Hold(quorum=2), Parks(timeout_s=HOUR, default="no")).tell(said("yes", "ana"))
    assert script.pass_time(HOUR).node("ask").output == {"text": "no", "by": "default"}


def test_without_a_default_the_end_of_the_wait_is_a_failure_that_is_escalated() -> None:
    """By the keys that failures have."""
    script = asking(
        Hold(quorum=2), Parks(timeout_s=HOUR), ask={"on_fail": block(escalate="notify")}
    ).pass_time(HOUR)
    assert (script.verdict, script.started) == ("NO-GO", ["ask", "notify"])


# --- reminders


def reminding(every_s: float = HOUR, most: int = 5, **more: Any) -> Script:
    """A step that has others told every hour."""
    return asking(Hold(remind=Reminder("notify", every_s, most)), **more)


def test_a_wait_has_one_timer_whatever_its_records_say() -> None:
    """A forged one that sets another leaves none behind for which the cancelled run would wait."""
    script = reminding()
    apply(script.state, d.WaitsOn("ask", "", 2**60, 1e308))
    assert list(script.state.timers) == [2**60]
    assert script.tell(CancelAsked()).verdict == "NO-GO"


def test_who_reminds_runs_only_when_it_is_time() -> None:
    """It is held back, and skipped where nobody had to be reminded."""
    script = reminding()
    assert script.started == ["ask"]
    assert script.tell(said("yes")).node("notify").reason == "not_routed"


def test_a_reminder_runs_its_step_while_the_wait_goes_on() -> None:
    """It sees what is waited for."""
    script = reminding().pass_time(HOUR)
    assert (script.started, script.verdict, script.node("ask").status) == (
        ["ask", "notify"],
        "HOLD",
        "holding",
    )
    arguments = script.node("notify").arguments or {}
    assert {
        name: arguments[name] for name in ("step", "why", "prompt", "reminder", "approved", "quorum")
    } == {
        "step": "ask",
        "why": "remind",
        "prompt": "well?",
        "reminder": 1,
        "approved": 0,
        "quorum": 1,
    }


def test_reminders_come_again_and_again_and_end() -> None:
    """At most as often as the file says, then the wait has no timer any more."""
    script = reminding(most=2)
    for _ in range(5):
        script.pass_time(HOUR)
    assert (script.started, script.state.timers) == (["ask", "notify", "notify"], {})
    assert script.tell(said("yes")).verdict == "GO"


def test_what_fell_due_while_nothing_ran_comes_once() -> None:
    """The next reminder is counted from the one that was given."""
    script = reminding().pass_time(3.5 * HOUR)
    assert script.started == ["ask", "notify"]
    assert script.pass_time(0.9 * HOUR).started == ["ask", "notify"]
    assert script.pass_time(0.1 * HOUR).started == ["ask", "notify", "notify"]


def test_an_answer_ends_the_reminders() -> None:
    """No timer is left over."""
    script = reminding().pass_time(HOUR).tell(said("yes"))
    assert (script.verdict, script.state.timers) == ("GO", {})


def test_the_end_of_the_wait_comes_before_a_reminder_of_the_same_moment() -> None:
    """Nobody is reminded of what is over."""
    script = reminding(parks=Parks(timeout_s=HOUR, default="no")).pass_time(HOUR)
    assert (script.started, script.verdict) == (["ask", "ship"], "GO")


def test_reminders_are_no_loops() -> None:
    """They have a number of their own, so a run that allows no loop can remind."""
    script = reminding(most=3, max_loops=0)
    for _ in range(3):
        script.pass_time(HOUR)
    assert (script.started.count("notify"), script.state.loops) == (3, {})


def test_a_step_that_has_run_often_enough_reminds_no_more() -> None:
    """It doesn't fail for that; the reminder says why it wasn't sent."""
    script = reminding(most=3, notify={"max_runs": 1})
    for _ in range(3):
        script.pass_time(HOUR)
    assert [decision.unsent for decision in script.decided(d.Reminded)] == [
        "",
        "notify has used up its max_runs",
        "notify has used up its max_runs",
    ]
    assert script.tell(said("yes")).verdict == "GO"


def test_a_step_that_is_one_shot_reminds_once() -> None:
    """Spec C.15."""
    script = reminding(most=2, notify={"tags": ("one_shot",)})
    for _ in range(2):
        script.pass_time(HOUR)
    assert [bool(decision.unsent) for decision in script.decided(d.Reminded)] == [False, True]


def test_a_reminder_that_is_still_on_its_way_is_not_sent_again() -> None:
    """A step that itself waits isn't called for a second time."""
    script = reminding(calls={"notify": Parks()})
    script.pass_time(HOUR).pass_time(HOUR)
    assert (script.started, script.decided(d.Reminded)[-1].unsent) == (
        ["ask", "notify"],
        "notify is still under way",
    )


def test_a_reminder_that_fails_is_the_runs_failure_unless_it_is_tolerated() -> None:
    """The wait goes on in either case."""
    for tolerated, verdict in ((False, "NO-GO"), (True, "GO")):
        script = reminding(calls={"notify": LOGICAL}, notify={"continue_on_failure": tolerated})
        assert script.pass_time(HOUR).verdict == "HOLD"
        assert script.tell(said("yes")).verdict == verdict


def test_a_cancelled_run_reminds_nobody() -> None:
    """The wait ends, its timer with it."""
    script = reminding().tell(CancelAsked()).pass_time(2 * HOUR)
    assert (script.started, script.state.timers, script.verdict) == (["ask"], {}, "NO-GO")


def test_reminders_go_on_after_a_resume() -> None:
    """The state has the timer."""
    script = reminding().tell(Resumed()).pass_time(HOUR)
    assert script.started == ["ask", "notify"]


# --- handing over


def handed_over(**terms: Any) -> Script:
    """Ana is asked; after an hour the boss, too."""
    return asking(Hold(("ana",), terms.pop("quorum", 1), escalate=Handover(HOUR, **terms)))


def test_after_a_while_others_may_answer_too() -> None:
    """Who was asked first still may."""
    script = handed_over(step="notify", approvers=("boss",))
    script.tell(said("yes", "boss"))
    assert (script.verdict, untaken(script)) == ("HOLD", ["not_listed"])
    assert script.pass_time(HOUR).started == ["ask", "notify"]
    assert script.node("notify").arguments is not None
    assert script.node("notify").arguments["approvers"] == ["ana", "boss"]
    assert script.tell(said("yes", "boss")).verdict == "GO"


def test_whom_it_was_handed_over_to_may_answer_although_nothing_ran_to_notice() -> None:
    """What fell due before an answer comes before it."""
    script = handed_over(approvers=("boss",))
    script.now = 2 * HOUR
    assert script.tell(said("yes", "boss")).verdict == "GO"


def test_handing_over_may_make_the_quorum_smaller() -> None:
    """What was said so far may be enough then."""
    script = handed_over(quorum=2).tell(said("yes", "ana"))
    assert script.verdict == "HOLD"
    script = asking(Hold(("a", "b", "c"), 2, escalate=Handover(HOUR, quorum=1))).tell(said("yes", "a"))
    assert script.pass_time(HOUR).verdict == "GO"


def test_it_is_handed_over_once() -> None:
    """Whoever is told, is told once."""
    script = handed_over(step="notify", approvers=("boss",)).pass_time(HOUR).pass_time(5 * HOUR)
    assert (script.started, len(script.decided(d.HandedOver))) == (["ask", "notify"], 1)


def test_a_wait_for_a_run_of_its_own_is_nobodys_to_answer() -> None:
    """Nobody is reminded of it, and its quorum is that of the question within."""
    script = reminding(parks=Parks(child="run.ask.1"))
    assert (script.state.timers, script.verdict) == ({}, "HOLD")


# --- the records


def test_the_state_of_an_approval_is_the_fold_of_its_records() -> None:
    """Votes, reminders and handovers among them."""
    hold = Hold(("ana", "ben"), 2, Reminder("notify", HOUR), Handover(2 * HOUR, "notify", ("boss",)))
    script = asking(hold, Parks(timeout_s=9 * HOUR)).tell(said("yes", "ana"))
    script.pass_time(HOUR).pass_time(HOUR)
    found, folded = script.node("ask").hold, script.folded().existing("ask", "").hold
    assert found == folded
    assert found is not None
    assert (found.approvers, found.reminders, found.votes) == (
        ("ana", "ben", "boss"),
        2,
        (Vote("ana", "yes"),),
    )


def test_a_parked_run_tells_when_its_next_timer_is_due() -> None:
    """The first of all; None where nothing is to come."""
    script = reminding(parks=Parks(timeout_s=9 * HOUR))
    assert script.state.finished is not None
    assert script.state.finished.wake_s == HOUR
    assert asking().state.finished == d.Finished(
        "HOLD", ("ask",), True, (d.Wait("ask", "well?", since_s=0.0),), None
    )


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(("yes", "no")))), st.integers(1, 4))
def test_an_approval_is_decided_by_as_many_different_people_as_it_asks_for(
    answers: list[tuple[str, str]], quorum: int
) -> None:
    """For any order of answers: yes by so many, or one no; never one of them more."""
    hold = Held("ask", quorum=quorum, approvers=("a", "b", "c"))
    for by, text in answers:
        if approvals.count(hold).is_decided or approvals.refusal(hold, by, text) is not None:
            continue
        hold = Held("ask", quorum=quorum, approvers=hold.approvers, votes=(*hold.votes, Vote(by, text)))
    names = [vote.by for vote in hold.votes]
    yes = sum(vote.text == "yes" for vote in hold.votes)
    assert len(names) == len(set(names))
    assert set(names) <= {"a", "b", "c"}
    assert yes <= quorum
    assert approvals.count(hold).is_decided == (yes == quorum or len(hold.votes) > yes)


@pytest.mark.parametrize(
    ("approver", "name", "fits"),
    [("ana", "Ana", True), ("team-*", "team-a", True), ("a?a", "ana", True), ("a.a", "ana", False), ("*", "x", True),
     ("ana", "ana2", False), ("[a]", "a", False), ("a*", "a\nb", True), ("*a*b*", "xaxbx", True),
     ("*a*b", "xaxbx", False), ("a**c", "abc", True), ("", "x", False)],
)  # fmt: skip
def test_a_pattern_of_approvers_has_two_signs(approver: str, name: str, fits: bool) -> None:
    """`*` and `?`; all others stand for themselves."""
    assert approvals.is_listed((approver,), name) is fits


def test_a_hostile_pattern_costs_no_time() -> None:
    """Many stars over a long name that almost fits: each sign is looked at a few times only."""
    assert not approvals.is_listed(("*a" * 200 + "b",), "a" * 5000)
