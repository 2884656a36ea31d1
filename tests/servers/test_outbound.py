"""Whatever a server does, the one module that calls out ends with an answer or a typed problem, within its limits."""

from __future__ import annotations

import gzip
from collections.abc import Mapping

import anyio
import pytest
from tests.servers import faulty
from tests.servers.faulty import FaultyServer, HangingAccept, Script

from gonogo.providers._http import Limits, Problem, Request, Response, send

LIMITS = Limits(total_s=10, body_bytes_max=1 << 20)
HASTE = Limits(total_s=0.2, connect_s=0.1)
PROBLEMS: list[tuple[str, str, Script]] = [
    ("reset at once", "http.network", faulty.RESET_AT_ONCE),
    ("reset before headers", "http.network", faulty.RESET_BEFORE_HEADERS),
    ("reset amid headers", "http.network", faulty.RESET_AMID_HEADERS),
    ("reset mid body", "http.network", faulty.RESET_MID_BODY),
    ("closed before headers", "http.network", faulty.CLOSE_BEFORE_HEADERS),
    ("truncated", "http.network", faulty.TRUNCATED),
    ("truncated between chunks", "http.network", faulty.TRUNCATED_CHUNKED),
    ("truncated in a chunk", "http.network", faulty.TRUNCATED_IN_A_CHUNK),
    ("packed and cut off", "http.network", faulty.gzip_cut_off()),
    ("garbage", "http.network", faulty.GARBAGE),
    ("garbage for a chunk's size", "http.network", faulty.GARBAGE_CHUNK_SIZE),
    ("a length that is no number", "http.network", faulty.LENGTH_NO_NUMBER),
    ("two lengths", "http.network", faulty.TWO_LENGTHS),
    ("endless headers", "http.network", faulty.ENDLESS_HEADERS),
    ("an endless header", "http.network", faulty.ENDLESS_HEADER_LINE),
    ("an endless body", "http.too_large", faulty.ENDLESS_BODY),
    ("endless chunks", "http.too_large", faulty.ENDLESS_CHUNKS),
    ("endless events", "http.too_large", faulty.ENDLESS_EVENTS),
    ("a bomb", "http.too_large", faulty.gzip_bomb(64 << 20)),
    ("a loop", "http.redirect", faulty.redirect("/again")),
]


def outcome(server: FaultyServer, limits: Limits = LIMITS) -> Response | Problem:
    """One exchange with an address that the workflow wrote out."""
    return anyio.run(send, Request("GET", server.url, from_data=False), limits)


@pytest.mark.parametrize(("kind", "script"), [row[1:] for row in PROBLEMS], ids=[row[0] for row in PROBLEMS])
def test_a_server_that_misbehaves_is_a_typed_problem(kind: str, script: Script) -> None:
    """One request for each hop, none of its own accord (RET-2)."""
    with FaultyServer(script) as server:
        told = outcome(server)
        assert server.connections == (LIMITS.redirects_max + 1 if kind == "http.redirect" else 1)
    assert isinstance(told, Problem)
    assert told.kind == kind


@pytest.mark.parametrize(
    "script",
    [faulty.STALL_AT_ACCEPT, faulty.STALL_BEFORE_HEADERS, faulty.STALL_AFTER_HEADERS, faulty.STALL_MID_BODY],
)
def test_LLM_4_a_server_that_says_nothing_is_hung_up_on(script: Script) -> None:
    """The server sees it."""
    with FaultyServer(script) as server:
        told = outcome(server, HASTE)
        assert server.until_hung_up()
    assert isinstance(told, Problem)
    assert (told.kind, told.fault_class) == ("http.timeout", "transient")


def test_a_connection_that_is_never_made_is_given_up() -> None:
    """Nothing can have been done."""
    with HangingAccept() as server:
        told = anyio.run(send, Request("GET", f"http://127.0.0.1:{server.port}/", from_data=False), HASTE)
    assert isinstance(told, Problem)
    assert (told.kind, told.effect) == ("http.timeout", "none")


@pytest.mark.parametrize("location", faulty.PRIVATE_LOCATIONS)
def test_SEC_3_a_redirect_does_not_lead_inside(location: str) -> None:
    """Refused by address, however it is spelt, or because it is no address of the web."""
    with FaultyServer(faulty.redirect(location)) as server:
        told = outcome(server)
        assert server.connections == 1
    assert isinstance(told, Problem)
    assert told.kind in ("http.refused_address", "http.request")


def test_SEC_3_another_origin_gets_no_credentials() -> None:
    """Neither the key's header nor a cookie or a header of one's own."""
    secret = {"authorization": "Bearer s", "x-api-key": "s", "cookie": "s", "x-mine": "s"}
    with FaultyServer() as other, FaultyServer(faulty.redirect(other.url, 307)) as first:
        request = Request(
            "GET", first.url, {**secret, "accept": "text/plain"}, from_data=False, allow_private=True
        )
        told = anyio.run(send, request, LIMITS)
    assert isinstance(told, Response)
    assert secret.items() <= first.requests[0].headers.items()
    assert secret.keys() & other.requests[0].headers.keys() == set()
    assert other.requests[0].headers["accept"] == "text/plain"


@pytest.mark.parametrize(
    "script", [faulty.INVALID_UTF_8, faulty.LENGTH_TOO_SMALL, faulty.dripped(b"{}" * 20)]
)
def test_an_odd_answer_is_an_answer(script: Script) -> None:
    """What it means is for those who read it."""
    with FaultyServer(script) as server:
        told = outcome(server)
    assert isinstance(told, Response)
    assert told.status == 200


def taken(
    server: FaultyServer, enough: int = 1 << 30, limits: Limits = LIMITS
) -> tuple[Response | Problem, bytes]:
    """One exchange whose body is taken as it comes, until there is enough; the outcome and what was taken."""
    got = bytearray()

    def take(headers: Mapping[str, str], data: bytes) -> bool:
        got.extend(data)
        return len(got) < enough

    request = Request("GET", server.url, from_data=False)
    return anyio.run(send, request, limits, take), bytes(got)


def test_a_body_can_be_taken_as_it_comes() -> None:
    """Then it isn't kept as well; packed ones are unpacked."""
    packed = faulty.answer(200, gzip.compress(b"one two"), {"content-encoding": "gzip"})
    for script in (faulty.stream([b"one ", b"two"]), packed):
        with FaultyServer(script) as server:
            outcome, got = taken(server)
        assert isinstance(outcome, Response)
        assert (outcome.body, got) == (b"", b"one two")


def test_who_has_enough_hangs_up() -> None:
    """Nothing more is read of a stream without an end."""
    with FaultyServer(faulty.ENDLESS_EVENTS) as server:
        outcome, _ = taken(server, enough=100)
        assert server.until_hung_up()
    assert isinstance(outcome, Response)


def test_a_body_that_is_taken_has_its_limit_all_the_same() -> None:
    """It counts although it isn't kept."""
    with FaultyServer(faulty.ENDLESS_EVENTS) as server:
        outcome, _ = taken(server)
    assert isinstance(outcome, Problem)
    assert outcome.kind == "http.too_large"


def test_a_refusal_is_not_taken_but_kept() -> None:
    """Whoever takes a stream isn't given an error page for one."""
    with FaultyServer(faulty.answer(503, b"busy")) as server:
        outcome, got = taken(server)
    assert isinstance(outcome, Response)
    assert (outcome.status, outcome.body, got) == (503, b"busy", b"")


@pytest.mark.parametrize("script", [faulty.RESET_MID_BODY, faulty.TRUNCATED_CHUNKED])
def test_LLM_1_a_stream_that_breaks_is_a_problem(script: Script) -> None:
    """What came was taken; that it broke is told."""
    with FaultyServer(script) as server:
        outcome, _ = taken(server)
    assert isinstance(outcome, Problem)
    assert outcome.kind == "http.network"
