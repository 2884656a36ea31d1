"""mcp over HTTP: the real server, and servers that redirect, refuse, break off and ask for more. Loopback only."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from pytest_httpserver import HTTPServer
from tests.servers import faulty
from tests.servers.faulty import FaultyServer
from tests.servers.mcp_servers import real_over_http
from werkzeug import Request, Response

from gonogo.gate import Bounds, Policy
from gonogo.provider import Done, Failed, Outcome
from gonogo.providers.table import built_in
from gonogo.testing import ScriptedContext, call_for

Do = Callable[..., Outcome]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "far", "version": "1"},
}
LIST = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}


def text(words: str) -> dict[str, Any]:
    """What a tool gives."""
    return {"content": [{"type": "text", "text": words}]}


def message(**parts: Any) -> bytes:
    """One message."""
    return json.dumps({"jsonrpc": "2.0", **parts}).encode()


def answer(request: Request, result: Any) -> Response:
    """To a request, as JSON."""
    return Response(message(id=request.get_json()["id"], result=result), content_type="application/json")


def events(*messages: bytes) -> Response:
    """Messages as a stream of events."""
    body = b"".join(b"event: message\ndata: " + each + b"\n\n" for each in messages)
    return Response(body, content_type="text/event-stream")


class Far:
    """A server in order; `call` answers the tool's call, `hello` the handshake. `requests` are all that came."""

    def __init__(self) -> None:
        self.call: Callable[[Request], Response] = lambda request: answer(request, text("done"))
        self.hello: Callable[[Request], Response] = lambda request: answer(request, HELLO)
        self.requests: list[tuple[str, str, dict[str, str]]] = []

    def handle(self, request: Request) -> Response:
        """By the method of the message."""
        method = str(request.get_json()["method"]) if request.data and b'"method"' in request.data else ""
        self.requests.append((request.method, method, {k.lower(): v for k, v in request.headers.items()}))
        if method == "initialize":
            return self.hello(request)
        if method == "tools/list":
            return answer(request, LIST)
        if method == "tools/call":
            return self.call(request)
        return Response(status=202)

    def methods(self) -> list[str]:
        """What was asked, in order."""
        return [method or how for how, method, _ in self.requests]


@pytest.fixture
def far(httpserver: HTTPServer) -> Far:
    """At /mcp."""
    far = Far()
    httpserver.expect_request("/mcp").respond_with_handler(far.handle)
    return far


@pytest.fixture
def config(httpserver: HTTPServer, far: Far) -> dict[str, Any]:
    """A step's keys."""
    return {"url": httpserver.url_for("/mcp"), "method": "echo"}


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    """The library's own server."""
    with real_over_http() as url:
        yield url


@pytest.mark.parametrize(
    ("method", "arguments", "output"),
    [
        ("add", {"a": 1, "b": 2}, {"result": 3}),
        ("order", {"number": 7}, {"number": 7, "left": "Monday"}),
        ("say", {"text": "[1, 2]"}, [1, 2]),
    ],
)
def test_the_librarys_own_server_is_understood(
    do: Do, real: str, method: str, arguments: dict[str, Any], output: Any
) -> None:
    """Handshake, session, streams of events, and the end of the session."""
    outcome = do("mcp", {"url": real, "method": method, "methodArgs": arguments})
    assert isinstance(outcome, Done), outcome
    assert outcome.output == output


def test_progress_over_a_stream_is_shown(do: Do, context: ScriptedContext, real: str) -> None:
    """Each message that a server sends on the way."""
    assert isinstance(do("mcp", {"url": real, "method": "count", "methodArgs": {"to": 2}}), Done)
    assert context.shown == ["at 0", "at 1"]


def test_a_session_is_kept_to_and_ended(do: Do, far: Far, config: dict[str, Any]) -> None:
    """The server's session and the version agreed on are on all that follows the handshake."""

    def hello(request: Request) -> Response:
        response = answer(request, HELLO)
        response.headers["Mcp-Session-Id"] = "s-1"
        return response

    far.hello = hello
    assert isinstance(do("mcp", config), Done)
    assert far.methods() == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "DELETE",
    ]
    later = [headers for _, _, headers in far.requests[1:]]
    assert {headers["mcp-session-id"] for headers in later} == {"s-1"}
    assert {headers["mcp-protocol-version"] for headers in later} == {"2025-06-18"}


def test_headers_auth_and_the_key_are_sent(do: Do, far: Far, config: dict[str, Any]) -> None:
    """The key on the call alone: it is what must not be done twice."""
    config |= {"headers": {"X-Team": "a"}, "auth": {"type": "bearer", "token": "t0k3n"}}
    assert isinstance(do("mcp", config, key="k-9"), Done)
    assert {headers["authorization"] for _, _, headers in far.requests} == {"Bearer t0k3n"}
    assert {headers["x-team"] for _, _, headers in far.requests} == {"a"}
    keys = {method: headers.get("idempotency-key") for _, method, headers in far.requests}
    assert [method for method, key in keys.items() if key == "k-9"] == ["tools/call"]


def test_a_secret_that_is_not_set_lets_nobody_in(do: Do, far: Far, config: dict[str, Any]) -> None:
    """Its name isn't sent in its place."""
    outcome = do("mcp", {**config, "auth": {"type": "bearer", "token": "${NOT_SET}"}})
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, far.requests) == ("http.auth", [])


def test_a_private_address_from_data_is_refused(do: Do, far: Far, config: dict[str, Any]) -> None:
    """Law 6: unless the step says that it is meant."""
    outcome = do("mcp", config, templated=frozenset({"url"}))
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.effect, far.requests) == ("http.refused_address", "none", [])
    assert isinstance(do("mcp", {**config, "allow_private": True}, templated=frozenset({"url"})), Done)


@pytest.mark.parametrize("status", [302, 307, 308])
def test_a_redirect_leads_no_call_elsewhere(
    do: Do, far: Far, config: dict[str, Any], httpserver: HTTPServer, status: int
) -> None:
    """Neither to another origin nor, for what data chose, to a private address."""
    far.hello = lambda request: Response(status=status, headers={"Location": "http://169.254.169.254/mcp"})
    outcome = do("mcp", config)
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind in ("http.redirect", "http.refused_address")
    assert outcome.effect == "none"
    assert far.methods() == ["initialize"]


@pytest.mark.parametrize(
    ("status", "fault_class", "effect"),
    [
        (401, "logical", "none"),
        (404, "logical", "none"),
        (429, "transient", "none"),
        (500, "transient", "unknown"),
    ],
)
def test_a_status_that_says_no_is_a_fault(
    do: Do, far: Far, config: dict[str, Any], status: int, fault_class: str, effect: str
) -> None:
    """To the call itself: what a refusal did is known, what a broken server did isn't."""
    far.call = lambda request: Response(status=status)
    outcome = do("mcp", config)
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.cause) == ("http.status", str(status))
    assert (outcome.fault.fault_class, outcome.effect) == (fault_class, effect)


def test_a_refusal_in_the_words_of_the_protocol_is_told(do: Do, far: Far, config: dict[str, Any]) -> None:
    """Servers may give an error of JSON-RPC under a status that says no."""
    body = message(id=None, error={"code": -32602, "message": "no such order"})
    far.call = lambda request: Response(body, status=400, content_type="application/json")
    outcome = do("mcp", config)
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "mcp.error"
    assert outcome.fault.message == "the server refuses: no such order (code -32602)"


def test_a_stream_that_ends_without_the_answer_is_a_fault(do: Do, far: Far, config: dict[str, Any]) -> None:
    """It isn't taken up again: whether the tool did its work, nobody knows."""
    far.call = lambda request: events(message(method="notifications/message", params={}))
    outcome = do("mcp", config)
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.fault_class) == ("mcp.closed", "transient")
    assert outcome.effect == "unknown"


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/html"])
def test_what_is_no_message_is_a_fault(do: Do, far: Far, config: dict[str, Any], content_type: str) -> None:
    """A page in place of an answer, say."""
    far.call = lambda request: Response(b"data: <html>\n\n", content_type=content_type)
    outcome = do("mcp", config)
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "mcp.closed"
    assert "<html>" in outcome.fault.message


@pytest.mark.parametrize("as_events", [False, True])
def test_an_answer_that_is_too_large_is_a_fault(
    do: Do, far: Far, config: dict[str, Any], as_events: bool
) -> None:
    """As JSON and as an event."""

    def call(request: Request) -> Response:
        body = message(id=request.get_json()["id"], result=text("x" * 5000))
        return events(body) if as_events else Response(body, content_type="application/json")

    far.call = call
    outcome = do("mcp", {**config, "max_response_bytes": 4096})
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "http.too_large"
    assert "max_response_bytes" in outcome.fault.message


def test_what_a_server_asks_amid_a_call_is_answered_at_once() -> None:
    """It may wait for that: a ping is answered, everything else refused."""
    far, heard, both = Far(), [], threading.Semaphore(0)

    def call(request: Request) -> Response:
        def stream() -> Iterator[bytes]:
            yield events(message(id="p", method="ping"), message(id="s", method="roots/list")).data
            assert both.acquire(timeout=20)
            assert both.acquire(timeout=20)
            yield events(message(id=wanted, result=text("done"))).data

        wanted = request.get_json()["id"]
        return Response(stream(), content_type="text/event-stream")

    def handle(request: Request) -> Response:
        if request.get_json().get("id") not in ("p", "s"):
            return far.handle(request)
        heard.append(request.get_json())
        both.release()
        return Response(status=202)

    far.call = call
    with HTTPServer(threaded=True) as server:
        server.expect_request("/mcp").respond_with_handler(handle)
        provider = built_in().get("mcp")
        given = call_for(provider, {"url": server.url_for("/mcp"), "method": "echo"})
        assert isinstance(anyio.run(provider.run, given, ScriptedContext()), Done)
    answers = {each["id"]: each for each in heard}
    assert answers["p"]["result"] == {}
    assert answers["s"]["error"]["code"] == -32601


def test_a_busy_server_is_asked_again_where_nothing_was_done(
    do: Do, context: ScriptedContext, far: Far, config: dict[str, Any]
) -> None:
    """One attempt is one handshake and one call; the library tries nothing again by itself."""
    busy = [Response(status=503, headers={"Retry-After": "1"})]
    far.hello = lambda request: busy.pop() if busy else answer(request, HELLO)
    context.policy = Policy(bounds=Bounds(attempts_max=3))
    outcome = do("mcp", config)
    assert isinstance(outcome, Done), outcome
    assert [each["kind"] for each in outcome.meta["gate"]["attempts"]] == ["overloaded", "ok"]
    assert far.methods().count("initialize") == 2
    assert far.methods().count("tools/call") == 1


@pytest.mark.parametrize(
    "script",
    [faulty.RESET_AT_ONCE, faulty.RESET_MID_BODY, faulty.TRUNCATED, faulty.GARBAGE, faulty.ENDLESS_BODY],
    ids=["reset", "reset mid body", "truncated", "garbage", "endless"],
)
def test_a_server_that_speaks_no_http_did_nothing(do: Do, script: faulty.Script) -> None:
    """The handshake comes first."""
    with FaultyServer(script) as server:
        outcome = do("mcp", {"url": server.url, "method": "echo", "max_response_bytes": 100_000})
    assert isinstance(outcome, Failed)
    assert outcome.effect == "none"
    assert outcome.fault.kind.startswith("http.")
