"""The server that misbehaves does what it was told, keeps what it got and leaves nothing behind."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading

import pytest
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, HangingAccept, Script


def get(server: FaultyServer, path: str = "/", body: bytes | None = None) -> http.client.HTTPResponse:
    """One exchange by the standard library's client."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        client.request("POST" if body else "GET", path, body)
        return client.getresponse()
    except BaseException:
        client.close()
        raise


def raw(server: FaultyServer) -> bytes:
    """All bytes that a request is answered with; a reset ends them."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        data = b""
        while more := client.recv(65536):
            data += more
    return data


def test_what_arrives_is_counted_and_kept() -> None:
    """Method, target, headers, body, and on which connection."""
    with FaultyServer() as server:
        assert get(server, "/a?b=c", b"x" * 100_000).read() == b"{}"
        assert get(server).status == 200
    first, second = server.requests
    assert (first.method, first.target, len(first.body), first.connection) == ("POST", "/a?b=c", 100_000, 0)
    assert (second.method, second.connection, server.connections) == ("GET", 1, 2)


def test_scripts_are_taken_one_a_connection_and_the_last_stays() -> None:
    """A storm of two, then answers for ever."""
    with FaultyServer(*faulty.storm(2)) as server:
        assert [get(server).status for _ in range(4)] == [503, 503, 200, 200]


@pytest.mark.parametrize(
    "script", [faulty.RESET_BEFORE_HEADERS, faulty.RESET_AMID_HEADERS, faulty.RESET_MID_BODY]
)
def test_a_reset_is_a_reset(script: Script) -> None:
    """RST, not FIN."""
    with FaultyServer(script) as server, pytest.raises(ConnectionResetError):
        raw(server)


def test_a_reset_at_once_answers_nothing() -> None:
    """The client may see it when it sends or when it reads."""
    with FaultyServer(faulty.RESET_AT_ONCE) as server, pytest.raises((ConnectionResetError, BrokenPipeError)):
        raw(server)


@pytest.mark.parametrize("script", [faulty.TRUNCATED, faulty.TRUNCATED_CHUNKED, faulty.TRUNCATED_IN_A_CHUNK])
def test_a_truncated_body_ends_clean_and_early(script: Script) -> None:
    """FIN before the length, or before the last chunk."""
    with FaultyServer(script) as server, pytest.raises(http.client.IncompleteRead):
        get(server).read()


@pytest.mark.parametrize("script", [faulty.GARBAGE, faulty.GARBAGE_CHUNK_SIZE])
def test_garbage_is_no_http(script: Script) -> None:
    """In the place of the status line, and in that of a chunk's size."""
    with FaultyServer(script) as server, pytest.raises(http.client.HTTPException):
        get(server).read()


def test_a_held_stream_goes_on_when_the_test_says_so() -> None:
    """A slow server without a clock."""
    with FaultyServer(faulty.held_stream([b"data: 1\n\n", b"data: 2\n\n"])) as server:
        answer = get(server)
        server.release()
        assert answer.readline() == b"data: 1\n"
        server.release()
        assert answer.read() == b"\ndata: 2\n\n"


def test_a_stall_sees_the_client_hang_up() -> None:
    """LLM-4: the server knows that the connection was closed."""
    with FaultyServer(faulty.STALL_AFTER_HEADERS) as server:
        answer = get(server)
        assert server.hung_up == []
        answer.close()
        assert server.until_hung_up()


@pytest.mark.parametrize("script", [faulty.ENDLESS_BODY, faulty.ENDLESS_CHUNKS, faulty.ENDLESS_EVENTS])
def test_an_endless_body_goes_on_until_the_client_hangs_up(script: Script) -> None:
    """More than any limit would take."""
    with FaultyServer(script) as server:
        answer = get(server)
        assert len(answer.read(3_000_000)) == 3_000_000
        answer.close()
        assert server.until_hung_up()


@pytest.mark.parametrize("script", [faulty.ENDLESS_HEADERS, faulty.ENDLESS_HEADER_LINE])
def test_endless_headers_never_become_an_answer(script: Script) -> None:
    """The standard library gives up at its own limit."""
    with FaultyServer(script) as server, pytest.raises(http.client.HTTPException):
        get(server)


def test_a_bomb_is_small_on_the_wire() -> None:
    """And large when it is unpacked."""
    with FaultyServer(faulty.gzip_bomb(8 * 1024 * 1024)) as server:
        packed = get(server).read()
    assert len(packed) < 20_000
    assert len(gzip.decompress(packed)) == 8 * 1024 * 1024


@pytest.mark.parametrize("form", sorted(faulty.RETRY_AFTER_FORMS))
def test_every_form_of_retry_after_is_sent(form: str) -> None:
    """With a 429 of OpenAI's form."""
    with FaultyServer(faulty.throttled(form, now_s=1_700_000_000)) as server:
        answer = get(server)
    assert answer.status == 429
    sent = {name.lower(): value for name, value in answer.headers.items()}
    assert faulty.RETRY_AFTER_FORMS[form](2, 1_700_000_000).items() <= sent.items()


def test_a_redirect_leads_where_it_was_told() -> None:
    """A loop is a redirect to itself."""
    with FaultyServer(faulty.redirect("/again")) as server:
        assert get(server).headers["location"] == "/again"


@pytest.mark.parametrize(
    "script",
    [
        faulty.LENGTH_NO_NUMBER,
        faulty.LENGTH_TOO_SMALL,
        faulty.TWO_LENGTHS,
        faulty.INVALID_UTF_8,
        faulty.dripped(b"{}"),
    ],
)
def test_every_other_script_answers_something(script: Script) -> None:
    """As bytes; what a client makes of them is its own matter."""
    with FaultyServer(script) as server:
        assert raw(server).startswith(b"HTTP/1.1 200 ")


def test_nobody_answers_where_the_queue_is_full() -> None:
    """A client waits for its connection."""
    with HangingAccept() as server, pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", server.port), timeout=0.1)


def test_closing_ends_every_thread_and_every_connection() -> None:
    """Stalled, held and idle ones alike; the port is free again."""
    before = set(threading.enumerate())
    scripts = (faulty.STALL_AT_ACCEPT, faulty.STALL_BEFORE_HEADERS, faulty.held_stream([b"x"]))
    with FaultyServer(*scripts) as server:
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert set(threading.enumerate()) == before
    for client in clients:
        client.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))
