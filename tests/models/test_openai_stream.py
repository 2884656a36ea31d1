"""Streams of chat completions."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.models.wires import NOW_S, chunk, openai_chunk, read_all

from gonogo.models import openai_stream
from gonogo.models.conversation import ToolCall
from gonogo.models.events import Broken, Delta, Done, StreamEvent, ToolCallBegan, ToolCallDelta
from gonogo.models.reply import NoAnswer, Reply, Usage
from gonogo.models.streaming import StreamReader

Make = Callable[[], StreamReader]
DONE = chunk("[DONE]")
USAGE = chunk({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})


def call(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: str = ""
) -> bytes:
    """A chunk with a part of a tool call."""
    made = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return openai_chunk({"tool_calls": [{key: value for key, value in made.items() if value is not None}]})


def reply_of(told: list[StreamEvent]) -> Reply:
    """What a stream that came to its end said."""
    assert isinstance(told[-1], Done)
    return told[-1].reply


def fault_of(told: list[StreamEvent]) -> NoAnswer:
    """Why a stream broke."""
    assert isinstance(told[-1], Broken)
    return told[-1].no_answer


def test_a_stream_is_told_as_it_comes(openai: Make) -> None:
    """Each piece at once, then the whole with its usage."""
    reader = openai()
    assert reader.feed(openai_chunk({"role": "assistant", "content": ""})) == []
    assert not reader.begun
    assert reader.feed(openai_chunk({"content": "Hel"})) == [Delta("Hel")]
    assert reader.begun
    assert reader.feed(openai_chunk({"content": "lo"})) == [Delta("lo")]
    assert reader.feed(openai_chunk({}, "stop")) == []
    assert reader.state == "ending"
    assert reader.feed(USAGE) == []
    reply = Reply("Hello", finish="stop", finish_raw="stop", usage=Usage(3, 2), model="m-1", id="c-1")
    assert reader.feed(DONE) == [Done(reply)]
    assert reader.state == "closed"


def test_F12_a_missing_end_mark_after_a_finish_reason_is_fine(openai: Make) -> None:
    """S11: the end of the connection ends it, with its usage."""
    reply = reply_of(read_all(openai(), openai_chunk({"content": "x"}) + openai_chunk({}, "stop") + USAGE))
    assert (reply.text, reply.usage, reply.integrity, reply.notes) == ("x", Usage(3, 2), "whole", ())


def test_text_after_a_finish_reason_is_not_lost(openai: Make) -> None:
    """Some servers send a finish reason with every chunk."""
    stream = openai_chunk({"content": "a"}, "stop") + openai_chunk({"content": "b"}, "stop") + DONE
    assert reply_of(read_all(openai(), stream)).text == "ab"


def test_an_end_mark_without_a_finish_reason_is_an_end_with_a_note(openai: Make) -> None:
    """It is the vendor's end event; what the finish was stays unknown."""
    reply = reply_of(read_all(openai(), openai_chunk({"content": "x"}) + DONE))
    assert (reply.finish, reply.integrity) == ("unknown", "whole")
    assert "the stream gave no finish reason" in reply.notes


def test_a_filtered_and_a_cut_off_answer_keep_their_finish(openai: Make) -> None:
    """They are no clean answers; `shortcoming` says so."""
    for reason, finish in (("length", "length"), ("content_filter", "content_filter"), ("eos", "unknown")):
        reply = reply_of(read_all(openai(), openai_chunk({"content": "x"}, reason) + DONE))
        assert (reply.finish, reply.finish_raw) == (finish, reason)


def test_tool_calls_are_put_together_by_index(openai: Make) -> None:
    """Interleaved as they may come."""
    stream = call(0, "t0", "f") + call(1, "t1", "g", "[") + call(0, arguments="{") + call(1, arguments="]")
    told = read_all(openai(), stream + call(0, arguments="}") + openai_chunk({}, "tool_calls") + DONE)
    assert told[:4] == [
        ToolCallBegan(0, "t0", "f"),
        ToolCallBegan(1, "t1", "g"),
        ToolCallDelta(1, "["),
        ToolCallDelta(0, "{"),
    ]
    assert reply_of(told).tool_calls == (ToolCall("t0", "f", "{}"), ToolCall("t1", "g", "[]"))


@pytest.mark.parametrize("index", [None, 0])
def test_servers_that_do_not_count_tool_calls_are_understood_by_the_id(
    openai: Make, index: int | None
) -> None:
    """A new id begins a call where the index is missing or always 0."""
    stream = call(index, "t0", "f", "{}") + call(index, "t1", "g", "{") + call(index, arguments="}")
    reply = reply_of(read_all(openai(), stream + openai_chunk({}, "stop")))
    assert reply.tool_calls == (ToolCall("t0", "f", "{}"), ToolCall("t1", "g", "{}"))
    assert reply.finish == "tool_calls"


def test_arguments_without_an_index_belong_to_the_call_that_began_last(openai: Make) -> None:
    """Also where that one took an index a second time."""
    stream = (
        call(0, "t0", "f", "{}")
        + call(1, "t1", "g", "{}")
        + call(0, "t2", "h", "{")
        + call(None, arguments="}")
    )
    reply = reply_of(read_all(openai(), stream + openai_chunk({}, "tool_calls")))
    assert [made.arguments for made in reply.tool_calls] == ["{}", "{}", "{}"]


def test_an_id_that_is_said_again_begins_no_second_call(openai: Make) -> None:
    """Some servers repeat id and name with every part."""
    stream = call(0, "t0", "f", "{") + call(0, "t0", "f", "}") + openai_chunk({}, "tool_calls")
    assert reply_of(read_all(openai(), stream)).tool_calls == (ToolCall("t0", "f", "{}"),)


def test_too_many_tool_calls_are_a_fault(openai: Make) -> None:
    """A limit on what a model may wish."""
    stream = b"".join(call(index, f"t{index}", "f") for index in range(200))
    assert fault_of(read_all(openai(), stream)).kind == "malformed-stream"


def test_an_error_inside_a_stream_breaks_it_with_what_had_come(openai: Make) -> None:
    """LLM-1 (e): by the error's own words."""
    error = chunk({"error": {"message": "Overloaded", "type": "overloaded_error"}})
    told = fault_of(read_all(openai(), openai_chunk({"content": "half"}) + error))
    assert (told.kind, told.message) == ("overloaded", "Overloaded")
    assert told.partial is not None
    assert (told.partial.text, told.partial.integrity) == ("half", "partial")


def test_other_ways_to_say_error_are_understood(openai: Make) -> None:
    """A named event, one that is no JSON, and a finish reason that says so."""
    assert fault_of(read_all(openai(), chunk({"code": 503, "message": "m"}, "error"))).kind == "overloaded"
    assert fault_of(read_all(openai(), chunk("boom", "error"))).kind == "malformed-stream"
    unread = b'event: error\ndata: {"detail": "\xff"}\n\n'
    assert fault_of(read_all(openai(), unread)).kind == "malformed-stream"
    assert fault_of(read_all(openai(), openai_chunk({}, "error"))).kind == "malformed-stream"


def test_F12a_as_many_pieces_as_counted_tokens_prove_an_answer_whole(openai: Make) -> None:
    """Then what was passed over held no token."""
    stream = (
        openai_chunk({"content": "a"})
        + b"data: {oops\n\n"
        + openai_chunk({"content": "b"})
        + openai_chunk({}, "stop")
    )
    assert reply_of(read_all(openai(), stream + USAGE + DONE)).integrity == "whole"
    assert reply_of(read_all(openai(), stream + DONE)).integrity == "unverified"


def test_wrong_usage_costs_no_text(openai: Make) -> None:
    """It is dropped with a note."""
    usage = chunk({"choices": [], "usage": {"prompt_tokens": "3", "completion_tokens": -2}})
    reply = reply_of(read_all(openai(), openai_chunk({"content": "x"}, "stop") + usage + DONE))
    assert (reply.text, reply.usage) == ("x", Usage())
    assert "usage: input_tokens is no count of tokens" in reply.notes


def test_an_answer_in_one_piece_to_a_request_for_a_stream_is_an_answer(openai: Make) -> None:
    """Some servers don't stream, whatever they are asked."""
    message = {"content": "hi", "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": "{}"}}]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    told = read_all(openai(), json.dumps(body, indent=2).encode())
    assert told[:3] == [Delta("hi"), ToolCallBegan(0, "t", "f"), ToolCallDelta(0, "{}")]
    assert reply_of(told).text == "hi"


def test_other_choices_and_empty_chunks_are_passed_by(openai: Make) -> None:
    """One choice is asked for; some vendors send a first chunk without any."""
    other = chunk({"choices": [{"index": 1, "delta": {"content": "no"}}]})
    stream = (
        chunk({"choices": [], "prompt_filter_results": []}) + other + openai_chunk({"content": "x"}, "stop")
    )
    assert reply_of(read_all(openai(), stream)).text == "x"


def test_the_request_id_of_the_answer_is_kept_in_a_fault() -> None:
    """Headers come before the stream."""
    reader = openai_stream.reader({"x-request-id": "r-1"}, NOW_S)
    assert fault_of(read_all(reader, chunk({"error": {"message": "m"}}))).request_id == "r-1"
