"""What a policy allows but can't mean is told before anything is called (F.8.9)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gate.world import policy

from gonogo.gate import Bounds, Policy, Predicate, doubts, rule

SCHEMA = {"error_kind": "schema-fail"}


def told(given: Policy) -> list[tuple[str, str]]:
    """Places and the first word of each doubt."""
    return [(problem.path or "", problem.message.split(",")[0].split(":")[0]) for problem in doubts(given)]


def after(*rules: Any, names: str = "ab", **more: Any) -> Policy:
    """A policy with these rules after an attempt."""
    return policy(*names, after=rules, **more)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"error_kind": "auth"}, {"error_kind": "auth"}),
        ({"error_kind": "auth"}, {"error_kind": "auth", "attempt": {"lt": 3}}),
        ({"error_kind": {"ne": "ok"}}, {"error_kind": "auth"}),
        ({"error_kind": {"in": ["auth", "network"]}}, {"error_kind": "auth", "can_switch": True}),
        ({"error_kind": {"not_in": ["ok"]}}, {"error_kind": {"in": ["auth", "network"]}}),
        ({"attempt": {"gte": 1}}, {"attempt": 2}),
        ("error.status > 400", "error.status > 400"),
    ],
)
def test_a_rule_behind_one_that_always_speaks_first_is_never_reached(earlier: Any, later: Any) -> None:
    """F.8.9, unreachable: by equal conditions, by fewer of them, and by values that all pass."""
    found = told(after(rule("retry-other", earlier), rule("fallback", later)))
    assert found == [("after[1].when", "never reached")]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"error_kind": "auth", "attempt": {"lt": 3}}, {"error_kind": "auth"}),
        ({"error_kind": "auth"}, {"error_kind": {"ne": "ok"}}),
        ({"error_kind": {"in": ["auth"]}}, {"error_kind": {"in": ["auth", "network"]}}),
        ({"attempt": {"lt": 2}}, {"attempt": {"lt": 3}}),
        ("attempt < 2", {"attempt": {"lt": 2}}),
    ],
)
def test_a_rule_that_may_be_reached_is_not_doubted(earlier: Any, later: Any) -> None:
    """A doubt that is none would teach people to overlook doubts."""
    assert told(after(rule("retry-other", earlier), rule("fallback", later))) == []


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (after(rule("retry-other", {"error_kind": "auth"}), names="a"), "after[0].then"),
        (policy("a", before=(rule("skip-target", {"attempt": 1}),)), "before[0].then"),
        (after(rule("retry", SCHEMA), bounds=Bounds(attempts_per_target=1), mode="restart"), "after[0].then"),
        (after(rule("fallback", SCHEMA), bounds=Bounds(fallbacks_max=0)), "after[0].then"),
    ],
)
def test_a_verb_without_a_place_to_go_is_doubted(given: Policy, path: str) -> None:
    """F.8.9, verb without target."""
    assert [place for place, _ in told(given)] == [path]


MANY = Bounds(attempts_per_target=1000, attempts_max=1000)


@pytest.mark.parametrize("when", [{"error_kind": "network"}, "error.status === 500"])
def test_a_retry_that_only_far_bounds_end_is_doubted(when: Any) -> None:
    """F.8.9, unbounded retry: no policy is without bounds, but some are as good as without."""
    assert told(after(rule("retry", when), bounds=MANY)) == [("after[0].then", "retries 999 times")]


@pytest.mark.parametrize(
    ("when", "bounds"),
    [
        ({"error_kind": "network"}, Bounds()),
        ({"error_kind": "network", "attempt": {"lt": 3}}, MANY),
        ({"error_kind": "network", "elapsed_s": {"lt": 30}}, MANY),
        ("error.status === 500 && target_attempt < 3", MANY),
        (Predicate("mine"), MANY),
    ],
)
def test_a_retry_that_ends_is_not_doubted(when: Any, bounds: Bounds) -> None:
    """By its own count or time, or soon by the bounds; what a predicate reads nobody knows."""
    assert told(after(rule("retry", when), bounds=bounds)) == []


@pytest.mark.parametrize("mode", ["pass-through", "hold-until-first-token"])
@pytest.mark.parametrize(
    ("more", "path"), [({"feedback": "again"}, "after[0].feedback"), ({}, "after[0].then")]
)
def test_correcting_what_is_shown_already_is_doubted(mode: Any, more: dict[str, str], path: str) -> None:
    """F.8.9, a validation retry under pass-through: what is with the consumer can't be asked for again."""
    given = after(rule("retry", SCHEMA, **more), mode=mode)
    assert [place for place, _ in told(given)] == [path]
    assert told(after(rule("retry", SCHEMA, **more), mode="hold-until-valid")) == []


def test_what_a_policy_leaves_to_others_is_not_doubted() -> None:
    """Targets and mode may come from the step."""
    given = after(rule("retry-other", SCHEMA, feedback="x"), names="a")
    assert [problem.path for problem in doubts(given, {"targets", "mode"})] == []


def test_a_plain_policy_raises_no_doubt() -> None:
    """Nor do rules as the guide has them."""
    from tests.gate.world import golden

    assert told(policy("a", "b")) == []
    assert told(golden(mode="restart")) == []
