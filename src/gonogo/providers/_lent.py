"""An HTTP client for libraries that bring no way out of their own: what it is asked is one exchange of `_http.py`.

It opens nothing. A second request is refused: whoever wants to ask again has to ask the gate. So is another server than
the one that was named. What came is kept as it was, so that nobody has to read it out of a library's errors.

Imported when a call is made.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
from msgspec import Struct
from msgspec.structs import replace

from gonogo.providers import _http

_OURS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "user-agent"}
)
"""Headers that the exchange sets itself."""
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})
"""Headers of an answer that don't hold for its decoded body."""


class Terms(Struct, frozen=True):
    """What holds for the one request: where it may go (an origin), what is sent with it, and how long and large."""

    url: str
    headers: Mapping[str, str]
    limits: _http.Limits
    from_data: bool = True
    allow_private: bool = False
    request_bytes_max: int = 16 * 1024 * 1024


class Exchange(httpx2.AsyncBaseTransport):
    """The one exchange. `outcome` is what came of it, None while nothing was asked."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._asked = False
        self.outcome: _http.Response | _http.Problem | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """What httpx2 asks of a transport. Raises TransportError for whatever isn't an answer."""
        if self._asked:
            raise httpx2.UnsupportedProtocol("one request is all; the gate decides about another")
        self._asked = True
        outgoing = _outgoing(request, await request.aread(), self.terms)
        self.outcome = outgoing if isinstance(outgoing, _http.Problem) else await self._sent(outgoing)
        if isinstance(self.outcome, _http.Problem):
            raise httpx2.NetworkError(self.outcome.message)
        headers = {name: value for name, value in self.outcome.headers.items() if name not in _OF_THE_WIRE}
        return httpx2.Response(
            self.outcome.status, headers=headers, content=self.outcome.body, request=request
        )

    async def _sent(self, request: _http.Request) -> _http.Response | _http.Problem:
        return await _http.send(request, self.terms.limits)


def client(exchange: Exchange) -> httpx2.AsyncClient:
    """The client to lend: no proxies and no redirects of its own; its times are told to libraries that ask for them."""
    limits = exchange.terms.limits
    timeout = httpx2.Timeout(limits.total_s, connect=limits.connect_s, pool=None)
    return httpx2.AsyncClient(transport=exchange, trust_env=False, timeout=timeout, follow_redirects=False)


def _outgoing(request: httpx2.Request, body: bytes, terms: Terms) -> _http.Request | _http.Problem:
    if _origin(request.url) != _origin(httpx2.URL(terms.url)):
        return _http.Problem(
            "http.request", "the library wants to ask another server than was named", "logical"
        )
    if len(body) > terms.request_bytes_max:
        message = f"the question is {len(body):,} bytes; {terms.request_bytes_max:,} are the most"
        return _http.Problem("http.request_too_large", message, "logical")
    sent = {name: value for name, value in request.headers.items() if name.lower() not in _OURS}
    given = {name.lower() for name in terms.headers}
    kept = {name: value for name, value in sent.items() if name.lower() not in given}
    return replace(
        _http.Request(request.method, str(request.url), {**kept, **terms.headers}, body or None),
        from_data=terms.from_data,
        allow_private=terms.allow_private,
    )


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
