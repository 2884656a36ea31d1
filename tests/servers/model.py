"""A model server that says what a test wrote, in the wire format it is asked in: chat completions or messages.

Scripts for `faulty.FaultyServer`, so that answers and breakdowns can follow each other. What it writes is written
here by hand, not by the product, so that the two check each other; a request that the vendor would refuse gets 400.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers import faulty
from tests.servers.faulty import (
    Connection,
    Received,
    Script,
    Step,
    answer,
    chunked,
    head,
    hold,
    send,
    take_request,
)

OPENAI = "/v1/chat/completions"
ANTHROPIC = "/v1/messages"
MODEL = "scripted-1"


@dataclass(frozen=True, slots=True)
class Said:
    """What the model says: text in pieces, tool calls as (id, name, pieces of the arguments), finish and usage.

    `finish` is OpenAI's word; it is put into Anthropic's where that is asked for.
    """

    pieces: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    finish: str = "stop"
    input_tokens: int = 10
    usage: bool = True

    @property
    def output_tokens(self) -> int:
        """One a piece."""
        return len(self.pieces) + sum(len(arguments) for _, _, arguments in self.calls)


@dataclass(frozen=True, slots=True)
class Break:
    """A fault in a stream after so many events: a step (`faulty.reset`, `faulty.stall`, …) or bytes to go on after."""

    after: int
    step: Step | None = None
    bytes: bytes = b""


_FINISHES = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


def words(text: str, **more: Any) -> Said:
    """A text, a word a piece."""
    *first, last = text.split(" ")
    return Said((*(f"{word} " for word in first), last), **more)


def calls(name: str, arguments: Mapping[str, Any], call_id: str = "call_a") -> Said:
    """A wish to call one tool, its arguments in two pieces."""
    text = json.dumps(arguments, separators=(",", ":"))
    return Said(calls=((call_id, name, (text[:3], text[3:])),), finish="tool_calls")


def says(
    said: Said | str, broken: Break | None = None, *, held: bool = False, end_mark: bool = True
) -> Script:
    """An answer in the format that the request has, as a stream where one is asked for.

    Args:
        said: What it says; a text is one piece.
        broken: Where a stream breaks.
        held: Each event of a stream waits for the test's `release`.
        end_mark: False leaves out the last event (`[DONE]`, `message_stop`).
    """
    script = said if isinstance(said, Said) else Said((said,))

    def step(connection: Connection) -> None:
        received = connection.server.requests[-1]
        wrong = problem_of(received)
        if wrong is not None:
            send(refusal(received, 400, "invalid_request_error", wrong))(connection)
            return
        body = json.loads(received.body)
        if not body.get("stream"):
            data = json.dumps(_whole(received.target, script)).encode()
            sized = {"content-type": "application/json", "content-length": str(len(data))}
            send(head(200, sized) + data)(connection)
            return
        events = list(
            _openai_events(script, body) if received.target == OPENAI else _anthropic_events(script)
        )
        _stream(connection, events if end_mark else events[:-1], broken, held=held)

    return (take_request, step)


def refuses(status: int, code: str, message: str = "no", headers: Mapping[str, str] | None = None) -> Script:
    """An error of the format's form."""

    def step(connection: Connection) -> None:
        send(refusal(connection.server.requests[-1], status, code, message, headers))(connection)

    return (take_request, step)


def refusal(
    received: Received, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> bytes:
    """The bytes of an error answer."""
    error: dict[str, Any] = {"type": code, "message": message}
    body: dict[str, Any] = {"type": "error", "error": error, "request_id": "req_1"}
    if received.target == OPENAI:
        body = {"error": {**error, "code": code, "param": None}}
    data = json.dumps(body).encode()
    sized = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
    return head(status, sized) + data


def problem_of(received: Received) -> str | None:
    """Why a vendor would refuse the request, if it would."""
    try:
        body = json.loads(received.body)
    except ValueError:
        return "the body is no JSON"
    if received.method != "POST" or received.target not in (OPENAI, ANTHROPIC):
        return f"nothing is at {received.method} {received.target}"
    if not isinstance(body.get("messages"), list) or not body["messages"] or not body.get("model"):
        return "model and messages are needed"
    return _openai_problem(body) if received.target == OPENAI else _anthropic_problem(received, body)


def _openai_problem(body: Mapping[str, Any]) -> str | None:
    wanted: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in wanted:
                return "a tool message answers no call before it"
            wanted.remove(message["tool_call_id"])
        elif wanted:
            return f"calls have no answer: {wanted}"
        wanted += [made["id"] for made in message.get("tool_calls", ())]
    return None


def _anthropic_problem(received: Received, body: Mapping[str, Any]) -> str | None:
    if "anthropic-version" not in received.headers or not isinstance(body.get("max_tokens"), int):
        return "anthropic-version and max_tokens are needed"
    before: list[str] = []
    for number, message in enumerate(body["messages"]):
        if message["role"] != ("user", "assistant")[number % 2]:
            return "roles must alternate, the user's first"
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        if sorted(results) != sorted(before):
            return f"tool results {results} don't answer the calls {before}"
        if any(block["type"] == "text" and not block["text"].strip() for block in message["content"]):
            return "text content blocks must be non-empty"
        before = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    return None


def _whole(target: str, said: Said) -> dict[str, Any]:
    text = "".join(said.pieces)
    if target == OPENAI:
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if said.calls:
            message["tool_calls"] = [
                {"id": made, "type": "function", "function": {"name": name, "arguments": "".join(arguments)}}
                for made, name, arguments in said.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": said.finish}
        return {"id": "c-1", "object": "chat.completion", "model": MODEL, "choices": [choice], **_usage(said)}
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": made, "name": name, "input": json.loads("".join(arguments) or "{}")}
        for made, name, arguments in said.calls
    ]
    usage = {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": _FINISHES[said.finish],
        **({"usage": usage} if said.usage else {}),
    }


def _usage(said: Said) -> dict[str, Any]:
    total = said.input_tokens + said.output_tokens
    counts = {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": total,
    }
    return {"usage": counts} if said.usage else {}


def _openai_events(said: Said, body: Mapping[str, Any]) -> Iterator[bytes]:
    base = {"id": "c-1", "object": "chat.completion.chunk", "model": MODEL}

    def event(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        return _data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield event({"role": "assistant", "content": ""})
    for piece in said.pieces:
        yield event({"content": piece})
    for index, (made, name, arguments) in enumerate(said.calls):
        began = {"index": index, "id": made, "type": "function", "function": {"name": name, "arguments": ""}}
        yield event({"tool_calls": [began]})
        for piece in arguments:
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, said.finish)
    if said.usage and body.get("stream_options", {}).get("include_usage"):
        yield _data({**base, "choices": [], **_usage(said)})
    yield b"data: [DONE]\n\n"


def _anthropic_events(said: Said) -> Iterator[bytes]:
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    counts = {"usage": {"input_tokens": said.input_tokens, "output_tokens": 1}} if said.usage else {}
    yield _named("message_start", message={**start, **counts})
    yield _named("ping")
    blocks: list[tuple[dict[str, Any], str, tuple[str, ...]]] = []
    if said.pieces:
        blocks.append(({"type": "text", "text": ""}, "text", said.pieces))
    for made, name, arguments in said.calls:
        blocks.append(({"type": "tool_use", "id": made, "name": name, "input": {}}, "json", arguments))
    for index, (block, kind, pieces) in enumerate(blocks):
        yield _named("content_block_start", index=index, content_block=block)
        for piece in pieces:
            delta = {"type": "text_delta", "text": piece}
            if kind == "json":
                delta = {"type": "input_json_delta", "partial_json": piece}
            yield _named("content_block_delta", index=index, delta=delta)
        yield _named("content_block_stop", index=index)
    counts = {"usage": {"output_tokens": said.output_tokens}} if said.usage else {}
    yield _named("message_delta", delta={"stop_reason": _FINISHES[said.finish]}, **counts)
    yield _named("message_stop")


def _data(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _named(name: str, **fields: Any) -> bytes:
    return f"event: {name}\n".encode() + _data({"type": name, **fields})


def _stream(connection: Connection, events: list[bytes], broken: Break | None, *, held: bool) -> None:
    send(head(200, faulty.STREAM))(connection)
    for number, event in enumerate(events):
        if broken is not None and number == broken.after:
            if broken.bytes:
                send(chunked([broken.bytes])[0])(connection)
            if broken.step is not None:
                broken.step(connection)
                return
        if held:
            hold(connection)
        if not connection.open:
            return
        send(chunked([event])[0])(connection)
    send(faulty.LAST_CHUNK)(connection)


def cut(connection: Connection) -> None:
    """End the stream here, in good order: neither a finish reason nor an end event (LLM-1 c)."""
    send(faulty.LAST_CHUNK)(connection)


@dataclass(frozen=True, slots=True)
class Body:
    """A body of a 200 that is no answer (LLM-2)."""

    name: str
    body: bytes
    kind: str = field(default="")

    def script(self) -> Script:
        """Sent whole, whatever was asked for."""
        return answer(200, self.body)


NO_ANSWERS = (
    Body("empty", b"", "empty-response"),
    Body("page", b"<html><body>welcome</body></html>", "not-json"),
    Body("no choices", b'{"choices": null, "content": null}', "empty-response"),
    Body("error", b'{"error": {"type": "overloaded_error", "message": "busy"}}', "overloaded"),
    Body("garbage", b"\x00\x01\x02", "not-json"),
)
