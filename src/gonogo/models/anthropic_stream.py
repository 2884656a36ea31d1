"""Streams of Anthropic's messages: named events from `message_start` to `message_stop`, pings between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from gonogo.models.anthropic import read, take_block, take_finish, take_usage
from gonogo.models.assembly import Assembly
from gonogo.models.cleaning import named
from gonogo.models.events import StreamEvent
from gonogo.models.refusing import Row, refused_inside
from gonogo.models.reply import NoAnswer, Reply
from gonogo.models.sse import SseEvent
from gonogo.models.streaming import Failed, StreamReader


class _Delta(Struct, gc=False):
    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    stop_reason: Any = None


class _Event(Struct, gc=False):
    type: str = ""
    index: int = 0
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    delta: _Delta | None = None
    usage: Any = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Event)


def reader(headers: Mapping[str, str], now_s: float, rows: tuple[Row, ...] = ()) -> StreamReader:
    """A reader for the body of a 200. `headers` have lower-case names; `now_s` is seconds since 1970."""
    return StreamReader(_Events(headers, now_s, rows))


class _Events:
    """The wire format's part of a reader."""

    __slots__ = ("_headers", "_now_s", "_rows", "ended")

    def __init__(self, headers: Mapping[str, str], now_s: float, rows: tuple[Row, ...]) -> None:
        self.ended = False
        self._rows = rows
        self._headers = headers
        self._now_s = now_s

    def new_assembly(self) -> Assembly:
        return Assembly(input_without_cache=True)

    def whole(self, body: bytes) -> Reply | NoAnswer:
        return read(200, self._headers, body, self._now_s, self._rows)

    def take(self, event: SseEvent, assembly: Assembly) -> list[StreamEvent]:
        try:
            decoded = _DECODER.decode(event.data)
        except (msgspec.DecodeError, RecursionError):
            if event.name == b"error":
                raise self._failed("the server reported an error that is no JSON") from None
            return assembly.pass_over("an event that is no JSON of a known form")
        kind = decoded.type
        if kind == "content_block_delta":
            return _delta(decoded, assembly)
        if kind == "error" or event.name == b"error" or decoded.error:
            raise self._failed(decoded.error)
        if kind == "content_block_start":
            return _block(decoded, assembly)
        if kind == "message_start":
            _start(decoded.message or {}, assembly)
        elif kind == "message_delta":
            take_usage(assembly.counts, decoded.usage)
            take_finish(assembly, decoded.delta.stop_reason if decoded.delta else None)
        elif kind == "message_stop":
            self.ended = True
        return []  # pings, ends of blocks, and events that are to come are passed by, as the format asks

    def _failed(self, error: object) -> Failed:
        return Failed(refused_inside(error, self._headers, self._now_s, self._rows))


def _start(message: Mapping[str, Any], assembly: Assembly) -> None:
    assembly.id, assembly.model = named(message.get("id")), named(message.get("model"))
    take_usage(assembly.counts, message.get("usage"))


def _block(event: _Event, assembly: Assembly) -> list[StreamEvent]:
    block = event.content_block or {}
    if block.get("type") == "tool_use" and not block.get("input"):
        return assembly.begin_call(event.index, block.get("id"), block.get("name"))
    return take_block(assembly, event.index, block)


def _delta(event: _Event, assembly: Assembly) -> list[StreamEvent]:
    delta = event.delta
    if delta is None:
        return assembly.pass_over("an event without its delta")
    if delta.type == "text_delta":
        return assembly.add(delta.text)
    if delta.type == "input_json_delta":
        known = assembly.call_at(event.index) is not None
        return assembly.add_arguments(event.index, delta.partial_json) if known else []
    return assembly.add(delta.thinking, "thinking") if delta.type == "thinking_delta" else []
