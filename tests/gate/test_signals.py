"""What failures are taken for, and why (D.2, B40, B41)."""

from __future__ import annotations

import errno
import json
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.world import Http, StepFailed

from gonogo.gate import Signal, Test
from gonogo.gate.observed import signal_of
from gonogo.gate.signals import TESTS, classify
from gonogo.gate.taxonomy import ROWS


def kind_of(error: BaseException) -> str:
    """The kind of an exception."""
    return classify(signal_of(error, 0.0)).kind


def vendor(status: int, **inner: str) -> Http:
    """An error with a vendor's body."""
    error = Http(status)
    error.body = {"error": inner}  # type: ignore[attr-defined]
    return error


def with_response(status: int) -> Exception:
    """An error whose status is on its response."""
    error = RuntimeError("x")
    error.response = type("Response", (), {"status_code": status, "headers": {}})()  # type: ignore[attr-defined]
    return error


def caused(error: Exception) -> Exception:
    """A plain error around another one."""
    try:
        raise RuntimeError("wrapped") from error
    except RuntimeError as outer:
        return outer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Http(400), "bad-request"),
        (Http(401), "auth"),
        (Http(403), "permission"),
        (Http(404), "not-found"),
        (Http(408), "server-5xx"),
        (Http(413), "context-too-long"),
        (Http(422), "bad-request"),
        (Http(429), "rate-limit"),
        (Http(500), "server-5xx"),
        (Http(503), "overloaded"),
        (Http(529), "overloaded"),
        (vendor(429, code="insufficient_quota"), "quota-exhausted"),
        (vendor(400, code="context_length_exceeded"), "context-too-long"),
        (vendor(400, code="content_filter"), "content-filter"),
        (vendor(529, type="overloaded_error"), "overloaded"),
        (vendor(500, type="api_error"), "server-5xx"),
        (ConnectionRefusedError(), "network"),
        (OSError(errno.ECONNRESET, "x"), "network"),
        (socket.gaierror(), "network"),
        (ssl.SSLError(), "network"),
        (TimeoutError(), "timeout-total"),
        (caused(ConnectionResetError()), "network"),
        (ExceptionGroup("g", [ConnectionResetError()]), "network"),
        (with_response(503), "overloaded"),
        (StepFailed("empty-response"), "empty-response"),
        (StepFailed(None, status=429), "rate-limit"),
        (ValueError("rate limit, too many requests, ECONNRESET"), "unknown"),
    ],
    ids=repr,
)
def test_each_failure_has_its_kind(error: Exception, kind: str) -> None:
    """D.2; a message alone says nothing."""
    assert kind_of(error) == kind


BODIES = json.loads((Path(__file__).parents[1] / "models" / "vendor_bodies.json").read_text())
"""Bodies in the forms of vendors, with the row of D.2 that each is."""
BY_PHRASE = {"anthropic context", "anthropic credit", "vllm context", "gemini context", "mistral context"}
"""They say it in words alone. The readers of models know the words; for exceptions the gate reads no texts."""


@pytest.mark.parametrize("row", BODIES, ids=lambda row: row["name"])
def test_an_exception_with_a_vendors_body_is_the_same_row(row: dict[str, Any]) -> None:
    """D.2, B41: what an SDK raises is judged as the product's own reader judges the answer."""
    error = Http(row["status"])
    error.body = row["body"]  # type: ignore[attr-defined]
    assert kind_of(error) == ("bad-request" if row["name"] in BY_PHRASE else row["kind"])


def test_the_classification_says_which_test_matched() -> None:
    """B40."""
    found = classify(signal_of(Http(429, retry_after="7", x_request_id="r-1"), 0.0))
    assert found.matched.endswith("status 429")
    assert (found.status, found.retry_after_s, found.request_id, found.type) == (429, 7.0, "r-1", "Http")


def test_a_wish_that_makes_no_sense_is_noted() -> None:
    """B42."""
    assert "banana" in (classify(signal_of(Http(429, retry_after="banana"), 0.0)).note or "")


def test_a_steps_own_tests_come_first() -> None:
    """B41: rows are data."""
    mine = Test("quota-exhausted", statuses=frozenset({418}))
    assert classify(Signal(status=418)).kind == "bad-request"
    assert classify(Signal(status=418), (mine,)).kind == "quota-exhausted"


def test_every_kind_of_a_test_has_a_row() -> None:
    """No test leads nowhere."""
    assert {test.kind for test in TESTS} <= ROWS.keys()


def test_texts_are_redacted_before_anything_keeps_them() -> None:
    """F.8.8."""
    error = Http(500)
    error.args = ("key sk-123",)
    error.body = "sk-123 is wrong"  # type: ignore[attr-defined]
    signal = signal_of(error, 0.0, lambda text: text.replace("sk-123", "***"))
    assert "sk-123" not in str(signal)
    assert "***" in signal.message


@given(
    st.dictionaries(
        st.sampled_from(["status_code", "code", "errno", "body", "headers", "response", "request_id"]),
        st.none()
        | st.integers()
        | st.text()
        | st.lists(st.integers())
        | st.dictionaries(st.text(), st.text()),
    )
)
def test_no_exception_breaks_the_reader(attributes: dict[str, Any]) -> None:
    """Attributes of strange types say nothing."""
    error = RuntimeError("x")
    for name, value in attributes.items():
        setattr(error, name, value)
    assert classify(signal_of(error, 0.0)).kind in ROWS


def test_a_chain_that_bites_its_tail_ends() -> None:
    """Bounded."""
    one, two = RuntimeError("1"), RuntimeError("2")
    one.__cause__, two.__cause__ = two, one
    assert kind_of(one) == "unknown"


SECRET = "sk-0123456789abcdef"


def told_by_everything() -> Http:
    """An error that repeats a key in every place that there is."""
    error = Http(429, retry_after=f"banana {SECRET}", x_request_id=SECRET)
    error.args = (f"key {SECRET} refused",)
    error.body = {"error": {"code": SECRET, "type": SECRET, "status": SECRET}}  # type: ignore[attr-defined]
    error.code = SECRET  # type: ignore[attr-defined]
    error.response = type("Response", (), {"headers": {"retry-after": SECRET * 9, "x-request-id": SECRET}})()  # type: ignore[attr-defined]
    return error


def long_body() -> Http:
    """The key stands where the excerpt is cut."""
    error = Http(500)
    error.body = "x" * 1995 + SECRET  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    "error",
    [
        told_by_everything(),
        long_body(),
        StepFailed("made-up", SECRET, code=SECRET, request_id=SECRET),
        StepFailed("made-up", "x" * 495 + SECRET, request_id="y" * 95 + SECRET),
    ],
    ids=["everywhere", "at a cut", "step", "step, at a cut"],
)
def test_SEC_2_a_key_that_the_far_side_repeats_is_in_no_field(error: Exception) -> None:
    """SEC-2, F.8.8: message, body, codes, request id, and the note about an unreadable wish; nor its first half."""
    signal = signal_of(error, 0.0, lambda text: text.replace(SECRET, "***"))
    told = repr(signal) + repr(classify(signal))
    assert SECRET[:5] not in told
    assert "***" in told
