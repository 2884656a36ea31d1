"""Laws of the gate, over random policies and random faults (F.8.5, F.8.6, B10, B19, law 1, law 2)."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.world import Chunk, Http, Slow, StepFailed, World, gate, play

from gonogo.gate import (
    Backoff,
    Bounds,
    BreakerPolicy,
    GateError,
    Policy,
    RetryShare,
    Step,
    StreamReset,
    Target,
    Timers,
    Usage,
    rule,
)
from gonogo.gate import decisions as d
from gonogo.gate.policy import Hedge
from gonogo.gate.replaying import replay

FAILURES = st.sampled_from(
    [Http(429), Http(429, retry_after="4"), Http(429, retry_after="500"), Http(500), Http(503), Http(401), Http(403)]
    + [Http(404), Http(400), ConnectionResetError(), ConnectionRefusedError(), RuntimeError(), Slow(1000)]
    + [StepFailed(kind) for kind in ("content-filter", "context-too-long", "made-up", "quota-exhausted")]
    + [StepFailed("server-5xx", usage=Usage(100, 10))]
)  # fmt: skip
OUTCOMES = st.one_of(FAILURES, st.sampled_from(["fine", "bad", Slow(3, "fine"), Slow(40, "fine")]))
KINDS = st.sampled_from(["ok", "server-5xx", "rate-limit", "schema-fail", "auth", "network", "unknown"])
TESTS = st.one_of(
    KINDS.map(lambda kind: {"error_kind": kind}),
    st.integers(0, 4).map(lambda count: {"attempt": {"gte": count}}),
    st.just({"can_switch": True}),
    st.just({"elapsed_s": {"gte": 0}}),
)
AFTER = st.builds(
    lambda verb, test, wait: rule(verb, test, wait_s=wait if verb == "retry" else None),
    st.sampled_from(["ok", "retry", "retry-other", "fallback", "fail-fast"]),
    TESTS,
    st.none() | st.floats(0, 30),
)
BEFORE = st.builds(
    lambda verb, test: rule(verb, test, wait_s=2.0 if verb == "wait" else None),
    st.sampled_from(["continue", "skip-target", "wait", "fail-fast"]),
    st.one_of(st.integers(1, 4).map(lambda count: {"attempt": {"gte": count}}), st.just({"target": "b"})),
)
POLICIES = st.builds(
    Policy,
    targets=st.integers(1, 3).map(lambda count: tuple(Target(name) for name in "abc"[:count])),
    before=st.lists(BEFORE, max_size=2).map(tuple),
    after=st.lists(AFTER, max_size=4).map(tuple),
    bounds=st.builds(
        Bounds,
        attempts_per_target=st.integers(1, 4),
        attempts_max=st.integers(1, 8),
        deadline_s=st.floats(0.5, 120),
        tokens_max=st.none() | st.integers(1, 300),
        fallbacks_max=st.integers(0, 2),
        waits_max=st.integers(0, 5),
        cycles=st.integers(1, 3),
    ),
    timers=st.builds(Timers, attempt_s=st.floats(0.5, 60)),
    backoff=st.builds(Backoff, base_s=st.floats(0, 5), patience_s=st.floats(0, 10)),
    breaker=st.none() | st.builds(BreakerPolicy, failures=st.integers(1, 3), cooldown_s=st.floats(1, 40)),
    mode=st.sampled_from(
        ["pass-through", "restart", "continue", "hold-until-first-token", "hold-until-valid", "sentence-hold"]
    ),
    when_all_open=st.sampled_from(["wait", "probe", "fail"]),
    reroute=st.sampled_from([frozenset(), frozenset({"content-filter"})]),
    hedge=st.none() | st.builds(Hedge, delay_s=st.floats(0.1, 5)),
)
SCRIPTS = st.fixed_dictionaries({name: st.lists(OUTCOMES, min_size=1, max_size=4) for name in "abc"})
PIECES = st.one_of(FAILURES, st.sampled_from(
    [Chunk("x"), Chunk("yy"), Chunk(bad=True), Chunk(finish="stop"), Chunk(finish="length"), Chunk(end=True), 0.5, 30.0]
))  # fmt: skip
STREAMS = st.fixed_dictionaries(
    {name: st.lists(st.lists(PIECES, max_size=6), min_size=1, max_size=3) for name in "abc"}
)


def no_bad(value: Any) -> str | None:
    """A validator."""
    return "bad" if value == "bad" else None


async def canned(error: BaseException | None) -> str:
    """A fallback."""
    return "canned"


def ended(
    given_policy: Policy, there: World, fallback: bool, streamed: bool
) -> tuple[Any, Any, float, list[Any]]:
    """Value or error, the record, when it was over, and the pieces."""

    async def story() -> tuple[Any, Any, float, list[Any]]:
        one = gate(given_policy, retries=RetryShare(floor=5))
        step = there.step(fallback=canned if fallback else None, validate=no_bad)
        pieces: list[Any] = []
        try:
            if streamed:
                stream = one.stream(step)
                async for piece in stream:
                    pieces.append(piece)
                assert stream.answer is not None
                return stream.answer.value, stream.record, one.clock.now(), pieces
            answer = await one.answer(step)
            return answer.value, answer.record, one.clock.now(), pieces
        except GateError as error:
            return error, error.record, one.clock.now(), pieces

    return play(story)


def check(
    given_policy: Policy, there: World, found: tuple[Any, Any, float, list[Any]], fallback: bool
) -> None:
    """What holds of every call."""
    value, record, at, _ = found
    bounds = given_policy.bounds
    called = there.called
    assert record.outcome is not None
    assert at <= bounds.deadline_s + 1e-6
    assert len(called) <= bounds.attempts_max
    assert all(called.count(name) <= bounds.attempts_per_target for name in set(called))
    assert len([each for each in record.decisions if isinstance(each, d.WaitStarted)]) <= bounds.waits_max
    assert (
        len([each for each in record.decisions if isinstance(each, d.FallbackStarted)])
        <= bounds.fallbacks_max * fallback
    )
    assert sorted(each.target for each in record.attempts if each.target != "fallback") == sorted(called)
    assert record.outcome.used == record.used
    assert replay(given_policy, record.events) == record.decisions
    if not isinstance(value, GateError):
        assert value != "bad"
        assert record.outcome.outcome in ("ok", "partial")
        assert value is not None


@settings(max_examples=150)
@given(POLICIES, SCRIPTS, st.booleans())
def test_every_call_ends_within_its_bounds(
    given_policy: Policy, scripts: dict[str, Any], fallback: bool
) -> None:
    """B19, law 2: no combination of verbs loops; the record is complete, and decides the same again."""
    there = World({name: list(script) for name, script in scripts.items()})
    check(given_policy, there, ended(given_policy, there, fallback, False), fallback)


@settings(max_examples=150)
@given(POLICIES, STREAMS, st.booleans())
def test_every_stream_ends_within_its_bounds(
    given_policy: Policy, scripts: dict[str, Any], fallback: bool
) -> None:
    """B19 for streams; what a consumer shows in the end is the answer, or part of it before an error."""
    there = World({name: [list(each) for each in script] for name, script in scripts.items()})
    found = ended(given_policy, there, fallback, True)
    check(given_policy, there, found, fallback)
    value, record, _, pieces = found
    text = ""
    for piece in pieces:
        text = (
            ""
            if isinstance(piece, StreamReset)
            else text + (piece.text if isinstance(piece, Chunk) else piece)
        )
    if not isinstance(value, GateError):
        assert text == value
    elif text:
        assert text == (value.partial or "")[: len(text)]
    opened = len(there.calls)
    assert there.closed <= opened
    assert record.outcome.outcome != "cancelled"


@settings(max_examples=75)
@given(POLICIES, SCRIPTS, st.floats(0, 60))
def test_after_a_cancel_nothing_is_called(given_policy: Policy, scripts: dict[str, Any], at_s: float) -> None:
    """F.8.5, law 7: at any moment."""
    there = World({name: list(script) for name, script in scripts.items()})

    async def story() -> None:
        one = gate(given_policy)
        task = asyncio.create_task(one.call(there.step(fallback=canned, validate=no_bad)))
        await asyncio.sleep(at_s)
        task.cancel()
        found = (await asyncio.gather(task, return_exceptions=True))[0]
        calls, now = len(there.calls), one.clock.now()
        assert now <= at_s + 1e-9
        await asyncio.sleep(1000)
        assert len(there.calls) == calls
        if task.cancelled():
            assert isinstance(found, asyncio.CancelledError)

    play(story)


@settings(max_examples=30)
@given(st.lists(OUTCOMES, min_size=1, max_size=10), st.integers(1, 4))
def test_half_open_lets_one_probe_through_at_a_time(script: list[Any], failures: int) -> None:
    """B33: whatever many callers do side by side."""
    there = World({"a": [Slow(2, "fine" if isinstance(each, Slow) else each) for each in script]})
    open_now, most = [0], [0]

    async def invoke(attempt: Any) -> Any:
        open_now[0] += 1
        most[0] = max(most[0], open_now[0])
        try:
            return await there.invoke(attempt)
        finally:
            open_now[0] -= 1

    async def story() -> None:
        given_policy = Policy(
            targets=(Target("a"),),
            breaker=BreakerPolicy(failures=failures, cooldown_s=5, jitter=0),
            bounds=Bounds(attempts_max=1),
            when_all_open="fail",
        )
        one = gate(given_policy)

        async def watched() -> None:
            try:
                await one.call(Step("x", invoke))
            except GateError:
                pass

        for _ in range(5):
            assert one.breakers is not None
            states = [each.state for each in one.breakers.listed()]
            most[0] = 0
            await asyncio.gather(*(watched() for _ in range(6)))
            if states == ["half-open"]:
                assert most[0] == 1
            await asyncio.sleep(7)

    play(story)
