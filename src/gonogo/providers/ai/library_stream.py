"""The stream of a vendor that a library speaks to, read as it comes: what is shown, how long it may be silent, its end.

The bytes are seen before the library sees them: an error inside a 200 is told by them, an event that is no JSON is
passed over (F12a), and what has come decides which timer runs. A stream that gives no finish reason was cut off (F12).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace
from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import StreamedResponse

from gonogo.gate.policy import Timers
from gonogo.models.conversation import Ask
from gonogo.models.refusing import body_of
from gonogo.models.reply import Integrity, NoAnswer, Reply
from gonogo.models.sse import SseParser
from gonogo.providers import _http
from gonogo.providers._lent import Exchange, OpenExchange, Terms, client
from gonogo.providers.ai import library
from gonogo.providers.ai.ways import Way

_END_MARK = b"[DONE]"
_OF_ALL = frozenset({"http.too_large", "http.encoding"})
"""Problems of an answer that nothing in it makes good."""
_HEAD_BYTES_MAX = 1024 * 1024


class Silence(Struct, frozen=True):
    """Nothing came for too long; `partial` is what had come, if the model had begun."""

    partial: Reply | None


Found = Reply | NoAnswer | _http.Problem | Silence


async def streamed(way: Way, ask: Ask, terms: Terms, timers: Timers, see: Callable[[str], None]) -> Found:
    """What one exchange gave, shown as it came. Raises ValueError for a question that the library can't put."""
    if not way.api_key:  # the library would take one of the environment
        return NoAnswer("auth", "there is no api_key", "the request")
    found: Found | ValueError | None = None
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            coming = _Coming(timers, scope, see)
            try:
                found = await coming.read(way, ask, OpenExchange(terms, tasks, coming.take))
            except ValueError as problem:
                found = problem
        tasks.cancel_scope.cancel()
    if isinstance(found, ValueError):
        raise found
    return found if found is not None else coming.silent()


class _Coming:
    """What has come, and the time until more must (F.4): to the first word, between two, after the last."""

    def __init__(self, timers: Timers, scope: anyio.CancelScope, see: Callable[[str], None]) -> None:
        self._timers = timers
        self._scope = scope
        self._see = see
        self._parser = SseParser()
        self._head = bytearray()
        self._headers: Mapping[str, str] = {}
        self._events = self._passed_over = self._deltas = 0
        self._model = ""
        self._refusal: NoAnswer | None = None
        self._response: StreamedResponse | None = None
        self._begun = False
        scope.deadline = anyio.current_time() + timers.connect_s + timers.first_token_s

    async def read(self, way: Way, ask: Ask, exchange: Exchange) -> Found:
        """Ask, and read to the end."""
        asked = library.messages(ask), library.settings(ask, way.vendor), library.parameters(ask)
        try:
            async with client(exchange) as lent:
                model = library.model_of(way, ask.model, lent)
                async with model.request_stream(*asked) as response:
                    self._response = response
                    async for event in response:
                        self._hear(event)
        except Exception as problem:  # noqa: BLE001 - whatever a library makes of hostile bytes, it is no answer
            return self._ended(exchange, problem)
        return self._ended(exchange, None)

    def take(self, headers: Mapping[str, str], data: bytes) -> bytes | None:
        """Bytes, before the library sees them: its events that are JSON, one by one."""
        self._headers = headers
        if not self._events and len(self._head) < _HEAD_BYTES_MAX:
            self._head += data
        told = [seen for event in self._parser.feed(data) if (seen := self._taken(headers, event.data))]
        if self._parser.overflow and self._refusal is None:
            self._refusal = NoAnswer("malformed-stream", self._parser.overflow, "a limit on the stream")
        self._wait()
        return b"".join(told) if self._refusal is None else None

    def _taken(self, headers: Mapping[str, str], data: bytes) -> bytes:
        self._events += 1
        if data.strip() != _END_MARK:
            found = body_of(200, headers, data, time.time(), ())
            if isinstance(found, NoAnswer) and found.kind == "not-json":
                self._passed_over += 1
                return b""
            if isinstance(found, NoAnswer):
                self._refusal = self._refusal or found
                return b""
            self._model = _model_in(found) or self._model
        return b"data: " + data.replace(b"\n", b"\ndata: ") + b"\n\n"

    def _hear(self, event: ModelResponseStreamEvent) -> None:
        text = _text_of(event)
        if isinstance(event, PartStartEvent | PartDeltaEvent):
            self._begun = True
            self._deltas += 1
        if text:
            self._see(text)
        self._wait()

    def _wait(self) -> None:
        timers, now = self._timers, anyio.current_time()
        if self._finished:
            self._scope.deadline = now + timers.tail_s
        elif self._begun:
            self._scope.deadline = now + timers.idle_s

    @property
    def _finished(self) -> bool:
        return self._response is not None and self._response.finish_reason is not None

    def silent(self) -> Found:
        """Nothing more came: the end if the last word was there, else a failure (LLM-4)."""
        return self._whole() if self._finished else Silence(self._partial() if self._begun else None)

    def _ended(self, exchange: Exchange, problem: Exception | None) -> Found:
        """What the end of the connection means, or the library's word that it makes no sense."""
        came = exchange.outcome
        if self._refusal is not None:
            return replace(self._refusal, partial=self._partial())
        if came is None and not self._head:
            raise ValueError(f"the library can't ask this: {type(problem).__name__}") from problem
        if isinstance(came, _http.Response) and not 200 <= came.status <= 299:
            return library.no_answer(exchange, problem)
        if isinstance(came, _http.Problem) and (not self._head or came.kind in _OF_ALL):
            return came
        if self._finished:
            return self._whole()
        if not self._events:
            return self._no_stream()
        if problem is not None and not isinstance(came, _http.Problem):
            return replace(library.malformed(problem, 200), partial=self._partial())
        cause = came.message if isinstance(came, _http.Problem) else "the connection ended"
        message = f"{cause}, with neither a finish reason nor an end event"
        return NoAnswer("truncated-stream", message, "the end of the stream", partial=self._partial())

    def _no_stream(self) -> NoAnswer:
        body = bytes(self._head).strip()
        if not body:
            return NoAnswer("empty-response", "the answer holds nothing", "the body")
        found = body_of(200, self._headers, body, time.time(), ())
        message = "the answer came in one piece; ask this server with stream: false"
        return found if isinstance(found, NoAnswer) else NoAnswer("malformed-stream", message, "the body")

    def _whole(self) -> Reply:
        assert self._response is not None
        reply = library.reply_of(self._response.get())
        kept = not self._passed_over or self._deltas == reply.usage.output_tokens
        integrity: Integrity = "whole" if kept else "unverified"
        notes = ("passed over: an event that is no JSON",) if self._passed_over else ()
        return replace(reply, model=self._model or reply.model, integrity=integrity, notes=notes)

    def _partial(self) -> Reply | None:
        if self._response is None:
            return None
        return replace(library.reply_of(self._response.get()), model=self._model, integrity="partial")


def _text_of(event: ModelResponseStreamEvent) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def _model_in(event: Mapping[str, Any]) -> str:
    """Who answers, as the event says; the library keeps the name that was asked for."""
    told = event.get("model") or event.get("modelVersion")
    return told[:200] if isinstance(told, str) else ""
