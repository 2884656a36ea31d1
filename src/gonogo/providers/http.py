"""http: tells another system something (a webhook out, spec E.7). Its answer may hold comments, which become issues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gonogo.provider import Call, Context, Done, Failed, Outcome, Provider
from gonogo.providers import _exchange, _http
from gonogo.providers._issues import are_issues, as_issues

DEFAULT_TIMEOUT_S = 30.0
_RULE = "webhook/error"


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of an http step. `body` is text, or an object that is sent as JSON."""

    url: Annotated[str, Meta(min_length=1, description="Where to.")]
    body: Annotated[str | dict[str, Any] | list[Any], Meta(description="Text, or data sent as JSON.")]
    method: Annotated[Literal["POST", "PUT", "PATCH", "DELETE"], Meta(description="How it is sent.")] = "POST"
    headers: Annotated[Mapping[str, str], Meta(description="Headers to send.")] = {}
    allow_private: Annotated[
        bool, Meta(description="Allow addresses of this machine and of private networks.")
    ] = False
    max_response_bytes: Annotated[int, Meta(ge=1, description="Longest answer taken, in bytes.")] = (
        16 * 1024 * 1024
    )


async def run(call: Call, context: Context) -> Outcome:
    """Done on any 2xx; the answer is the output."""
    from gonogo.providers import _calling

    config: Config = call.config
    body = _exchange.body_bytes(config.body)
    request = _http.Request(
        config.method,
        config.url,
        _exchange.headers_for(call, config.method, config.headers, body),
        body,
        from_data=call.from_data("url"),
        allow_private=config.allow_private,
    )
    timeout_s = call.timeout_s or DEFAULT_TIMEOUT_S
    limits = _http.Limits(timeout_s, body_bytes_max=config.max_response_bytes)
    policy = _calling.default_policy(config.url, timeout_s)
    response, gated = await _calling.answered(
        call, context, _RULE, lambda attempt: request, limits, policy, "mutates"
    )
    if isinstance(response, Failed):
        return response
    output = _exchange.read(response)
    comments = output.get("comments") if isinstance(output, dict) else None
    issues = as_issues(comments, "webhook") if comments and are_issues(comments) else ()
    return Done(output, issues, {**_exchange.meta_of(response), **gated})


PROVIDER = Provider(
    name="http",
    config=Config,
    run=run,
    effects="mutates",
    templates=frozenset({"url", "body", "headers"}),
    references=frozenset({"url", "body", "headers"}),
    default_timeout_s=DEFAULT_TIMEOUT_S,
    own_timeout=True,
    gated=True,
    needs_names=False,
    summary="sends something to a URL (a webhook out)",
)
