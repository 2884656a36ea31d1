"""What a run may spend: loops by criticality, and time, calls, retries, tokens and money in all (C.12)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Parks, Returns, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.faults import Issue
from gonogo.core.plan import Budget, Plan, Retry
from gonogo.core.spending import budget_beneath
from gonogo.core.state import State


def looping(**keys: object) -> Plan:
    """A step that sends the run to itself for ever."""
    top = {key: keys.pop(key) for key in ("max_loops", "safety") if key in keys}
    return plan(step("a", on_success=block(goto="a"), **keys), max_runs=0, **top)


@pytest.mark.parametrize(
    ("keys", "rounds"),
    [
        ({"criticality": "internal"}, 8),
        ({"criticality": "external"}, 8),
        ({"criticality": "policy"}, 8),
        ({}, 10),
        ({"criticality": "internal", "max_loops": 3}, 3),
        ({"criticality": "internal", "max_loops": 20}, 8),
        ({"max_loops": 20}, 20),
        ({"criticality": "internal", "loop_budget": 12}, 12),
        ({"loop_budget": 2}, 2),
        ({"max_loops": 0}, 0),
        ({"criticality": "internal", "max_loops": 11, "safety": "off"}, 11),
    ],
)
def test_C_12_R5_the_limit_of_loops_is_the_requesting_steps(keys: dict, rounds: int) -> None:
    """C.12 R5, G11, H18, semantics 21: exact numbers of rounds."""
    script = Script(looping(**keys))
    assert script.started == ["a"] * (1 + rounds)
    assert [refused.allowed for refused in script.decided(d.Refused)] == [rounds]
    assert script.verdict == "NO-GO"


def test_C_12_R4_a_ceiling_bounds_the_loops_of_the_whole_run() -> None:
    """C.12 R4: max_loops times the routing steps, but at least 50, whatever the scopes have left."""
    script = Script(
        plan(
            step("list", for_each=True),
            step("each", "list", fanout="map", on_fail=block(goto="each")),
            max_loops=6,
        ),
        calls={"list": list(range(20)), "each": LOGICAL},
    )
    assert script.started.count("list") == 1
    assert sum(name.startswith("each") for name in script.started) == 20 + 50
    assert {refused.limit for refused in script.decided(d.Refused)} == {"max_loops", "run_loops"}


def test_G_4_strict_makes_a_refused_loop_the_steps_failure() -> None:
    """G4, C.6: under strict the outcome is failed; under standard the run is NO-GO and the step keeps its outcome."""
    assert Script(looping(max_loops=1, safety="strict")).outcome("a") == "failed"
    assert Script(looping(max_loops=1)).outcome("a") == "passed"


# --- the run's budget


def spending(budget: Budget, **keys: object) -> Plan:
    """Three steps in a row and one that tidies up."""
    return plan(
        step("a"), step("b", "a"), step("c", "b", **keys), step("tidy", "c", always=True), budget=budget
    )


def rules(script: Script) -> list[str]:
    """The run's own issues."""
    return [issue.rule_id for issue in script.state.run_issues]


def test_a_run_that_has_made_its_calls_starts_nothing_new() -> None:
    """Semantics 23: an issue, a decision, skips with reason `budget`, always() steps run, NO-GO."""
    script = Script(spending(Budget(calls=2)))
    assert script.started == ["a", "b", "tidy"]
    assert rules(script) == ["budget/calls_exceeded"]
    assert (script.node("c").reason, script.verdict) == ("budget", "NO-GO")


def test_a_step_that_waits_for_a_slot_while_calls_are_left_stops_nothing() -> None:
    """Semantics 23: it isn't the budget that it waits for."""
    script = Script(plan(step("a"), step("b"), budget=Budget(calls=3), max_parallelism=1))
    assert (script.started, script.state.stopping, script.verdict) == (["a", "b"], None, "GO")


def test_a_budget_of_calls_holds_with_many_slots() -> None:
    """Calls that would start together are counted one by one."""
    script = Script(plan(*(step(f"s{n}") for n in range(6)), max_parallelism=6, budget=Budget(calls=4)))
    assert len(script.started) == 4


def test_a_budget_of_calls_holds_after_assumptions() -> None:
    """A call that its assumptions let pass is counted like any other."""
    steps = [step(f"s{n}", assume=["true"]) for n in range(4)]
    assert len(Script(plan(*steps, max_parallelism=4, budget=Budget(calls=2))).started) == 2


def used(**usage: float) -> Returns:
    """A call that tells what it used."""
    return Returns({}, meta={"usage": usage})


@pytest.mark.parametrize(("budget", "what"), [(Budget(tokens=150), "tokens"), (Budget(money=0.3), "money")])
def test_tokens_and_money_stop_a_run_that_is_over(budget: Budget, what: str) -> None:
    """Semantics 23: what a call used is counted when it returns."""
    script = Script(
        spending(budget), calls={"a": used(tokens=100, cost=0.2), "b": used(tokens=100, cost=0.2)}
    )
    assert script.started == ["a", "b", "tidy"]
    assert rules(script) == [f"budget/{what}_exceeded"]


@pytest.mark.parametrize(
    "usage", [{"tokens": -5}, {"tokens": "many"}, {"tokens": True}, {"tokens": 1e300}, 7]
)
def test_usage_that_is_no_sensible_number_counts_as_none(usage: object) -> None:
    """What a provider says is hostile input."""
    script = Script(spending(Budget(tokens=10)), calls={"a": Returns({}, meta={"usage": usage})})
    assert (script.state.spent.tokens, script.verdict) == (0, "GO")


def test_a_run_without_retries_left_lets_the_failure_stand() -> None:
    """One retry for the whole run."""
    script = Script(
        plan(
            step("a", on_fail=block(retry=Retry(3))),
            step("b", "a?", on_fail=block(retry=Retry(3))),
            budget=Budget(retries=4),
        ),
        calls={"a": TRANSIENT, "b": TRANSIENT},
    )
    assert (script.started.count("a"), script.started.count("b")) == (4, 2)
    assert rules(script) == ["budget/retries_exceeded"]


def test_enough_is_enough() -> None:
    """A budget that is used to its end stops nothing."""
    script = Script(spending(Budget(calls=4, retries=0, tokens=200, money=1.0, time_s=1.0)))
    assert (len(script.started), rules(script), script.verdict) == (4, [], "GO")


def test_time_that_is_up_stops_what_is_in_flight() -> None:
    """Running calls are told to stop."""
    script = Script(spending(Budget(time_s=5.0)), calls={"b": Never()})
    assert script.now == 5.0
    assert rules(script) == ["budget/time_exceeded"]
    assert (script.outcome("b"), script.node("c").reason) == ("cancelled", "budget")
    assert (script.outcome("tidy"), script.verdict) == ("passed", "NO-GO")


def test_time_stands_still_while_a_run_is_parked() -> None:
    """A person may take a week over a run that may take five seconds."""
    script = Script(spending(Budget(time_s=5.0)), calls={"b": Parks(), "c": Never()})
    assert (script.verdict, script.state.timers) == ("HOLD", {})
    script.pass_time(1000.0).tell(e.AnswerGiven(step="b", text="yes", by="me"))
    assert script.outcome("b") == "passed"
    assert (script.now, script.outcome("c")) == (1005.0, "cancelled")


def test_time_stands_still_between_a_death_and_the_resume() -> None:
    """The run goes on with what was left."""
    script = Script(spending(Budget(time_s=5.0)), calls={"a": Parks(timeout_s=2.0, default="yes")})
    assert script.state.spent.time_s == 0.0
    script.now = 100.0
    script.tell(e.Resumed())
    timers = [due_s for due_s, node in script.state.timers.values() if node is None]
    assert timers in ([], [105.0])


def test_the_state_folds_back_to_what_was_spent() -> None:
    """Law 1: a resumed run goes on with what is left."""
    script = Script(spending(Budget(calls=9, tokens=150)), calls={"a": used(tokens=100), "b": Parks()})
    folded, spent = script.folded().spent, script.state.spent
    assert (folded.calls, folded.tokens) == (spent.calls, spent.tokens) == (2, 100)


# --- what a breach says and does, exactly


def breach(what: str, message: str, step: str | None = None, scope: str | None = None) -> Issue:
    """The issue of a budget that is used up."""
    return Issue(f"budget/{what}_exceeded", message, check_name=step, scope=scope, engine=True)


def refusals(script: Script) -> list[tuple]:
    """The refusals, without their issues."""
    return [
        (one.step, one.scope, one.target, one.limit, one.used, one.allowed)
        for one in script.decided(d.Refused)
    ]


def test_a_breach_of_time_says_how_much() -> None:
    """Semantics 23, D.1: an issue of the run and a refusal about no step."""
    script = Script(spending(Budget(time_s=5.0)), calls={"b": Never()})
    text = "the run has used 5 s of its budget of 5 (time)"
    assert script.state.run_issues == [breach("time", text)]
    assert refusals(script) == [("", "", "", "budget.time_s", 5.0, 5.0)]
    assert script.state.spent.time_s == 5.0


def test_nobody_has_stopped_a_run_whose_time_is_up() -> None:
    """Semantics 23: no step is named where none met the limit; where one did, it is."""
    script = Script(spending(Budget(time_s=5.0)), calls={"b": Never()})
    assert [one.step for one in script.decided(d.Stopping)] == [None]
    script = Script(spending(Budget(tokens=10)), calls={"a": Returns(meta={"usage": {"tokens": 20}})})
    assert [one.step for one in script.decided(d.Stopping)] == ["a"]


def test_a_breach_of_calls_says_how_many() -> None:
    """Semantics 23, D.1."""
    script = Script(spending(Budget(calls=2)))
    assert script.state.run_issues == [breach("calls", "the run has used 2 calls of its budget of 2 (calls)")]
    assert refusals(script) == [("", "", "", "budget.calls", 2, 2)]
    assert Script(spending(Budget(calls=0))).started == ["tidy"]


def test_a_breach_of_retries_names_the_step() -> None:
    """Semantics 23, D.1."""
    one = step("a", on_fail=block(retry=Retry(3)))
    script = Script(plan(one, budget=Budget(retries=1)), calls={"a": TRANSIENT})
    text = "the run has used 1 retries of its budget of 1 (retries)"
    assert script.state.run_issues == [breach("retries", text, "a")]
    assert refusals(script) == [("a", "", "a", "budget.retries", 1, 1)]


@pytest.mark.parametrize(
    ("budget", "what", "text"),
    [
        (Budget(tokens=150), "tokens", "the run has used 200 tokens of its budget of 150 (tokens)"),
        (Budget(money=0.3), "money", "the run has used 0.4 of its budget of 0.3 (money)"),
    ],
)
def test_a_breach_by_a_call_names_its_step_and_scope(budget: Budget, what: str, text: str) -> None:
    """Semantics 23, D.1: the call that went too far."""
    script = Script(
        plan(step("list", for_each=True), step("each", "list", fanout="map"), budget=budget),
        calls={"list": [1, 2, 3], "each": used(tokens=100, cost=0.2)},
    )
    assert script.state.run_issues == [breach(what, text, "each", "list#1[1]")]
    assert script.state.stopped_by == "each"
    assert [one[:4] for one in refusals(script)] == [("each", "list#1[1]", "each", f"budget.{what}")]


@pytest.mark.parametrize(
    ("budget", "outcome"), [(Budget(tokens=50), "cancelled"), (Budget(money=0.1), "cancelled")]
)
def test_tokens_and_money_that_are_up_stop_what_is_in_flight(budget: Budget, outcome: str) -> None:
    """Semantics 23: it would only spend more."""
    script = Script(
        plan(step("slow"), step("dear"), budget=budget, max_parallelism=2),
        calls={"slow": Never(), "dear": used(tokens=100, cost=0.2)},
    )
    assert script.outcome("slow") == outcome


def test_calls_that_are_up_let_what_is_in_flight_end() -> None:
    """Semantics 23: it was allowed."""
    script = Script(
        plan(step("slow"), step("a"), step("b", "a"), budget=Budget(calls=2), max_parallelism=2),
        calls={"slow": Never()},
    )
    assert script.state.stopping == "budget"
    script.tell(e.CallDone(call=1, output="fine"))
    assert script.outcome("slow") == "passed"


def test_a_run_is_stopped_once_for_what_two_calls_used() -> None:
    """Semantics 23: what returns after the breach is counted, and changes nothing."""
    script = Script(
        plan(step("a"), step("b"), budget=Budget(tokens=50, money=0.1), max_parallelism=2),
        calls={"a": used(tokens=100, cost=0.2), "b": used(tokens=100, cost=0.2)},
    )
    assert rules(script) == ["budget/tokens_exceeded"]
    assert script.state.spent.tokens == 200


@pytest.mark.parametrize("delay_s", [2.0, 4.5])
def test_after_a_wait_a_run_has_the_rest_of_its_time(delay_s: float) -> None:
    """Semantics 23: not more, and not less."""
    retry = Retry(1, delay_s=delay_s, jitter=0.0)
    script = Script(
        plan(
            step("a", on_fail=block(retry=retry)), step("b", "a"), step("c", "b"), budget=Budget(time_s=5.0)
        ),
        calls={
            "a": lambda command: TRANSIENT if command.attempt == 1 else "fine",
            "b": Parks(),
            "c": Never(),
        },
    )
    script.pass_time(100.0).tell(e.AnswerGiven(step="b", text="yes", by="me"))
    assert script.now == 105.0
    limited = script.decided(d.TimeLimited)
    assert [one.due_s for one in limited] == [5.0, 105.0]
    assert len({one.timer for one in (*limited, *script.decided(d.Retrying))}) == 3


def test_a_run_that_has_used_all_its_time_has_none_after_a_wait() -> None:
    """Semantics 23: the alarm is at once, not in the past."""
    retry = Retry(1, delay_s=5.0, jitter=0.0)
    script = Script(
        plan(step("a", on_fail=block(retry=retry)), step("b"), step("c", "b"), budget=Budget(time_s=5.0)),
        calls={"a": TRANSIENT, "b": Parks(), "c": Never()},
    )
    assert script.state.stopping == "budget"


def test_a_run_that_stops_sets_no_alarm() -> None:
    """Semantics 23: its end has bounds of its own."""
    script = Script(
        plan(step("a"), step("tidy", "a", always=True), budget=Budget(time_s=5.0)), calls={"a": Parks()}
    )
    script.tell(e.CancelAsked(by="me"))
    assert len(script.decided(d.TimeLimited)) == 1


# --- what a run beneath may spend


def parent_that_spent(budget: Budget) -> State:
    """A run three seconds old that has made two calls and a retry, and used tokens and money."""
    state = Script(plan(step("a"), step("b", "a"), budget=budget)).state
    state.at, state.active_since = 3.0, 1.0
    spent = state.spent
    spent.time_s, spent.calls, spent.retries, spent.tokens, spent.money = 1.0, 2, 1, 40, 0.25
    return state


def test_a_run_beneath_has_what_is_left() -> None:
    """Semantics 22 and 23: of each, where the run above has a limit."""
    state = parent_that_spent(Budget(time_s=10.0, calls=5, retries=3, tokens=100, money=1.0))
    assert budget_beneath(state, Budget()) == Budget(time_s=7.0, calls=3, retries=2, tokens=60, money=0.75)


def test_a_run_beneath_has_its_own_budget_where_that_is_less() -> None:
    """Semantics 22 and 23: the tighter of both."""
    state = parent_that_spent(Budget(calls=5, tokens=100))
    own = Budget(time_s=4.0, calls=1, retries=9, tokens=90)
    assert budget_beneath(state, own) == Budget(time_s=4.0, calls=1, retries=9, tokens=60)


def test_a_run_beneath_one_that_has_used_more_has_nothing() -> None:
    """Semantics 22 and 23: nothing is not less than nothing."""
    state = parent_that_spent(Budget(calls=2, tokens=10))
    assert budget_beneath(state, Budget()) == Budget(calls=0, tokens=0)


@pytest.mark.parametrize("always", [True, False])
def test_what_tidies_up_or_undoes_may_have_a_run_beneath(always: bool) -> None:
    """Semantics 20 and 23: it runs though the budget is used up, and so does what it is made of."""
    tidy = {"tidy": Never()} if always else {"unbook": Never()}
    script = Script(
        plan(
            step("book", effects="mutates", compensate="unbook"),
            step("last", "book"),
            step("unbook"),
            *([step("tidy", always=True)] if always else []),
            budget=Budget(calls=2 if always else 1, retries=0),
        ),
        calls={"last": LOGICAL, **tidy},
    )
    assert script.started[-1] in tidy
    assert budget_beneath(script.state, Budget(tokens=9)) == Budget(tokens=9)


def test_tokens_used_to_the_last_are_enough() -> None:
    """Semantics 23: a breach is more than was allowed."""
    script = Script(spending(Budget(tokens=100, money=0.2)), calls={"a": used(tokens=100, cost=0.2)})
    assert (rules(script), script.verdict) == ([], "GO")
