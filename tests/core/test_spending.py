"""What a run may spend: loops by criticality, and time, calls, retries, tokens and money in all (C.12)."""

from __future__ import annotations

import pytest
from tests.core.script import LOGICAL, TRANSIENT, Never, Parks, Returns, Script, block, plan, step

from gonogo.core import decisions as d
from gonogo.core import events as e
from gonogo.core.plan import Budget, Plan, Retry


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
