"""Answers that say no, by bodies as vendors send them (D.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.wires import NOW_S

from gonogo.models.refusing import ERROR_BYTES_MAX, Row, refused, refused_inside
from gonogo.models.reply import NoAnswer


def openai(
    message: str, type_: str | None = None, code: Any = None, param: str | None = None
) -> dict[str, Any]:
    """An error of OpenAI's form."""
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}


def anthropic(type_: str, message: str) -> dict[str, Any]:
    """An error of Anthropic's form."""
    return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_1"}


def answer(status: int, body: Any, headers: dict[str, str] | None = None) -> NoAnswer:
    """What an answer means."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return refused(status, headers or {}, text, NOW_S)


BODIES = json.loads(Path(__file__).with_name("vendor_bodies.json").read_text())
"""Bodies in the forms of vendors, with the row of D.2 that each is; a body that is a text is sent as it is."""


@pytest.mark.parametrize("row", BODIES, ids=lambda row: row["name"])
def test_a_vendors_body_is_a_row_of_the_taxonomy(row: dict[str, Any]) -> None:
    """By code before phrase before status; the record says on which field."""
    body = row["body"]
    told = answer(row["status"], body.encode() if isinstance(body, str) else body)
    assert told.kind == row["kind"]
    assert told.evidence
    assert told.message


def test_evidence_names_the_field_that_matched() -> None:
    """B40: which test matched on which field."""
    assert (
        answer(429, openai("x", "requests", "rate_limit_exceeded")).evidence
        == "error.code rate_limit_exceeded"
    )
    assert answer(429, {}).evidence == "status 429"
    assert (
        answer(400, anthropic("invalid_request_error", "Prompt is too long")).evidence
        == "status 400, phrase 'prompt is too long'"
    )


def test_a_status_said_again_is_no_code() -> None:
    """llama.cpp and Azure put the status into `code`; the type says more."""
    assert (
        answer(503, {"error": {"code": 503, "type": "unavailable_error"}}).vendor_code == "unavailable_error"
    )
    assert answer(429, {"error": {"code": "429"}}).vendor_code == ""


def test_a_throttled_bedrock_is_told_by_its_header() -> None:
    """Its body has no code."""
    told = answer(400, {"message": "slow"}, {"x-amzn-errortype": "ThrottlingException:http://internal"})
    assert (told.kind, told.vendor_code) == ("rate-limit", "ThrottlingException")


def test_a_conflict_is_worth_another_try_if_the_vendor_says_so() -> None:
    """D.2: 409 when the vendor says retry; else the request is at fault."""
    assert answer(409, {}, {"x-should-retry": "true"}).kind == "server-5xx"
    assert answer(409, {}, {"x-should-retry": "false"}).kind == "bad-request"
    assert answer(409, {}).should_retry is None


def test_the_wait_and_the_id_of_the_request_are_kept() -> None:
    """Both from headers, the id from the body if it stands only there."""
    told = answer(429, anthropic("rate_limit_error", "x"), {"retry-after": "12"})
    assert (told.retry_after_s, told.retry_after_from, told.request_id) == (12.0, "retry-after", "req_1")
    assert answer(500, {}, {"x-request-id": "r-2"}).request_id == "r-2"


def test_geminis_delay_is_found_in_the_details() -> None:
    """google.rpc.RetryInfo in a list that wraps the error."""
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure"}, {"retryDelay": "34s"}]
    assert answer(429, [{"error": {"code": 429, "details": details}}]).retry_after_s == 34.0


def test_rows_of_ones_own_go_ahead() -> None:
    """B41."""
    own = Row("overloaded", codes=("busy",), statuses=(400,))
    body = json.dumps(openai("x", code="Busy")).encode()
    assert refused(400, {}, body, NOW_S, (own,)).kind == "overloaded"
    assert refused(422, {}, body, NOW_S, (own,)).kind == "bad-request"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"code": 502, "message": "upstream"}, "server-5xx"),
        ({"message": "odd"}, "malformed-stream"),
        ("just text", "malformed-stream"),
        (None, "malformed-stream"),
    ],
)
def test_an_error_inside_a_200_is_told_by_its_own_words(error: object, kind: str) -> None:
    """An error object is never an answer; without a known word it is malformed-stream."""
    assert refused_inside(error, {}, NOW_S).kind == kind


def test_a_text_of_the_far_side_cannot_play_with_the_terminal() -> None:
    """Controls, writing direction and length are taken care of before anybody shows it."""
    told = answer(400, openai("\x1b[2J\u202eevil\n\nline " + "x" * 10_000))
    assert told.message.startswith("status 400: [2J evil line xxx")
    assert len(told.message) < 600
    assert told.message.isprintable()


def test_a_huge_body_is_not_decoded() -> None:
    """The status decides."""
    assert answer(500, b'{"error": "' + b"x" * ERROR_BYTES_MAX + b'"}').kind == "server-5xx"


NAMES = st.sampled_from("error code type status message details innererror detail".split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)


@given(st.integers(300, 999), st.binary(max_size=50) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_answer_means_something(status: int, body: bytes) -> None:
    """No body makes the reading of it fail."""
    told = refused(status, {}, body, NOW_S)
    assert told.message.isprintable()
    assert told.fault("s").message
