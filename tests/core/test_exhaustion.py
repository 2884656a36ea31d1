"""When nothing is left to be tried: the author's choice after the last retry, and escalation (spec C.9 R11, G27)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Script, block, plan, step
from tests.core.test_fault_events import told

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.exhaustion import escalates, is_choice
from gonogo.core.plan import Budget, Retry
from gonogo.core.turn import Turn


def retried(exhausted: str, **keys: object) -> Retry:
    """One retry, and what comes after it."""
    return Retry(1, exhausted=exhausted, **keys)  # type: ignore[arg-type]


# --- after the last retry


@pytest.mark.parametrize(
    ("exhausted", "outcome", "following", "verdict"),
    [("fail", "failed", "skipped", "NO-GO"), ("continue", "tolerated", "passed", "GO")],
)
def test_C_9_R11_a_failure_stands_or_is_tolerated(
    exhausted: str, outcome: str, following: str, verdict: str
) -> None:
    """C.9 R11: `exhausted: fail` and `continue`."""
    script = Script(
        plan(step("a", on_fail=block(retry=retried(exhausted))), step("next", "a")), calls={"a": TRANSIENT}
    )
    assert (script.outcome("a"), script.outcome("next"), script.verdict) == (outcome, following, verdict)
    assert script.started.count("a") == 2


def test_C_9_R11_the_run_may_go_elsewhere() -> None:
    """C.9 R11: `exhausted: {goto: step}`."""
    retry = retried("route", exhausted_goto="other")
    script = Script(
        plan(step("a", on_fail=block(retry=retry)), step("other", start="routed")), calls={"a": TRANSIENT}
    )
    assert script.started == ["a", "a", "other"]


def test_C_9_R11_a_fault_that_no_retry_is_for_is_not_exhausted() -> None:
    """C.9 R11: the choice is about the end of retries."""
    script = Script(plan(step("a", on_fail=block(retry=retried("continue")))), calls={"a": LOGICAL})
    assert script.outcome("a") == "failed"


def held() -> Script:
    """A run that waits for a choice."""
    script = Script(
        plan(step("a", on_fail=block(retry=retried("hold"))), step("next", "a")),
        calls={"a": lambda command: TRANSIENT if command.attempt < 3 else "fine"},
    )
    assert script.verdict == "HOLD"
    return script


@pytest.mark.parametrize(
    ("word", "outcome", "verdict"),
    [("retry", "passed", "GO"), ("accept", "tolerated", "GO"), (" FAIL ", "failed", "NO-GO")],
)
def test_C_9_R11_a_person_decides(word: str, outcome: str, verdict: str) -> None:
    """C.9 R11, semantics 3: `exhausted: hold` parks the run until somebody says retry, accept or fail."""
    script = held().tell(e.AnswerGiven(step="a", text=word, by="me"))
    assert (script.outcome("a"), script.verdict) == (outcome, verdict)


def test_C_9_R11_other_words_leave_it_waiting() -> None:
    """C.9 R11: no choice is guessed."""
    assert held().tell(e.AnswerGiven(step="a", text="perhaps", by="me")).verdict == "HOLD"


def test_C_9_R11_a_last_failure_of_another_class_is_not_exhausted() -> None:
    """C.9 R11: another retry would not be worth it, so it isn't missed."""
    script = Script(
        plan(step("a", on_fail=block(retry=retried("continue")))),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else LOGICAL},
    )
    assert (script.started, script.outcome("a")) == (["a", "a"], "failed")


def test_C_9_R11_retries_that_the_run_has_no_budget_for_are_not_exhausted() -> None:
    """C.9 R11, semantics 23: a breach is no choice of the author's."""
    script = Script(
        plan(step("a", on_fail=block(retry=retried("continue"))), budget=Budget(retries=0)),
        calls={"a": TRANSIENT},
    )
    assert (script.started, script.outcome("a")) == (["a"], "failed")


def test_C_9_R11_the_person_is_told_what_failed_and_what_may_be_said() -> None:
    """C.9 R11: the question names the step, the failure and the choices."""
    hold = held().node("a").hold
    assert hold is not None
    assert hold.prompt == "a has used up its retries: try again. retry, accept, fail?"
    assert hold.details == {"choices": ["retry", "accept", "fail"]}


def test_C_9_R11_the_wait_counts_from_the_last_failure() -> None:
    """C.9 R11: not from the beginning of the run."""
    retry = retried("hold", delay_s=5.0, jitter=0.0)
    script = Script(plan(step("a", on_fail=block(retry=retry))), calls={"a": TRANSIENT})
    assert [held.since_s for held in script.decided(d.Held)] == [5.0]


def test_C_9_R11_a_step_that_waits_for_nobody_waits_for_no_choice() -> None:
    """C.9 R11: it waits for one only while it holds."""
    script = held()
    assert is_choice(script.node("a"))
    assert not is_choice(script.tell(e.AnswerGiven(step="a", text="accept")).node("a"))


def test_C_9_R11_a_choice_is_recorded_and_a_retry_by_hand_is_at_once() -> None:
    """C.9 R11, law 1: who chose what; the retry is numbered on, with a timer of its own."""
    script = held().tell(e.AnswerGiven(step="a", text="retry", by="me"))
    assert script.decided(d.Chosen) == [d.Chosen("a", "", "retry", "me")]
    first, second = script.decided(d.Retrying)
    assert (second.retry, second.delay_s, second.timer, second.due_s) == (2, 0.0, first.timer + 1, script.now)


@pytest.mark.parametrize(("by", "reason"), [("me", "accept by me"), ("", "accept by a person")])
def test_C_9_R11_the_outcome_says_who_chose_it(by: str, reason: str) -> None:
    """C.9 R11: the failure and its issues stay what they were."""
    script = held().tell(e.AnswerGiven(step="a", text="accept", by=by))
    assert (script.node("a").reason, script.rules("a")) == (reason, ["test/transient"])
    assert script.node("a").fault == TRANSIENT


def test_C_9_R11_a_call_that_acted_is_not_offered_again() -> None:
    """C.9 R11, semantics 16: no choice of a person's does a thing twice by the way."""
    retry = retried("hold")
    script = Script(
        plan(step("a", effects="mutates", on_fail=block(retry=retry))),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else Never()},
    )
    script.tell(e.CallFailed(call=2, fault=TRANSIENT, effect="done"))
    assert (script.decided(d.Held), script.outcome("a")) == ([], "failed")


def test_C_9_R11_an_outcome_that_changes_gives_no_second_output() -> None:
    """B.2: outputs_history has one entry for each call."""
    script = Script(plan(step("a", on_fail=block(retry=retried("continue")))), calls={"a": TRANSIENT})
    assert len(script.state.history["a"]) == 2


# --- escalation


def test_G_27_nobody_is_told_of_a_step_that_passed() -> None:
    """G27: though another block of it has spoken."""
    script = Script(
        plan(step("a", on_success=block(run=["b"]), on_fail=block(escalate="page")), step("b"), step("page"))
    )
    assert script.started == ["a", "b"]


def test_G_27_it_is_told_once_in_a_run() -> None:
    """G27: once per step, scope and run, however often it fails."""
    once = iter([True, False])
    script = Script(
        plan(step("a", on_fail=block(escalate="page")), step("page", on_success=block(when=[("once", "a")]))),
        calls={"a": LOGICAL},
        answers={"once": lambda _: next(once)},
    )
    assert script.started == ["a", "page", "a"]


def test_G_27_who_is_told_sees_what_failed() -> None:
    """G27: step, scope, attempts, kind, class and message."""
    script = Script(
        plan(step("a", on_fail=block(escalate="page", retry=Retry(1))), step("page")), calls={"a": TRANSIENT}
    )
    assert script.node("page").arguments == {
        "step": "a",
        "scope": "",
        "attempts": 2,
        "kind": "test.transient",
        "class": "transient",
        "message": "try again",
    }


@pytest.mark.parametrize(
    ("keys", "calls", "started"),
    [
        ({"retry": Retry(2)}, TRANSIENT, ["a", "a", "a", "page"]),
        ({"retry": Retry(2)}, LOGICAL, ["a", "page"]),
        ({"run": ["mend"]}, LOGICAL, ["a", "mend", "page"]),
        ({"run": ["mend"], "retry": Retry(1)}, TRANSIENT, ["a", "mend", "a", "mend", "page"]),
        ({}, LOGICAL, ["a", "page"]),
    ],
)
def test_G_27_escalation_comes_when_all_else_is_tried(keys: dict, calls: object, started: list[str]) -> None:
    """G27: after retries and remediation; the failure stands."""
    script = Script(
        plan(step("a", on_fail=block(escalate="page", **keys)), step("page"), step("mend")),
        calls={"a": calls},
    )
    assert [name for name in script.started if name in started] == started
    assert (script.outcome("a"), script.verdict) == ("failed", "NO-GO")


def test_G_27_nobody_is_told_of_what_was_mended() -> None:
    """G27: a retry that passes, and a goto that was taken, aren't exhaustion."""
    mended = Script(
        plan(step("a", on_fail=block(escalate="page", retry=Retry(1))), step("page")),
        calls={"a": lambda command: TRANSIENT if command.attempt == 1 else "fine"},
    )
    sent = Script(
        plan(step("a", on_fail=block(escalate="page", goto="b")), step("b"), step("page")),
        calls={"a": LOGICAL},
    )
    assert "page" not in mended.started
    assert "page" not in sent.started


def test_G_27_a_refused_goto_is_the_end_of_trying() -> None:
    """G27: the loop budget is used up, so somebody is told, once."""
    script = Script(
        plan(step("a", on_fail=block(escalate="page", goto="a")), step("page"), max_loops=2),
        calls={"a": LOGICAL},
    )
    assert script.started == ["a", "a", "a", "page"]


def test_G_27_each_item_escalates_for_itself() -> None:
    """G27: once per step, scope and run; the target sees what failed as its arguments."""
    seen = []
    script = Script(
        plan(
            step("list", for_each=True),
            step("a", "list", fanout="map", on_fail=block(escalate="page")),
            step("page"),
        ),
        calls={"list": [1, 2], "a": LOGICAL, "page": lambda command: seen.append(command.scope)},
    )
    assert seen == ["list#1[0]", "list#1[1]"]
    assert script.node("page", seen[0]).arguments["class"] == "logical"


def test_G_27_a_failing_target_is_its_own_fault() -> None:
    """G27, G16: the escalation is told after the end of the fault it is about."""
    script = Script(
        plan(step("a", on_fail=block(escalate="page")), step("page")), calls={"a": LOGICAL, "page": LOGICAL}
    )
    assert told(script, "a") == ["detected", "recovery.failed", "escalated"]
    assert told(script, "page") == ["detected", "recovery.failed"]
    assert script.verdict == "NO-GO"


def test_G_27_under_fail_fast_the_escalation_still_goes_out() -> None:
    """G27, semantics 4: the failure is final once everything was tried and told; then nothing else starts."""
    script = Script(
        plan(
            step("a", on_fail=block(escalate="page")),
            step("page"),
            step("z", "page"),
            step("y"),
            fail_fast=True,
        ),
        calls={"a": LOGICAL},
    )
    assert script.outcome("page") == "passed"
    assert script.node("z").reason == "fail_fast"
    assert script.verdict == "NO-GO"


@pytest.mark.parametrize(("stopping", "expected"), [(None, "call_out"), ("cancelled", None)])
def test_G_27_a_run_that_stops_tells_nobody(stopping: str | None, expected: str | None) -> None:
    """G27: whoever stopped it knows."""
    script = Script(plan(step("a", on_fail=block(escalate="call_out")), step("call_out", start="routed")))
    node = script.node("a")
    node.trigger, script.state.stopping = "on_fail", stopping
    assert escalates(Turn(script.state), node) == expected


def test_G_27_a_step_that_has_no_block_any_more_tells_nobody() -> None:
    """G27: the workflow was changed while its block was at work."""
    script = Script(plan(step("a")))
    node = script.node("a")
    node.trigger = "on_fail"
    assert escalates(Turn(script.state), node) is None
