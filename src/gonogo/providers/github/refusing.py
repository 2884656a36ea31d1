"""What GitHub's answers that say no mean to the gate and to people: its limits, permissions and validation told apart.

Source: GitHub's REST documentation, "Troubleshooting", "Rate limits" and "Permissions required for GitHub Apps"; case
RET-4. A limit told by the body alone is known by the documentation that it points to, or by its sentence.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gonogo.gate.failures import StepFailed
from gonogo.models.cleaning import shown
from gonogo.models.retry_after import retry_after
from gonogo.provider import Effect
from gonogo.providers._http import Problem, Response

RETRY_AFTER_S_MAX = 24 * 3600.0
"""No far side may ask for a longer wait than a day (law 2: every wait is finite)."""
LIMIT_WAIT_S = 60.0
"""GitHub: without a header, wait at least a minute."""
_TOLD_CHARACTERS_MAX = 300
_ERRORS_TOLD_MAX = 5

Meaning = tuple[str | None, str, str]
"""Kind for the gate, kind of the fault, what to do."""


class Refused(StepFailed):
    """One request wasn't answered with yes. `fault_kind` is the fault's, below `github.` unless it has a dot."""

    def __init__(
        self, kind: str | None, message: str, came: Response | Problem, fault_kind: str, **more: Any
    ) -> None:
        super().__init__(kind, message, **more)
        self.came = came
        self.fault_kind = fault_kind


def refused(response: Response, data: Any, need: str, *, wrote: bool) -> Refused:
    """An answer that says no. `need`: the permission that the operation needs, as it stands in a workflow file."""
    wait_s = _limit_wait_s(response, data)
    if wait_s is not None:
        meaning: Meaning = ("rate-limit", "rate_limit", f"GitHub's limit; it asks to wait {wait_s:.0f} s")
    else:
        wait_s = _bounded(retry_after(response.headers, time.time()).seconds)
        meaning = _meaning(response, need)
    kind, fault_kind, advice = meaning
    message = f"GitHub answers {response.status}{_told(data)}"
    return Refused(
        kind,
        f"{message}; {advice}" if advice else message,
        response,
        fault_kind,
        status=response.status,
        effect=_effect(response) if wrote else "none",
        retry_after_s=wait_s,
        request_id=response.headers.get("x-github-request-id"),
    )


def broken(problem: Problem, *, wrote: bool) -> Refused:
    """There was no usable answer. A request that reads leaves nothing."""
    effect: Effect = problem.effect if wrote else "none"
    kind = "bad-request"
    if problem.fault_class == "transient":
        early = problem.kind == "http.timeout" and problem.effect == "none"
        kind = (
            "timeout-connect" if early else "timeout-total" if problem.kind == "http.timeout" else "network"
        )
    return Refused(kind, problem.message, problem, problem.kind, effect=effect)


def unreadable(what: str, *, wrote: bool) -> Refused:
    """A yes that isn't what it should be."""
    message = f"GitHub's answer {what}; is api_url the API of a GitHub?"
    effect: Effect = "done" if wrote else "none"
    return Refused(
        "bad-request", message, Problem("unreadable", message, "logical", effect), "unreadable", effect=effect
    )


def _meaning(response: Response, need: str) -> Meaning:
    """What isn't there says nothing of the server (bad-request)."""
    accepted = response.headers.get("x-accepted-github-permissions")
    wanted = (
        f"it has to have {shown(accepted, 200)}"
        if accepted
        else f"it needs `permissions: {need}` in the job's YAML"
    )
    match response.status:
        case 401:
            return "auth", "auth", "the token isn't valid or has expired: look at GITHUB_TOKEN"
        case 403:
            forks = "that of a pull request from a fork only reads"
            return "permission", "permission", f"the token may not do this ({forks}): {wanted}"
        case 404:
            return "bad-request", "not_found", f"it isn't there, or the token may not see it ({wanted})"
        case 410:
            return "bad-request", "not_found", "it was deleted, or is turned off in this repository"
        case 422 | 400:
            return "bad-request", "invalid", "the request is wrong: look at the step's values"
        case 408 | 425:
            return "server-5xx", "status", ""
        case status if status >= 500:
            return None, "status", ""
        case _:
            return "bad-request", "status", ""


def _limit_wait_s(response: Response, data: Any) -> float | None:
    """Seconds until it may be asked again; None when no limit was hit. Primary: nothing remains. Secondary: a wait, or
    a body that says so.
    """
    if response.status not in (403, 429):
        return None
    headers = response.headers
    limited = (
        response.status == 429 or "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    )
    if not (limited or _speaks_of_limits(data)):
        return None
    wait_s = _bounded(retry_after(headers, time.time()).seconds)
    return LIMIT_WAIT_S if wait_s is None else wait_s


def _speaks_of_limits(data: Any) -> bool:
    if not isinstance(data, Mapping):
        return False
    link, message = str(data.get("documentation_url", "")), str(data.get("message", ""))
    return "rate-limit" in link or "rate limit" in message[:500].lower()


def _bounded(wait_s: float | None) -> float | None:
    return None if wait_s is None else min(wait_s, RETRY_AFTER_S_MAX)


def _effect(response: Response) -> Effect:
    """A refusal did nothing; so did a 503 that names a time to come back."""
    if 400 <= response.status < 500 and response.status != 408:
        return "none"
    return "none" if response.status == 503 and "retry-after" in response.headers else "unknown"


def _told(data: Any) -> str:
    """GitHub's own words, cut and without anything that a terminal would obey."""
    if not isinstance(data, Mapping):
        return ""
    errors = data.get("errors")
    told = [str(data.get("message", ""))]
    told += [_error(one) for one in errors[:_ERRORS_TOLD_MAX]] if isinstance(errors, list) else []
    text = shown(": ".join(filter(None, (told[0], ", ".join(filter(None, told[1:]))))), _TOLD_CHARACTERS_MAX)
    return f" ({text})" if text else ""


def _error(error: Any) -> str:
    if not isinstance(error, Mapping):
        return str(error)
    place = ".".join(str(error[key]) for key in ("resource", "field") if key in error)
    return " ".join(filter(None, (place, str(error.get("message") or error.get("code") or ""))))
