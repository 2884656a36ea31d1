"""Outbound HTTP, against real servers on loopback."""

from __future__ import annotations

import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Iterator

import anyio
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request as Incoming
from werkzeug import Response as Answer

from gonogo.providers import _http
from gonogo.providers._http import Limits, Problem, Request, Response

Send = Callable[..., Response | Problem]
LIMITS = Limits(total_s=10)


@pytest.fixture
def send(httpserver: HTTPServer) -> Send:
    """Send to a path of the server (or a whole URL) that the workflow wrote out itself."""

    def call(path: str, method: str = "GET", limits: Limits = LIMITS, **facts: object) -> Response | Problem:
        url = path if "://" in path else httpserver.url_for(path)
        request = Request(method, url, **{"from_data": False, **facts})  # type: ignore[arg-type]
        return anyio.run(_http.send, request, limits)

    return call


def problem(outcome: Response | Problem) -> Problem:
    """It must be one."""
    assert isinstance(outcome, Problem), outcome
    return outcome


def response(outcome: Response | Problem) -> Response:
    """It must be one."""
    assert isinstance(outcome, Response), outcome
    return outcome


@pytest.fixture
def raw_server() -> Iterator[Callable[[bytes], str]]:
    """A server that answers one connection with these bytes and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []

        def serve(answer: bytes) -> str:
            def once() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

            threads.append(threading.Thread(target=once))
            threads[-1].start()
            return f"http://127.0.0.1:{listener.getsockname()[1]}/"

        yield serve
        for thread in threads:
            thread.join()


def test_status_headers_and_body_come_back(httpserver: HTTPServer, send: Send) -> None:
    """Header names are lower case; cookies aren't kept (they may be secrets)."""
    httpserver.expect_request("/a").respond_with_data("hi", 201, {"X-One": "1", "Set-Cookie": "s=1"})
    got = response(send("/a"))
    assert (got.status, got.body, got.headers["x-one"]) == (201, b"hi", "1")
    assert "set-cookie" not in got.headers


def test_nothing_is_tried_again(httpserver: HTTPServer, send: Send) -> None:
    """Retries are the engine's: a 503 is one request."""
    httpserver.expect_request("/a").respond_with_data("no", 503)
    assert response(send("/a")).status == 503
    assert len(httpserver.log) == 1


def test_a_refused_connection_did_nothing(send: Send) -> None:
    """Effect none: it may be repeated."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    got = problem(send(f"http://127.0.0.1:{port}/", "POST"))
    assert (got.kind, got.fault_class, got.effect) == ("http.network", "transient", "none")


def test_a_connection_that_breaks_after_sending_leaves_doubt(
    raw_server: Callable[[bytes], str], send: Send
) -> None:
    """Semantics 16: nobody knows what the far side did."""
    got = problem(send(raw_server(b""), "POST", body=b"x"))
    assert (got.kind, got.fault_class, got.effect) == ("http.network", "transient", "unknown")


def test_an_answer_that_is_cut_short_is_no_answer(raw_server: Callable[[bytes], str], send: Send) -> None:
    """Three bytes of a hundred."""
    got = problem(send(raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")))
    assert got.kind == "http.network"


def test_an_answer_that_is_not_http_is_no_answer(raw_server: Callable[[bytes], str], send: Send) -> None:
    """Hostile or just the wrong port."""
    assert problem(send(raw_server(b"SSH-2.0-OpenSSH\r\n\r\n"))).kind == "http.network"


def test_silence_is_a_timeout(httpserver: HTTPServer, send: Send) -> None:
    """Over the whole exchange; sent, so in doubt."""
    gone_on = threading.Event()

    def wait(_: Incoming) -> Answer:
        gone_on.wait(10)
        return Answer("late")

    httpserver.expect_request("/slow").respond_with_handler(wait)
    got = problem(send("/slow", limits=Limits(total_s=0.3)))
    gone_on.set()
    assert (got.kind, got.fault_class, got.effect) == ("http.timeout", "transient", "unknown")


def test_the_message_does_not_repeat_what_may_be_secret(send: Send) -> None:
    """No query, no credentials, no header value."""
    got = problem(send("http://user:hunter2@127.0.0.1:1/p?token=hunter2"))
    assert "http://127.0.0.1:1/p" in got.message
    assert "hunter2" not in got.message
    got = problem(send("http://127.0.0.1:1/", headers={"X": "hunter2\r\nY: 1"}))
    assert "hunter2" not in got.message


def test_a_name_that_does_not_exist_is_a_network_failure(send: Send) -> None:
    """C.6: network errors are transient."""
    got = problem(send("http://nosuch.invalid/"))
    assert (got.kind, got.fault_class, got.effect) == ("http.network", "transient", "none")


@pytest.mark.parametrize("url", ["ftp://x/", "http:///p", "file:///etc/passwd", "no url", "http://[::1", ""])
def test_what_is_no_url_is_a_logical_failure(url: str) -> None:
    """Nothing is sent."""
    got = problem(anyio.run(_http.send, Request("GET", url, from_data=False), Limits()))
    assert (got.kind, got.fault_class, got.effect) == ("http.request", "logical", "none")


@pytest.mark.parametrize(
    "headers", [{"X": "a\r\nY: b"}, {"X\n": "a"}, {"": "a"}, {"X": "\ud800"}, {"é": "x"}]
)
def test_a_header_cannot_make_another_one(
    httpserver: HTTPServer, send: Send, headers: dict[str, str]
) -> None:
    """Header injection is a logical failure, before anything is sent."""
    got = problem(send("/a", headers=headers))
    assert (got.kind, got.effect) == ("http.request", "none")
    assert httpserver.log == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"])
def test_a_url_from_data_reaches_no_private_address(httpserver: HTTPServer, send: Send, host: str) -> None:
    """Law 6: whatever the spelling; the message says what to do."""
    got = problem(send(f"http://{host}:{httpserver.port}/", from_data=True))
    assert (got.kind, got.fault_class, got.effect) == ("http.refused_address", "logical", "none")
    assert "allow_private" in got.message
    assert httpserver.log == []


def test_private_addresses_may_be_allowed(httpserver: HTTPServer, send: Send) -> None:
    """An explicit opt-in."""
    httpserver.expect_request("/a").respond_with_data("hi")
    assert response(send("/a", from_data=True, allow_private=True)).body == b"hi"


def test_the_address_checked_is_the_address_used(
    httpserver: HTTPServer, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves differently a moment later gains nothing: it is looked up once."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        asked.append(host)
        return ("127.0.0.1",)

    monkeypatch.setattr(_http, "resolve", resolve)
    httpserver.expect_request("/a").respond_with_handler(lambda request: Answer(request.host))
    got = response(send(f"http://rebind.test:{httpserver.port}/a"))
    assert got.body.decode() == f"rebind.test:{httpserver.port}"
    assert asked == ["rebind.test"]


def test_the_next_address_is_tried_when_one_refuses(
    httpserver: HTTPServer, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host with two addresses, one of them down."""

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.2", "127.0.0.1")

    monkeypatch.setattr(_http, "resolve", resolve)
    httpserver.expect_request("/a").respond_with_data("hi")
    assert response(send("/a")).body == b"hi"


@pytest.mark.parametrize(
    ("status", "method", "arrives_as", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "POST", "GET", b""),
        (303, "PUT", "GET", b""),
        (307, "POST", "POST", b"x"),
        (308, "PUT", "PUT", b"x"),
    ],
)
def test_a_redirect_keeps_or_drops_method_and_body(
    httpserver: HTTPServer, send: Send, status: int, method: str, arrives_as: str, body: bytes
) -> None:
    """RFC 9110, 15.4; within one origin the headers go along."""
    httpserver.expect_request("/old").respond_with_data("", status, {"Location": "/new"})
    httpserver.expect_request("/new").respond_with_data("there")
    assert response(send("/old", method, body=b"x", headers={"Authorization": "t"})).body == b"there"
    last = httpserver.log[-1][0]
    assert (last.method, last.get_data(), last.headers["Authorization"]) == (arrives_as, body, "t")


def test_redirects_have_a_limit(httpserver: HTTPServer, send: Send) -> None:
    """Law 2."""
    httpserver.expect_request("/loop").respond_with_data("", 302, {"Location": "/loop"})
    got = problem(send("/loop"))
    assert (got.kind, got.fault_class, got.effect) == ("http.redirect", "logical", "unknown")
    assert len(httpserver.log) == 6


@pytest.fixture
def second_server() -> Iterator[HTTPServer]:
    """Another origin."""
    with HTTPServer(host="127.0.0.1") as server:
        yield server


def test_another_origin_gets_no_credentials(
    httpserver: HTTPServer, second_server: HTTPServer, send: Send
) -> None:
    """Whatever header they are in."""
    httpserver.expect_request("/old").respond_with_data("", 302, {"Location": second_server.url_for("/new")})
    second_server.expect_request("/new").respond_with_data("there")
    secret = {"Authorization": "s", "Cookie": "s", "Private-Token": "s", "Accept": "text/plain"}
    assert response(send("/old", headers=secret, allow_private=True)).body == b"there"
    headers = second_server.log[-1][0].headers
    assert [name for name in secret if name in headers] == ["Accept"]


def test_a_body_is_not_carried_to_another_origin(
    httpserver: HTTPServer, second_server: HTTPServer, send: Send
) -> None:
    """It may hold what was meant for the first alone."""
    httpserver.expect_request("/old").respond_with_data("", 307, {"Location": second_server.url_for("/new")})
    got = problem(send("/old", "POST", body=b"secret", allow_private=True))
    assert (got.kind, got.fault_class, got.effect) == ("http.redirect", "logical", "unknown")
    assert second_server.log == []


def test_a_redirect_is_data(httpserver: HTTPServer, second_server: HTTPServer, send: Send) -> None:
    """A server that we were told to ask can't send us into the private net; the first hop was made."""
    httpserver.expect_request("/old").respond_with_data("", 302, {"Location": second_server.url_for("/new")})
    got = problem(send("/old"))
    assert (got.kind, got.effect) == ("http.refused_address", "unknown")
    assert second_server.log == []


@pytest.mark.parametrize("location", ["http://[::1", "file:///etc/passwd", "ftp://x/", "http://a:b:c/"])
def test_a_redirect_to_nonsense_is_a_logical_failure(
    raw_server: Callable[[bytes], str], send: Send, location: str
) -> None:
    """No crash, no other protocol."""
    url = raw_server(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
    assert problem(send(url)).kind == "http.request"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("gzip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("identity", b"hello"),
    ],
)
def test_a_packed_answer_is_unpacked(
    httpserver: HTTPServer, send: Send, encoding: str, packed: bytes
) -> None:
    """What was asked for; a gzip body may have several members."""
    httpserver.expect_request("/a").respond_with_data(packed, headers={"Content-Encoding": encoding})
    assert response(send("/a")).body == b"hello"


@pytest.mark.parametrize(
    ("encoding", "packed", "kind"),
    [
        ("gzip", b"no gzip", "http.encoding"),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-9], "http.network"),
        ("br", b"x", "http.encoding"),
    ],
)
def test_a_broken_packing_is_a_failure(
    httpserver: HTTPServer, send: Send, encoding: str, packed: bytes, kind: str
) -> None:
    """Never half an answer."""
    httpserver.expect_request("/a").respond_with_data(packed, headers={"Content-Encoding": encoding})
    assert problem(send("/a")).kind == kind


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_large_answer_is_refused_before_it_is_held(
    httpserver: HTTPServer, send: Send, encoding: str
) -> None:
    """By what it unpacks to: 20 MB of zeros are 20 KB of gzip."""
    body = bytes(20_000_000)
    packed = gzip.compress(body, mtime=0) if encoding == "gzip" else body
    httpserver.expect_request("/a").respond_with_data(packed, headers={"Content-Encoding": encoding})
    got = problem(send("/a", limits=Limits(body_bytes_max=1_000_000)))
    assert (got.kind, got.fault_class, got.effect) == ("http.too_large", "logical", "done")


def test_credentials_in_a_url_become_a_header(httpserver: HTTPServer, send: Send) -> None:
    """And not part of the request line."""
    httpserver.expect_request("/a").respond_with_data("hi")
    send(f"http://u:p@127.0.0.1:{httpserver.port}/a")
    assert httpserver.log[-1][0].headers["Authorization"] == "Basic dTpw"


def test_a_proxy_of_the_environment_is_not_used(
    httpserver: HTTPServer, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could reach what the address check forbids."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    httpserver.expect_request("/a").respond_with_data("hi")
    assert response(send("/a")).body == b"hi"


def test_a_cancel_ends_an_exchange_at_once(httpserver: HTTPServer) -> None:
    """Law 7."""
    gone_on = threading.Event()
    httpserver.expect_request("/slow").respond_with_handler(lambda _: Answer(str(gone_on.wait(10))))

    async def cancelled() -> bool:
        with anyio.move_on_after(0.2) as scope:
            await _http.send(Request("GET", httpserver.url_for("/slow"), from_data=False), Limits())
        return scope.cancelled_caught

    assert anyio.run(cancelled)
    gone_on.set()
