"""Attempts within calls as the core sees them: leave, slots, budgets, doubt, and what a resume goes on with."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.script import TRANSIENT, Never, Script, block, plan, step

from gonogo.core import commands as c
from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core import lifecycle as life
from gonogo.core.faults import Effect
from gonogo.core.plan import Budget, Plan, Retry

MUTATES: dict[str, Any] = {"effects": "mutates"}


def gated(given: Plan, **calls: Any) -> Script:
    """A run whose call of `a` goes through a gate that the test plays; other steps pass."""
    return Script(given, calls={"a": Never(), **calls})


def ask(call: int = 1, ticket: int = 1, number: int | None = None, **more: Any) -> e.AttemptAsked:
    """The gate wants to call a target."""
    return e.AttemptAsked(call=call, ticket=ticket, number=number or ticket, target="t", **more)


def ended(
    call: int = 1, ticket: int = 1, *, effect: Effect = "none", kind: str = "rate-limit", **more: Any
) -> e.AttemptEnded:
    """An attempt is over."""
    return e.AttemptEnded(call=call, ticket=ticket, effect=effect, kind=kind, **more)


def waits(call: int = 1, wait_s: float = 30.0) -> e.GateWaits:
    """The gate waits long."""
    return e.GateWaits(call=call, wait_s=wait_s, target="t")


def let(script: Script) -> list[tuple[int, str]]:
    """Tickets that were answered, with the refusals."""
    return [
        (command.ticket, command.refusal) for command in script.commands if isinstance(command, c.LetAttempt)
    ]


def crashed(script: Script) -> Script:
    """The host dies, and another one goes on."""
    lost = [e.CallLost(call=call) for call in script.state.calls]
    return script.tell(e.Resumed(), *lost)


# --- leave


def test_an_attempt_is_decided_before_it_goes_out() -> None:
    """Semantics 23: it is in the record that lets it go."""
    script = gated(plan(step("a"))).tell(ask())
    assert [each.sentence() for each in script.decided(d.AttemptStarted)] == ["attempt 1 on t"]
    assert let(script) == [(1, "")]


def test_an_attempt_of_a_call_that_is_over_is_refused() -> None:
    """A task that was left behind calls nothing."""
    script = Script(plan(step("a"))).tell(ask())
    assert let(script) == [(1, "the call is over")]
    assert script.decided(d.AttemptStarted) == []


def test_law_7_no_attempt_goes_out_after_a_stop() -> None:
    """A call that is told to stop makes no further one."""
    script = gated(plan(step("a")))
    script.state.calls[1].call = 1
    script._answer_call = lambda command: None  # type: ignore[method-assign]
    script.tell(e.CancelAsked(), ask())
    assert script.decided(d.AttemptStarted) == []


def test_under_fail_fast_a_call_that_runs_makes_its_attempts() -> None:
    """Semantics 4: what runs ends, by itself."""
    script = gated(plan(step("a"), step("b"), fail_fast=True, max_parallelism=2), b=TRANSIENT).tell(ask())
    assert script.state.stopping == "fail_fast"
    assert let(script) == [(1, "")]


def test_the_first_attempt_of_a_mutating_call_is_covered_by_the_calls_own_intent() -> None:
    """A lost record of it leaves the call in doubt all the same; that of a second one would not."""
    script = gated(plan(step("a", **MUTATES))).tell(
        ask(effects="mutates"), ended(), ask(ticket=2, effects="mutates")
    )
    durable = [command.durable for command in script.commands if isinstance(command, c.LetAttempt)]
    assert durable == [False, True]


# --- slots


def test_a_call_that_waits_long_holds_no_slot() -> None:
    """Semantics 23: others run meanwhile."""
    script = gated(plan(step("a"), step("b"), max_parallelism=1))
    assert script.started == ["a"]
    script.tell(ask(), ended(), waits())
    assert script.started == ["a", "b"]
    assert script.node("a").status == life.PAUSED


def test_it_has_its_slot_again_before_the_next_attempt() -> None:
    """And waits for one as long as there is none."""
    given = plan(step("a"), step("b"), max_parallelism=1)
    script = gated(given, b=Never()).tell(ask(), ended(), waits(), ask(ticket=2))
    assert let(script) == [(1, "")]
    script.tell(e.CallDone(call=2))
    assert let(script) == [(1, ""), (2, "")]
    assert script.node("a").status == life.RUNNING


def test_a_call_under_way_has_a_slot_before_what_has_not_begun() -> None:
    """It holds connections, and has a deadline."""
    given = plan(step("a"), step("b"), step("c"), max_parallelism=1)
    script = gated(given, b=Never()).tell(ask(), ended(), waits(), ask(ticket=2), e.CallDone(call=2))
    assert script.started == ["a", "b"]
    assert let(script)[-1] == (2, "")


def test_calls_that_want_their_slots_back_have_them_in_configuration_order() -> None:
    """Whoever asked first."""
    given = plan(step("a"), step("b"), step("c"), max_parallelism=2)
    script = gated(given, b=Never(), c=Never())
    script.tell(ask(), ended(), waits(), ask(2, 11), ended(2, 11), waits(2))
    script.state.limit_of_slots = 1  # c holds the only one
    script.tell(ask(2, 12), ask(1, 2))
    assert [ticket for ticket, _ in let(script)] == [1, 11]
    script.tell(e.CallDone(call=3))
    assert [ticket for ticket, _ in let(script)] == [1, 11, 2]


def test_a_call_that_waits_while_another_attempt_of_it_is_under_way_keeps_its_slot() -> None:
    """Two requests of one call."""
    script = gated(plan(step("a"), step("b"), max_parallelism=1)).tell(ask(), waits())
    assert script.started == ["a"]


def test_a_call_that_ends_while_it_waits_needs_no_slot() -> None:
    """Out of time, say."""
    script = gated(plan(step("a"), step("b"), max_parallelism=1), b=Never())
    script.tell(ask(), ended(), waits(), e.CallFailed(call=1, fault=TRANSIENT))
    assert script.outcome("a") == "failed"
    assert script.tell(e.CallDone(call=2)).verdict == "NO-GO"


def test_a_call_that_is_asked_for_again_while_it_waits_is_superseded() -> None:
    """As one that runs (semantics.md 7)."""
    given = plan(step("a"), step("b", on_success=block(goto="a")), max_parallelism=1)
    script = gated(given).tell(ask(), ended(), waits())
    assert script.node("a").requested
    script.tell(e.CallDone(call=1))
    assert len(script.decided(d.Superseded, "a")) == 1
    assert script.started == ["a", "b", "a"]


def test_a_cancel_reaches_a_call_that_waits() -> None:
    """It is told to stop, like any that runs."""
    script = gated(plan(step("a"), max_parallelism=1)).tell(ask(), ended(), waits(), e.CancelAsked())
    assert [command.call for command in script.commands if isinstance(command, c.StopCall)] == [1]
    assert script.outcome("a") == "cancelled"


# --- budgets


def test_what_an_attempt_may_use_is_set_aside_before_it() -> None:
    """Side by side they can't spend the same money."""
    given = plan(step("a"), step("b"), max_parallelism=2, budget=Budget(tokens=100))
    script = gated(given, b=Never()).tell(ask(tokens=60), ask(2, 2, 1, tokens=60))
    assert let(script) == [
        (1, ""),
        (2, "another attempt on t would pass the run's budget of 100 (tokens): 60 are used or set aside"),
    ]


def test_what_was_set_aside_and_not_used_is_free_again() -> None:
    """The end of the attempt says what it used."""
    given = plan(step("a"), max_parallelism=2, budget=Budget(tokens=100, money=1.0))
    script = gated(given).tell(
        ask(tokens=60, money=0.9), ended(output_tokens=5, money=0.25), ask(ticket=2, tokens=90)
    )
    assert let(script) == [(1, ""), (2, "")]
    assert (script.state.spent.tokens, script.state.spent.money) == (5, 0.25)
    assert (script.state.spent.tokens_kept, script.state.spent.money_kept) == (90, 0.0)


def test_what_attempts_used_is_spent_once() -> None:
    """The call's own word about it includes it."""
    meta = {"usage": {"tokens": 9, "cost": 0.5}}
    script = gated(plan(step("a"))).tell(ask(), ended(output_tokens=5, money=0.25))
    script.tell(e.CallDone(call=1, meta=meta))
    assert (script.state.spent.tokens, script.state.spent.money) == (9, 0.5)


def test_a_record_without_sense_gives_nothing_back() -> None:
    """A journal is hostile input: nothing in it makes a budget grow."""
    script = gated(plan(step("a"), budget=Budget(tokens=9))).tell(
        ask(tokens=5), ended(output_tokens=-50, money=-1.0)
    )
    assert (script.state.spent.tokens, script.state.spent.money) == (0, 0.0)


def test_a_run_without_retries_left_lets_no_further_attempt_go() -> None:
    """Semantics 24: an attempt after the first is a retry of the run."""
    script = gated(plan(step("a"), budget=Budget(retries=1))).tell(
        ask(), ended(), ask(ticket=2), ended(ticket=2), ask(ticket=3)
    )
    assert [refusal for _, refusal in let(script)] == [
        "",
        "",
        "another attempt on t would pass the run's budget of 1 (retries): 1 are used or set aside",
    ]


def test_a_run_beneath_asks_for_its_calls() -> None:
    """Children side by side can't make more calls than the run above has left."""
    given = plan(step("a"), budget=Budget(calls=3))
    script = gated(given).tell(*(ask(ticket=ticket, calls=1, beneath="r.a: x") for ticket in (1, 2, 3)))
    assert [refusal[:14] for _, refusal in let(script)] == ["", "", "r.a: x would p"]
    script.tell(e.CallDone(call=1, meta={"usage": {"calls": 2}}))
    assert script.state.spent.calls == 3


def test_a_run_beneath_takes_no_slot_and_counts_no_retry() -> None:
    """It has its own."""
    script = gated(plan(step("a"), budget=Budget(tokens=9)))
    script.tell(ask(beneath="r.a: x", tokens=1), ask(ticket=2, beneath="r.a: x", tokens=1))
    assert script.state.spent.retries == 0
    assert script.node("a").gate.requests == {}  # type: ignore[union-attr]


# --- retries of the step


@pytest.mark.parametrize(("separately", "calls"), [(False, 1), (True, 3)])
def test_semantics_24_attempts_count_against_the_steps_retries(separately: bool, calls: int) -> None:
    """Unless the step counts them separately."""
    retry = Retry(2, separately=separately)
    script = gated(plan(step("a", on_fail=block(retry=retry))))
    for call in range(1, calls + 1):
        tickets = [10 * call + number for number in (1, 2, 3)]
        for number, ticket in enumerate(tickets, 1):
            script.tell(ask(call, ticket, number), ended(call, ticket))
        script.tell(e.CallFailed(call=call, fault=TRANSIENT))
    assert script.started == ["a"] * calls
    assert script.verdict == "NO-GO"


def test_semantics_24_they_count_after_a_resume_too() -> None:
    """Attempts before the crash and after it are attempts of one call."""
    script = gated(plan(step("a", on_fail=block(retry=Retry(2)))))
    crashed(script.tell(ask(), ended(), ask(ticket=2), ended(ticket=2)))
    script.tell(ask(2, 3, 3), ended(2, 3), e.CallFailed(call=2, fault=TRANSIENT))
    assert script.started == ["a", "a"]
    assert script.node("a").retries == 2
    assert script.state.spent.retries == 2


def test_what_follows_an_attempt_that_a_crash_cut_short_is_no_retry() -> None:
    """As a call that was lost is repeated, and no retry either."""
    script = crashed(gated(plan(step("a"))).tell(ask()))
    script.tell(ask(2, 2, 2))
    assert script.state.spent.retries == 0


def test_a_crash_alone_fails_no_call_of_a_run_without_retries() -> None:
    """What was cut short is followed by another one, whatever is left."""
    script = crashed(gated(plan(step("a"), budget=Budget(retries=0))).tell(ask()))
    script.tell(ask(2, 2, 2))
    assert let(script) == [(1, ""), (2, "")]


# --- doubt, and what a resume goes on with


def test_a_mutating_call_whose_attempts_did_nothing_is_not_in_doubt() -> None:
    """Semantics 16: 429, a refused connection."""
    script = crashed(gated(plan(step("a", **MUTATES))).tell(ask(effects="mutates"), ended()))
    assert script.decided(d.Doubted) == []
    assert script.started == ["a", "a"]


@pytest.mark.parametrize("effect", ["unknown", "done"])
def test_a_mutating_call_with_an_attempt_that_may_have_acted_is_in_doubt(effect: Effect) -> None:
    """Whatever came after it."""
    told = (ask(effects="mutates"), ended(effect=effect), ask(ticket=2, effects="mutates"), ended(ticket=2))
    script = crashed(gated(plan(step("a", **MUTATES))).tell(*told))
    assert script.verdict == "HOLD"


def test_a_mutating_call_with_an_attempt_under_way_is_in_doubt() -> None:
    """Nobody knows what became of it."""
    script = crashed(gated(plan(step("a", **MUTATES))).tell(ask(effects="mutates")))
    assert script.verdict == "HOLD"


def test_a_keyed_call_with_an_attempt_under_way_goes_on() -> None:
    """Under a key that the far side honours it may be repeated; its gate knows which target may have acted."""
    given = plan(step("a", **MUTATES, idempotency_key=0))
    script = crashed(gated(given).tell(ask(effects="mutates")))
    assert script.started == ["a", "a"]
    [request] = script.node("a").gate.requests.values()  # type: ignore[union-attr]
    assert (request.unclear, request.lost) == ("t", "t")


def test_a_mutating_call_that_only_read_through_its_gate_is_in_doubt() -> None:
    """What it did beside its gate, or in tools, nobody has written down."""
    told = (ask(effects="reads"), ended(), ask(ticket=2, effects="mutates", tool="b/1"), ended(ticket=2))
    script = crashed(gated(plan(step("a", **MUTATES))).tell(*told))
    assert script.verdict == "HOLD"


def test_a_person_who_says_again_starts_the_call_anew() -> None:
    """What its gate had used up is forgotten: this is another call."""
    script = crashed(gated(plan(step("a", **MUTATES))).tell(ask(effects="mutates")))
    script.tell(e.AnswerGiven(step="a", text="again"))
    assert script.started == ["a", "a"]
    assert script.node("a").gate is None


def test_the_gate_of_a_lost_call_keeps_its_counters() -> None:
    """F21, E43: attempts, targets, what was used, who is out, what was wrong, and time."""
    told = (
        ask(elapsed_s=0.5),
        ended(kind="auth", out="auth", input_tokens=3, output_tokens=4, money=0.5, elapsed_s=1.5),
        ask(ticket=2),
        ended(ticket=2, kind="schema-fail", wrong="no name", elapsed_s=4.0),
    )
    script = crashed(gated(plan(step("a"))).tell(*told))
    [request] = script.node("a").gate.requests.values()  # type: ignore[union-attr]
    assert (request.number, request.per_target, request.out) == (2, {"t": 2}, {"t": "auth"})
    assert (request.input_tokens, request.output_tokens, request.money) == (3, 4, 0.5)
    assert (request.wrong, request.elapsed_s, request.lost) == (["no name"], 4.0, None)


def test_what_an_attempt_cut_short_may_have_used_counts_as_used() -> None:
    """The safe side: the far side may have worked for it."""
    script = crashed(gated(plan(step("a"), budget=Budget(tokens=100))).tell(ask(tokens=60)))
    assert (script.state.spent.tokens, script.state.spent.tokens_kept) == (60, 0)


def test_a_wait_goes_on_to_its_end_after_a_crash() -> None:
    """No sooner than the far side asked; the time that was waited counts."""
    script = gated(plan(step("a"), max_parallelism=1)).tell(ask(), ended(elapsed_s=2.0))
    script.tell(e.GateWaits(call=1, wait_s=30.0, target="t", elapsed_s=2.0))
    script.now = 10.0
    crashed(script)
    [request] = script.node("a").gate.requests.values()  # type: ignore[union-attr]
    assert (request.wait_until, request.next, request.elapsed_s) == (30.0, "t", 12.0)


def test_a_lost_call_that_waited_has_a_slot_before_it_is_repeated() -> None:
    """It had given its own up."""
    given = plan(step("a"), step("b"), max_parallelism=1)
    script = crashed(gated(given, b=Never()).tell(ask(), ended(), waits()))
    assert script.started == ["a", "b", "b"]
    script.tell(e.CallDone(call=script.state.last_call))
    assert script.started == ["a", "b", "b", "a"]


def test_a_request_that_is_over_begins_anew_when_its_call_is_repeated() -> None:
    """Only what was under way goes on."""
    told = (ask(), ended(kind="", effect="done", over=True), ask(ticket=2, number=1, request=2))
    script = crashed(gated(plan(step("a"))).tell(*told))
    assert list(script.node("a").gate.requests) == [("", 2)]  # type: ignore[union-attr]


def test_a_retry_of_the_step_begins_with_a_gate_of_its_own() -> None:
    """It is another call, with bounds of its own."""
    script = gated(plan(step("a", on_fail=block(retry=Retry(2)))))
    script.tell(ask(), ended(), e.CallFailed(call=1, fault=TRANSIENT))
    assert script.started == ["a", "a"]
    assert script.node("a").gate is None


@pytest.mark.parametrize(
    "told",
    [
        (ask(), ended(), waits(), ask(ticket=2)),
        (ask(tokens=5), ask(ticket=2, beneath="r.a: x", tokens=1), ended(ticket=2)),
        (ask(), ended(out="auth", wrong="no"), ask(ticket=2), e.GateEnded(call=1)),
    ],
)
def test_the_state_is_the_fold_of_the_records(told: tuple[e.AnyEvent, ...]) -> None:
    """Semantics 12."""
    script = gated(plan(step("a"), step("b"), max_parallelism=1), b=Never()).tell(*told)
    folded = script.folded()
    assert folded.existing("a", "").gate == script.node("a").gate
    assert (folded.slots, folded.spent.tokens_kept) == (script.state.slots, script.state.spent.tokens_kept)
