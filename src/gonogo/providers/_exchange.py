"""What http_client and http have in common: a body to send, a call through the gate, an answer to read, and what a
failure means (spec C.6, E.6).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from email.message import Message
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from gonogo.core.faults import FaultClass
from gonogo.gate.failures import GateError, StepFailed
from gonogo.gate.policy import Bounds, Policy, Target, Timers
from gonogo.gate.step import Attempt, Step
from gonogo.models.retry_after import retry_after
from gonogo.provider import Call, Context, Effect, Effects, Failed
from gonogo.providers import _gated
from gonogo.providers._faults import fault
from gonogo.providers._http import Limits, Problem, Request, Response, send
from gonogo.providers._output import read_json

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
RETRY_AFTER_S_MAX = 24 * 3600.0
"""No far side may ask for a longer wait than a day (law 2: every wait is finite)."""
LEAD_S = 0.02
"""How much sooner than its gate an exchange ends by itself."""
_TRANSIENT = frozenset({408, 425, 429})
_KINDS = MappingProxyType(
    {401: "permission", 404: "bad-request", 410: "bad-request", 413: "bad-request", 425: "server-5xx"}
)
"""Statuses that say something of this request where they would say it of a model or an account: no breaker takes a
whole server out because a page isn't there. Too early (425) is worth another try.
"""
_JSON_TYPE = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)


def body_bytes(body: Any) -> bytes | None:
    """Text as UTF-8, anything else as JSON."""
    if body is None:
        return None
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")


def headers_for(call: Call, method: str, given: Mapping[str, str], body: bytes | None) -> dict[str, str]:
    """The step's headers, a JSON content type for a body without one, and the call's key on calls that
    change things.
    """
    headers = dict(given)
    lower = {name.lower() for name in headers}
    if body is not None and "content-type" not in lower:
        headers["Content-Type"] = "application/json"
    if method not in SAFE_METHODS and "idempotency-key" not in lower:
        headers["Idempotency-Key"] = call.key
    return headers


def read(response: Response) -> Any:
    """JSON when the content type says so or the text looks like it (and it is), else the text."""
    content_type = response.headers.get("content-type", "")
    text = _decoded(response.body, content_type)
    if _JSON_TYPE.match(content_type) or text.lstrip()[:1] in ("{", "["):
        try:
            return read_json(text)
        except ValueError:
            return text
    return text


def meta_of(response: Response) -> dict[str, Any]:
    """`output_meta` of an exchange."""
    return {"status": response.status, "headers": dict(response.headers)}


def default_policy(url: str, timeout_s: float) -> Policy:
    """One attempt, as long as the step allows; what a step's own policy doesn't name is called by its origin."""
    origin = origin_of(url)
    return Policy(
        targets=(Target(origin, endpoint=origin),),
        bounds=Bounds(attempts_per_target=1, attempts_max=1, deadline_s=timeout_s),
        timers=Timers(attempt_s=timeout_s),
        breaker=None,
    )


def origin_of(url: str) -> str:
    """Scheme, host and port, without anything that may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


Make = Callable[[Attempt], Request]
"""The request of an attempt."""


class Refusal(StepFailed):
    """There was no usable answer, or it says no."""

    def __init__(self, kind: str | None, message: str, came: Response | Problem, **more: Any) -> None:
        super().__init__(kind, message, **more)
        self.came = came


async def answered(
    call: Call,
    context: Context,
    rule: str,
    make: Make,
    limits: Limits,
    policy: Policy,
    effects: Effects,
    pace: Callable[[], Awaitable[None]] | None = None,
) -> tuple[Response | Failed, dict[str, Any]]:
    """The answer when it says yes (only 200 to 299 does, spec E.6 rule 2), and the gate's part of its meta.

    `policy` is for steps that say nothing; its targets for those that name none. `pace` waits for a request's turn.
    """

    async def invoke(attempt: Attempt) -> Response:
        if pace is not None:
            await pace()
        return await _once(make(attempt), attempt, limits)

    step = Step(call.step, invoke, effects=effects, key=call.key)
    try:
        answer = await context.gate(policy).answer(step)
    except GateError as error:
        return _given_up(call, rule, error, limits), {}
    response: Response = answer.value
    return response, _gated.meta_of(answer.record)


async def _once(request: Request, attempt: Attempt, limits: Limits) -> Response:
    """One request. Its own limit comes just before the gate's, so that it says how far it got. Raises Refusal."""
    within = replace(
        limits,
        total_s=min(limits.total_s, max(attempt.timeout_s - LEAD_S, attempt.timeout_s / 2)),
        connect_s=min(limits.connect_s, attempt.connect_s),
    )
    response = await send(request, within)
    if isinstance(response, Problem):
        raise Refusal(_kind_of(response), response.message, response, effect=response.effect)
    if not 200 <= response.status <= 299:
        wait = retry_after(response.headers, time.time())
        raise Refusal(
            _KINDS.get(response.status, None if response.status >= 400 else "bad-request"),
            f"the answer has status {response.status}",
            response,
            status=response.status,
            effect=_effect_of(response),
            retry_after_s=wait.seconds,
        )
    return response


def _kind_of(problem: Problem) -> str:
    """What a problem is to the gate (gate/taxonomy.py)."""
    if problem.fault_class != "transient":
        return "bad-request"
    if problem.kind == "http.timeout":
        return "timeout-connect" if problem.effect == "none" else "timeout-total"
    if problem.kind == "http.encoding":
        return "malformed-stream"
    return "truncated-stream" if problem.effect == "done" else "network"


def _given_up(call: Call, rule: str, error: GateError, limits: Limits) -> Failed:
    """What the last answer said, with what the gate adds; else what the gate itself says."""
    cause = error.__cause__
    if not isinstance(cause, Refusal):
        return _stopped(call, rule, error, limits)
    came = cause.came
    failed = _failed(call, rule, came) if isinstance(came, Problem) else _failed_status(call, rule, came)
    more = _more(error, cause)
    return replace(
        failed,
        fault=replace(failed.fault, message=failed.fault.message + more),
        meta={**failed.meta, **_gated.meta_of_error(error)},
        effect=error.effect,
    )


def _more(error: GateError, cause: Refusal) -> str:
    """How often it was tried, and why not again; nothing where once was all there was to be."""
    if error.record is not None and error.record.policy.bounds.attempts_max == 1:
        return ""
    attempts = len(error.attempts)
    told = f" after {attempts} attempts" if attempts > 1 else ""
    last = error.attempts[-1].failure if error.attempts else None
    own = error.label or (error.kind if last is None or error.kind != last.kind else "")
    return f"{told}; given up: {own}" if own else told


def _stopped(call: Call, rule: str, error: GateError, limits: Limits) -> Failed:
    """The gate ended it: out of time, out of budget, by a breaker."""
    failed = _gated.failed(call, rule, error)
    if error.kind in ("deadline", "timeout-total") and error.attempts:
        late = replace(failed.fault, kind="http.timeout", fault_class="transient")
        return replace(failed, fault=late)
    return failed


def _failed(call: Call, rule: str, problem: Problem) -> Failed:
    """There was no usable answer."""
    of_call = fault(call, problem.kind, rule, problem.message, fault_class=problem.fault_class)
    return Failed(of_call, output={"error": True, "message": problem.message}, effect=problem.effect)


def _failed_status(call: Call, rule: str, response: Response) -> Failed:
    """The answer says no."""
    message = f"the answer has status {response.status}"
    of_call = fault(
        call,
        "http.status",
        rule,
        message,
        fault_class=_class_of(response.status),
        cause=str(response.status),
        retry_after_s=_wait_s(response),
    )
    output = {"error": True, "status": response.status, "message": message, "body": read(response)}
    return Failed(of_call, output=output, meta=meta_of(response), effect=_effect_of(response))


def _wait_s(response: Response) -> float | None:
    """Seconds from now until it wants to be asked again."""
    seconds = retry_after(response.headers, time.time()).seconds
    return None if seconds is None else min(seconds, RETRY_AFTER_S_MAX)


def _class_of(status: int) -> FaultClass:
    return "transient" if status in _TRANSIENT or status >= 500 else "logical"


def _effect_of(response: Response) -> Effect:
    """A refusal did nothing; so did a 503 that names a time to come back. Else the far side may have begun."""
    if 400 <= response.status < 500 and response.status != 408:
        return "none"
    if response.status == 503 and "retry-after" in response.headers:
        return "none"
    return "unknown"


def _decoded(body: bytes, content_type: str) -> str:
    header = Message()
    header["content-type"] = content_type.replace("\r", " ").replace("\n", " ")
    charset = header.get_content_charset() or "utf-8"
    try:
        return body.decode(charset, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")
