"""A server over HTTP: each message is a POST, its answer JSON or a stream of events (MCP's streamable HTTP).

Every request goes out through `_http.py`, with its rules for addresses, redirects and sizes; nothing is tried again
here, and a stream that breaks isn't taken up again. Sessions are ended when a call is done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from gonogo.gate.step import Attempt
from gonogo.models.sse import SseParser
from gonogo.providers import _exchange, _http
from gonogo.providers._auth import with_auth
from gonogo.providers._mcp.messages import Inbox, Message, Trouble, read, too_large, written
from gonogo.providers._mcp.server import Server

_SESSION = "mcp-session-id"
_SESSION_CHARACTERS_MAX = 1024
_CLOSING_S = 1.0
_GATE_KINDS: Mapping[str, str] = {
    "http.certificate": "permission",
    "http.refused_address": "permission",
    "http.redirect": "bad-request",
    "http.request": "bad-request",
    "http.too_large": "bad-request",
    "http.encoding": "malformed-stream",
}
"""What a problem of the exchange is to the gate, if not `network`."""


@asynccontextmanager
async def server(of: Server, inbox: Inbox, attempt: Attempt) -> AsyncIterator[Posts]:
    """A server at a URL. Its session is ended when this is left in order."""
    if of.auth is not None and of.auth.unset():
        told = "`auth` names a variable that isn't set; set it in the environment of the run"
        raise Trouble("http.auth", "bad-request", told, effect="none")
    async with anyio.create_task_group() as replies:
        posts = Posts(of, inbox, attempt, replies)
        yield posts
        replies.cancel_scope.cancel()
    await posts.close()


class Posts:
    """The messages to and from one server. Requests come one after the other."""

    __slots__ = ("_fixed", "_hurried", "_inbox", "_limits", "_of", "_replies", "_session", "_version")

    def __init__(self, of: Server, inbox: Inbox, attempt: Attempt, replies: TaskGroup) -> None:
        self._of = of
        self._hurried = False
        self._inbox = inbox
        self._replies = replies
        self._fixed = with_auth(of.headers, of.auth)
        self._session: str | None = None
        self._version: dict[str, str] = {}
        # The gate ends an attempt in time; the exchange's own limit is only behind it.
        self._limits = _http.Limits(
            attempt.timeout_s + 1.0, connect_s=attempt.connect_s, body_bytes_max=of.bytes_max
        )

    async def ask(self, message: Message, headers: Mapping[str, str]) -> Message:
        """The answer to a request. Raises Trouble."""
        if message["method"] == "tools/call":
            headers = {"Idempotency-Key": self._of.key, **headers}
        coming = _Coming(self._inbox, message["id"], self._limits.body_bytes_max, self._reply)
        response = await self._send(message, headers, coming.take)
        self._note(response.headers)
        if 200 <= response.status <= 299:
            return coming.end(response)
        refusal = read(response.body)
        if refusal is not None and isinstance(refusal.get("error"), dict):
            return refusal
        raise _refused(response)

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send what has no answer. Raises Trouble when that is refused."""
        response = await self._send(message, headers, None)
        if not 200 <= response.status <= 299:
            raise _refused(response)

    def errors(self) -> str:
        """A server elsewhere writes its errors elsewhere."""
        return ""

    def hurry(self) -> None:
        """It is of no use any more: leave the session to it."""
        self._hurried = True

    async def close(self) -> None:
        """End the session. A server that doesn't want to hear of it has ended it by itself, or will."""
        if self._session is not None and not self._hurried:
            with anyio.move_on_after(_CLOSING_S):
                await _http.send(self._request("DELETE", {}, None), self._limits)

    def _reply(self, reply: Message) -> None:
        """While the answer is still coming, which may wait for this."""
        self._replies.start_soon(self._answer, reply)

    async def _answer(self, reply: Message) -> None:
        """To what the server asked. That it can't be delivered, the server notices itself."""
        await _http.send(self._request("POST", {}, written(reply)), self._limits)

    async def _send(
        self, message: Message, headers: Mapping[str, str], take: _http.Take | None
    ) -> _http.Response:
        outcome = await _http.send(self._request("POST", headers, written(message)), self._limits, take)
        if isinstance(outcome, _http.Problem):
            raise _broken(outcome)
        return outcome

    def _request(self, method: str, headers: Mapping[str, str], body: bytes | None) -> _http.Request:
        self._version |= {name: value for name, value in headers.items() if name == "mcp-protocol-version"}
        own = {"Accept": "application/json, text/event-stream", **self._version, **headers}
        if body is not None:
            own["Content-Type"] = "application/json"
        if self._session is not None:
            own[_SESSION] = self._session
        return _http.Request(
            method,
            self._of.url,
            {**self._fixed, **own},
            body,
            from_data=self._of.from_data,
            allow_private=self._of.allow_private,
        )

    def _note(self, headers: Mapping[str, str]) -> None:
        session = headers.get(_SESSION)
        if session and len(session) <= _SESSION_CHARACTERS_MAX:
            self._session = session


class _Coming:
    """The body of one answer as it comes: JSON to be read at its end, or events, each of them a message."""

    __slots__ = ("_body", "_bytes_max", "_found", "_inbox", "_parser", "_reply", "_trouble", "_wanted")

    def __init__(self, inbox: Inbox, wanted: int, bytes_max: int, reply: Callable[[Message], None]) -> None:
        self._inbox = inbox
        self._wanted = wanted
        self._bytes_max = bytes_max
        self._parser: SseParser | None = None
        self._body = bytearray()
        self._found: Message | None = None
        self._trouble: Trouble | None = None
        self._reply = reply

    def take(self, headers: Mapping[str, str], data: bytes) -> bool:
        """More bytes; False when the answer is there, or can't come any more."""
        if not headers.get("content-type", "").lower().startswith("text/event-stream"):
            self._body += data
            return True
        if self._parser is None:
            self._parser = SseParser(line_bytes_max=self._bytes_max, event_bytes_max=self._bytes_max)
        for event in self._parser.feed(data):
            if event.name in (b"", b"message") and event.data:
                self._hear(event.data)
            if self._found is not None or self._trouble is not None:
                return False
        return not self._parser.overflow

    def end(self, response: _http.Response) -> Message:
        """The answer. Raises Trouble when none has come."""
        if self._body and self._parser is None:
            self._hear(bytes(self._body))
        if self._trouble is not None:
            raise self._trouble
        if self._found is not None:
            return self._found
        if self._parser is not None and self._parser.overflow:
            raise too_large(self._bytes_max)
        told = f"the answer (status {response.status}) ended without what was asked for{self._inbox.hint()}"
        raise Trouble("mcp.closed", "truncated-stream", told, fault_class="transient")

    def _hear(self, data: bytes) -> None:
        try:
            self._found, reply = self._inbox.take(data, self._wanted)
        except Trouble as trouble:
            self._trouble = trouble
            return
        if reply is not None:
            self._reply(reply)


def _broken(problem: _http.Problem) -> Trouble:
    kind = _GATE_KINDS.get(problem.kind, "network")
    if problem.kind == "http.timeout":
        kind = "timeout-connect" if problem.effect == "none" else "timeout-total"
    none = problem.effect == "none"
    return Trouble(
        problem.kind,
        kind,
        problem.message,
        fault_class=problem.fault_class,
        effect="none" if none else None,
    )


def _refused(response: _http.Response) -> Trouble:
    """A status that says no, and nothing in the body that MCP would say."""
    transient = response.status in (408, 425, 429) or response.status >= 500
    none = _exchange.effect_of(response) == "none"
    return Trouble(
        "http.status",
        # A page that isn't there says nothing of the server, nor a request that it won't take.
        "bad-request" if response.status in (400, 404, 405, 406, 410, 415) else None,
        f"the answer has status {response.status}",
        fault_class="transient" if transient else "logical",
        effect="none" if none else None,
        cause=str(response.status),
        status=response.status,
        retry_after_s=_exchange.wait_s(response),
    )
