"""The call that http_client and http make: one request an attempt, through the gate, and its end as their outcome.

Imported when a call is made: a file with such a step is read without the gate.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from gonogo.gate.failures import GateError, StepFailed
from gonogo.gate.policy import Bounds, Policy, Target, Timers
from gonogo.gate.step import Attempt, Step
from gonogo.provider import Call, Context, Effects, Failed
from gonogo.providers import _exchange, _gated
from gonogo.providers._http import Limits, Problem, Request, Response, send

LEAD_S = 0.02
"""How much sooner than its gate an exchange ends by itself."""
_KINDS = MappingProxyType(
    {401: "permission", 404: "bad-request", 410: "bad-request", 413: "bad-request", 425: "server-5xx"}
)
"""Statuses that say something of this request where they would say it of a model or an account: no breaker takes a
whole server out because a page isn't there. Too early (425) is worth another try.
"""


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
        raise Refusal(
            _KINDS.get(response.status, None if response.status >= 400 else "bad-request"),
            f"the answer has status {response.status}",
            response,
            status=response.status,
            effect=_exchange.effect_of(response),
            retry_after_s=_exchange.asked_s(response),
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
    failed = (
        _exchange.failed(call, rule, came)
        if isinstance(came, Problem)
        else _exchange.failed_status(call, rule, came)
    )
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
