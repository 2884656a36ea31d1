"""From what was seen of a failed attempt to its kind. Pure: who looks at exceptions is `observed.py`.

Tests are data and the first that matches wins; a step may bring tests of its own, which come first. None of the
built-in tests reads a text: status, codes, types and finish reasons only. The record says which test matched on which
field (B40).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gonogo.core.faults import Effect


class Signal(Struct, frozen=True, omit_defaults=True):
    """What was seen: class names (most special first, along the chain of causes), status, codes, finish reason.

    `kind` is the step's own word, which settles it. `retry_after_s` is parsed; `note` says what couldn't be.
    """

    types: tuple[str, ...] = ()
    status: int | None = None
    codes: tuple[str, ...] = ()
    finish: str | None = None
    kind: str | None = None
    effect: Effect | None = None
    retry_after_s: float | None = None
    request_id: str | None = None
    message: str = ""
    body_excerpt: str | None = None
    note: str | None = None


class Test(Struct, frozen=True, omit_defaults=True):
    """A kind and what shows it: any of the given things on any of the given fields, all given fields together."""

    __test__ = False  # not one of pytest's

    kind: str
    types: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()
    finishes: frozenset[str] = frozenset()
    effect: Effect | None = None


class Classification(Struct, frozen=True, omit_defaults=True):
    """What a failure is, and why it is taken for that. `effect`: what it proves about the far side, if anything."""

    kind: str
    matched: str
    message: str = ""
    status: int | None = None
    code: str | None = None
    type: str | None = None
    retry_after_s: float | None = None
    request_id: str | None = None
    body_excerpt: str | None = None
    effect: Effect | None = None
    note: str | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TESTS: tuple[Test, ...] = (
    Test("inner-gate", types=_words("GateError")),
    Test(
        "content-filter",
        codes=_words(
            """
            content_filter content_policy_violation ResponsibleAIPolicyViolation data_inspection_failed
            DataInspectionFailed moderation_blocked
            """
        ),
    ),
    Test("content-filter", finishes=_words("content_filter SAFETY RECITATION PROHIBITED_CONTENT")),
    Test("refusal", finishes=_words("refusal")),
    Test("length-stop", finishes=_words("length max_tokens MAX_TOKENS")),
    Test("context-too-long", statuses=frozenset({413})),
    Test(
        "context-too-long",
        codes=_words(
            "context_length_exceeded exceed_context_size_error request_too_large string_above_max_length"
        ),
    ),
    Test(
        "quota-exhausted",
        codes=_words(
            """
            insufficient_quota billing_hard_limit_reached billing_not_active billing_error insufficient_balance
            quota_exceeded credit_exhausted
            """
        ),
    ),
    Test("quota-exhausted", statuses=frozenset({402})),
    Test(
        "rate-limit",
        codes=_words(
            """
            rate_limit_exceeded rate_limit_error secondary_rate_limit RESOURCE_EXHAUSTED ThrottlingException
            too_many_requests
            """
        ),
        effect="none",
    ),
    Test(
        "overloaded",
        codes=_words(
            """
            overloaded_error overloaded engine_overloaded server_overloaded unavailable_error UNAVAILABLE
            service_unavailable ServiceUnavailableException slow_down
            """
        ),
    ),
    Test(
        "auth",
        codes=_words(
            "authentication_error invalid_api_key API_KEY_INVALID invalid_authentication UNAUTHENTICATED"
        ),
    ),
    Test("permission", codes=_words("permission_error PERMISSION_DENIED AccessDeniedException")),
    Test(
        "not-found",
        codes=_words("model_not_found not_found_error DeploymentNotFound NOT_FOUND invalid_model"),
    ),
    Test("rate-limit", statuses=frozenset({429}), effect="none"),
    Test("overloaded", statuses=frozenset({503, 529})),
    Test("server-5xx", statuses=frozenset({408, *range(500, 600)})),
    Test("server-5xx", codes=_words("conflict_error"), statuses=frozenset({409})),
    Test("auth", statuses=frozenset({401})),
    Test("permission", statuses=frozenset({403})),
    Test("not-found", statuses=frozenset({404, 410})),
    Test("bad-request", statuses=frozenset(range(400, 500))),
    # Behind the statuses, because vendors use them for nearly everything.
    Test("server-5xx", codes=_words("server_error api_error internal_error INTERNAL DEADLINE_EXCEEDED")),
    Test("timeout-connect", types=_words("ConnectTimeout PoolTimeout ConnectionTimeoutError"), effect="none"),
    Test("network", types=_words("ConnectionRefusedError gaierror"), effect="none"),
    Test("network", codes=_words("ECONNREFUSED EAI_AGAIN ENOTFOUND EHOSTUNREACH ENETUNREACH"), effect="none"),
    Test("network", codes=_words("ECONNRESET EPIPE ECONNABORTED")),
    Test(
        "timeout-total",
        types=_words("TimeoutError ReadTimeout WriteTimeout TimeoutException"),
        effect="unknown",
    ),
    Test("timeout-total", codes=_words("ETIMEDOUT")),
    Test(
        "network",
        types=_words(
            """
            ConnectionError ConnectError ReadError WriteError RemoteProtocolError SSLError IncompleteReadError
            TransportError
            """
        ),
    ),
)


def classify(signal: Signal, first: Sequence[Test] = ()) -> Classification:
    """The kind of a failure: the step's own word, else the first test that matches, else `unknown`."""
    if signal.kind is not None:
        return _as(signal, signal.kind, "the step says so", None)
    if _limited_403(signal):
        return _as(signal, "rate-limit", "status 403 with a wait", "none")
    for number, test in enumerate((*first, *TESTS)):
        matched = _matches(test, signal)
        if matched is not None:
            return _as(signal, test.kind, f"test {number}: {matched}", test.effect)
    return _as(signal, "unknown", "no test matched", None)


def _as(signal: Signal, kind: str, matched: str, effect: Effect | None) -> Classification:
    return Classification(
        kind,
        matched,
        signal.message,
        signal.status,
        signal.codes[0] if signal.codes else None,
        signal.types[0] if signal.types else None,
        signal.retry_after_s,
        signal.request_id,
        signal.body_excerpt,
        signal.effect or _effect_of(signal) or effect,
        signal.note,
    )


def _effect_of(signal: Signal) -> Effect | None:
    """A 503 that names a time to come back did nothing; neither did a refusal (semantics 16)."""
    if signal.status == 503 and signal.retry_after_s is not None:
        return "none"
    if signal.status is not None and 400 <= signal.status < 500 and signal.status != 408:
        return "none"
    return None


def _limited_403(signal: Signal) -> bool:
    """GitHub's way to say 429: a 403 that tells when to come back."""
    return signal.status == 403 and signal.retry_after_s is not None


def _matches(test: Test, signal: Signal) -> str | None:
    """The field and value that matched; every field that the test names must."""
    found: list[str] = []
    for field, wanted, seen in (
        ("type", test.types, signal.types),
        ("code", test.codes, signal.codes),
        ("finish", test.finishes, () if signal.finish is None else (signal.finish,)),
    ):
        if wanted:
            hit = next((value for value in seen if value in wanted), None)
            if hit is None:
                return None
            found.append(f"{field} {hit}")
    if test.statuses:
        if signal.status not in test.statuses:
            return None
        found.append(f"status {signal.status}")
    return ", ".join(found) or None
