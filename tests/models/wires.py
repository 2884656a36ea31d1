"""Streams of both wire formats as bytes, and all that a reader tells of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gonogo.models.events import StreamEvent
from gonogo.models.streaming import StreamReader

NOW_S = 1_700_000_000.0


def chunk(data: object, name: str = "") -> bytes:
    """One event of a stream; text stays as it is, anything else becomes JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def openai_chunk(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
    """A chunk of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return chunk({"id": "c-1", "model": "m-1", "choices": [choice], **more})


def anthropic_event(name: str, **fields: Any) -> bytes:
    """An event of Anthropic's messages."""
    return chunk({"type": name, **fields}, name)


def anthropic_text(text: str, index: int = 0) -> bytes:
    """A delta of text."""
    return anthropic_event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})


ANTHROPIC_START = anthropic_event(
    "message_start",
    message={"id": "msg_1", "model": "m-1", "usage": {"input_tokens": 10, "output_tokens": 1}},
)


def anthropic_end(reason: str = "end_turn", tokens: int = 5) -> bytes:
    """The last two events."""
    told = anthropic_event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": tokens})
    return told + anthropic_event("message_stop")


def read_all(reader: StreamReader, *pieces: bytes) -> list[StreamEvent]:
    """All that a reader tells of a stream that then ends."""
    told = [event for piece in pieces for event in reader.feed(piece)]
    return told + reader.end()
