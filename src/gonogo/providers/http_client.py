"""http_client: fetches from or sends to a URL; the answer is the output or a file (spec E.6)."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode

import anyio
from msgspec import Meta, Struct
from msgspec.structs import replace

from gonogo.provider import Call, Context, Done, Effects, Failed, Outcome, Provider
from gonogo.providers import _exchange, _http
from gonogo.providers._auth import Auth, RateLimit, with_auth
from gonogo.providers._faults import fault
from gonogo.providers._transform import TransformProblem, transform

if TYPE_CHECKING:
    from gonogo.gate.step import Attempt

DEFAULT_TIMEOUT_S = 30.0
_RULE = "http_client/fetch_error"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w-]*)\}")
_URL_FIELDS = ("url", "base_url", "path", "params", "query")


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of an http_client step. `url`, or `base_url` with `path`; `{name}` in it comes from `params`."""

    url: Annotated[str | None, Meta(description="Where to; or base_url with path.")] = None
    base_url: Annotated[str | None, Meta(description="Beginning of the address.")] = None
    path: Annotated[str, Meta(description="Rest of the address; {name} comes from params.")] = ""
    params: Annotated[
        Mapping[str, str | int | float | bool], Meta(description="Values for {name} in path, escaped.")
    ] = {}
    query: Annotated[
        Mapping[str, str | int | float | bool | None],
        Meta(description="Query of the address, escaped; null leaves a key out."),
    ] = {}
    method: Annotated[
        str, Meta(pattern="^[A-Za-z]{1,20}$", description="GET and HEAD read; all others mutate.")
    ] = "GET"
    headers: Annotated[Mapping[str, str], Meta(description="Headers to send.")] = {}
    body: Annotated[
        str | dict[str, Any] | list[Any] | None, Meta(description="Text, or data sent as JSON.")
    ] = None
    auth: Annotated[
        Auth | None, Meta(description="What lets it in: {type: bearer, token: …}, basic or header.")
    ] = None
    rate_limit: Annotated[
        RateLimit | None,
        Meta(
            description="So many requests in a time: {requests: 10, per: second}; limited ones are repeated."
        ),
    ] = None
    transform: Annotated[str | None, Meta(description="Template that makes the output from `response`.")] = (
        None
    )
    transform_js: Annotated[
        str | None, Meta(description="JavaScript that makes the output from the response.")
    ] = None
    output_file: Annotated[str | None, Meta(description="File to write the answer to.")] = None
    skip_if_exists: Annotated[bool, Meta(description="Call nothing when output_file is there.")] = True
    allow_private: Annotated[
        bool, Meta(description="Allow addresses of this machine and of private networks.")
    ] = False
    max_response_bytes: Annotated[int, Meta(ge=1, description="Longest answer taken, in bytes.")] = (
        16 * 1024 * 1024
    )

    def __post_init__(self) -> None:
        """One place to go to."""
        if not (self.url or self.base_url):
            raise ValueError("http_client needs a `url`, or a `base_url` with a `path`")
        if self.url and self.base_url:
            raise ValueError("give `url`, or `base_url` with `path`, not both")


class _Refused(Exception):  # noqa: N818 - the name says what happened
    """The step asks for something that can't or mustn't be done. `kind` is the fault's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def effects(config: Config) -> Effects:
    """Anything but a read changes something; so does writing a file (spec C.8)."""
    return (
        "reads" if config.method.upper() in _exchange.SAFE_METHODS and not config.output_file else "mutates"
    )


async def run(call: Call, context: Context) -> Outcome:
    """Done on any 2xx, with the answer, or the file it was written to, as output."""
    config: Config = call.config
    try:
        file = _file(config, context)
        if file is not None and config.skip_if_exists and (cached := _cached(file)):
            return Done(cached, effect="none")
        request = _request(call)
    except _Refused as refused:
        return Failed(fault(call, refused.kind, _RULE, str(refused)))
    response, gated = await _answered(call, context, request)
    if isinstance(response, Failed):
        return response
    meta = {**_exchange.meta_of(response), **gated}
    if file is not None:
        return await _written(call, file, response, meta)
    return await _read(call, context, response, meta)


async def _answered(
    call: Call, context: Context, request: _http.Request
) -> tuple[_http.Response | Failed, dict[str, Any]]:
    from gonogo.providers import _calling

    config: Config = call.config
    timeout_s = call.timeout_s or DEFAULT_TIMEOUT_S
    limits = _http.Limits(timeout_s, body_bytes_max=config.max_response_bytes)
    policy = _calling.default_policy(request.url, timeout_s)
    limit = config.rate_limit
    pace = None
    if limit is not None:
        policy = limit.policy(policy)
        key = limit.key or _calling.origin_of(request.url)
        pace = partial(context.pace, key, limit.requests, limit.per_s)
    # The file is written once, whatever the gate does; only the request counts.
    effects: Effects = "reads" if request.method in _exchange.SAFE_METHODS else "mutates"

    def make(attempt: Attempt) -> _http.Request:
        endpoint = attempt.target.endpoint
        if config.base_url is None or not endpoint or request.url.startswith(endpoint):
            return request
        # A policy is written in the workflow, so what it names comes from no data; the rest of the URL may.
        return replace(request, url=_url(config, endpoint))

    return await _calling.answered(call, context, _RULE, make, limits, policy, effects, pace)


async def _read(call: Call, context: Context, response: _http.Response, meta: dict[str, Any]) -> Outcome:
    done = Done(_exchange.read(response), meta=meta)
    try:
        transformed = await transform(call, context, done.output, key="response")
    except TransformProblem as problem:
        of_call = fault(call, "http.transform", f"http_client/{problem.stage}_error", problem.message)
        return Failed(of_call, meta=done.meta, effect="done")
    output = transformed.value
    content = output if isinstance(output, str) else None
    return replace(done, output=output, memory=transformed.memory, content=content)


async def _written(call: Call, file: str, response: _http.Response, meta: dict[str, Any]) -> Outcome:
    try:
        await anyio.to_thread.run_sync(_write, file, response.body)
    except OSError as problem:
        message = f"the answer can't be written to {file}: {(problem.strerror or str(problem)).lower()}"
        return Failed(fault(call, "http.file", "http_client/download_error", message), effect="done")
    output = {
        "file_path": file,
        "size": len(response.body),
        "content_type": response.headers.get("content-type"),
    }
    return Done(output, meta=meta)


def _cached(file: str) -> dict[str, Any] | None:
    if not os.path.isfile(file):
        return None
    return {"file_path": file, "size": os.path.getsize(file), "cached": True}


def _write(file: str, body: bytes) -> None:
    """Whole or not at all: others see the old file until the new one is complete."""
    os.makedirs(os.path.dirname(file), exist_ok=True)
    unfinished = f"{file}.{secrets.token_hex(4)}.part"
    try:
        with open(unfinished, "xb") as target:
            target.write(body)
        os.replace(unfinished, file)
    except OSError:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise


def _file(config: Config, context: Context) -> str | None:
    """Where the answer goes, links resolved; only inside the working directory."""
    if config.output_file is None:
        return None
    root = os.path.realpath(context.working_directory)
    try:
        file = os.path.realpath(os.path.join(root, config.output_file))
    except ValueError as problem:  # a NUL byte
        raise _Refused("http.file", f"output_file is no path: {problem}") from problem
    if not file.startswith(root.rstrip(os.sep) + os.sep):
        raise _Refused("http.file", "output_file leads outside the working directory; name a path inside it")
    return file


def _request(call: Call) -> _http.Request:
    config: Config = call.config
    if config.auth is not None and config.auth.unset():
        raise _Refused(
            "http.auth", "`auth` names a variable that isn't set; set it in the environment of the run"
        )
    method = config.method.upper()
    body = None if method in ("GET", "HEAD") else _exchange.body_bytes(config.body)
    return _http.Request(
        method,
        _url(config),
        _exchange.headers_for(call, method, with_auth(config.headers, config.auth), body),
        body,
        from_data=call.from_data(*_URL_FIELDS),
        allow_private=config.allow_private,
    )


def _url(config: Config, base_url: str | None = None) -> str:
    """Where to; `base_url` in place of the config's own."""
    if config.url is not None:
        whole = config.url
    else:
        base_url = base_url or config.base_url
        assert base_url is not None
        whole = base_url.rstrip("/") + ("/" + config.path.lstrip("/") if config.path else "")
    whole = _PLACEHOLDER.sub(lambda found: _parameter(found[1], config), whole)
    query = urlencode({name: _text(value) for name, value in config.query.items() if value is not None})
    if not query:
        return whole
    address, _, fragment = whole.partition("#")
    joined = f"{address}{'&' if '?' in address else '?'}{query}"
    return f"{joined}#{fragment}" if fragment else joined


def _parameter(name: str, config: Config) -> str:
    if name not in config.params:
        raise _Refused("http.request", f"the URL has a place '{{{name}}}', but `params` doesn't hold it")
    text = _text(config.params[name])
    if text in (".", "..", ""):
        raise _Refused("http.request", f"params.{name} is '{text}', which would lead elsewhere")
    return quote(text, safe="")


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


PROVIDER = Provider(
    name="http_client",
    config=Config,
    run=run,
    effects=effects,
    templates=frozenset({*_URL_FIELDS, "headers", "body", "output_file"}),
    late_templates=frozenset({"transform"}),
    references=frozenset({*_URL_FIELDS, "headers", "body", "auth"}),
    secrets=frozenset({"auth.token", "auth.password", "auth.value"}),
    expressions={"transform_js": "value"},
    default_timeout_s=DEFAULT_TIMEOUT_S,
    own_timeout=True,
    gated=True,
    summary="fetches from or sends to a URL",
)
