"""The nine golden traces (B.5), by the whole gate in virtual time; where it matters, with answers and with streams."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import structs
from tests.gate.world import (
    NO_WAIT,
    Chunk,
    Http,
    Slow,
    StepFailed,
    answered,
    collected,
    gate,
    golden,
    play,
    policy,
    shown,
    streams,
    world,
)

from gonogo.gate import (
    BreakerPolicy,
    Exhausted,
    GateError,
    StreamReset,
    Usage,
    ValidationStuck,
    rule,
)
from gonogo.gate.decisions import GateEnded, RuleDecided, TargetSkipped, TargetSwitched, WaitStarted

PAID = Usage(input_tokens=10, output_tokens=1, cost_usd=0.001)


def said(text: str) -> list[Chunk]:
    """A good stream of these words."""
    return [*(Chunk(text=word) for word in text.split("|")), Chunk(finish="stop", end=True)]


def no_bad_json(text: Any) -> str | None:
    """A validator."""
    try:
        json.loads(text)
    except ValueError:
        return "no JSON"
    return None


def test_trace_1_a_503_then_an_answer_is_two_calls_and_one_jittered_wait() -> None:
    """B.5 #1: a×2, one wait, a record."""
    there = world(a=[Http(503), "fine"], b="b")
    answer = answered(golden(), there)
    waits = [each for each in answer.record.decisions if isinstance(each, WaitStarted)]
    assert (answer.value, answer.target, there.called) == ("fine", "a", ["a", "a"])
    assert len(waits) == 1
    assert 0 < waits[0].wait_s <= 0.5
    assert there.at[1] == pytest.approx(waits[0].wait_s)


def test_trace_2_the_other_target_is_called_with_its_own_model() -> None:
    """B.5 #2, X9, X13: a×3, b×1 with b's model."""
    there = world(a=Http(503), b="from b")
    answer = answered(golden(), there)
    assert there.called == ["a", "a", "a", "b"]
    assert there.calls[-1].target.model == "b-model"
    assert (answer.value, answer.target, answer.model) == ("from b", "b", "b-model")


def test_trace_3_all_down_and_the_fallback_too_ends_with_every_attempt_listed() -> None:
    """B.5 #3, X16: a×3, b×1, fallback×1, then Exhausted."""
    there = world(a=Http(503), b=Http(503))
    asked: list[BaseException | None] = []

    async def fallback(error: BaseException | None) -> Any:
        asked.append(error)
        raise RuntimeError("no luck")

    with pytest.raises(Exhausted) as raised:
        answered(golden(), there, fallback=fallback)
    assert there.called == ["a", "a", "a", "b"]
    assert len(asked) == 1
    assert [each.target for each in raised.value.attempts] == ["a", "a", "a", "b", "fallback"]
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_trace_4_a_refused_credential_moves_on_at_once_and_isolates_the_target() -> None:
    """B.5 #4: a×1, b×1; the next call doesn't ask a."""
    there = world(a=Http(401), b="from b")
    given = golden(breaker=BreakerPolicy())
    given = structs.replace(
        given, targets=tuple(structs.replace(each, credential="key 1") for each in given.targets)
    )

    async def story() -> list[str]:
        one = gate(given)
        await one.call(there.step())
        await one.call(there.step())
        return there.called

    assert play(story) == ["a", "b", "b"]


def test_trace_5_a_stream_that_dies_is_withdrawn_and_starts_again() -> None:
    """B.5 #5, LLM-1 b: stream_reset, then a again."""
    dies = [*(Chunk(text=f"t{n} ") for n in range(5)), ConnectionResetError()]
    there = streams(a=[dies, said("whole")], b=[said("b")])

    async def story() -> list[Any]:
        return await collected(gate(golden(mode="restart", backoff=NO_WAIT)).stream(there.step()))

    pieces = play(story)
    resets = [piece for piece in pieces if isinstance(piece, StreamReset)]
    assert there.called == ["a", "a"]
    assert [(reset.attempt, reset.discarded_chars) for reset in resets] == [(1, 15)]
    assert shown(pieces) == "whole"


@pytest.mark.parametrize("streamed", [False, True])
def test_trace_6_the_same_bad_answer_twice_ends_stuck(streamed: bool) -> None:
    """B.5 #6, X15, X20: two calls, the second with the rejected answer and one message."""
    there = streams(a=[said("not json")], b=[said("{}")]) if streamed else world(a="not json", b="{}")

    async def story() -> Any:
        one = gate(golden(mode="hold-until-valid"))
        step = there.step(validate=no_bad_json)
        return await (collected(one.stream(step)) if streamed else one.call(step))

    with pytest.raises(ValidationStuck) as raised:
        play(story)
    second = there.calls[1]
    assert there.called == ["a", "a"]
    assert second.rejected == "not json"
    assert second.feedback == 'that was wrong\n{"validation_error": "no JSON"}'
    assert raised.value.kind == "schema-stuck-loop"


def test_trace_7_a_breaker_that_an_earlier_call_opened_is_respected() -> None:
    """B.5 #7, X12: a is skipped with a reason, b answers."""
    there = world(a=Http(500), b="from b")

    async def story() -> Any:
        one = gate(policy("a", "b", breaker=BreakerPolicy(failures=2), backoff=NO_WAIT))
        await one.call(there.step())
        there.calls.clear()
        return await one.answer(there.step())

    answer = play(story)
    assert there.called == ["b"]
    assert answer.record.why_not("a") == ["open"]
    skipped = next(each for each in answer.record.decisions if isinstance(each, TargetSkipped))
    assert skipped.until_ms is not None
    assert skipped.until_ms > 20_000


def test_trace_8_a_cancelled_call_calls_nothing_more() -> None:
    """B.5 #8, X18, CAN-1: whatever cancels it is raised on, unchanged; the breaker counts nothing."""
    there = world(a=Slow(10, Http(500)))

    async def story() -> tuple[list[str], str]:
        one = gate(golden(breaker=BreakerPolicy(failures=1)))
        task = asyncio.create_task(one.call(there.step()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(100)
        assert one.breakers is not None
        return there.called, str(
            [listed.state for listed in one.breakers.listed() if listed.state != "closed"]
        )

    assert play(story) == (["a"], "[]")


def test_trace_9_an_error_that_no_rule_speaks_for_is_never_ok() -> None:
    """B.5 #9, X6, B15: the taxonomy's row decides."""
    there = world(a=Http(422))
    never = rule("ok", {"error_kind": "auth"})
    with pytest.raises(GateError) as raised:
        answered(policy("a", after=(never,)), there)
    decision = raised.value.decision
    assert raised.value.kind == "bad-request"
    assert decision is not None
    assert (decision.rule, decision.did) == (None, "fail-fast")
    assert [entry.result for entry in decision.entries] == ["no"]


def test_the_record_says_why_it_went_elsewhere() -> None:
    """E.10: the rule, its operands, their values, who wrote them, and what was in the way."""
    there = world(a=Http(429, retry_after="40"), b="from b")
    given = policy(
        "a", "b", after=(rule("retry", {"error_kind": "rate-limit"}, label="wait for rate limit"),)
    )
    answer = answered(given, there)
    decision = answer.record.decided()[0]
    assert isinstance(decision, RuleDecided)
    assert (decision.wanted, decision.did, decision.from_target, decision.to_target) == (
        "retry",
        "retry-other",
        "a",
        "b",
    )
    assert decision.blocked_by is not None
    assert decision.blocked_by.startswith("patience: wait 4")
    compared = decision.entries[0].conditions[0]
    assert (compared.path, compared.op, compared.threshold, compared.actual) == (
        "error_kind",
        "eq",
        "rate-limit",
        "rate-limit",
    )
    assert decision.reads[0].producer == "attempt 1"
    assert decision.failure is not None
    assert (decision.failure.status, decision.failure.retry_after_s) == (429, 40.0)
    assert [type(each) for each in answer.record.decisions if isinstance(each, TargetSwitched)] == [
        TargetSwitched
    ]
    assert isinstance(answer.record.decisions[-1], GateEnded)


def test_the_same_script_gives_the_same_decisions_in_every_face() -> None:
    """B10: one core under answers and streams."""
    there = world(a=[StepFailed("network"), StepFailed("overloaded"), "x"], b="b")
    flowing = streams(a=[[StepFailed("network")], [StepFailed("overloaded")], said("x")], b=[])
    record = answered(golden(), there).record

    async def story() -> Any:
        stream = gate(golden()).stream(flowing.step())
        await collected(stream)
        return stream.record

    other = play(story)
    assert [(type(each), each.offset_ms) for each in record.decisions] == [
        (type(each), each.offset_ms) for each in other.decisions
    ]


def test_a_decision_tells_what_was_used_before_and_after_its_attempt() -> None:
    """E.10: budgets before and after."""
    there = world(a=[Http(503), "a"])

    async def story() -> Any:
        step = structs.replace(
            there.step(), usage=lambda value: Usage(input_tokens=5, output_tokens=2, cost_usd=0.5)
        )
        given = policy(
            "a", after=(rule("retry", {"error_kind": "overloaded"}), rule("ok", {"attempt": {"gt": 0}}))
        )
        return await gate(given).answer(step)

    first, second = asyncio.run(story()).record.decided()
    assert (first.before.attempts, first.after.attempts) == (0, 1)
    assert (second.before.attempts, second.after.attempts) == (1, 2)
    assert (second.before.tokens, second.after.tokens, second.after.cost_usd) == (0, 7, 0.5)
    assert first.after.elapsed_s <= second.before.elapsed_s <= second.after.elapsed_s


def test_the_narrative_says_what_the_examples_say() -> None:
    """E.10: which rule with which operands and values, which not, when a target may be asked again, what it cost."""
    there = world(
        a=[StepFailed("rate-limit", retry_after_s=40), "x"], b=[StepFailed("server-5xx", usage=PAID), "b"]
    )
    given = policy(
        "a",
        "b",
        after=(
            rule("fail-fast", {"attempt": {"gte": 9}}, label="too many"),
            rule("retry", {"error_kind": "rate-limit", "attempt": {"lt": 3}}, label="wait for it"),
            rule("retry", {"error_kind": {"in": ["server-5xx", "network"]}}, label="again"),
        ),
        backoff=NO_WAIT,
        breaker=BreakerPolicy(),
    )

    async def story() -> Any:
        one = gate(given)
        first = await one.answer(structs.replace(there.step(), usage=lambda value: PAID))
        return first.record, (await one.answer(there.step())).record

    first, second = play(story)
    told = " ".join(first.story())
    assert (
        "rule 2 'wait for it' wanted retry (error_kind eq rate-limit; attempt 1 lt 3; no match: 1 'too many')"
        in told
    )
    assert "rule 3 'again' wanted retry (error_kind server-5xx in server-5xx, network; no match:" in told
    assert (
        "ended ok on b after 3 attempts; used 22 tokens, cost 0.002, of which 11 tokens and 0.001 in failed"
        in told
    )
    assert "a is skipped: resting; may be asked again in 4" in " ".join(second.story())
