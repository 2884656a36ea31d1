"""Anthropic's messages: requests as sent and whole answers as read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.models.wires import NOW_S

from gonogo.models.anthropic import key_headers, read, request
from gonogo.models.conversation import Ask, Message, Schema, Tool, ToolCall
from gonogo.models.reply import NoAnswer, Reply, Usage

HELLO = (Message("user", "hello"),)
WEATHER = Tool("weather", "Tells the weather.", {"type": "object"})
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def sent(**fields: Any) -> dict[str, Any]:
    """The body of a request."""
    body: dict[str, Any] = json.loads(request("http://h", Ask("m-1", **{"messages": HELLO, **fields})).body)
    return body


def answer(**fields: Any) -> Reply | NoAnswer:
    """What a message means."""
    body = {
        "id": "msg_1",
        "type": "message",
        "model": "m-1",
        "content": [],
        "stop_reason": "end_turn",
        **fields,
    }
    return read(200, {}, json.dumps(body).encode(), NOW_S)


def test_a_small_request_names_its_version_and_a_limit() -> None:
    """The format has no default for max_tokens; the system's words stand apart."""
    call = request("http://h/", Ask("m-1", HELLO, system="be brief"))
    assert call.url == "http://h/v1/messages"
    assert call.headers["anthropic-version"] == "2023-06-01"
    assert json.loads(call.body) == {
        "model": "m-1",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        "system": "be brief",
    }


def test_a_base_url_may_end_in_its_version() -> None:
    """Both habits are common."""
    assert request("http://h/v1", Ask("m-1", HELLO)).url == "http://h/v1/messages"


def test_results_of_tools_come_first_and_together() -> None:
    """All of one turn stand in one message, before anything the user says."""
    calls = (ToolCall("t1", "weather", '{"city":"x"}'), ToolCall("t2", "weather", "{broken"))
    messages = (
        *HELLO,
        Message("assistant", tool_calls=calls),
        Message("user", "and?"),
        Message("tool", "sunny", tool_call_id="t1"),
        Message("tool", "no such city", tool_call_id="t2", failed=True),
    )
    turns = sent(messages=messages, tools=(WEATHER,))["messages"]
    assert [block["input"] for block in turns[1]["content"]] == [{"city": "x"}, {"unreadable": "{broken"}]
    assert turns[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"},
        {"type": "tool_result", "tool_use_id": "t2", "content": "no such city", "is_error": True},
        {"type": "text", "text": "and?"},
    ]


def test_texts_that_the_server_would_refuse_are_not_sent() -> None:
    """Empty texts, and white space at the end of a beginning of the answer."""
    turns = sent(messages=(Message("user", ""), Message("assistant", "It is \n")))["messages"]
    assert [turn["content"][0]["text"] for turn in turns] == ["…", "It is"]


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({}, {"type": "auto"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_named": "weather"}, {"type": "tool", "name": "weather"}),
    ],
)
def test_the_choice_of_tools_is_written_in_its_words(fields: dict[str, Any], choice: dict[str, str]) -> None:
    """`required` is called `any` here."""
    assert sent(tools=(WEATHER,), **fields)["tool_choice"] == choice


def test_a_schema_is_asked_for_in_three_ways() -> None:
    """There is no plain JSON mode."""
    assert sent(schema=Schema(SCHEMA))["output_config"] == {
        "format": {"type": "json_schema", "schema": SCHEMA}
    }
    assert sent(schema=Schema(SCHEMA, mode="tool"))["tools"][0]["input_schema"] == SCHEMA
    assert sent(schema=Schema(SCHEMA, mode="prompt")) == sent()
    with pytest.raises(ValueError, match="no json_object mode"):
        sent(schema=Schema(SCHEMA, mode="json_object"))


def test_the_rest_is_named_as_the_format_names_it() -> None:
    """Stop sequences, the stream, temperature, and the key."""
    body = sent(stop=("END",), stream=True, temperature=1.0, tokens_max=5)
    assert (body["stop_sequences"], body["stream"], body["temperature"], body["max_tokens"]) == (
        ["END"],
        True,
        1.0,
        5,
    )
    assert key_headers("k") == {"x-api-key": "k"}


def test_a_reply_is_read() -> None:
    """Text, thinking, tools; input tokens with those of the cache."""
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "x"}},
        {"type": "something_new", "text": "?"},
        17,
    ]
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 2,
    }
    assert answer(content=content, stop_reason="tool_use", usage=usage) == Reply(
        "hi",
        "hm",
        tool_calls=(ToolCall("t1", "weather", '{"city":"x"}'),),
        finish="tool_calls",
        finish_raw="tool_use",
        usage=Usage(15, 5, 3, 2),
        model="m-1",
        id="msg_1",
    )


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("something_new", "unknown"),
        (None, "unknown"),
    ],
)
def test_every_stop_reason_has_a_meaning(reason: str | None, finish: str) -> None:
    """An unknown one keeps the vendor's word."""
    reply = answer(content=[{"type": "text", "text": "x"}], stop_reason=reason)
    assert isinstance(reply, Reply)
    assert (reply.finish, reply.finish_raw) == (finish, reason or "")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "empty-response"),
        (b"<html>", "not-json"),
        (b'{"content": null}', "empty-response"),
        (b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', "overloaded"),
    ],
)
def test_LLM_2_a_200_that_is_no_answer_is_told(body: bytes, kind: str) -> None:
    """Each by its class, none as success."""
    told = read(200, {}, body, NOW_S)
    assert isinstance(told, NoAnswer)
    assert told.kind == kind
