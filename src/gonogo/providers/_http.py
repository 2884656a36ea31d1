"""The one place that opens outbound HTTP: one exchange, nothing tried again, redirects followed by hand.

An answer is kept whole, or handed on as it comes (`Take`). It knows addresses, limits and what a failure means for
the far side; not steps, outputs or JSON. Proxies of the environment aren't used. Each hop connects to an address that
has been looked up and checked before (`_addresses.py`).
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from gonogo.core.faults import FaultClass
from gonogo.provider import Effect
from gonogo.providers._addresses import is_public, resolve

if TYPE_CHECKING:
    import httpx2

ADDRESSES_TRIED_MAX = 4
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEPT_ACROSS_ORIGINS = frozenset(
    {"accept", "accept-language", "user-agent", "content-type", "accept-encoding"}
)
_USER_AGENT = "gonogo"
_ANY_HEADER = zlib.MAX_WBITS | 32
"""zlib or gzip, as the first bytes say (zlib's inflateInit2)."""


class Request(Struct, frozen=True):
    """What to send. `from_data`: data had a hand in the URL, so private addresses need `allow_private`."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    from_data: bool = True
    allow_private: bool = False


class Limits(Struct, frozen=True):
    """Times in seconds, over all hops; the size is that of the decoded body."""

    total_s: float = 30.0
    connect_s: float = 10.0
    body_bytes_max: int = 16 * 1024 * 1024
    redirects_max: int = 5


class Response(Struct, frozen=True):
    """What came back, whatever the status. Header names are lower case; cookies aren't kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


class Problem(Struct, frozen=True):
    """Why there is no response, and what the far side may have done by then."""

    kind: str
    message: str
    fault_class: FaultClass = "transient"
    effect: Effect = "none"


Take = Callable[[Mapping[str, str], bytes], bool]
"""Gets the next bytes of a 2xx's body, decoded, with its headers (names in lower case); False: that was enough."""


class _Stop(Exception):  # noqa: N818 - the name says what happened
    """Carries a problem out of a hop."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Progress(Struct):
    """How far the exchange has come. `sent`: some bytes of a request have left. `hops`: requests before this one.

    `take` gets the body of a 2xx, which then isn't kept.
    """

    sent: bool = False
    hops: int = 0
    take: Take | None = None

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by the transport at each of its steps."""
        if event == "http11.send_request_headers.started":
            self.sent = True

    @property
    def effect(self) -> Effect:
        """What a break at this moment leaves."""
        return "unknown" if self.sent else "none"


async def send(request: Request, limits: Limits, take: Take | None = None) -> Response | Problem:
    """One exchange with its redirects. Raises nothing that the network or the far side can cause.

    With `take` the body of a 2xx is handed on as it comes, and the response's own body is empty. The limits hold for
    it, too; a timeout while it comes is a Problem.
    """
    progress = _Progress(take=take)
    try:
        with anyio.fail_after(limits.total_s):
            return await _follow(request, limits, progress)
    except TimeoutError:
        message = f"no answer from {_shown(request.url)} within {limits.total_s:g} s"
        return Problem("http.timeout", message, effect=progress.effect)
    except _Stop as stop:
        # An earlier hop was answered, so something may have been done there.
        return replace(stop.problem, effect="unknown") if progress.hops else stop.problem


async def _follow(request: Request, limits: Limits, progress: _Progress) -> Response:
    for _ in range(limits.redirects_max + 1):
        response = await _hop(request, limits, progress)
        location = response.headers.get("location")
        if response.status not in _REDIRECTS or not location:
            return response
        request = _redirected(request, response.status, location)
        progress.hops += 1
    message = f"more than {limits.redirects_max} redirects, the last to {_shown(request.url)}"
    raise _Stop(Problem("http.redirect", message, "logical", progress.effect))


def _redirected(request: Request, status: int, location: str) -> Request:
    """The next hop. What another origin gets: no credentials, no body, no header that could be either."""
    import httpx2

    old = _parsed(request.url)
    try:
        new = old.join(location)
    except (httpx2.InvalidURL, ValueError) as problem:
        raise _Stop(_bad_request(f"{_shown(request.url)} redirects to something that is no URL")) from problem
    same_origin = _origin(old) == _origin(new)
    becomes_get = (status == 303 and request.method != "HEAD") or (
        status in (301, 302) and request.method == "POST"
    )
    if request.body is not None and not becomes_get and not same_origin:
        message = f"{_shown(request.url)} redirects a request with a body to {_shown(str(new))}; name that URL instead"
        raise _Stop(Problem("http.redirect", message, "logical", "unknown"))
    return replace(
        request,
        url=str(new),
        method="GET" if becomes_get else request.method,
        body=None if becomes_get else request.body,
        headers=_kept(request.headers, same_origin=same_origin, body=not becomes_get),
        from_data=request.from_data or not same_origin,
    )


def _kept(headers: Mapping[str, str], *, same_origin: bool, body: bool) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if (same_origin or name.lower() in _KEPT_ACROSS_ORIGINS)
        and (body or name.lower() not in ("content-type", "idempotency-key"))
    }


async def _hop(request: Request, limits: Limits, progress: _Progress) -> Response:
    url = _parsed(request.url)
    addresses = await _addresses(request, url)
    *earlier, last = addresses
    for address in earlier[: ADDRESSES_TRIED_MAX - 1]:
        try:
            return await _exchange(request, url, address, limits, progress)
        except _Stop as stop:
            if stop.problem.effect != "none" or stop.problem.fault_class != "transient":
                raise
    return await _exchange(request, url, last, limits, progress)


async def _addresses(request: Request, url: httpx2.URL) -> tuple[str, ...]:
    """Looked-up addresses that may be connected to; one that may not refuses the URL, whatever the others are."""
    try:
        addresses = await resolve(url.host, url.port or _default_port(url))
    except (OSError, UnicodeError) as problem:
        message = f"the host '{url.host}' can't be found: {problem}"
        raise _Stop(Problem("http.network", message)) from problem
    private = [address for address in addresses if not is_public(address)]
    if private and request.from_data and not request.allow_private:
        message = (
            f"'{url.host}' is {private[0]}, which isn't a public address, and the URL may come from data; "
            "write it out in the workflow or set `allow_private: true`"
        )
        raise _Stop(Problem("http.refused_address", message, "logical"))
    return addresses


async def _exchange(
    request: Request, url: httpx2.URL, address: str, limits: Limits, progress: _Progress
) -> Response:
    import httpx2

    outgoing = _outgoing(request, url, address, limits, progress)
    transport = httpx2.AsyncHTTPTransport(verify=await _trust(url), retries=0, trust_env=False)
    try:
        async with transport:
            response = await transport.handle_async_request(outgoing)
            try:
                body = b"" if request.method == "HEAD" else await _body(response, limits, progress.take)
            finally:
                await response.aclose()
    except httpx2.TransportError as problem:
        raise _Stop(_transport_problem(problem, request, progress)) from problem
    return Response(response.status_code, _plain(response.headers), body, str(url))


def _outgoing(
    request: Request, url: httpx2.URL, address: str, limits: Limits, progress: _Progress
) -> httpx2.Request:
    import httpx2

    timeouts = {"connect": limits.connect_s, "read": None, "write": None, "pool": None}
    extensions = {
        "timeout": timeouts,
        "trace": progress.trace,
        "sni_hostname": url.raw_host.decode("ascii"),
    }
    pinned = url.copy_with(host=address, username="", password="")
    try:
        headers = _headers(request, url)
        return httpx2.Request(
            request.method, pinned, headers=headers, content=request.body, extensions=extensions
        )
    except (ValueError, TypeError) as problem:  # UnicodeError is a ValueError
        raise _Stop(_bad_request(f"the request can't be sent: {problem}")) from problem


def _headers(request: Request, url: httpx2.URL) -> httpx2.Headers:
    """Names are ASCII, values UTF-8. Raises UnicodeError."""
    import httpx2

    headers = httpx2.Headers({"accept": "*/*", "user-agent": _USER_AGENT, "accept-encoding": "gzip, deflate"})
    if url.username:
        headers["authorization"] = _basic(url.username, url.password)
    for name, value in request.headers.items():
        headers.update([(name.encode("ascii"), value.encode("utf-8"))])
    headers["host"] = url.netloc.decode("ascii").rpartition("@")[2]
    return headers


async def _trust(url: httpx2.URL) -> ssl.SSLContext:
    """Certificates of the system for https; for http a context that nothing uses, because it costs nothing."""
    if url.scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    import httpx2

    return await anyio.to_thread.run_sync(httpx2.create_ssl_context)


async def _body(response: httpx2.Response, limits: Limits, take: Take | None) -> bytes:
    """The decoded body, read no further than its limit, or than `take` wants it."""
    decoder = _Decoder(response.headers.get("content-encoding", "").strip().lower(), limits.body_bytes_max)
    if not response.is_success:
        take = None
    headers = _plain(response.headers)
    async for chunk in response.stream:  # type: ignore[union-attr]
        decoder.feed(chunk)
        if take is not None and not take(headers, decoder.taken()):
            return b""
    return decoder.end()


class _Decoder:
    """gzip and deflate, never making more than the limit: a small answer may unpack to anything."""

    def __init__(self, encoding: str, bytes_max: int) -> None:
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            message = f"the answer is encoded as '{encoding}', which wasn't asked for"
            raise _Stop(Problem("http.encoding", message, "logical", "done"))
        self._packed = encoding not in ("", "identity")
        self._unpack = zlib.decompressobj(_ANY_HEADER)
        self._max = bytes_max
        self._size = 0
        self._body = bytearray()
        self._fed = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; a gzip body may have several members."""
        self._fed = self._fed or bool(chunk)
        while chunk:
            if not self._packed:
                self._keep(chunk)
                return
            if self._unpack.eof:
                self._unpack = zlib.decompressobj(_ANY_HEADER)
            try:
                self._keep(self._unpack.decompress(chunk, self._max - self._size + 1))
            except zlib.error as problem:
                raise _Stop(
                    Problem("http.encoding", f"the answer can't be unpacked: {problem}", effect="done")
                ) from problem
            chunk = self._unpack.unused_data

    def end(self) -> bytes:
        """All of it."""
        if self._packed and self._fed and not self._unpack.eof:
            raise _Stop(Problem("http.network", "the answer ended in the middle", effect="done"))
        return bytes(self._body)

    def taken(self) -> bytes:
        """What has come since the last time; it isn't kept, but counts."""
        data = bytes(self._body)
        self._body.clear()
        return data

    def _keep(self, data: bytes) -> None:
        self._body += data
        self._size += len(data)
        if self._size > self._max:
            message = (
                f"the answer is larger than {self._max:,} bytes; raise `max_response_bytes` if that's meant"
            )
            raise _Stop(Problem("http.too_large", message, "logical", "done"))


def _transport_problem(problem: httpx2.TransportError, request: Request, progress: _Progress) -> Problem:
    import httpx2

    shown = _shown(request.url)
    if isinstance(problem, httpx2.TimeoutException):
        return Problem("http.timeout", f"no connection to {shown} in time", effect=progress.effect)
    if isinstance(problem, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        # Its own message may repeat a header's value, which may be a secret.
        return _bad_request(f"the request to {shown} can't be sent: a header or the method isn't valid")
    certificate = _certificate_problem(problem)
    if certificate is not None:
        return Problem("http.certificate", f"{shown}: {certificate.verify_message}", "logical")
    told = str(problem) or type(problem).__name__
    return Problem("http.network", f"the exchange with {shown} broke: {told}", effect=progress.effect)


def _certificate_problem(problem: BaseException) -> ssl.SSLCertVerificationError | None:
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _parsed(text: str) -> httpx2.URL:
    import httpx2

    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError) as problem:
        raise _Stop(_bad_request(f"this is no URL: {problem}")) from problem
    if url.scheme not in ("http", "https") or not url.host:
        raise _Stop(_bad_request("a URL starts with http:// or https:// and names a host"))
    return url


def _bad_request(message: str) -> Problem:
    return Problem("http.request", message, "logical")


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or _default_port(url)


def _default_port(url: httpx2.URL) -> int:
    return 443 if url.scheme == "https" else 80


def _basic(username: str, password: str) -> str:
    import base64

    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode('ascii')}"


def _plain(headers: httpx2.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() != "set-cookie"}


def _shown(url: str) -> str:
    """Where a URL leads, without what may be secret in it: credentials, query, fragment."""
    import httpx2

    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        return "the URL"
    host = parsed.netloc.decode("ascii", "replace").rpartition("@")[2]
    return f"{parsed.scheme}://{host}{parsed.path}"
