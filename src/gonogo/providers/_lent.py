"""An HTTP client for libraries that bring no way out of their own: what it is asked is one exchange of `_http.py`.

It opens nothing. A second request is refused: whoever wants to ask again has to ask the gate. So is another server than
the one that was named. What came is kept as it was, so that nobody has to read it out of a library's errors.

Imported when a call is made.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping

import anyio
import httpx2
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream
from msgspec import Struct
from msgspec.structs import replace

from gonogo.providers import _http

_OURS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "user-agent"}
)
"""Headers that the exchange sets itself."""
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})
"""Headers of an answer that don't hold for its decoded body."""


Take = Callable[[Mapping[str, str], bytes], bytes | None]


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
        if isinstance(outgoing, _http.Problem):
            self.outcome = outgoing
            raise httpx2.NetworkError(outgoing.message)
        return await self._answered(outgoing, request)

    async def _answered(self, outgoing: _http.Request, request: httpx2.Request) -> httpx2.Response:
        self.outcome = await _http.send(outgoing, self.terms.limits)
        return _whole(self.outcome, request)


class OpenExchange(Exchange):
    """The one exchange, whose answer is handed on while it comes; within `tasks`, which end it when they do.

    `take` gets the bytes of a 2xx first, and says what of them the library is to see; None: that was enough.
    """

    def __init__(self, terms: Terms, tasks: TaskGroup, take: Take) -> None:
        super().__init__(terms)
        self._tasks = tasks
        self._take = take
        self._headers: Mapping[str, str] | None = None
        self._reading: MemoryObjectReceiveStream[bytes] | None = None

    async def _answered(self, outgoing: _http.Request, request: httpx2.Request) -> httpx2.Response:
        # No more can pile up than an answer may be long.
        pieces, reading = anyio.create_memory_object_stream[bytes](math.inf)
        self._reading = reading
        begun = anyio.Event()

        def take(headers: Mapping[str, str], data: bytes) -> bool:
            self._headers = headers
            begun.set()
            seen = self._take(headers, data)
            try:
                if seen:
                    pieces.send_nowait(seen)
            except anyio.BrokenResourceError:  # the library reads no more
                return False
            return seen is not None

        async def run() -> None:
            with pieces:
                self.outcome = await _http.send(outgoing, self.terms.limits, take)
                begun.set()

        self._tasks.start_soon(run)
        await begun.wait()
        if self._headers is None:
            assert self.outcome is not None  # nothing was taken, so it is over
            return _whole(self.outcome, request)
        headers = _told(self._headers)
        return httpx2.Response(200, headers=headers, stream=_Coming(self, reading), request=request)

    async def aclose(self) -> None:
        """The library is done with it, whatever it has read."""
        if self._reading is not None:
            self._reading.close()


class _Coming(httpx2.AsyncByteStream):
    def __init__(self, exchange: OpenExchange, reading: MemoryObjectReceiveStream[bytes]) -> None:
        self._exchange = exchange
        self._reading = reading

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._reading:
            yield piece
        if isinstance(self._exchange.outcome, _http.Problem):
            raise httpx2.ReadError(self._exchange.outcome.message)

    async def aclose(self) -> None:
        self._reading.close()


def _whole(outcome: _http.Response | _http.Problem, request: httpx2.Request) -> httpx2.Response:
    if isinstance(outcome, _http.Problem):
        raise httpx2.NetworkError(outcome.message)
    return httpx2.Response(
        outcome.status, headers=_told(outcome.headers), content=outcome.body, request=request
    )


def _told(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in _OF_THE_WIRE}


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
