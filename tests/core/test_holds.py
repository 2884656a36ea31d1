"""Waits for a person, and calls in doubt (spec C.15; semantics 3, 6 and 16)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Parks, Script, Unclear, block, error, plan, step

from gonogo.core import decisions as d
from gonogo.core.changes import request
from gonogo.core.events import UNSET, AnswerGiven, CallLost, CallParked, CancelAsked, Resumed
from gonogo.core.plan import Hold


def test_C_15_a_wait_is_no_failure_and_holds_the_run() -> None:
    """The run parks: HOLD, nothing in flight, nothing failed."""
    script = Script(plan(step("ask"), step("b", "ask")), calls={"ask": Parks()})
    assert (script.verdict, script.outcome("ask"), script.state.slots) == ("HOLD", None, 0)


def test_an_answer_becomes_the_output_and_the_run_goes_on() -> None:
    """With the answerer's name."""
    script = Script(plan(step("ask"), step("b", "ask")), calls={"ask": Parks()})
    script.tell(AnswerGiven(step="ask", text="yes", by="ana"))
    assert (script.node("ask").output, script.verdict) == ({"text": "yes", "by": "ana"}, "GO")


def test_a_step_that_waits_for_a_run_of_its_own_takes_no_answer() -> None:
    """What is said of a call in there is no output of the step: that would pass over the call."""
    script = Script(plan(step("flow"), step("b", "flow")), calls={"flow": Parks(child="r.flow")})
    script.tell(AnswerGiven(step="flow", text="again", by="ana"))
    assert [one.reason for one in script.decided(d.NotTaken, "flow")] == ["child"]
    assert (script.verdict, script.outcome("flow"), script.started) == ("HOLD", None, ["flow"])


def test_semantics_3_while_a_person_is_waited_for_the_run_is_hold_whatever_failed() -> None:
    """It becomes NO-GO when that settles."""
    script = Script(plan(step("ask"), step("bad")), calls={"ask": Parks(), "bad": LOGICAL})
    assert script.verdict == "HOLD"
    assert script.tell(AnswerGiven(step="ask", text="ok")).verdict == "NO-GO"


def test_contracts_judge_an_answer_like_any_output() -> None:
    """fail_if sees the text."""
    steps = [step("ask", fail_if="no")]
    script = Script(
        plan(*steps), calls={"ask": Parks()}, answers={"no": lambda names: names["output"]["text"] == "no"}
    )
    assert script.tell(AnswerGiven(step="ask", text="no")).outcome("ask") == "failed"


def test_a_second_answer_changes_nothing() -> None:
    """The first one counts."""
    script = Script(plan(step("ask")), calls={"ask": Parks()})
    script.tell(AnswerGiven(step="ask", text="one")).tell(AnswerGiven(step="ask", text="two"))
    assert script.node("ask").output["text"] == "one"


def test_an_answer_to_nobody_is_ignored() -> None:
    """Neither an unknown step nor one that doesn't wait."""
    script = Script(plan(step("a")))
    script.tell(AnswerGiven(step="a", text="x")).tell(AnswerGiven(step="ghost", text="x"))
    assert script.verdict == "GO"


def test_the_default_answers_when_the_time_is_over() -> None:
    """Marked as such."""
    script = Script(plan(step("ask")), calls={"ask": Parks(timeout_s=30, default="go on")})
    script.pass_time(30)
    assert script.node("ask").output == {"text": "go on", "by": "default"}


def test_without_a_default_the_time_being_over_is_a_failure() -> None:
    """Logical, and routed."""
    script = Script(
        plan(step("ask", on_fail=block(run=["fix"])), step("fix")), calls={"ask": Parks(timeout_s=30)}
    )
    script.pass_time(30)
    fault = script.node("ask").fault
    assert fault is not None
    assert (fault.kind, script.started) == ("human_input.timeout", ["ask", "fix"])


def test_semantics_16_a_mutating_call_with_an_unknown_effect_is_in_doubt() -> None:
    """It is never repeated blindly, not even by a retry."""
    script = Script(plan(step("post", effects="mutates", on_fail=block(retry=3))), calls={"post": Unclear()})
    assert (script.started, script.verdict, script.node("post").status) == (["post"], "HOLD", "in_doubt")


def test_semantics_16_a_doubt_says_how_the_call_failed() -> None:
    """The person who answers needs it: a 503 and a broken connection are different news."""
    script = Script(plan(step("post", effects="mutates")), calls={"post": Unclear()})
    assert script.node("post").reason == f"the call failed after it may have been done: {TRANSIENT.message}"


def test_a_reading_call_with_an_unknown_effect_is_an_ordinary_failure() -> None:
    """Nothing outside can have changed."""
    script = Script(plan(step("get", on_fail=block(retry=1))), calls={"get": Unclear()})
    assert (script.started, script.verdict) == (["get", "get"], "NO-GO")


def doubted(word: str) -> Script:
    """A mutating call in doubt, and a word about it."""
    results = iter((Unclear(), "ok"))
    script = Script(
        plan(step("post", effects="mutates"), step("b", "post")), calls={"post": lambda call: next(results)}
    )
    return script.tell(AnswerGiven(step="post", text=word))


def test_a_person_says_what_became_of_a_call_in_doubt() -> None:
    """done, again or failed."""
    assert (doubted("done").started, doubted("done").verdict) == (["post", "b"], "GO")
    assert (doubted("again").started, doubted("again").verdict) == (["post", "post", "b"], "GO")
    assert (doubted("failed").started, doubted("failed").verdict) == (["post"], "NO-GO")


def guarded(word: str, output: Any = UNSET) -> Script:
    """A mutating call in doubt that has a guarantee about its output, and a word about it."""
    holds = {"has id": lambda names: names["output"]["id"] > 0}
    script = Script(
        plan(step("post", effects="mutates", guarantee=["has id"]), step("b", "post")),
        calls={"post": Unclear()},
        answers=holds,
    )
    return script.tell(AnswerGiven(step="post", text=word, by="ana", output=output))


@pytest.mark.parametrize(("number", "verdict"), [(7, "GO"), (0, "NO-GO")])
def test_the_output_of_a_call_that_was_done_is_judged_as_after_any_call(number: int, verdict: str) -> None:
    """A person who knows it gives it with the word; those behind it read it."""
    script = guarded("done", {"id": number})
    assert (script.verdict, script.node("post").output) == (verdict, {"id": number})
    assert script.node("post").effect == "done"


def test_without_an_output_nothing_is_judged_about_a_call_that_was_done() -> None:
    """The word of a person is all there is; the output is null."""
    script = guarded("done")
    assert (script.verdict, script.node("post").output, script.decided(d.Judged, "post")) == ("GO", None, [])


@pytest.mark.parametrize("word", ["failed", "unknown"])
def test_nothing_is_judged_about_a_call_that_gave_nothing(word: str) -> None:
    """An expression about its output would say no more than that there is none."""
    script = guarded(word)
    assert (script.verdict, script.decided(d.Judged, "post")) == ("NO-GO", [])
    assert [issue.rule_id for issue in script.node("post").issues] == [
        {"failed": "call/lost", "unknown": "call/given_up"}[word]
    ]


def test_nothing_is_judged_about_a_question_whose_time_is_over() -> None:
    """There is no answer to judge."""
    steps = [step("ask", guarantee=["ok"], fail_if="no")]
    script = Script(plan(*steps), calls={"ask": Parks(timeout_s=30)}, answers={"ok": error(), "no": error()})
    script.pass_time(30)
    assert [issue.rule_id for issue in script.node("ask").issues] == ["human-input/timeout"]


def test_law_3_a_call_that_was_given_up_is_not_made_again() -> None:
    """Nobody claims that it wasn't done: no retry, no remedy, and what it did outside stays unknown."""
    failing = block(run=["fix"], retry=3)
    script = Script(
        plan(step("post", effects="mutates", on_fail=failing), step("fix"), step("b", "post")),
        calls={"post": Unclear()},
    )
    script.tell(AnswerGiven(step="post", text="unknown", by="ana"))
    node = script.node("post")
    assert (script.started, script.verdict, node.effect) == (["post"], "NO-GO", "unknown")
    assert node.fault is not None
    assert (node.fault.kind, "ana gave it up" in node.fault.message) == ("call.given_up", True)
    assert script.outcome("b") == "skipped"


def test_a_cancelled_run_that_waits_for_a_doubt_ends_when_that_is_given_up() -> None:
    """Else there would be no end without somebody who knows."""
    script = Script(plan(step("post", effects="mutates"), step("b", "post")), calls={"post": Unclear()})
    script.tell(CancelAsked())
    assert script.verdict == "HOLD"
    script.tell(AnswerGiven(step="post", text="unknown"))
    assert (script.verdict, script.node("post").effect) == ("NO-GO", "unknown")


def test_a_doubt_says_since_when_it_waits() -> None:
    """As a question does, for lists."""
    script = Script(plan(step("post", effects="mutates")), calls={"post": Unclear()})
    assert script.state.finished is not None
    assert [wait.since_s for wait in script.state.finished.waits] == [script.node("post").ended_at]
    assert script.node("post").ended_at is not None


@pytest.mark.parametrize(("start", "started"), [(0, 3), (1, 2), (2, 3)])
def test_a_word_about_an_earlier_call_has_no_later_one_made_again(start: int, started: int) -> None:
    """It was given twice, for no answer came at first. Nobody has looked what became of the later call (law 3)."""
    script = Script(plan(step("post", effects="mutates")), calls={"post": Unclear()})
    script.tell(AnswerGiven(step="post", text="again", start=1))
    script.tell(AnswerGiven(step="post", text="again", start=start))
    assert (len(script.started), script.verdict) == (started, "HOLD")
    assert [one.reason for one in script.decided(d.NotTaken, "post")] == ["earlier"] * (started == 2)


def test_another_word_leaves_it_in_doubt() -> None:
    """Nothing is guessed."""
    assert doubted("perhaps").verdict == "HOLD"


def lost(**keys: object) -> Script:
    """A call in flight when its host died."""
    script = Script(
        plan(step("a", **keys), step("b", "a")), calls={"a": lambda call: Never() if call.call == 1 else 1}
    )
    return script.tell(Resumed()).tell(CallLost(call=1))


def test_semantics_6_a_lost_reading_call_is_repeated_under_the_same_intent() -> None:
    """Marked as a repeat; the attempt isn't counted again."""
    script = lost()
    started = script.decided(d.Started, "a")
    assert [(s.execution, s.attempt, s.again) for s in started] == [(1, 1, False), (1, 1, True)]
    assert script.verdict == "GO"


def test_semantics_6_a_lost_mutating_call_holds() -> None:
    """A person must say."""
    assert lost(effects="mutates").verdict == "HOLD"


def test_semantics_6_a_lost_mutating_call_under_a_key_is_repeated() -> None:
    """The author gave a key because the far side honours it."""
    assert lost(effects="mutates", idempotency_key=0).verdict == "GO"


def test_done_is_taken_at_its_word_where_a_guarantee_would_need_the_output() -> None:
    """Nobody has the output, so nothing is judged about it."""
    steps = [step("post", effects="mutates", guarantee=["deployed"])]
    script = Script(plan(*steps), calls={"post": Unclear()}, answers={"deployed": False})
    assert script.tell(AnswerGiven(step="post", text="done")).verdict == "GO"


@pytest.mark.parametrize("word", ["done", "failed", "again"])
def test_semantics_7_a_step_in_doubt_that_was_asked_for_runs_again_once_it_is_cleared_up(word: str) -> None:
    """Semantics 7: the run in doubt is superseded, whatever became of it; a call made again is the one asked for."""
    steps = [step("a", effects="mutates"), step("b", on_success=block(goto="a")), step("z", "a")]
    script = Script(
        plan(*steps, max_parallelism=2), calls={"a": lambda call: Unclear() if call.call == 1 else "second"}
    )
    assert (script.verdict, script.node("a").requested) == ("HOLD", True)
    script.tell(AnswerGiven(step="a", text=word))
    assert script.started == ["a", "b", "a", "z"]
    assert (script.node("a").output, script.verdict) == ("second", "GO")
    assert len(script.decided(d.Superseded, "a")) == (word != "again")


# --- semantics 14: calls that weren't made for want of a secret


def unread() -> Script:
    """A run whose call can't be made, since a secret can't be read; when it is made again it can."""
    calls = iter([Parks(sealed="login.token"), "done"])
    return Script(plan(step("use"), step("b", "use")), calls={"use": lambda command: next(calls)})


def test_a_call_that_wants_a_secret_holds_the_run() -> None:
    """Nothing was done, and nothing has failed."""
    script = unread()
    assert (script.verdict, script.outcome("use"), script.state.slots) == ("HOLD", None, 0)


def test_who_restored_the_secret_has_the_call_made_again() -> None:
    """By an answer, or by resuming the run."""
    for event in (AnswerGiven(step="use", text=" Again "), Resumed()):
        script = unread().tell(event)
        assert (script.verdict, script.node("use").output) == ("GO", "done")
        assert script.started == ["use", "use", "b"]


def test_a_resume_that_brings_an_answer_leaves_it_to_the_answer() -> None:
    """The call would be under way when the answer comes, and not hear of it."""
    script = unread().tell(Resumed(reopens=False), AnswerGiven(step="use", text="failed", by="ana"))
    assert (script.verdict, script.outcome("use")) == ("NO-GO", "failed")
    assert script.node("use").fault is not None
    assert script.node("use").fault.kind == "secret.unopened"
    assert script.started == ["use"]


def test_other_words_never_become_the_output_of_a_call_that_wasnt_made() -> None:
    """They are kept as not taken."""
    script = unread().tell(AnswerGiven(step="use", text="some output"))
    assert script.verdict == "HOLD"
    assert [each.reason for each in script.decided(d.NotTaken)] == ["words"]


def test_terms_for_a_steps_own_question_dont_hold_for_a_secret() -> None:
    """Approvers were named for what the step does, and nobody is asked about that."""
    terms = Hold(approvers=("ana",), quorum=1)
    script = Script(plan(step("use", hold=terms)), calls={"use": Parks(sealed="login.token")})
    assert script.tell(AnswerGiven(step="use", text="failed", by="somebody")).verdict == "NO-GO"


def test_law_3_a_cancel_keeps_the_doubt_of_a_run_beneath() -> None:
    """Else the run would be over, and a resume would begin a new run beneath, which makes that call again."""
    given = [Parks(child="c", in_doubt=True), Parks(child="c", in_doubt=True), LOGICAL]
    script = Script(plan(step("flow"), step("after", "flow")), calls={"flow": lambda _: given.pop(0)})
    script.tell(CancelAsked(by="me"))
    assert (script.verdict, script.node("flow").status) == ("HOLD", "holding")
    script.tell(Resumed(reopens=False))
    assert (script.verdict, script.node("flow").status) == ("HOLD", "holding")
    script.tell(Resumed(reopens=False))
    assert (script.verdict, script.started) == ("NO-GO", ["flow"] * 3)


def test_law_3_a_doubt_that_comes_from_beneath_after_a_cancel_is_kept() -> None:
    """The run beneath was told to stop, and only then lost its call."""
    script = Script(plan(step("flow")), calls={"flow": Never()})
    script.tell(CancelAsked(by="me"), CallParked(call=1, details={"child": "c", "in_doubt": True}))
    assert (script.verdict, script.node("flow").status) == ("HOLD", "holding")


def test_law_3_a_list_that_is_made_again_waits_for_the_doubt_of_a_run_beneath() -> None:
    """As for a call in doubt of its own; another wait in an item would be given up."""
    beneath: list[Any] = [*[Parks(child="c", in_doubt=True)] * 2, "settled"]
    script = Script(
        plan(
            step("kick", on_success=block(goto="list")),
            step("list", for_each=True),
            step("each", "list", fanout="map", type="workflow"),
            max_parallelism=2,
        ),
        calls={
            "kick": Parks(),
            "list": [0],
            "each": lambda call: beneath.pop(0) if call.scope == "list#1[0]" else "fine",
        },
    )
    script.tell(AnswerGiven(step="kick", text="go", by="me"))
    assert (script.verdict, script.node("each", "list#1[0]").status) == ("HOLD", "holding")
    script.tell(Resumed(reopens=False))
    assert (script.verdict, script.node("each", "list#1[0]").status) == ("HOLD", "holding")
    assert "each@list#2[0]" not in script.started
    script.tell(Resumed(reopens=False))
    assert (script.verdict, script.started[-2:]) == ("GO", ["each@list#1[0]", "each@list#2[0]"])


def test_law_3_a_run_beneath_is_looked_into_though_a_cancel_came_before_the_crash() -> None:
    """What was under way there when the host died may be in doubt."""
    given = [Never(), Parks(child="c", in_doubt=True)]
    script = Script(plan(step("flow", type="workflow")), calls={"flow": lambda _: given.pop(0)})
    script.tell(CancelAsked(by="me"), Resumed(reopens=False), CallLost(call=1))
    assert (script.verdict, script.node("flow").status, script.started) == ("HOLD", "holding", ["flow"] * 2)


@pytest.mark.parametrize("asked", ["cancel", "resume"])
def test_law_3_a_wait_for_a_slot_before_the_run_beneath_is_looked_into_loses_no_doubt(asked: str) -> None:
    """It holds no place in a queue that a stop empties."""
    given = [Parks(child="c", in_doubt=True)] * 3
    script = Script(
        plan(step("flow", type="workflow"), step("long"), max_parallelism=1),
        calls={"flow": lambda _: given.pop(0), "long": Never()},
    )
    script.tell(Resumed(reopens=False))
    assert script.node("flow").status == "cleared"
    if asked == "cancel":
        script.tell(CancelAsked(by="me"))
        assert script.node("flow").in_doubt
    else:
        request(script.state, script.node("flow"))
        assert (script.node("flow").status, script.node("flow").requested) == ("cleared", True)


def test_law_3_a_run_beneath_that_doesnt_count_any_more_is_asked_for_its_doubt_all_the_same() -> None:
    """As a call in doubt of the step's own."""
    script = Script(plan(step("flow", type="workflow")), calls={"flow": Never()})
    request(script.state, script.node("flow"))
    script.tell(CallParked(call=1, details={"child": "c", "in_doubt": True}))
    assert (script.verdict, script.started) == ("HOLD", ["flow"])
    assert script.node("flow").requested


def test_semantics_7_what_was_asked_for_while_a_run_beneath_was_lost_comes_after_it() -> None:
    """The run beneath is gone on with first."""
    given = [Never(), "old", "new"]
    script = Script(plan(step("flow", type="workflow")), calls={"flow": lambda _: given.pop(0)})
    request(script.state, script.node("flow"))
    script.tell(Resumed(), CallLost(call=1))
    assert (script.verdict, script.node("flow").output, script.node("flow").execution) == ("GO", "new", 2)
