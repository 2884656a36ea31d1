"""A fake GitHub over HTTP: authentication, limits, pages, ETags and refusals around what `github_state.py` does.

Every exchange is compared with GitHub's published description; differences are in `violations`. Faults can be put
ahead of the next requests, one also after the work was done: a comment that exists although its caller saw a break.
"""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tests.servers.github_operations import operations
from tests.servers.github_schema import known_path, operation_for, problems_of_answer, problems_of_request
from tests.servers.github_state import BOT, Call, Refusal, Repository

TOKEN = "test-token"
_NEEDS = {"issues": "issues", "pulls": "pull_requests", "checks": "checks", "repos": "statuses"}
WRITER = {"issues": "write", "pull_requests": "write", "checks": "write", "statuses": "write"}


@dataclass(frozen=True, slots=True)
class Token:
    """Who a token is of, what it may do, and whether it is an app's (only those may write checks)."""

    login: str = BOT
    permissions: Mapping[str, str] = field(default_factory=lambda: dict(WRITER))
    app: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a request instead of, or after, its work.

    `drop` resets the connection; with `after` the work was done first. Else the answer is the status with the body.
    """

    status: int = 500
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    after: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with what it was answered."""

    operation: str | None
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    status: int


def secondary_limit(retry_after_s: int | None = None, status: int = 403) -> Fault:
    """Told by the body, and by Retry-After only if it is given (RET-4 c)."""
    body = {
        "message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
        "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api",
        "status": str(status),
    }
    headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
    return Fault(status, body, headers)


UNAVAILABLE = Fault(503, {"message": "Service Unavailable"})
BAD_GATEWAY_AFTER = Fault(502, {"message": "Server Error"}, after=True)
"""The work was done, and the answer says that something broke."""
DROPPED_BEFORE = Fault(drop=True)
DROPPED_AFTER = Fault(drop=True, after=True)


class FakeGitHub:
    """Listens on a free port of the loopback. `repository` is its state; one lock keeps requests in order."""

    def __init__(
        self,
        repository: Repository | None = None,
        tokens: Mapping[str, Token] | None = None,
        limit: int = 5000,
    ) -> None:
        self.repository = repository or Repository()
        self.operations = operations(self.repository)
        self.tokens = dict(tokens or {TOKEN: Token()})
        self.limit = limit
        self.used = 0
        self.faults: deque[Fault | None] = deque()
        self.exchanges: list[Exchange] = []
        self.violations: list[str] = []
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="fake github")
        self._thread.start()

    @property
    def url(self) -> str:
        """The API's base URL, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def inject(self, *faults: Fault | None) -> None:
        """Faults of the next requests, in order; None lets one through."""
        self.faults.extend(faults)

    def count(self, operation: str) -> int:
        """How often an operation was asked for."""
        return sum(exchange.operation == operation for exchange in self.exchanges)

    def close(self) -> None:
        """Stop, and leave no thread behind."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def limits(self) -> dict[str, str]:
        """The headers of the primary limit."""
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(max(0, self.limit - self.used)),
            "x-ratelimit-used": str(self.used),
            "x-ratelimit-reset": str(int(self.repository.now_s) + 3600),
            "x-ratelimit-resource": "core",
        }


@dataclass(slots=True)
class _Request:
    """One request on its way; `answer` makes status, headers and body of it."""

    github: FakeGitHub
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    operation: str | None = None
    body: Any = None

    def answer(self) -> tuple[int, dict[str, str], Any]:
        try:
            self.body = _json(self.raw)
            token = self._token()
            parts = self._operation(token)
            self._count()
            status, body = self._work(parts, token)
            body, link = _page(body, self.query, f"{self.github.url}{self.path}")
        except Refusal as refusal:
            return refusal.status, {}, refusal.body
        if status != 200 or self.method != "GET":
            return status, link, body
        tag = f'W/"{hashlib.sha256(json.dumps(body).encode()).hexdigest()}"'
        if self.headers.get("if-none-match") == tag:
            self.github.used -= 1  # an answer that nothing changed isn't counted
            return 304, {"etag": tag}, None
        return status, {**link, "etag": tag}, body

    def _token(self) -> Token:
        scheme, _, value = self.headers.get("authorization", "").partition(" ")
        if not value:
            raise Refusal(401, "Requires authentication")
        token = self.github.tokens.get(value) if scheme.lower() in ("bearer", "token") else None
        if token is None:
            raise Refusal(401, "Bad credentials")
        return token

    def _operation(self, token: Token) -> dict[str, str]:
        found = operation_for(self.method, self.path)
        if found is None:
            raise Refusal(404, "Not Found")
        self.operation, parts = found
        parts = {name: unquote(value) for name, value in parts.items()}
        if (
            "owner" in parts
            and f"{parts['owner']}/{parts['repo']}".lower() != self.github.repository.full_name
        ):
            raise Refusal(404, "Not Found")
        if self.method != "GET":
            self._may_write(token)
        return parts

    def _may_write(self, token: Token) -> None:
        need = _NEEDS[(self.operation or "").partition("/")[0]]
        both = need == "issues" and token.permissions.get("pull_requests") == "write"
        if token.permissions.get(need) != "write" and not both:
            raise Refusal(403, "Resource not accessible by integration")
        if need == "checks" and not token.app:
            raise Refusal(403, "You must authenticate via a GitHub App.")

    def _count(self) -> None:
        if self.operation == "rate-limit/get":
            return
        if self.github.used >= self.github.limit:
            raise Refusal(403, "API rate limit exceeded for installation ID 1.")
        self.github.used += 1

    def _work(self, parts: dict[str, str], token: Token) -> tuple[int, Any]:
        github = self.github
        if self.operation == "rate-limit/get":
            rate = {
                "limit": github.limit,
                "remaining": max(0, github.limit - github.used),
                "used": github.used,
                "reset": int(github.repository.now_s) + 3600,
            }
            return 200, {"resources": {"core": rate, "search": rate}, "rate": rate}
        call = Call(parts, self.query, self.body, token.login)
        return github.operations[self.operation or ""](call)


def _json(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        raise Refusal(400, "Problems parsing JSON") from None


def _page(body: Any, query: Mapping[str, str], url: str) -> tuple[Any, dict[str, str]]:
    """One page of a list, with the links to others."""
    items = body.get("check_runs") if isinstance(body, dict) else body
    if not isinstance(items, list):
        return body, {}
    size = min(max(1, _whole(query.get("per_page"), 30)), 100)
    page, last = max(1, _whole(query.get("page"), 1)), max(1, -(-len(items) // size))
    cut = items[(page - 1) * size : page * size]
    pages = {"prev": page - 1, "next": page + 1 if page < last else 0, "last": last, "first": 1}
    hidden = {"last", "next"} if page >= last else set()
    hidden |= {"prev", "first"} if page == 1 else set()
    links = [
        f'<{url}?{urlencode({**query, "page": number})}>; rel="{name}"'
        for name, number in pages.items()
        if name not in hidden
    ]
    headers = {"link": ", ".join(links)} if links else {}
    return ({**body, "check_runs": cut} if isinstance(body, dict) else cut), headers


def _whole(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() else default


def _handler(github: FakeGitHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Reads a request, writes an answer, closes the connection."""

        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

        def serve(self) -> None:
            """Any method."""
            raw = self.rfile.read(int(self.headers.get("content-length", "0")))
            split = urlsplit(self.path)
            request = _Request(
                github,
                self.command,
                split.path,
                dict(parse_qsl(split.query)),
                {name.lower(): value for name, value in self.headers.items()},
                raw,
            )
            self.close_connection = True
            with github.lock:
                outcome = _exchange(github, request)
            if outcome == "drop":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            self.write(*outcome)

        def write(self, status: int, headers: Mapping[str, str], body: Any) -> None:
            """An answer."""
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(data)), "connection": "close"}.items():
                self.send_header(name, value)
            if data:
                self.send_header("content-type", "application/json; charset=utf-8")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve  # noqa: N815 - the base class's names

    return Handler


def _exchange(github: FakeGitHub, request: _Request) -> tuple[int, dict[str, str], Any] | Literal["drop"]:
    """The answer, after the faults that were asked for; kept and compared with the description."""
    fault = github.faults.popleft() if github.faults else None
    answer = None if fault is not None and not fault.after else request.answer()
    if answer is None:
        found = operation_for(request.method, request.path)
        request.operation = found[0] if found else None
        request.body = json.loads(request.raw) if request.raw else None
    else:
        _compare(github, request, answer)
    status = answer[0] if fault is None and answer else (fault.status if fault and not fault.drop else 0)
    github.exchanges.append(
        Exchange(
            request.operation,
            request.method,
            request.path,
            request.query,
            request.headers,
            request.body,
            status,
        )
    )
    if fault is None and answer is not None:
        return answer[0], {**github.limits(), "x-github-request-id": _id(github), **answer[1]}, answer[2]
    assert fault is not None
    return "drop" if fault.drop else (fault.status, {**github.limits(), **fault.headers}, fault.body)


def _id(github: FakeGitHub) -> str:
    return f"TEST:{len(github.exchanges)}"


def _compare(github: FakeGitHub, request: _Request, answer: tuple[int, dict[str, str], Any]) -> None:
    """A refused request may be wrong: that is what it was refused for."""
    if request.operation is None:
        if not known_path(request.path):
            github.violations.append(f"{request.method} {request.path}: no operation that the fake knows")
        return
    if answer[0] < 400:
        github.violations += problems_of_request(request.operation, request.query, request.body)
    github.violations += problems_of_answer(request.operation, answer[0], answer[2])
