"""github: labels, comments, reviews, checks and statuses of a pull request or issue, and what can be read of them (spec
E.8).

Every request goes through the gate. What a step makes under a key it makes once, whatever breaks on the way and however
often it runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import anyio

from gonogo.errors import ConfigError
from gonogo.gate.failures import GateError
from gonogo.provider import Call, Context, Done, Effect, Failed, Outcome, Provider
from gonogo.providers import _gated
from gonogo.providers._faults import fault
from gonogo.providers._http import Response
from gonogo.providers.github import checks, comments, labels, reads
from gonogo.providers.github.client import DEFAULT_TIMEOUT_S, Client
from gonogo.providers.github.config import READS, Config, effects
from gonogo.providers.github.given import Unfit
from gonogo.providers.github.place import Missing, place_of
from gonogo.providers.github.refusing import Refused

RULE = "github/op_failed"
_GRACE_S = 0.5
"""The gate ends a request in time; what lies between requests ends here."""
_TEXTS = frozenset(
    "number sha value values body comment_id comments check_id name conclusion title summary text annotations state"
    " context description details_url user query".split()
)

Write = Callable[[Call, Context, Client], Awaitable[dict[str, Any]]]
Read = Callable[[Call, Context, Client], Awaitable[reads.Found]]

_WRITES: Mapping[str, tuple[Write, str]] = MappingProxyType(
    {
        "labels.add": (labels.add, "issues: write or pull-requests: write"),
        "labels.remove": (labels.remove, "issues: write or pull-requests: write"),
        "comment.create": (comments.create, "issues: write or pull-requests: write"),
        "comment.update": (comments.update, "issues: write or pull-requests: write"),
        "review.create": (comments.review, "pull-requests: write"),
        "checks.create": (checks.create, "checks: write"),
        "checks.update": (checks.update, "checks: write"),
        "status.create": (checks.status, "statuses: write"),
    }
)
"""What each operation does, and the permission that it needs."""
_READS: Mapping[str, tuple[Read, str]] = MappingProxyType(
    {
        "issues.list": (reads.issues, "issues: read"),
        "pr.get": (reads.pull, "pull-requests: read"),
        "pr.files": (reads.files, "pull-requests: read"),
        "comments.list": (reads.comments, "issues: read or pull-requests: read"),
        "permissions": (reads.permission, "metadata: read"),
    }
)


async def run(call: Call, context: Context) -> Outcome:
    """Done with what was made or found; every other end is a fault with its kind."""
    config: Config = call.config
    need = _READS[config.op][1] if config.op in READS else _WRITES[config.op][1]
    try:
        client = Client(call, context, place_of(call), need)
    except Missing as problem:
        return _missing(call, problem)
    except ConfigError as problem:
        return Failed(fault(call, "github.policy", "github/policy", str(problem)))
    limit_s = None if call.timeout_s is None else call.timeout_s + _GRACE_S
    with anyio.move_on_after(limit_s):
        return await _ended(call, context, client)
    message = f"{config.op} wasn't done within {call.timeout_s:g} s"
    of_call = fault(call, "github.timeout", RULE, message, fault_class="transient")
    return Failed(of_call, meta=_meta(client), effect=_effect(client, "none"))


async def _ended(call: Call, context: Context, client: Client) -> Outcome:
    op = call.config.op
    try:
        if op in READS:
            output, more = await _READS[op][0](call, context, client)
            return Done(output, meta={**_meta(client), **more}, effect="none")
        written = await _WRITES[op][0](call, context, client)
    except GateError as error:
        return _gave_up(call, client, error)
    except Unfit as problem:
        return Failed(fault(call, f"github.{problem.kind}", RULE, str(problem)), meta=_meta(client))
    except Missing as problem:
        return _missing(call, problem)
    content = written.get("body")
    return Done(written, meta=_meta(client), content=content)


def _missing(call: Call, problem: Missing) -> Failed:
    return Failed(fault(call, f"github.{problem.kind}", f"github/{problem.rule}", str(problem)))


def _gave_up(call: Call, client: Client, error: GateError) -> Failed:
    """What GitHub said last, with what the gate adds; else what the gate itself says."""
    cause = error.__cause__
    effect = _effect(client, error.effect)
    if not isinstance(cause, Refused):
        failed = _gated.failed(call, RULE, error)
        return Failed(failed.fault, output=failed.output, meta=_meta(client), effect=effect)
    tried = f" (after {len(error.attempts)} attempts)" if len(error.attempts) > 1 else ""
    message = f"{call.config.op}: {cause}{tried}"
    of_call = fault(
        call,
        cause.fault_kind if "." in cause.fault_kind else f"github.{cause.fault_kind}",
        RULE,
        message,
        fault_class=_gated.fault_class(error),
        cause=None if cause.status is None else str(cause.status),
        retry_after_s=cause.retry_after_s if error.retry_after_s is None else error.retry_after_s,
    )
    status = cause.came.status if isinstance(cause.came, Response) else None
    output = {"error": True, "status": status, "message": str(cause)}
    return Failed(of_call, output=output, meta=_meta(client), effect=effect)


def _effect(client: Client, last: Effect) -> Effect:
    """Over all requests of the call: one that may have been done makes all of it unknown."""
    if client.writing or last == "unknown":
        return "unknown"
    return "done" if client.wrote else last


def _meta(client: Client) -> dict[str, Any]:
    """`gate`: the requests' record; `rate_limit`: what GitHub says is left."""
    found = _gated.joined(client.records)
    return {**found, "rate_limit": client.observed} if client.observed else found


PROVIDER = Provider(
    name="github",
    config=Config,
    run=run,
    effects=effects,
    templates=_TEXTS,
    references=frozenset({"owner", "repo", "token", "api_url"}),
    secrets=frozenset({"token"}),
    expressions={"value_js": "value"},
    default_timeout_s=DEFAULT_TIMEOUT_S,
    own_timeout=True,
    gated=True,
    handles="shown",
    summary="acts on a pull request or issue at GitHub, or reads it",
)
