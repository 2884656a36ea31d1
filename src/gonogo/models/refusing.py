"""An answer that says no, as a row of the gate's taxonomy (reliability-gate.md D.2).

The rows are data, in order of authority: what a vendor's code says, then what a phrase says (only where a vendor
gives nothing else), then the status. Callers may put rows of their own ahead (B41).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from gonogo.models.cleaning import named, shown
from gonogo.models.reply import Kind, NoAnswer
from gonogo.models.retry_after import Wait, retry_after

TAXONOMY_VERSION = 1
ERROR_BYTES_MAX = 1024 * 1024
REPLY_BYTES_MAX = 64 * 1024 * 1024


class Row(Struct, frozen=True, omit_defaults=True):
    """One test: everything that a row names must hold. Codes are lower case; a phrase stands in the message."""

    kind: Kind
    codes: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    phrases: tuple[str, ...] = ()


_CONTEXT_PHRASES = (
    "maximum context length",  # vLLM, DeepSeek
    "prompt is too long",  # Anthropic
    "exceed context limit",  # Anthropic, input and tokens_max together
    "exceeds the available context",  # llama.cpp before it had a type
    "exceeds the context window",
    "input is too long",  # Bedrock
    "too many tokens",  # Cohere
    "token count exceeds",  # Gemini: the input token count exceeds the maximum
    "token count (",  # Gemini: the input token count (…) exceeds
)
ROWS: tuple[Row, ...] = (
    Row(
        "content-filter",
        codes=(
            "content_filter",
            "content_policy_violation",
            "responsibleaipolicyviolation",
            "data_inspection_failed",
            "datainspectionfailed",
            "moderation_blocked",
        ),
    ),
    Row("context-too-long", statuses=(413,)),
    Row(
        "context-too-long",
        codes=(
            "context_length_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            "string_above_max_length",
        ),
    ),
    Row(
        "quota-exhausted",
        codes=(
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
            "insufficient_balance",
            "quota_exceeded",
        ),
    ),
    Row("quota-exhausted", statuses=(402,)),
    Row("quota-exhausted", statuses=(400,), phrases=("credit balance is too low",)),  # Anthropic
    Row(
        "rate-limit",
        codes=(
            "rate_limit_exceeded",
            "rate_limit_error",
            "resource_exhausted",
            "throttlingexception",
            "too_many_requests",
        ),
    ),
    Row(
        "overloaded",
        codes=(
            "overloaded_error",
            "overloaded",
            "engine_overloaded",
            "server_overloaded",
            "unavailable_error",
            "unavailable",
            "service_unavailable",
            "serviceunavailableexception",
            "slow_down",
        ),
    ),
    Row(
        "auth",
        codes=(
            "invalid_api_key",
            "api_key_invalid",  # Gemini, with a 400
            "authentication_error",
            "invalid_authentication",
            "unauthenticated",
        ),
    ),
    Row("permission", codes=("permission_error", "permission_denied", "accessdeniedexception")),
    Row(
        "not-found",
        codes=("model_not_found", "not_found_error", "deploymentnotfound", "not_found", "invalid_model"),
    ),
    Row("context-too-long", statuses=(400, 422, 500), phrases=_CONTEXT_PHRASES),
    Row("content-filter", statuses=(400,), phrases=("content management policy",)),  # Azure
    Row("auth", statuses=(401,)),
    Row("permission", statuses=(403,)),
    Row("not-found", statuses=(404, 410)),
    Row("rate-limit", statuses=(429,)),
    Row("overloaded", statuses=(503, 529)),
    Row("server-5xx", statuses=(408, 425)),
    Row(
        "server-5xx", statuses=(409,), codes=("conflict_error",)
    ),  # Anthropic documents it as worth another try
    Row("bad-request", statuses=tuple(range(400, 500))),
    Row("server-5xx", statuses=tuple(range(500, 600))),
    # Behind the statuses, because vendors use them for nearly everything.
    Row(
        "server-5xx",
        codes=("server_error", "api_error", "internal_server_error", "internal", "timeout_error"),
    ),
    Row("bad-request", codes=("invalid_request_error", "invalid_argument", "badrequesterror")),
)


class Said(Struct, frozen=True, omit_defaults=True):
    """What an error body says: codes from the most to the least exact as (field, code), and the message.

    `status` is one that the body itself names; some gateways send it inside a 200.
    """

    codes: tuple[tuple[str, str], ...] = ()
    message: str = ""
    status: int | None = None
    delay: object = None


def refused(
    status: int, headers: Mapping[str, str], body: bytes, now_s: float, rows: tuple[Row, ...] = ()
) -> NoAnswer:
    """What an answer with a status from 300 on means. `headers` have lower-case names; `rows` go ahead of ours."""
    decoded = decode(body)
    said = said_by(decoded, headers)
    kind, evidence = matched(status, said, (*rows, *ROWS))
    should_retry = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))
    if status == 409 and should_retry:
        kind, evidence = "server-5xx", "status 409, x-should-retry true"
    wait = retry_after(headers, now_s, said.delay)
    return NoAnswer(
        kind=kind,
        message=_message(status, said, body),
        evidence=evidence,
        status=status,
        vendor_code=said.codes[0][1] if said.codes else "",
        request_id=request_id(headers, decoded),
        should_retry=should_retry,
        **_waiting(wait),
    )


def _waiting(wait: Wait) -> dict[str, Any]:
    return {"retry_after_s": wait.seconds, "retry_after_from": wait.from_, "notes": wait.notes}


def body_of(
    status: int, headers: Mapping[str, str], body: bytes, now_s: float, rows: tuple[Row, ...]
) -> dict[str, Any] | NoAnswer:
    """The object that an answer holds, or why it holds none: a status that says no, an error inside a 200, no JSON."""
    if not 200 <= status <= 299:
        return refused(status, headers, body, now_s, rows)
    decoded = decode(body, REPLY_BYTES_MAX)
    if not isinstance(decoded, dict):
        if isinstance(decoded, list) and said_by(decoded, {}).message:
            return refused_inside(decoded, headers, now_s, rows)
        kind: Kind = "not-json" if body.strip() else "empty-response"
        return NoAnswer(kind, f"status {status}: {looks_like(body)}", "the body", status=status)
    return refused_inside(decoded["error"], headers, now_s, rows) if decoded.get("error") else decoded


def refused_inside(
    error: object, headers: Mapping[str, str], now_s: float, rows: tuple[Row, ...] = ()
) -> NoAnswer:
    """What an error object inside a 200, or inside a stream, means."""
    said = said_by(error if isinstance(error, list) else {"error": error}, {})
    status = said.status
    kind, evidence = matched(status, said, (*rows, *ROWS))
    if kind == "unknown":
        kind, evidence = "malformed-stream", "an error object inside a 200"
    wait = retry_after({}, now_s, said.delay)
    return NoAnswer(
        kind=kind,
        message=said.message or "the server reported an error inside its answer",
        evidence=evidence,
        status=status,
        vendor_code=said.codes[0][1] if said.codes else "",
        request_id=request_id(headers, None),
        **_waiting(wait),
    )


def matched(status: int | None, said: Said, rows: tuple[Row, ...]) -> tuple[Kind, str]:
    """The first row that holds, and on what."""
    message = said.message.lower()
    for row in rows:
        evidence = _evidence(row, status, said, message)
        if evidence:
            return row.kind, evidence
    return "unknown", "no row matched"


def _evidence(row: Row, status: int | None, said: Said, message: str) -> str:
    """What a row matched on; empty when it doesn't hold."""
    found: list[str] = []
    if row.codes:
        found += [f"{field} {code}" for field, code in said.codes if code.lower() in row.codes][:1]
    if row.statuses and status in row.statuses:
        found.append(f"status {status}")
    if row.phrases:
        found += [f"phrase '{phrase}'" for phrase in row.phrases if phrase in message][:1]
    wanted = bool(row.codes) + bool(row.statuses) + bool(row.phrases)
    return ", ".join(found) if wanted and len(found) == wanted else ""


def said_by(body: object, headers: Mapping[str, str]) -> Said:
    """An error body in any vendor's form: `{error: {…}}`, `{error: "…"}`, a list of them, or fields at the top."""
    if isinstance(body, list) and body:
        body = body[0]  # Gemini's compatible face wraps its error in a list
    top: Mapping[str, Any] = body if isinstance(body, dict) else {}
    error = top.get("error")
    inner: Mapping[str, Any] = error if isinstance(error, dict) else top
    nested = inner.get("innererror")
    codes = [
        ("innererror.code", nested.get("code") if isinstance(nested, dict) else None),
        ("error.details", _reason_in(inner)),
        ("error.code", inner.get("code")),
        ("error.type", inner.get("type")),
        ("error.status", inner.get("status")),
        ("x-amzn-errortype", headers.get("x-amzn-errortype", "").partition(":")[0]),
    ]
    told = tuple((field, named(code)) for field, code in codes if _is_code(named(code)))
    words = (inner.get("message"), error, top.get("message"), top.get("detail"), top.get("title"))
    message = next((line for line in map(shown, words) if line), "")
    return Said(told, message, _status_in(inner), _delay_in(inner))


def _is_code(code: str) -> bool:
    """Vendors without a code of their own say "error", or the status again."""
    return code not in ("", "error") and not (len(code) == 3 and code.isdecimal())


def _status_in(inner: Mapping[str, Any]) -> int | None:
    for value in (inner.get("code"), inner.get("status")):
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    return None


def _reason_in(inner: Mapping[str, Any]) -> object:
    """`reason` of google.rpc.ErrorInfo, which says more than the status beside it."""
    details = inner.get("details")
    for detail in details[:20] if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(detail.get("reason"), str):
            return detail["reason"]
    return None


def _delay_in(inner: Mapping[str, Any]) -> object:
    """`retryDelay` of google.rpc.RetryInfo."""
    details = inner.get("details")
    for detail in details[:20] if isinstance(details, list) else ():
        if isinstance(detail, dict) and "retryDelay" in detail:
            return detail["retryDelay"]
    return None


def request_id(headers: Mapping[str, str], body: object) -> str:
    """The id to name in a question to the vendor."""
    for name in ("request-id", "x-request-id", "apim-request-id", "x-amzn-requestid", "cf-ray"):
        if headers.get(name):
            return named(headers[name])
    return named(body.get("request_id")) if isinstance(body, dict) else ""


def decode(body: bytes, bytes_max: int = ERROR_BYTES_MAX) -> object:
    """A body as JSON; None when it is none, or too large."""
    if len(body) > bytes_max:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _message(status: int, said: Said, body: bytes) -> str:
    if said.message:
        return f"status {status}: {said.message}"
    return f"status {status}: {looks_like(body)}"


def looks_like(body: bytes) -> str:
    """A body that is no JSON, in a few words."""
    start = body[:200].lstrip().lower()
    if not start:
        return "the body is empty"
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<")):
        return "the body is a page of HTML, not JSON"
    return f"the body says {shown(body[:400].decode('utf-8', 'replace'), 100)!r}"
