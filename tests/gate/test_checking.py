"""A policy is checked when its gate is built (A.2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gate.world import policy

from gonogo.errors import ConfigError
from gonogo.gate import Backoff, Bounds, BreakerPolicy, Gate, Policy, Predicate, Rule, Target, rule
from gonogo.gate.policy import Filter


@pytest.mark.parametrize(
    ("given", "path", "word"),
    [
        (policy("a", after=(rule("retyr", {"attempt": 1}),)), "after[0].then", "no verb"),
        (
            policy("a", after=(rule("ok", {"attempt": 1}), rule("wait", {"attempt": 1}))),
            "after[1].then",
            "no verb",
        ),
        (policy("a", before=(rule("retry", {"attempt": 1}),)), "before[0].then", "no verb"),
        (policy("a", after=(rule("ok", {"atempt": 1}),)), "after[0].when.atempt", "see no"),
        (policy("a", after=(rule("ok", {"attempt": {"like": 1}}),)), "after[0].when.attempt", "no operator"),
        (policy("a", after=(rule("ok", {"attempt": {"in": 3}}),)), "after[0].when.attempt", "needs a list"),
        (
            policy("a", after=(rule("ok", {"attempt": {"in": list(range(1001))}}),)),
            "after[0].when.attempt",
            "1000",
        ),
        (policy("a", after=(Rule(Filter(()), "ok"),)), "after[0].when", "never matches"),
        (policy("a", after=(rule("ok", {"attempt": 1}, feedback="x"),)), "after[0].feedback", "feedback"),
        (policy("a", after=(rule("ok", "js"),)), "after[0].when", "no evaluator"),
        (policy("a", after=(rule("ok", Predicate("x")),)), "after[0].when", "no predicate"),
        (policy("a", "a"), "targets", "two targets"),
        (Policy(targets=()), "targets", "at least one"),
        (policy("fallback"), "targets", "fallback"),
        (policy("a", reroute=frozenset({"x"})), "reroute", "none of"),
        (policy("a", bounds=Bounds(attempts_max=0)), "bounds.attempts_max", "from 1 on"),
        (policy("a", bounds=Bounds(deadline_s=float("inf"))), "bounds.deadline_s", "finite"),
        (policy("a", bounds=Bounds(deadline_s=-1)), "bounds.deadline_s", "from 0 on"),
        (policy("a", backoff=Backoff(base_s=float("nan"))), "backoff.base_s", "finite"),
        (policy("a", breaker=BreakerPolicy(failures=0)), "breaker.failures", "from 1 on"),
        (policy("a", breaker=BreakerPolicy(window_s=0)), "breaker.window_s", "more than 0"),
        (policy("a", before=(rule("wait", {"attempt": 1}, wait_s=-1.0),)), "before[0].wait_s", "from 0 on"),
    ],
)
def test_a_wrong_policy_is_refused_with_the_place(given: Policy, path: str, word: str) -> None:
    """A.2: unknown verbs, verbs of the other phase, names that rules don't see, numbers without sense."""
    with pytest.raises(ConfigError) as raised:
        Gate(given)
    assert [(problem.path, word in problem.message) for problem in raised.value.problems] == [(path, True)]


def test_all_problems_are_told_at_once() -> None:
    """Not one after the other."""
    given = policy("a", "a", after=(rule("x", {"y": 1}),))
    with pytest.raises(ConfigError) as raised:
        Gate(given)
    assert len(raised.value.problems) == 3


def test_a_policy_is_frozen_serialisable_and_named_by_its_hash() -> None:
    """F4."""
    import msgspec

    given: Any = policy("a", "b", after=(rule("ok", {"attempt": {"in": [1, 2]}}), rule("retry", "text")))
    with pytest.raises(AttributeError):
        given.mode = "restart"
    again = msgspec.json.decode(msgspec.json.encode(given), type=Policy)
    assert again.digest() == given.digest()
    assert msgspec.structs.replace(given, mode="restart").digest() != given.digest()
    assert (
        Policy(targets=(Target("a", capabilities=frozenset("xyz")),)).digest()
        == Policy(targets=(Target("a", capabilities=frozenset("zyx")),)).digest()
    )


def test_F4_a_gate_goes_by_the_policy_as_it_was() -> None:
    """F4, R17: what was handed in may be changed afterwards, the gate's own isn't."""
    params: dict[str, Any] = {"stop": ["x"]}
    made = Gate(Policy(targets=(Target("a", params=params),)))
    before = made.policy.digest()
    params["stop"].append("y")
    params["seed"] = 7
    assert made.policy.targets[0].params == {"stop": ["x"]}
    assert made.policy.digest() == before
