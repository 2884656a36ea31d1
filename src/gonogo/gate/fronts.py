"""What a server says over HTTP about a gate call: a status, headers, and a body that tells nothing of the far side.

A client is told what it can act on: whether, and when, the same request may be sent again. Words of targets, URLs and
exceptions stay in the record, which the `Gonogo-Call` header names. Source of statuses: RFC 9110, section 15; RFC 6585.
"""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from gonogo.errors import UsageError
from gonogo.gate.decisions import AttemptStarted, GuardBlocked, RuleDecided
from gonogo.gate.events import Began
from gonogo.gate.failures import (
    BudgetExceeded,
    CircuitOpen,
    DeadlineExceeded,
    GateError,
    Misconfigured,
    PreCheckFailed,
    ValidationStuck,
)
from gonogo.gate.record import CallRecord
from gonogo.gate.taxonomy import ROWS

MAY_HAVE_ACTED = (409, "it changes something and may have done so: look before it is sent again")
WAITS = (503, "a wait was needed that time didn't allow; `Retry-After` says how long")
CROWDED = (503, "too many calls of this server are retries just now")
OF_ERRORS: dict[type[GateError], tuple[int, str]] = {
    PreCheckFailed: (403, "a rule of this server's refuses the request"),
    BudgetExceeded: (429, "what this call or this caller may spend is spent"),
    DeadlineExceeded: (504, "time was up before the far side had answered"),
    CircuitOpen: (503, "every target rests; `Retry-After` says until when"),
    ValidationStuck: (502, "the far side's answers aren't valid"),
    Misconfigured: (500, "this server's policy or step is at fault"),
}
"""Errors that say it themselves. What the others mean depends on how the last attempt failed (`OF_KINDS`)."""
OF_KINDS: dict[str, int] = {
    "bad-request": 422, "content-filter": 422, "refusal": 422, "context-too-long": 413,
    "rate-limit": 503, "overloaded": 503, "quota-exhausted": 503, "circuit-open": 503,
    "timeout-connect": 504, "timeout-first-token": 504, "timeout-idle": 504, "timeout-total": 504, "deadline": 504,
    "budget-exceeded": 429, "side-effect-unsafe": 409,
    # A credential or a name of this server's is wrong there, not the client's here: no 401, 403 or 404.
    "auth": 502, "permission": 502, "not-found": 502,
    "network": 502, "server-5xx": 502, "schema-fail": 502, "empty-response": 502, "truncated-stream": 502,
    "malformed-stream": 502, "length-stop": 502, "cancelled": 502, "inner-gate": 502, "unknown": 502,
}  # fmt: skip
OTHERWISE = 502
"""For errors of no kind that is known: the far side gave nothing that can be handed on."""

_COMES_BACK = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may be sent again."""
_OWN_KINDS = frozenset(
    """
    attempts exhausted fail-fast mid-stream-not-retryable no-response no-target pre-check-failed rule-error
    schema-stuck-loop step-error
    """.split()
)
_PROBLEM = "application/problem+json"
_PLAIN = "-._~/ :@"


class HttpAnswer(Struct, frozen=True):
    """`status`; `headers` to send beside a server's own; `body` of an error (RFC 9457), None where all went well."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any] | None = None


def http_answer(ended: GateError | CallRecord) -> HttpAnswer:
    """What a server should answer for an error, or for the record of a call that went well or is under way (a stream).

    Raises UsageError for the record of a call that failed or was cancelled: that has an error, or nobody to answer.
    """
    if isinstance(ended, GateError):
        return _failed(ended)
    outcome = ended.outcome
    if outcome is not None and outcome.outcome not in ("ok", "partial"):
        raise UsageError(
            f"call {ended.call_id} {outcome.outcome}; it has no answer to send",
            advice="hand over the GateError that it raised",
        )
    return HttpAnswer(200, _headers(ended))


def _failed(error: GateError) -> HttpAnswer:
    status = _status(error)
    headers = {"Content-Type": _PROBLEM, **({} if error.record is None else _headers(error.record))}
    kind = _kind(error)
    body: dict[str, Any] = {"title": HTTPStatus(status).phrase, "status": status, "kind": kind}
    if (wait_s := _wait_s(error)) is not None and status in _COMES_BACK:
        headers["Retry-After"] = str(wait_s)
        body["retry_after_s"] = wait_s
    return HttpAnswer(status, headers, body)


def _status(error: GateError) -> int:
    """The sharpest thing that is true: what may have been done comes before why it failed."""
    if _may_have_acted(error):
        return MAY_HAVE_ACTED[0]
    if isinstance(error, DeadlineExceeded) and _wait_s(error) is not None:
        return WAITS[0]
    if isinstance(error, BudgetExceeded) and _crowded(error.record):
        return CROWDED[0]
    for known, (status, _) in OF_ERRORS.items():
        if isinstance(error, known):
            return status
    if error.kind == "inner-gate" and isinstance(error.__cause__, GateError):
        return _status(error.__cause__)
    if error.kind in OF_KINDS:
        return OF_KINDS[error.kind]
    last = error.attempts[-1].failure if error.attempts else None
    return OTHERWISE if last is None else OF_KINDS.get(last.kind, OTHERWISE)


def _may_have_acted(error: GateError) -> bool:
    began = error.record.events[0] if error.record is not None and error.record.events else None
    return isinstance(began, Began) and began.effects == "mutates" and error.effect != "none"


def _crowded(record: CallRecord | None) -> bool:
    """Whether everybody's retries, and not this call's budget, were in the way: that passes by itself."""
    blocks = [each.guard for each in record.decisions if isinstance(each, GuardBlocked)] if record else []
    return bool(blocks) and blocks[-1] == "share of retries"


def _wait_s(error: GateError) -> int | None:
    """Whole seconds, rounded up."""
    wish_s = error.retry_after_s
    return None if wish_s is None or not math.isfinite(wish_s) else max(0, math.ceil(wish_s))


def _kind(error: GateError) -> str:
    """The kind, if the gate or the policy has named it: a step may have made it of anything."""
    policy = error.record.policy if error.record is not None else None
    rules = () if policy is None else (*policy.before, *policy.after)
    known = error.kind in ROWS or error.kind in _OWN_KINDS or error.kind in {rule.kind for rule in rules}
    return error.kind if known and error.kind else "unknown"


def _headers(record: CallRecord) -> dict[str, str]:
    started = [each for each in record.decisions if isinstance(each, AttemptStarted)]
    ended = record.outcome
    headers = {"Gonogo-Call": quote(record.call_id, _PLAIN), "Gonogo-Attempts": str(len(started))}
    if ended is not None:
        headers["Gonogo-Attempts"] = str(ended.attempts)
    served = ended.target if ended is not None else started[-1].target if started else None
    if served is not None:
        headers["Gonogo-Served"] = quote(served, _PLAIN)
    if ended is not None and ended.outcome == "partial":
        headers["Gonogo-Partial"] = "true"
    headers["Gonogo-Decision"] = f"{headers['Gonogo-Call']}/{_deciding(record)}"
    return headers


def _deciding(record: CallRecord) -> int:
    """The place in `record.decisions` of the one that settled it: a rule's or a guard's, else the last."""
    settling = (RuleDecided, GuardBlocked)
    places = [place for place, each in enumerate(record.decisions) if isinstance(each, settling)]
    return places[-1] if places else max(0, len(record.decisions) - 1)
