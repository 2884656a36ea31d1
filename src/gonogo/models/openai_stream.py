"""Streams of chat completions: `data:` lines with chunks, then usually `data: [DONE]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from gonogo.models.assembly import Assembly
from gonogo.models.cleaning import identifier, named
from gonogo.models.events import StreamEvent
from gonogo.models.openai import arguments_text, read, take_finish, take_usage, text_of
from gonogo.models.refusing import Row, decode, refused_inside
from gonogo.models.reply import NoAnswer, Reply
from gonogo.models.sse import SseEvent
from gonogo.models.streaming import Failed, StreamReader


class _Function(Struct, gc=False):
    name: Any = None
    arguments: Any = None


class _ToolCall(Struct, gc=False):
    index: int | None = None
    id: Any = None
    function: _Function | None = None


class _Delta(Struct, gc=False):
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(Struct, gc=False):
    index: Any = 0
    delta: _Delta | None = None
    finish_reason: Any = None


class _Chunk(Struct, gc=False):
    id: Any = None
    model: Any = None
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Chunk)


def reader(headers: Mapping[str, str], now_s: float, rows: tuple[Row, ...] = ()) -> StreamReader:
    """A reader for the body of a 200. `headers` have lower-case names; `now_s` is seconds since 1970."""
    return StreamReader(_Chunks(headers, now_s, rows))


class _Chunks:
    """The wire format's part of a reader."""

    __slots__ = ("_headers", "_now_s", "_rows", "ended")

    def __init__(self, headers: Mapping[str, str], now_s: float, rows: tuple[Row, ...]) -> None:
        self.ended = False
        self._rows = rows
        self._headers = headers
        self._now_s = now_s

    def new_assembly(self) -> Assembly:
        return Assembly()

    def whole(self, body: bytes) -> Reply | NoAnswer:
        return read(200, self._headers, body, self._now_s, self._rows)

    def take(self, event: SseEvent, assembly: Assembly) -> list[StreamEvent]:
        data = event.data
        if data.strip() == b"[DONE]":
            self.ended = True
            return []
        try:
            chunk = _DECODER.decode(data)
        except (msgspec.DecodeError, RecursionError):
            if event.name == b"error":
                raise self._failed("the server reported an error that is no JSON") from None
            return assembly.pass_over("an event that is no chunk of JSON")
        if chunk.error or event.name == b"error":
            raise self._failed(chunk.error or decode(data))
        return self._chunk(chunk, assembly)

    def _failed(self, error: object) -> Failed:
        return Failed(refused_inside(error, self._headers, self._now_s, self._rows))

    def _chunk(self, chunk: _Chunk, assembly: Assembly) -> list[StreamEvent]:
        if not assembly.id and chunk.id:
            assembly.id, assembly.model = named(chunk.id), named(chunk.model)
        if chunk.usage is not None:
            take_usage(assembly.counts, chunk.usage)
        told: list[StreamEvent] = []
        for choice in chunk.choices or ():
            if choice.index not in (0, None):
                continue  # one choice is asked for
            if choice.delta is not None:
                told += _delta(choice.delta, assembly)
            if choice.finish_reason == "error":  # OpenRouter's word for a break on the way
                raise self._failed("the server ended the answer with an error")
            if choice.finish_reason:
                take_finish(assembly, choice.finish_reason)
        return told


def _delta(delta: _Delta, assembly: Assembly) -> list[StreamEvent]:
    told: list[StreamEvent] = []
    if delta.content:
        told += assembly.add(text_of(delta.content))
    if delta.reasoning_content or delta.reasoning:
        told += assembly.add(text_of(delta.reasoning_content or delta.reasoning), "thinking")
    if delta.refusal:
        told += assembly.add(text_of(delta.refusal), "refusal")
    for made in delta.tool_calls or ():
        told += _tool_call(made, assembly)
    return told


def _tool_call(made: _ToolCall, assembly: Assembly) -> list[StreamEvent]:
    """A call's beginning or some more of its arguments.

    Servers that leave the index out, or say 0 for every call, are understood by the id: a new one begins a call.
    """
    last = assembly.last_slot
    slot = made.index if made.index is not None else (0 if last is None else last)
    function = made.function or _Function()
    known = assembly.call_at(slot)
    told: list[StreamEvent] = []
    if known is None or (made.id and identifier(made.id) != known[0] and function.name):
        if known is not None:
            assembly.forget_slot(slot)
        told += assembly.begin_call(slot, made.id, function.name)
    return told + assembly.add_arguments(slot, arguments_text(function.arguments))
