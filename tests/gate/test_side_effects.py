"""Calls that change something are sent again only with leave (F.7, semantics 16, law 3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.world import NO_WAIT, Http, Slow, StepFailed, answered, policy, world

from gonogo.gate import Bounds, GateError, NotRetryable, Policy, Target, Timers, rule

UNCLEAR = [
    Http(500),
    ConnectionResetError(),
    Slow(1000),
    StepFailed("network"),
    Http(408),
    Http(503),
    RuntimeError(),
]
NOTHING_HAPPENED = [
    ConnectionRefusedError(),
    Http(429),
    Http(503, retry_after="0"),
    StepFailed("server-5xx", effect="none"),
]


def two(*, honoured: bool = False) -> Policy:
    """Two targets, quick."""
    targets = tuple(Target(name, key_honoured=honoured) for name in "ab")
    return Policy(targets=targets, breaker=None, backoff=NO_WAIT, timers=Timers(attempt_s=2))


@pytest.mark.parametrize("failure", UNCLEAR, ids=repr)
def test_what_may_have_happened_is_not_sent_again(failure: Any) -> None:
    """F27: neither there nor elsewhere, nor to the fallback; the error says that nobody knows."""
    asked: list[Any] = []

    async def fallback(error: BaseException | None) -> str:
        asked.append(error)
        return "canned"

    there = world(a=failure, b="from b")
    with pytest.raises(NotRetryable) as raised:
        answered(two(), there, effects="mutates", fallback=fallback)
    assert (there.called, asked) == (["a"], [])
    assert (raised.value.kind, raised.value.effect) == ("side-effect-unsafe", "unknown")
    assert raised.value.fault("x/y").fault_class == "lost"


@pytest.mark.parametrize("failure", NOTHING_HAPPENED, ids=repr)
def test_what_surely_did_nothing_may_be_sent_again(failure: Any) -> None:
    """F27: refused connection, 429, a 503 that names a time."""
    there = world(a=[failure, "fine"], b="b")
    assert answered(two(), there, effects="mutates").value == "fine"
    assert there.called == ["a", "a"]


def test_a_key_is_leave_at_the_target_that_honours_it_only() -> None:
    """F27: the same key over attempts; another target doesn't know it."""
    there = world(a=[Http(500), "fine"], b="b")
    assert answered(two(honoured=True), there, effects="mutates", key="k-1").value == "fine"
    assert [attempt.key for attempt in there.calls] == ["k-1", "k-1"]
    there = world(a=Http(500), b="b")
    with pytest.raises(NotRetryable):
        answered(two(honoured=True), there, effects="mutates", key="k-1")
    assert set(there.called) == {"a"}
    there = world(a=Http(500), b="b")
    with pytest.raises(NotRetryable):
        answered(two(honoured=False), there, effects="mutates", key="k-1")
    assert there.called == ["a"]


def test_an_answer_that_is_not_valid_was_an_act_all_the_same() -> None:
    """It isn't sent again, and the error tells that it was done."""
    there = world(a="nonsense", b="b")
    with pytest.raises(NotRetryable) as raised:
        answered(two(), there, effects="mutates", validate=lambda value: "wrong")
    assert there.called == ["a"]
    assert (raised.value.kind, raised.value.effect) == ("schema-fail", "done")


def test_what_may_have_happened_is_told_before_spent_bounds() -> None:
    """One attempt allowed and its end unclear: that it is unclear matters more."""
    given_policy = policy("a", bounds=Bounds(attempts_max=1))
    with pytest.raises(NotRetryable) as raised:
        answered(given_policy, world(a=Http(500)), effects="mutates")
    assert raised.value.kind == "side-effect-unsafe"


def test_no_rule_overrules_it() -> None:
    """B11: guards come before rules."""
    always = Policy(
        targets=(Target("a"), Target("b")),
        after=(rule("retry", {"error_kind": {"ne": "ok"}}),),
        breaker=None,
        backoff=NO_WAIT,
    )
    there = world(a=Http(500), b="b")
    with pytest.raises(NotRetryable) as raised:
        answered(always, there, effects="mutates")
    assert there.called == ["a"]
    assert raised.value.decision is not None
    assert (raised.value.decision.wanted, raised.value.decision.did) == ("retry", "fail-fast")
    assert "side effect" in (raised.value.decision.blocked_by or "")


def test_a_resume_does_not_forget_it() -> None:
    """F21: what an earlier part of the call may have done stays in doubt."""
    there = world(a=Http(500), b="b")
    with pytest.raises(NotRetryable) as raised:
        answered(two(), there, effects="mutates")
    with pytest.raises(NotRetryable):
        answered(two(), there, effects="mutates", carried=raised.value.resume)
    assert there.called == ["a"]


KINDS = st.sampled_from(["fine", *UNCLEAR, *NOTHING_HAPPENED, Http(401), Http(404), Http(422)])
VERBS = st.sampled_from(["ok", "retry", "retry-other", "fallback", "fail-fast"])


@given(
    st.lists(KINDS, min_size=1, max_size=6),
    st.lists(KINDS, min_size=1, max_size=6),
    st.lists(VERBS, max_size=3),
    st.integers(1, 3),
)
def test_a_mutating_call_is_never_sent_twice_without_leave(
    a: list[Any], b: list[Any], verbs: list[str], cycles: int
) -> None:
    """Law 3, whatever targets, rules and cycles: everything before the last call surely did nothing."""
    rules = tuple(rule(verb, {"attempt": {"gte": place}}) for place, verb in enumerate(verbs))
    given_policy = policy(
        "a", "b", after=rules, backoff=NO_WAIT, timers=Timers(attempt_s=2), bounds=Bounds(cycles=cycles)
    )
    sent: list[Any] = []
    there = world(a=list(a), b=list(b))
    invoke = there.invoke

    async def watched(attempt: Any) -> Any:
        script = there.scripts[attempt.target.name]
        sent.append(script[0])
        return await invoke(attempt)

    there.invoke = watched  # type: ignore[method-assign]
    try:
        answered(given_policy, there, effects="mutates")
    except GateError:
        pass
    for failure in sent[:-1]:
        assert isinstance(failure, Http | StepFailed | ConnectionRefusedError), failure
        if isinstance(failure, Http):
            assert 400 <= failure.status_code < 500 or "retry-after" in failure.headers
            assert failure.status_code != 408
        if isinstance(failure, StepFailed):
            assert failure.effect == "none"
