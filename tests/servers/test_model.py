"""The scripted model server and the product's wire formats, over real connections, check each other."""

from __future__ import annotations

import http.client
from types import ModuleType
from typing import Any

import pytest
from tests.servers import faulty, model
from tests.servers.faulty import FaultyServer
from tests.servers.model import Body, Break, Said, calls, refuses, says, words

from gonogo.models import anthropic, anthropic_stream, openai, openai_stream
from gonogo.models.conversation import Ask, Message, Tool, ToolCall
from gonogo.models.events import Broken, Delta, Done, Noted, StreamEvent
from gonogo.models.reply import NoAnswer, Reply, Usage

NOW_S = 1_700_000_000.0
FORMATS = [(openai, openai_stream), (anthropic, anthropic_stream)]
HELLO = (Message("user", "hello"),)
WEATHER = Tool("weather", "Tells the weather.", {"type": "object"})


@pytest.fixture(params=FORMATS, ids=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    """Each format in turn."""
    return request.param  # type: ignore[no-any-return]


def exchange(server: FaultyServer, module: ModuleType, **fields: Any) -> http.client.HTTPResponse:
    """Send a request as the product writes it."""
    base = f"{server.url}/v1" if module is openai else server.url
    made = module.request(base, Ask("m-1", **{"messages": HELLO, **fields}))
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    client.request(
        "POST", made.url.removeprefix(server.url), made.body, {**made.headers, **module.key_headers("k")}
    )
    return client.getresponse()


def whole(server: FaultyServer, module: ModuleType, **fields: Any) -> Reply | NoAnswer:
    """An answer that isn't streamed."""
    answer = exchange(server, module, **fields)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    read: Reply | NoAnswer = module.read(answer.status, headers, answer.read(), 0.0)
    return read


def streamed(server: FaultyServer, wire: tuple[ModuleType, ModuleType], **fields: Any) -> list[StreamEvent]:
    """All that a stream tells."""
    answer = exchange(server, wire[0], stream=True, **fields)
    reader = wire[1].reader({}, 0.0)
    told: list[StreamEvent] = []
    try:
        while piece := answer.read1(65536):
            told += reader.feed(piece)
    except (http.client.HTTPException, ConnectionError):
        pass  # the reader is told the same as by a clean end: what counts is what had come
    answer.close()
    told += reader.end()
    return told


def ended(told: list[StreamEvent]) -> Reply:
    """The reply of a stream that came to its end."""
    assert isinstance(told[-1], Done)
    return told[-1].reply


def broken(told: list[StreamEvent]) -> NoAnswer:
    """Why a stream broke."""
    assert isinstance(told[-1], Broken)
    return told[-1].no_answer


def test_a_text_is_the_same_whole_and_streamed(wire: tuple[ModuleType, ModuleType]) -> None:
    """With model, finish and usage."""
    with FaultyServer(says(words("it is sunny"))) as server:
        reply, told = whole(server, wire[0]), streamed(server, wire)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish, reply.usage, reply.model) == (
        "it is sunny",
        "stop",
        Usage(10, 3),
        "scripted-1",
    )
    assert ended(told) == reply
    assert [event.text for event in told if isinstance(event, Delta)] == ["it ", "is ", "sunny"]


def test_a_tool_is_called_and_answered(wire: tuple[ModuleType, ModuleType]) -> None:
    """Two turns, streamed and whole; the second request is one that the vendor takes."""
    script = says(calls("weather", {"city": "x"}))
    with FaultyServer(script, script, says("sunny")) as server:
        first = whole(server, wire[0], tools=(WEATHER,))
        assert ended(streamed(server, wire, tools=(WEATHER,))) == first
        assert isinstance(first, Reply)
        assert (first.tool_calls[0].name, first.finish) == ("weather", "tool_calls")
        talk = (
            *HELLO,
            Message("assistant", first.text, first.tool_calls),
            Message("tool", "sun", tool_call_id=first.tool_calls[0].id),
        )
        second = whole(server, wire[0], tools=(WEATHER,), messages=talk)
    assert isinstance(second, Reply)
    assert second.text == "sunny"


def test_a_request_that_a_vendor_would_refuse_is_refused(wire: tuple[ModuleType, ModuleType]) -> None:
    """The server checks the product as well."""
    talk = (*HELLO, Message("assistant", "", (ToolCall("t", "weather", "{}"),)), Message("user", "well?"))
    with FaultyServer(says("x")) as server:
        told = whole(server, wire[0], messages=talk)
    assert isinstance(told, NoAnswer)
    assert told.kind == "bad-request"


def test_the_key_arrives_in_its_header_alone(wire: tuple[ModuleType, ModuleType]) -> None:
    """Neither in the URL nor in the body."""
    with FaultyServer(says("x")) as server:
        whole(server, wire[0])
    (received,) = server.requests
    assert [name for name, value in received.headers.items() if value in ("k", "Bearer k")] == list(
        wire[0].key_headers("k")
    )
    assert received.target in (model.OPENAI, model.ANTHROPIC)


ERROR = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Break(4, model.cut), "truncated-stream"),
        (Break(4, faulty.reset), "truncated-stream"),
        (Break(4, model.cut, ERROR), "overloaded"),
        (Break(4, faulty.endless(faulty.chunked([b"x" * 65536])[0])), "malformed-stream"),
    ],
    ids=["cut", "reset", "error", "endless"],
)
def test_LLM_1_a_stream_that_breaks_in_the_middle_is_never_an_answer(
    wire: tuple[ModuleType, ModuleType], fault: Break, kind: str
) -> None:
    """(b), (c), (e); what had come is kept, marked as a part."""
    with FaultyServer(says(words("one two three four five six"), fault)) as server:
        told = broken(streamed(server, wire))
    assert told.kind == kind
    assert told.partial is not None
    assert "one two three".startswith(told.partial.text.strip())
    assert told.partial.text
    assert told.partial.integrity == "partial"


def test_LLM_1_a_broken_event_in_the_middle_costs_itself_alone(wire: tuple[ModuleType, ModuleType]) -> None:
    """(d): the rest is read; as many pieces as tokens came, so it is whole."""
    with FaultyServer(says(words("one two three"), Break(4, None, b"data: {oops\n\n"))) as server:
        told = streamed(server, wire)
    assert sum(isinstance(event, Noted) for event in told) == 1
    assert (ended(told).text, ended(told).integrity) == ("one two three", "whole")


def test_S11_a_missing_end_mark_is_fine(wire: tuple[ModuleType, ModuleType]) -> None:
    """The finish reason was there."""
    with FaultyServer(says(words("one two"), end_mark=False)) as server:
        assert ended(streamed(server, wire)).usage.known


def test_a_held_stream_is_told_piece_by_piece(wire: tuple[ModuleType, ModuleType]) -> None:
    """Nothing is kept back until more comes."""
    with FaultyServer(says(words("one two"), held=True)) as server:
        answer = exchange(server, wire[0], stream=True)
        reader = wire[1].reader({}, 0.0)
        told: list[StreamEvent] = []
        while not told:
            server.release()
            told = reader.feed(answer.read1(65536))
        assert told == [Delta("one ")]
        server.release(100)
        while piece := answer.read1(65536):
            told += reader.feed(piece)
    assert ended(told).text == "one two"


@pytest.mark.parametrize("body", model.NO_ANSWERS, ids=lambda body: body.name)
def test_LLM_2_a_200_that_is_no_answer_is_told(wire: tuple[ModuleType, ModuleType], body: Body) -> None:
    """Asked for whole; as a stream it is never a success either."""
    with FaultyServer(body.script()) as server:
        told = whole(server, wire[0])
        assert isinstance(told, NoAnswer)
        assert told.kind == body.kind
        assert broken(streamed(server, wire)).kind in (body.kind, "truncated-stream")


def test_a_cut_off_answer_says_so(wire: tuple[ModuleType, ModuleType]) -> None:
    """Finish length, whole and streamed, without usage."""
    with FaultyServer(says(Said(("half an",), finish="length", usage=False))) as server:
        for reply in (whole(server, wire[0]), ended(streamed(server, wire))):
            assert isinstance(reply, Reply)
            assert (reply.finish, reply.usage) == ("length", Usage())


def test_a_refusal_of_the_server_has_the_formats_form(wire: tuple[ModuleType, ModuleType]) -> None:
    """With a wait."""
    with FaultyServer(refuses(429, "rate_limit_error", "slow down", {"retry-after": "3"})) as server:
        told = whole(server, wire[0])
    assert isinstance(told, NoAnswer)
    assert (told.kind, told.retry_after_s, told.message) == ("rate-limit", 3.0, "status 429: slow down")


SENSELESS = {"none", "garbage", "negative", "absurd"}


@pytest.mark.parametrize("form", sorted(faulty.RETRY_AFTER_FORMS))
def test_RET_4_every_form_of_retry_after_is_understood(
    wire: tuple[ModuleType, ModuleType], form: str
) -> None:
    """(a) to (f), over a real connection; a long one is passed on as it was said, a senseless one leaves a note."""
    with FaultyServer(faulty.throttled(form, 2, NOW_S)) as server:
        answer = exchange(server, wire[0])
        headers = {name.lower(): value for name, value in answer.headers.items()}
        told = wire[0].read(answer.status, headers, answer.read(), NOW_S)
    assert told.kind == "rate-limit"
    expected = None if form in SENSELESS else 86400.0 if form == "a day" else 2.0
    assert told.retry_after_s == expected
    assert bool(told.notes) == (form in SENSELESS - {"none"})
