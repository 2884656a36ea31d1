"""Streams through the gate: modes, the commit boundary, timers, and every bad end (F.4; LLM-1 to LLM-4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.gate.test_golden import no_bad_json, said
from tests.gate.world import NO_WAIT, Chunk, World, collected, gate, play, policy, shown, streams

from gonogo.gate import (
    BreakerPolicy,
    DeadlineExceeded,
    Exhausted,
    GateError,
    NotRetryable,
    Policy,
    Signal,
    StreamReset,
    Target,
    Timers,
    Usage,
    rule,
)
from gonogo.gate.decisions import AttemptEnded

MODES = ("pass-through", "restart", "continue", "hold-until-first-token", "hold-until-valid", "sentence-hold")
FAILOVER = {"backoff": NO_WAIT}
T = Chunk


def told(
    given: Policy, there: World, gate_more: dict[str, Any] | None = None, **more: Any
) -> tuple[list[Any], Any]:
    """All pieces and the stream."""

    async def story() -> tuple[list[Any], Any]:
        stream = gate(given, **(gate_more or {})).stream(there.step(**more))
        return await collected(stream), stream

    return play(story)


def fails(given: Policy, there: World, error: type[GateError], **more: Any) -> tuple[list[Any], Any]:
    """The pieces that came, and the error."""

    async def story() -> tuple[list[Any], Any]:
        stream, pieces = gate(given).stream(there.step(**more)), []
        with pytest.raises(error) as raised:
            async for piece in stream:
                pieces.append(piece)
        return pieces, raised.value

    return play(story)


@pytest.mark.parametrize("mode", MODES)
def test_a_good_stream_comes_out_whole_in_every_mode(mode: Any) -> None:
    """F.4."""
    pieces, stream = told(policy("a", mode=mode), streams(a=[said("one |two |three")]))
    assert shown(pieces) == "one two three"
    assert stream.answer.target == "a"
    assert stream.answer.value == "one two three"


@pytest.mark.parametrize("mode", MODES)
def test_LLM_1_a_a_failure_before_the_first_piece_is_not_seen(mode: Any) -> None:
    """LLM-1 a: only the second target's pieces come out."""
    there = streams(a=[[ConnectionResetError()]], b=[said("from b")])
    pieces, stream = told(policy("a", "b", mode=mode, **FAILOVER), there)
    assert shown(pieces) == "from b"
    assert not any(isinstance(piece, StreamReset) for piece in pieces)
    assert stream.answer.model == "b-model"


BAD_ENDS = {
    "b": ([T("x"), T("y"), T("z"), ConnectionResetError()], "network"),
    "c": ([T("x"), T("y"), T("z")], "truncated-stream"),
    "e": ([T("x"), T("y"), T(error=Signal(message="sorry"))], "malformed-stream"),
    "idle": ([T("x"), 1000], "timeout-idle"),
}


@pytest.mark.parametrize("case", BAD_ENDS)
@pytest.mark.parametrize("mode", ["pass-through", "hold-until-first-token"])
def test_LLM_1_b_c_e_a_bad_end_after_bytes_is_an_error_with_the_partial(case: str, mode: Any) -> None:
    """LLM-1 b, c, e, LLM-4 b: never a success, never two answers spliced."""
    script, kind = BAD_ENDS[case]
    there = streams(a=[script], b=[said("from b")])
    pieces, error = fails(policy("a", "b", mode=mode), there, NotRetryable)
    assert error.kind == "mid-stream-not-retryable"
    assert (
        error.partial == shown(pieces) == "".join(piece.text for piece in script if isinstance(piece, Chunk))
    )
    assert error.attempts[0].failure.kind == kind
    assert there.called == ["a"]


@pytest.mark.parametrize("case", BAD_ENDS)
@pytest.mark.parametrize("mode", ["restart", "hold-until-valid", "sentence-hold"])
def test_LLM_1_modes_that_can_start_again_do(case: str, mode: Any) -> None:
    """S08, S09: a whole answer from a new attempt."""
    script, _ = BAD_ENDS[case]
    there = streams(a=[list(script)], b=[said("from b")])
    pieces, _ = told(policy("a", "b", mode=mode, **FAILOVER), there)
    assert shown(pieces) == "from b"
    assert any(isinstance(piece, StreamReset) for piece in pieces) is (mode == "restart")


def test_a_bad_end_counts_for_the_breaker_once() -> None:
    """LLM-1: the first target's breaker has one failure."""

    async def story() -> Any:
        one = gate(policy("a", "b", breaker=BreakerPolicy(), mode="restart", **FAILOVER))
        there = streams(a=[[T("x"), ConnectionResetError()], said("whole")], b=[[]])
        stream = one.stream(there.step())
        await anext(stream)
        await anext(stream)
        assert one.breakers is not None
        found = one.breakers.listed()[0].failures
        await stream.aclose()
        return found

    assert play(story) == 1


def test_LLM_1_d_an_unreadable_piece_is_skipped_and_the_damage_recorded() -> None:
    """LLM-1 d, S10, F12a: whole only if what was counted is what was sent."""
    damaged = [T("x", tokens=1), T(bad=True), T("y", tokens=1), T(finish="stop", usage=Usage(1, 2), end=True)]
    missing = [T("x", tokens=1), T(bad=True), T(finish="stop", usage=Usage(1, 2), end=True)]
    for script, integrity in ((damaged, "ok"), (missing, "unverified")):
        pieces, stream = told(policy("a"), streams(a=[script]))
        assert T(bad=True) not in pieces
        assert stream.record.attempts[0].integrity == integrity


def test_a_rule_can_refuse_what_is_unverified() -> None:
    """F12a: the policy may fail it."""
    missing = [T("x", tokens=1), T(bad=True), T(finish="stop", usage=Usage(1, 2), end=True)]
    strict = rule("fail-fast", {"integrity": "unverified"}, kind="damaged")
    _, error = fails(policy("a", after=(strict,), mode="hold-until-valid"), streams(a=[missing]), GateError)
    assert error.kind == "damaged"


def test_S11_a_missing_end_event_after_a_finish_reason_delays_nothing() -> None:
    """F12, S11: usage may still come; silence ends it soon."""
    script = [T("x"), T(finish="stop"), T(usage=Usage(3, 4)), 1000]

    async def story() -> Any:
        one = gate(policy("a"))
        stream = one.stream(streams(a=[script]).step())
        await collected(stream)
        return one.clock.now(), stream.answer.usage

    at, usage = play(story)
    assert at <= 2
    assert (usage.input_tokens, usage.output_tokens) == (3, 4)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ([T(finish="stop", end=True)], "empty-response"),
        ([T("x"), T(finish="length", end=True)], "length-stop"),
    ],
)
def test_LLM_2_a_200_that_is_no_answer_is_a_failure(script: list[Any], kind: str) -> None:
    """LLM-2: empty, cut off at the length limit."""
    _, error = fails(policy("a", mode="hold-until-valid"), streams(a=[script]), GateError)
    assert error.attempts[0].failure.kind == kind


def test_S13_a_filtered_answer_ends_at_once_with_the_reason() -> None:
    """S13: one attempt, no failover unless opted in."""
    script = [T("x"), T(finish="content_filter", end=True)]
    there = streams(a=[script], b=[said("b")])
    _, error = fails(policy("a", "b", mode="hold-until-valid"), there, NotRetryable)
    assert (error.kind, there.called) == ("content-filter", ["a"])
    there = streams(a=[script], b=[said("b")])
    told(policy("a", "b", mode="hold-until-valid", reroute=frozenset({"content-filter"})), there)
    assert there.called == ["a", "b"]


def test_LLM_4_a_silence_from_the_start_goes_elsewhere_after_one_attempt() -> None:
    """LLM-4 a, S06, S07: first-token limit, the silent route."""
    there = streams(a=[[1000, T("late")]], b=[said("from b")])

    async def story() -> Any:
        one = gate(policy("a", "b", timers=Timers(first_token_s=0.5)))
        return shown(await collected(one.stream(there.step()))), one.clock.now(), there.closed

    text, at, closed = play(story)
    assert (text, there.called, closed) == ("from b", ["a", "b"], 2)
    assert at == pytest.approx(0.5)


def test_LLM_4_b_a_stall_ends_the_idle_limit_after_the_last_piece() -> None:
    """LLM-4 b: and the connection is closed."""
    there = streams(a=[[T("x"), 0.2, T("y"), 1000]])

    async def story() -> Any:
        one = gate(policy("a", timers=Timers(idle_s=0.5)))
        with pytest.raises(NotRetryable):
            await collected(one.stream(there.step()))
        return one.clock.now(), there.closed

    at, closed = play(story)
    assert at == pytest.approx(0.7)
    assert closed == 1


def test_LLM_4_c_slow_and_steady_completes_but_there_is_a_total_limit() -> None:
    """LLM-4 c: the idle limit is no total limit."""
    steady = [piece for _ in range(25) for piece in (0.2, T("x"))]
    pieces, _ = told(policy("a", timers=Timers(idle_s=0.5)), streams(a=[[*steady, *said("y")]]))
    assert shown(pieces).endswith("y")
    _, error = fails(
        policy("a", timers=Timers(idle_s=0.5, attempt_s=2)), streams(a=[[*steady, *said("y")]]), NotRetryable
    )
    assert error.attempts[0].failure.kind == "timeout-total"


def test_a_slow_consumer_is_no_idle_stream() -> None:
    """F13: timers run only while the far side is waited for."""
    there = streams(a=[[T("x"), T("y"), *said("z")]])

    async def story() -> str:
        pieces = []
        async for piece in gate(
            policy("a", timers=Timers(idle_s=0.5, attempt_s=1, first_token_s=0.5))
        ).stream(there.step()):
            pieces.append(piece)
            await asyncio.sleep(3)
        return shown(pieces)

    assert play(story) == "xyz"


def test_the_deadline_ends_a_stream_too() -> None:
    """F25: absolute."""
    from gonogo.gate import Bounds

    there = streams(a=[[1000, T("x")]])
    _, error = fails(policy("a", bounds=Bounds(deadline_s=3)), there, DeadlineExceeded)
    assert error.kind == "deadline"


def test_pieces_come_out_at_once() -> None:
    """Nothing is buffered where nothing has to be."""
    there = streams(a=[[T("x"), 5, T("y"), 5, *said("z")]])

    async def story() -> list[float]:
        one = gate(policy("a", mode="pass-through"))
        return [one.clock.now() async for _ in one.stream(there.step())]

    assert play(story) == [0.0, 5.0, 10.0, 10.0]


def test_sentence_hold_retries_inside_its_window_and_not_behind_it() -> None:
    """F.4."""
    inside = streams(a=[[T("x" * 9), ConnectionResetError()], said("whole")])
    pieces, _ = told(policy("a", mode="sentence-hold", hold_characters=10, **FAILOVER), inside)
    assert shown(pieces) == "whole"
    behind = streams(a=[[T("x" * 10), ConnectionResetError()], said("whole")])
    fails(policy("a", mode="sentence-hold", hold_characters=10, **FAILOVER), behind, NotRetryable)


def test_continue_goes_on_from_the_partial_at_a_target_that_can() -> None:
    """F.4: what was shown stays; S14: a target without prefill is not asked to."""
    given = Policy(
        targets=(Target("a"), Target("b"), Target("c", capabilities=frozenset({"prefill"}))),
        mode="continue",
        backoff=NO_WAIT,
        breaker=None,
    )
    there = streams(a=[[T("once "), ConnectionResetError()]], b=[said("no")], c=[said("upon a time")])
    pieces, stream = told(given, there, continuable=lambda text: True)
    assert (shown(pieces), stream.answer.value) == ("once upon a time", "once upon a time")
    assert there.called == ["a", "c"]
    assert there.calls[1].partial == "once "


def test_continue_stops_inside_what_cannot_be_continued() -> None:
    """F.4: never inside a tool call or JSON."""
    given = Policy(
        targets=(Target("a", capabilities=frozenset({"prefill"})),),
        mode="continue",
        backoff=NO_WAIT,
        breaker=None,
    )
    for script in ([T("{"), ConnectionResetError()], [T("x"), T(tool=True), ConnectionResetError()]):
        there = streams(a=[script])
        fails(given, there, NotRetryable, continuable=lambda text: not text.startswith("{"))
        assert there.called == ["a"]


def test_LLM_1_a_fallback_is_not_spliced_onto_a_part() -> None:
    """LLM-1: it can't go on from what was shown, so what can't be continued is an error with the partial."""

    async def canned(error: BaseException | None) -> str:
        return "canned"

    there = streams(a=[[T("once "), ConnectionResetError()]])
    given = policy("a", mode="continue", backoff=NO_WAIT)
    pieces, error = fails(given, there, GateError, continuable=lambda text: True, fallback=canned)
    assert (shown(pieces), error.partial) == ("once ", "once ")


def test_hold_until_valid_shows_nothing_wrong() -> None:
    """X15: a stream and a schema retry go together."""
    there = streams(a=[said("nonsense"), said("{}")])
    pieces, _ = told(policy("a", mode="hold-until-valid"), there, validate=no_bad_json)
    assert shown(pieces) == "{}"
    assert there.calls[1].rejected == "nonsense"


def test_a_rule_may_accept_the_partial() -> None:
    """X17: 'commit what was delivered' does."""
    there = streams(a=[[T("half"), ConnectionResetError()]])
    accept = rule("ok", {"error_kind": "network", "delivered": True})
    pieces, stream = told(policy("a", after=(accept,)), there)
    assert shown(pieces) == "half"
    assert (stream.answer.partial, stream.answer.value) == (True, "half")
    assert stream.record.outcome.outcome == "partial"


def test_ok_without_anything_is_not_ok() -> None:
    """A rule can't accept what isn't there."""
    _, error = fails(
        policy("a", after=(rule("ok", {"error_kind": "network"}),)),
        streams(a=[[ConnectionResetError()]]),
        GateError,
    )
    assert error.kind == "no-response"


def test_the_fallback_follows_a_reset() -> None:
    """F.4, restart."""

    async def canned(error: BaseException | None) -> str:
        return "canned"

    there = streams(a=[[T("half"), ConnectionResetError()]])
    pieces, stream = told(policy("a", mode="restart", **FAILOVER), there, fallback=canned)
    assert shown(pieces) == "canned"
    assert stream.answer.target == "fallback"


def test_a_consumer_that_leaves_closes_the_far_side_at_once() -> None:
    """F16, LLM-3 d: neutral for the breaker, billed, nothing called any more."""
    there = streams(a=[[T("x", usage=Usage(5, 1)), 1000, T("y")]])

    async def story() -> Any:
        one = gate(policy("a", breaker=BreakerPolicy(failures=1)))
        async with one.stream(there.step()) as stream:
            await anext(stream)
        assert one.breakers is not None
        return one.clock.now(), there.closed, stream.record.outcome, one.breakers.listed()

    at, closed, outcome, listed = play(story)
    assert (at, closed) == (0.0, 1)
    assert (outcome.outcome, outcome.used.input_tokens) == ("cancelled", 5)
    assert [each.failures for each in listed] in ([], [0])


def test_a_consumer_that_leaves_after_the_end_was_told_leaves_a_success() -> None:
    """B32, X33."""
    there = streams(a=[[T("x"), T(finish="stop"), 1000]])

    async def story() -> Any:
        async with gate(policy("a")).stream(there.step()) as stream:
            await anext(stream)
            await anext(stream)
        return stream.record.outcome.outcome

    assert play(story) == "ok"


def test_a_cancelled_reader_closes_the_far_side_and_stays_cancelled() -> None:
    """B21: on every piece."""
    there = streams(a=[[T("x"), 1000, T("y")]])

    async def story() -> Any:
        stream = gate(policy("a", "b")).stream(there.step())
        task = asyncio.create_task(collected(stream))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return there.closed, there.called, stream.record.outcome.outcome

    assert play(story) == (1, ["a"], "cancelled")


def test_a_plain_async_generator_can_be_streamed() -> None:
    """Without chunks of ours: exhaustion is its end."""
    there = streams(a=[["one ", "two"]])
    pieces, stream = told(policy("a"), there, ends="exhaustion")
    assert pieces == ["one ", "two"]
    assert stream.answer.value == "one two"


def test_the_record_counts_and_hashes_but_holds_no_text() -> None:
    """F15."""
    _, stream = told(policy("a"), streams(a=[said("one |two")]))
    ended = next(each for each in stream.record.decisions if isinstance(each, AttemptEnded))
    assert (ended.chunks, ended.held) == (3, 7)
    assert ended.digest
    assert "one two" not in str(stream.record.decisions)


def test_a_stream_left_open_warns() -> None:
    """Who forgets to close learns of it."""
    there = streams(a=[[T("x"), T("y"), *said("z")]])

    async def story() -> None:
        stream = gate(policy("a")).stream(there.step())
        await anext(stream)
        with pytest.warns(ResourceWarning, match="left open"):
            stream.__del__()
        await stream.aclose()
        assert there.called == ["a"]

    play(story)


def test_exhausted_streams_list_their_attempts() -> None:
    """F.5."""
    there = streams(a=[[ConnectionResetError()]], b=[[]])
    _, error = fails(policy("a", "b", **FAILOVER), there, Exhausted)
    assert [each.target for each in error.attempts] == ["a", "a", "a", "b", "b", "b"]
    assert {each.failure.kind for each in error.attempts} == {"network", "truncated-stream"}


@pytest.mark.parametrize("place", ["chunk", "inspect", "unfit"])
def test_SEC_2_what_a_step_tells_of_a_failure_is_cleaned(place: str) -> None:
    """SEC-2, F.8.8: an error inside a stream, an answer that is none, a target that doesn't fit."""
    secret = "sk-0123456789abcdef"
    signal = Signal(status=500, message=f"key {secret}", codes=(secret,), request_id=secret)
    there = streams(a=[[T("x"), T(error=signal)]]) if place == "chunk" else streams(a=["x"])
    more: dict[str, Any] = {"inspect": lambda value: signal} if place == "inspect" else {}
    if place == "unfit":
        more = {"unfit": lambda target: f"no room for {secret}"}

    async def story() -> GateError:
        one = gate(policy("a", backoff=NO_WAIT), redact=lambda text: text.replace(secret, "***"))
        with pytest.raises(GateError) as raised:
            await (collected(one.stream(there.step())) if place == "chunk" else one.call(there.step(**more)))
        return raised.value

    error = play(story)
    assert error.record is not None
    told = (
        repr(error.record.events) + repr(error.record.decisions) + str(error) + " ".join(error.record.story())
    )
    assert secret not in told
    assert "***" in told
