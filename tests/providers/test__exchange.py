"""What http_client and http have in common."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.providers import _exchange
from gonogo.providers._http import Response
from gonogo.providers.noop import PROVIDER
from gonogo.testing import call_for

CALL = call_for(PROVIDER, {})


def answer(status: int = 200, body: bytes = b"", **headers: str) -> Response:
    """What a server may have said."""
    return Response(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, body, "http://x/"
    )


@pytest.mark.parametrize(
    ("status", "fault_class"),
    [(400, "logical"), (401, "logical"), (404, "logical"), (422, "logical"), (301, "logical"),
     (408, "transient"), (425, "transient"), (429, "transient"), (500, "transient"), (503, "transient")],
)  # fmt: skip
def test_C6_each_status_has_its_class(status: int, fault_class: str) -> None:
    """C.6: 408, 425, 429 and 5xx are transient, other refusals logical."""
    failed = _exchange.failed_status(CALL, "http_client/fetch_error", answer(status, b"why"))
    assert failed.fault.kind == "http.status"
    assert failed.fault.fault_class == fault_class
    assert failed.fault.cause == str(status)
    assert failed.output == {
        "error": True,
        "status": status,
        "message": f"the answer has status {status}",
        "body": "why",
    }


@pytest.mark.parametrize(
    ("response", "effect"),
    [
        (answer(404), "none"),
        (answer(429), "none"),
        (answer(503, retry_after="1"), "none"),
        (answer(503), "unknown"),
        (answer(500), "unknown"),
        (answer(408), "unknown"),
    ],
)
def test_a_refusal_did_nothing_and_a_breakdown_leaves_doubt(response: Response, effect: str) -> None:
    """Semantics 16."""
    assert _exchange.failed_status(CALL, "r", response).effect == effect


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("2000000", 86400.0),
        ("999999999", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_retry_after_is_seconds_from_now(text: str, seconds: float | None) -> None:
    """RFC 9110, 10.2.3; at most a day, never negative; what is absurd counts as not given (B42)."""
    assert _exchange.failed_status(CALL, "r", answer(429, retry_after=text)).fault.retry_after_s == seconds


def test_retry_after_may_be_a_date() -> None:
    """Seconds until then."""
    text = formatdate(time.time() + 100, usegmt=True)
    seconds = _exchange.failed_status(CALL, "r", answer(429, retry_after=text)).fault.retry_after_s
    assert seconds is not None
    assert 90 < seconds <= 100


@given(st.text())
def test_any_other_retry_after_counts_as_not_given(text: str) -> None:
    """Hostile headers make no exception."""
    seconds = _exchange.failed_status(CALL, "r", answer(429, retry_after=text)).fault.retry_after_s
    assert seconds is None or 0 <= seconds <= 86400


@pytest.mark.parametrize(
    ("response", "output"),
    [
        (answer(body=b'{"a": 1}', content_type="application/json"), {"a": 1}),
        (answer(body=b'{"a": 1}', content_type="application/problem+json; charset=utf-8"), {"a": 1}),
        (answer(body=b"5", content_type="application/json"), 5),
        (answer(body=b"5", content_type="text/plain"), "5"),
        (answer(body=b" [1]", content_type="text/plain"), [1]),
        (answer(body=b"{odd", content_type="application/json"), "{odd"),
        (answer(body="é".encode("latin-1"), content_type="text/plain; charset=latin-1"), "é"),
        (answer(body="é".encode(), content_type="text/plain; charset=no-such"), "é"),
        (answer(body=b"caf\xe9", content_type="text/plain; charset=rot13"), "caf\ufffd"),
        (answer(), ""),
    ],
)
def test_E6_R3_an_answer_is_json_or_text(response: Response, output: Any) -> None:
    """E.6 R3."""
    assert _exchange.read(response) == output


@given(st.text(), st.binary(max_size=50))
def test_any_answer_can_be_read(content_type: str, body: bytes) -> None:
    """Whatever the server calls it."""
    _exchange.read(answer(body=body, content_type=content_type))


def test_a_body_is_text_or_json() -> None:
    """E.6."""
    assert _exchange.body_bytes("é") == "é".encode()
    assert _exchange.body_bytes({"a": "é"}) == '{"a": "é"}'.encode()
    assert _exchange.body_bytes(None) is None


def test_headers_are_added_where_missing() -> None:
    """E.6 R1, and the call's key on what changes things (semantics 17)."""
    assert _exchange.headers_for(CALL, "GET", {}, None) == {}
    added = {"Content-Type": "application/json", "Idempotency-Key": "key-1"}
    assert _exchange.headers_for(CALL, "POST", {}, b"x") == added
    own = {"content-type": "text/plain", "idempotency-key": "mine"}
    assert _exchange.headers_for(CALL, "POST", own, b"x") == own
