"""Chat completions: requests as sent and whole answers as read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.wires import NOW_S

from gonogo.models.conversation import Ask, Message, Schema, Tool, ToolCall
from gonogo.models.openai import Dialect, key_headers, read, request
from gonogo.models.reply import NoAnswer, Reply, Usage

HELLO = (Message("user", "hello"),)
WEATHER = Tool(
    "weather", "Tells the weather.", {"type": "object", "properties": {"city": {"type": "string"}}}
)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def sent(dialect: Dialect | None = None, **fields: Any) -> dict[str, Any]:
    """The body of a request."""
    ask = Ask("m-1", **{"messages": HELLO, **fields})
    body: dict[str, Any] = json.loads(request("http://h/v1", ask, dialect or Dialect()).body)
    return body


def answer(message: object, finish: str | None = "stop", **more: Any) -> Reply | NoAnswer:
    """What a completion with one choice means."""
    body = {"id": "c-1", "model": "m-1", "choices": [{"message": message, "finish_reason": finish}], **more}
    return read(200, {}, json.dumps(body).encode(), NOW_S)


def test_a_small_request_is_the_model_and_the_messages() -> None:
    """No key is sent that nobody asked for."""
    call = request("http://h/v1/", Ask("m-1", HELLO, system="be brief"))
    assert call.url == "http://h/v1/chat/completions"
    assert json.loads(call.body) == {
        "model": "m-1",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
    }
    assert "authorization" not in call.headers


def test_limits_and_the_stream_are_asked_for_in_the_servers_dialect() -> None:
    """Old servers know max_tokens and no stream_options."""
    fields: dict[str, Any] = {"tokens_max": 9, "temperature": 0.0, "stop": ("END",), "stream": True}
    new, old = sent(**fields), sent(Dialect("max_tokens", stream_usage=False), **fields)
    assert (new["max_completion_tokens"], new["temperature"], new["stop"]) == (9, 0.0, ["END"])
    assert new["stream_options"] == {"include_usage": True}
    assert old["max_tokens"] == 9
    assert old["stream"] is True
    assert "stream_options" not in old


def test_a_talk_with_tools_is_written_down() -> None:
    """The wish to call, and its answer by id."""
    messages = (
        *HELLO,
        Message("assistant", tool_calls=(ToolCall("t1", "weather", '{"city":"x"}'),)),
        Message("tool", "sunny", tool_call_id="t1"),
    )
    body = sent(messages=messages, tools=(WEATHER,), tool_named="weather")
    function = {"name": "weather", "arguments": '{"city":"x"}'}
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "sunny"},
    ]
    assert body["tools"][0]["function"]["parameters"] == WEATHER.parameters
    assert body["tool_choice"] == {"type": "function", "function": {"name": "weather"}}


def test_a_schema_is_asked_for_in_four_ways() -> None:
    """The vendor's own, plain JSON, a tool that must be called, or by the prompt alone."""
    native = sent(schema=Schema(SCHEMA))["response_format"]
    assert native == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    }
    assert sent(schema=Schema(SCHEMA, mode="json_object"))["response_format"] == {"type": "json_object"}
    tool = sent(schema=Schema(SCHEMA, mode="tool"))
    assert tool["tool_choice"]["function"]["name"] == tool["tools"][0]["function"]["name"] == "answer"
    assert sent(schema=Schema(SCHEMA, mode="prompt")) == sent()


def test_a_schemas_tool_is_not_forced_beside_other_tools() -> None:
    """Else the model could never call them."""
    body = sent(schema=Schema(SCHEMA, mode="tool"), tools=(WEATHER,))
    assert (len(body["tools"]), body["tool_choice"]) == (2, "auto")


def test_the_key_goes_into_one_header() -> None:
    """And nowhere else."""
    assert key_headers("k") == {"authorization": "Bearer k"}


def test_a_reply_is_read() -> None:
    """Text, finish, model, usage with its parts."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    reply = answer({"role": "assistant", "content": "hi", "reasoning_content": "hm"}, usage=usage)
    counted = Usage(10, 5, cached_tokens=4, reasoning_tokens=2)
    assert reply == Reply("hi", "hm", finish="stop", finish_raw="stop", usage=counted, model="m-1", id="c-1")


def test_tool_calls_are_read_however_they_are_written() -> None:
    """Arguments as text or as an object, without an id, and with a finish reason that says "stop"."""
    calls = [
        {"id": "t1", "function": {"name": "weather", "arguments": '{"city":"x"}'}},
        {"function": {"name": "weather", "arguments": {"city": "y"}}},
        "nonsense",
    ]
    reply = answer({"content": None, "tool_calls": calls})
    assert isinstance(reply, Reply)
    assert reply.tool_calls == (
        ToolCall("t1", "weather", '{"city":"x"}'),
        ToolCall("call_1", "weather", '{"city":"y"}'),
    )
    assert reply.finish == "tool_calls"
    assert "passed over: a tool call without a function" in reply.notes


def test_a_refusal_is_told_from_an_answer() -> None:
    """Structured outputs say it in a field of its own."""
    reply = answer({"content": None, "refusal": "I can't help with that."})
    assert isinstance(reply, Reply)
    assert (reply.finish, reply.refusal, reply.text) == ("refusal", "I can't help with that.", "")


def test_a_list_of_parts_is_text() -> None:
    """Some servers answer in parts."""
    reply = answer(
        {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}
    )
    assert isinstance(reply, Reply)
    assert reply.text == "ab"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "empty-response"),
        (b"  \n", "empty-response"),
        (b"<html>oops</html>", "not-json"),
        (b"pong", "not-json"),
        (b"[]", "not-json"),
        (b'{"choices": null}', "empty-response"),
        (b'{"choices": []}', "empty-response"),
        (b'{"choices": ["x"]}', "empty-response"),
        (b'{"error": {"message": "m", "code": 503}}', "overloaded"),
        (b'{"error": "down"}', "malformed-stream"),
        (b"[" * 100_000, "not-json"),
    ],
)
def test_LLM_2_a_200_that_is_no_answer_is_told(body: bytes, kind: str) -> None:
    """Each by its class, none as success."""
    told = read(200, {}, body, NOW_S)
    assert isinstance(told, NoAnswer)
    assert told.kind == kind


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": ()},
        {"tool_named": "nobody"},
        {"tokens_max": 0},
        {"extra": {"model": "other"}},
        {"extra": {"seed": object()}},
    ],
)
def test_a_request_that_no_server_could_answer_is_refused(fields: dict[str, Any]) -> None:
    """With a ValueError, before anything is sent."""
    with pytest.raises(ValueError, match=r"."):
        sent(**fields)


def test_extra_keys_are_sent_as_they_are() -> None:
    """What one vendor alone understands."""
    assert sent(extra={"seed": 7})["seed"] == 7


def test_half_a_character_in_a_prompt_does_no_harm() -> None:
    """No UTF-8 can hold it."""
    assert sent(messages=(Message("user", "a\ud800b"),))["messages"][0]["content"] == "a?b"


SCALARS = st.none() | st.integers() | st.text(max_size=5)
MESSAGES = st.dictionaries(st.sampled_from(["content", "tool_calls", "refusal"]), st.lists(SCALARS) | SCALARS)
CHOICES = st.dictionaries(st.sampled_from(["message", "finish_reason"]), MESSAGES | SCALARS)
BODIES = st.dictionaries(
    st.sampled_from(["id", "choices", "usage", "model", "error"]),
    st.lists(CHOICES | SCALARS, max_size=2) | SCALARS,
)


@given(BODIES)
def test_any_object_is_an_answer_or_none(body: dict[str, Any]) -> None:
    """Hostile types are no exception."""
    assert isinstance(read(200, {}, json.dumps(body).encode(), NOW_S), Reply | NoAnswer)
