"""The wire formats against bytes that nobody scripted: llama.cpp with a small model, in both formats."""

from __future__ import annotations

import http.client
from types import ModuleType
from typing import Any

import pytest
from tests.servers.real_model import CONTEXT_TOKENS, RealModel

from gonogo.models import anthropic, anthropic_stream, openai, openai_stream
from gonogo.models.conversation import Ask, Message, Schema
from gonogo.models.events import Delta, Done, StreamEvent
from gonogo.models.reply import NoAnswer, Reply, shortcoming
from gonogo.models.structured import Extracted, answer_json

pytestmark = pytest.mark.real_model
FORMATS = [(openai, openai_stream), (anthropic, anthropic_stream)]
HELLO = (Message("user", "Say hello."),)


@pytest.fixture(params=FORMATS, ids=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    """Each format in turn."""
    return request.param  # type: ignore[no-any-return]


def exchange(model: RealModel, module: ModuleType, **fields: Any) -> http.client.HTTPResponse:
    """Send a request as the product writes it."""
    asked = {"messages": HELLO, "tokens_max": 12, "temperature": 0.0, **fields}
    made = module.request(f"{model.url}/v1", Ask(model.name, **asked))
    client = http.client.HTTPConnection(model.url.removeprefix("http://"), timeout=120)
    headers = {**made.headers, "connection": "close"}
    client.request("POST", made.url.removeprefix(model.url), made.body, headers)
    return client.getresponse()


def whole(model: RealModel, module: ModuleType, **fields: Any) -> Reply | NoAnswer:
    """An answer that isn't streamed."""
    answer = exchange(model, module, **fields)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    read: Reply | NoAnswer = module.read(answer.status, headers, answer.read(), 0.0)
    return read


def test_a_real_answer_is_the_same_whole_and_streamed(
    real_model: RealModel, wire: tuple[ModuleType, ModuleType]
) -> None:
    """At temperature 0: text, finish and count of output tokens; the pieces make the text."""
    reply = whole(real_model, wire[0])
    assert isinstance(reply, Reply)
    assert reply.text
    assert reply.usage.known
    answer = exchange(real_model, wire[0], stream=True)
    reader = wire[1].reader({}, 0.0)
    told: list[StreamEvent] = []
    while piece := answer.read1(65536):
        told += reader.feed(piece)
    told += reader.end()
    assert isinstance(told[-1], Done)
    end = told[-1].reply
    assert (end.text, end.finish, end.integrity) == (reply.text, reply.finish, "whole")
    assert end.usage.output_tokens == reply.usage.output_tokens
    assert "".join(event.text for event in told if isinstance(event, Delta)) == reply.text


def test_a_real_answer_cut_off_at_its_limit_says_so(
    real_model: RealModel, wire: tuple[ModuleType, ModuleType]
) -> None:
    """Two tokens are no sentence."""
    reply = whole(real_model, wire[0], tokens_max=2)
    assert isinstance(reply, Reply)
    told = shortcoming(reply)
    assert told is not None
    assert (told.kind, reply.usage.output_tokens) == ("length-stop", 2)


def test_a_prompt_that_is_too_long_is_told(
    real_model: RealModel, wire: tuple[ModuleType, ModuleType]
) -> None:
    """By the server's own type of error."""
    told = whole(real_model, wire[0], messages=(Message("user", "hello " * (CONTEXT_TOKENS + 100)),))
    assert isinstance(told, NoAnswer)
    assert (told.kind, told.vendor_code) == ("context-too-long", "exceed_context_size_error")


def test_a_wrong_request_is_told(real_model: RealModel) -> None:
    """As bad-request, with the server's words."""
    told = whole(real_model, openai, extra={"repeat_penalty": "much"})
    assert isinstance(told, NoAnswer)
    assert (told.kind, told.fault_class) == ("bad-request", "logical")
    assert told.message


def test_a_schema_makes_a_real_model_answer_in_its_form(real_model: RealModel) -> None:
    """Even one this small: llama.cpp samples by a grammar."""
    properties = {"colour": {"type": "string", "enum": ["red", "green", "blue"]}, "warm": {"type": "boolean"}}
    schema = Schema({"type": "object", "properties": properties, "required": ["colour", "warm"]})
    messages = (Message("user", "Name a colour."),)
    reply = whole(real_model, openai, messages=messages, schema=schema, tokens_max=40)
    assert isinstance(reply, Reply)
    told = answer_json(reply, schema)
    assert isinstance(told, Extracted)
    assert told.value["colour"] in ("red", "green", "blue")
    assert isinstance(told.value["warm"], bool)
