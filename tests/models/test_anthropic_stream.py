"""Streams of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.models.wires import ANTHROPIC_START, anthropic_end, anthropic_event, anthropic_text, read_all

from gonogo.models.conversation import ToolCall
from gonogo.models.events import Broken, Delta, Done, ToolCallBegan, ToolCallDelta
from gonogo.models.reply import Reply, Usage
from gonogo.models.streaming import StreamReader

Make = Callable[[], StreamReader]


def block(index: int, **fields: object) -> bytes:
    """The beginning of a block."""
    return anthropic_event("content_block_start", index=index, content_block=fields)


def delta(index: int, kind: str, **fields: object) -> bytes:
    """Some more of a block."""
    return anthropic_event("content_block_delta", index=index, delta={"type": kind, **fields})


def test_a_stream_is_told_as_it_comes(anthropic: Make) -> None:
    """Each piece at once; `message_stop` ends it, the connection needn't."""
    reader = anthropic()
    assert reader.feed(ANTHROPIC_START + block(0, type="text", text="") + anthropic_event("ping")) == []
    assert reader.feed(anthropic_text("Hel") + anthropic_text("lo")) == [Delta("Hel"), Delta("lo")]
    reply = Reply("Hello", finish="stop", finish_raw="end_turn", usage=Usage(10, 5), model="m-1", id="msg_1")
    assert reader.feed(anthropic_event("content_block_stop", index=0) + anthropic_end()) == [Done(reply)]
    assert reader.state == "closed"


def test_a_stop_reason_without_a_last_event_is_an_end(anthropic: Make) -> None:
    """F12: one of the two is enough."""
    reader = anthropic()
    reader.feed(ANTHROPIC_START + anthropic_text("x"))
    reader.feed(
        anthropic_event("message_delta", delta={"stop_reason": "max_tokens"}, usage={"output_tokens": 9})
    )
    assert reader.state == "ending"
    told = reader.end()
    assert isinstance(told[0], Done)
    assert (told[0].reply.finish, told[0].reply.usage.output_tokens) == ("length", 9)


def test_tool_calls_are_put_together_by_their_block(anthropic: Make) -> None:
    """Counted from 0, whatever the number of the block."""
    stream = (
        ANTHROPIC_START
        + block(1, type="tool_use", id="t1", name="f", input={})
        + delta(1, "input_json_delta", partial_json="")
        + delta(1, "input_json_delta", partial_json='{"a":')
        + delta(1, "input_json_delta", partial_json="1}")
        + block(2, type="tool_use", id="t2", name="g", input={"b": 2})
    )
    told = read_all(anthropic(), stream + anthropic_end("tool_use"))
    assert told[:3] == [ToolCallBegan(0, "t1", "f"), ToolCallDelta(0, '{"a":'), ToolCallDelta(0, "1}")]
    assert isinstance(told[-1], Done)
    assert told[-1].reply.tool_calls == (ToolCall("t1", "f", '{"a":1}'), ToolCall("t2", "g", '{"b":2}'))


def test_thinking_is_told_apart_from_the_answer(anthropic: Make) -> None:
    """Signatures, and kinds that are yet to come, are passed by."""
    stream = (
        ANTHROPIC_START
        + block(0, type="thinking", thinking="")
        + delta(0, "thinking_delta", thinking="hm")
        + delta(0, "signature_delta", signature="s")
        + block(1, type="server_tool_use", id="s1", name="search")
        + delta(1, "input_json_delta", partial_json="{}")
        + delta(1, "something_new", text="?")
        + anthropic_event("something_new")
        + anthropic_text("hi", 2)
    )
    told = read_all(anthropic(), stream + anthropic_end())
    assert isinstance(told[-1], Done)
    reply = told[-1].reply
    assert (reply.thinking, reply.text, reply.tool_calls, reply.notes) == ("hm", "hi", (), ())


def test_usage_is_a_running_total_with_the_cache_added(anthropic: Make) -> None:
    """The first event counts the input, the last the output."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1}
    start = anthropic_event("message_start", message={"id": "m", "usage": usage})
    told = read_all(anthropic(), start + anthropic_text("x") + anthropic_end(tokens=7))
    assert isinstance(told[-1], Done)
    assert told[-1].reply.usage == Usage(100, 7, cached_tokens=90)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"type": "rate_limit_error", "message": "slow"}, "rate-limit"),
        ({"type": "api_error", "message": "oops"}, "server-5xx"),
        ("odd", "malformed-stream"),
    ],
)
def test_an_error_event_breaks_the_stream_with_what_had_come(
    anthropic: Make, error: object, kind: str
) -> None:
    """LLM-1 (e)."""
    told = read_all(
        anthropic(), ANTHROPIC_START + anthropic_text("half") + anthropic_event("error", error=error)
    )
    assert isinstance(told[-1], Broken)
    assert told[-1].no_answer.kind == kind
    assert told[-1].no_answer.partial is not None
    assert told[-1].no_answer.partial.text == "half"


def test_a_refusal_is_no_answer(anthropic: Make) -> None:
    """A stop reason of its own."""
    told = read_all(anthropic(), ANTHROPIC_START + anthropic_end("refusal"))
    assert isinstance(told[-1], Done)
    assert told[-1].reply.finish == "refusal"
