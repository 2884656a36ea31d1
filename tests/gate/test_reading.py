"""Policies as plain data, and the record as plain data."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.world import Http

from gonogo.errors import ConfigError, Problem
from gonogo.expressions.names import CALL_NAMES
from gonogo.gate import Backoff, BreakerPolicy, Gate, Policy, Step, Target, rule
from gonogo.gate.reading import policy_of
from gonogo.gate.scopes import NAMES
from gonogo.gate.summary import ATTEMPTS_MAX, SENTENCES_MAX, summary, usage
from gonogo.gate.virtual import VirtualClock, run


def test_the_sandbox_knows_the_names_that_rules_see() -> None:
    """Both lists are one."""
    assert CALL_NAMES == NAMES


def test_a_policy_is_read_as_it_is_written() -> None:
    """Every part, with filters and texts."""
    data = {
        "targets": [{"name": "a", "capabilities": ["tools"], "tier": 1}],
        "after": [
            {"when": {"error.status": {"gte": 500}, "attempt": 1}, "then": "retry", "wait_s": 2},
            {"when": "error_kind == 'auth'", "then": "fail-fast", "kind": "out"},
        ],
        "breaker": {"failures": 2, "key": ["step", "name"]},
        "backoff": {"cap_s": 3},
        "reroute": ["refusal"],
        "x-note": "free",
    }
    assert policy_of(data) == Policy(
        targets=(Target("a", capabilities=frozenset({"tools"}), tier=1),),
        after=(
            rule("retry", {"error.status": {"gte": 500}, "attempt": 1}, wait_s=2.0),
            rule("fail-fast", "error_kind == 'auth'", kind="out"),
        ),
        breaker=BreakerPolicy(failures=2, key=("step", "name")),
        backoff=Backoff(cap_s=3),
        reroute=frozenset({"refusal"}),
    )


@pytest.mark.parametrize("off", [None, False])
def test_breakers_are_switched_off_by_false(off: Any) -> None:
    """Or by nothing."""
    assert policy_of({"breaker": off}).breaker is None


def test_every_problem_is_told_with_its_place() -> None:
    """Not the first alone."""
    with pytest.raises(ConfigError) as caught:
        policy_of(
            {"bounds": {"attempts_max": "x"}, "timers": {"idle_s": []}, "after": [{"when": {}, "then": 1}]}
        )
    assert [each.path for each in caught.value.problems] == [
        "bounds.attempts_max",
        "timers.idle_s",
        "after[0].when",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([*Policy.__struct_fields__, "x-mine", "other"])


def problems_of(data: dict[str, Any]) -> tuple[Problem, ...]:
    """What is wrong with data."""
    try:
        policy_of(data)
    except ConfigError as wrong:
        return wrong.problems
    return ()


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_any_data_is_a_policy_or_a_problem_with_a_place(data: dict[str, Any]) -> None:
    """Files are hostile input: nothing else is raised."""
    assert all(each.path for each in problems_of(data))


def test_a_record_is_bounded_plain_data_with_what_was_left_out() -> None:
    """Forty attempts or four thousand: the event stays small, and says what it leaves out."""

    async def story() -> dict[str, Any]:
        policy = policy_of(
            {
                "bounds": {
                    "attempts_per_target": 999,
                    "attempts_max": 999,
                    "deadline_s": 1e6,
                    "waits_max": 999,
                },
                "after": [
                    {"when": "broken", "then": "ok"},
                    {"when": {"attempt": {"lt": 200}}, "then": "retry"},
                ],
                "backoff": {"base_s": 0},
                "breaker": False,
            }
        )

        async def invoke(attempt: Any) -> str:
            if attempt.number < 200:
                raise Http(500)
            return "fine"

        gate = Gate(policy, clock=VirtualClock(), seed="a", evaluate=lambda text, scope: 1 / 0)  # type: ignore[arg-type,return-value]
        gate.retries.floor = 10_000
        answer = await gate.answer(Step("s", invoke))
        assert usage(answer.record) == {}
        return summary(answer.record)

    told = run(story)
    assert len(told["attempts"]) == ATTEMPTS_MAX
    assert len(told["decisions"]) <= SENTENCES_MAX + 5
    assert told["left_out"]["attempts"] == 200 - ATTEMPTS_MAX
    assert told["served"] == "target"
    assert msgspec.json.decode(msgspec.json.encode(told)) == told


def test_a_rule_that_can_not_be_evaluated_is_told() -> None:
    """B14: it counts as no match, so somebody must hear of it."""

    async def story() -> dict[str, Any]:
        async def invoke(attempt: Any) -> str:
            return "fine"

        policy = policy_of({"after": [{"when": "broken", "then": "retry"}]})
        gate = Gate(policy, clock=VirtualClock(), seed="a", evaluate=lambda text, scope: 1 / 0)  # type: ignore[arg-type,return-value]
        return summary((await gate.answer(Step("s", invoke))).record)

    assert any(
        "rule 1 'retry' can't be evaluated: ZeroDivisionError" in each for each in run(story)["decisions"]
    )


def test_a_strange_key_hides_no_wrong_value() -> None:
    """A.2: every problem at once."""
    data = {
        "breaker": {"shared": "loose", "shred": 1},
        "strange": 1,
        "bounds": {"attempts_max": "many"},
        "after": [3],
        "before": [{"when": {"attempt": 1}, "then": 7}],
    }
    with pytest.raises(ConfigError) as told:
        policy_of(data)
    assert sorted(problem.path for problem in told.value.problems) == [
        "after[0]", "before[0].then", "bounds.attempts_max", "breaker.shared", "breaker.shred", "strange",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"breaker": {"shared": "loose"}}, "advisory, strict"),
        ({"breaker": {"key": ["nome"]}}, "credential, endpoint, model, name, step"),
        ({"mode": "loose"}, "restart"),
        ({"when_all_open": "x"}, "fail, probe, wait"),
    ],
)
def test_a_wrong_word_is_told_with_those_that_there_are(data: dict[str, Any], words: str) -> None:
    """Errors name the fix."""
    with pytest.raises(ConfigError) as told:
        policy_of(data)
    [problem] = told.value.problems
    assert words in problem.message
