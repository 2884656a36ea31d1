"""One attempt: a question to one server, its answer as a Reply, everything else as the kind of failure it is.

Trying again, waiting and going elsewhere are the gate's. With `stream` the answer is read as it comes, for whoever
watches; it counts only when it is whole, so nothing half is ever let out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import anyio
from msgspec import Struct

from gonogo.gate.events import Usage
from gonogo.gate.failures import StepFailed
from gonogo.gate.policy import Timers
from gonogo.gate.step import Attempt
from gonogo.models.conversation import Ask
from gonogo.models.events import Broken, Delta, Done, StreamEvent
from gonogo.models.formats import Format, format_named
from gonogo.models.reply import NoAnswer, Reply
from gonogo.models.streaming import StreamReader
from gonogo.models.writing import HttpCall
from gonogo.providers import _http
from gonogo.providers.ai.config import BY_LIBRARY
from gonogo.providers.ai.pricing import Pricing
from gonogo.providers.ai.ways import Way

REQUEST_BYTES_MAX = 16 * 1024 * 1024
_KINDS: Mapping[str, str] = {
    "http.network": "network",
    "http.certificate": "permission",
    "http.refused_address": "permission",
    "http.redirect": "not-found",
    "http.too_large": "malformed-stream",
    "http.encoding": "malformed-stream",
    "http.request": "bad-request",
    "http.request_too_large": "context-too-long",
}
"""What a problem of the exchange is to the gate."""

See = Callable[[str], None]
"""Hears each new piece of the answer's text."""


class Wire(Struct, frozen=True):
    """What all attempts of a step have in common."""

    pricing: Pricing
    timers: Timers
    from_data: bool
    allow_private: bool
    body_bytes_max: int

    def usage(self, reply: Reply, way: Way) -> Usage:
        """What an answer used; unknown counts are none."""
        used = reply.usage
        money = self.pricing.cost(used, way, reply.model)
        return Usage(used.input_tokens or 0, used.output_tokens or 0, money or 0.0)


async def ask_server(way: Way, ask: Ask, attempt: Attempt, wire: Wire, see: See | None) -> Reply:
    """The answer of one server; with `see` it is streamed. Raises StepFailed."""
    limits = _limits(attempt, wire)
    if way.vendor in BY_LIBRARY:
        return await _by_library(way, ask, limits, wire, see)
    vendor = format_named(way.format)
    request = _request(vendor, way, ask, wire)
    if see is None:
        outcome = await _http.send(request, limits)
        if isinstance(outcome, _http.Problem):
            raise _no_exchange(outcome, way)
        found = vendor.read(outcome.status, outcome.headers, outcome.body, time.time())
    else:
        found = await _streamed(vendor, request, limits, way, wire, see)
    if isinstance(found, NoAnswer):
        raise failed(found, way, wire)
    return found


async def _by_library(way: Way, ask: Ask, limits: _http.Limits, wire: Wire, see: See | None) -> Reply:
    """Of a vendor with a format of its own."""
    from gonogo.providers._lent import Exchange, Terms
    from gonogo.providers.ai.library import answered
    from gonogo.providers.ai.library_stream import Silence, streamed

    from_data = wire.from_data and not way.own_url
    terms = Terms(way.url, way.headers, limits, from_data, wire.allow_private, REQUEST_BYTES_MAX)
    try:
        if see is None:
            found: Reply | NoAnswer | _http.Problem | Silence = await answered(way, ask, Exchange(terms))
        else:
            found = await streamed(way, ask, terms, wire.timers, see)
    except ValueError as problem:
        raise StepFailed("bad-request", way.hidden(str(problem)), effect="none") from problem
    if isinstance(found, _http.Problem):
        raise _no_exchange(found, way)
    if isinstance(found, Silence):
        raise _silence(found.partial, found.partial is not None, way, wire)
    if isinstance(found, NoAnswer):
        raise failed(found, way, wire)
    return found


def failed(no_answer: NoAnswer, way: Way, wire: Wire) -> StepFailed:
    """The gate's error for why there is no answer; what came of one is billed."""
    partial = no_answer.partial
    return StepFailed(
        "malformed-stream" if no_answer.kind == "not-json" else no_answer.kind,
        way.hidden(no_answer.message),
        status=no_answer.status,
        code=way.hidden(no_answer.vendor_code) or no_answer.kind,
        retry_after_s=no_answer.retry_after_s,
        request_id=no_answer.request_id or None,
        usage=None if partial is None else wire.usage(partial, way),
    )


def _request(vendor: Format, way: Way, ask: Ask, wire: Wire) -> _http.Request:
    try:
        call: HttpCall = vendor.request(way.url, ask)
    except ValueError as problem:
        raise StepFailed("bad-request", str(problem), effect="none") from problem
    if len(call.body) > REQUEST_BYTES_MAX:
        message = f"the question is {len(call.body):,} bytes; {REQUEST_BYTES_MAX:,} are the most"
        raise StepFailed("context-too-long", message, effect="none")
    key = vendor.key_headers(way.api_key) if way.api_key else {}
    return _http.Request(
        "POST",
        call.url,
        {**call.headers, **key, **way.headers},
        call.body,
        from_data=wire.from_data and not way.own_url,
        allow_private=wire.allow_private,
    )


def _limits(attempt: Attempt, wire: Wire) -> _http.Limits:
    """The gate ends an attempt in time; the exchange's own limit is only behind it."""
    return _http.Limits(
        attempt.timeout_s + 1.0, connect_s=attempt.connect_s, body_bytes_max=wire.body_bytes_max
    )


def _no_exchange(problem: _http.Problem, way: Way) -> StepFailed:
    kind = _KINDS.get(problem.kind, "unknown")
    if problem.kind == "http.timeout":
        kind = "timeout-connect" if problem.effect == "none" else "timeout-total"
    return StepFailed(kind, way.hidden(problem.message), code=problem.kind, effect=problem.effect)


class _Incoming:
    """A stream as it comes, and the time until it must go on (F.4): to the first word, between two, after the last."""

    __slots__ = ("_scope", "_see", "_timers", "_vendor", "found", "reader")

    def __init__(self, vendor: Format, timers: Timers, see: See, scope: anyio.CancelScope) -> None:
        self._vendor = vendor
        self._timers = timers
        self._see = see
        self._scope = scope
        self.reader: StreamReader | None = None
        self.found: Reply | NoAnswer | None = None
        scope.deadline = anyio.current_time() + timers.connect_s + timers.first_token_s

    def take(self, headers: Mapping[str, str], data: bytes) -> bool:
        """More bytes; False when the answer is there."""
        if self.reader is None:
            self.reader = self._vendor.reader(headers, time.time())
        reader = self.reader
        self._hear(reader.feed(data))
        if reader.state == "ending":
            self._scope.deadline = anyio.current_time() + self._timers.tail_s
        elif reader.begun:
            self._scope.deadline = anyio.current_time() + self._timers.idle_s
        return self.found is None

    def end(self, cause: str) -> Reply | NoAnswer:
        """What has come by the end of the connection."""
        if self.found is None and self.reader is not None:
            self._hear(self.reader.end(cause))
        return self.found or NoAnswer("empty-response", "the answer holds nothing", "the body")

    def _hear(self, events: Sequence[StreamEvent]) -> None:
        for event in events:
            if isinstance(event, Delta) and event.channel == "text":
                self._see(event.text)
            elif isinstance(event, Done):
                self.found = event.reply
            elif isinstance(event, Broken):
                self.found = event.no_answer


async def _streamed(
    vendor: Format, request: _http.Request, limits: _http.Limits, way: Way, wire: Wire, see: See
) -> Reply | NoAnswer:
    outcome: _http.Response | _http.Problem | None = None
    with anyio.CancelScope() as scope:
        incoming = _Incoming(vendor, wire.timers, see, scope)
        outcome = await _http.send(request, limits, incoming.take)
    if outcome is None:
        return _silent(incoming, way, wire)
    if isinstance(outcome, _http.Problem):
        if incoming.reader is None or outcome.kind in ("http.too_large", "http.encoding"):
            raise _no_exchange(outcome, way)
        return incoming.end(outcome.message)
    if not 200 <= outcome.status <= 299:
        return vendor.read(outcome.status, outcome.headers, outcome.body, time.time())
    return incoming.end("the connection ended")


def _silent(incoming: _Incoming, way: Way, wire: Wire) -> Reply | NoAnswer:
    """Nothing came for too long: an end if the last word was there, else a failure (LLM-4)."""
    reader = incoming.reader
    if reader is not None and reader.state == "ending":
        return incoming.end("nothing more came")
    partial = None if reader is None else reader.partial()
    raise _silence(partial, reader is not None and reader.begun, way, wire)


def _silence(partial: Reply | None, begun: bool, way: Way, wire: Wire) -> StepFailed:
    kind, limit_s = "timeout-first-token", wire.timers.first_token_s
    if begun:
        kind, limit_s = "timeout-idle", wire.timers.idle_s
    used = None if partial is None else wire.usage(partial, way)
    return StepFailed(kind, f"nothing came for {limit_s:g} s", effect="unknown", usage=used)
