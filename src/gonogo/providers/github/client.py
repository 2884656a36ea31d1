"""Requests to GitHub through the gate of a call: one at a time, lists page by page, each answer read and judged.

What may be asked again is each operation's to say: reads and what comes to the same twice may; what makes something
anew looks first whether it is there (`marks.py`), and so may, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

import anyio
from msgspec import Struct

from gonogo.gate.failures import GateError
from gonogo.gate.policy import Backoff, Bounds, Policy, Target, Timers
from gonogo.gate.record import CallRecord
from gonogo.gate.step import Attempt, Step
from gonogo.provider import Call, Context, Effects
from gonogo.providers._http import Limits, Problem, Request, Response, send
from gonogo.providers._output import read_json
from gonogo.providers.github.place import Place
from gonogo.providers.github.refusing import broken, refused, unreadable

T = TypeVar("T")

API_VERSION = "2022-11-28"
DEFAULT_TIMEOUT_S = 180.0
"""A secondary limit wants a minute's wait; that fits in twice."""
LEAD_S = 0.02
"""How much sooner than its gate a request ends by itself, so that it says how far it got."""
ATTEMPTS_MAX = 3
ATTEMPT_S = 60.0
PAGE_ITEMS = 100
BODY_BYTES_MAX = 32 * 1024 * 1024
_NEXT = re.compile(r';\s*rel="next"')
_OBSERVED = ("limit", "remaining", "reset")


class Reply(Struct, frozen=True):
    """An answer, read. `data` is None where it has no body."""

    status: int
    headers: Mapping[str, str]
    data: Any = None


class Turn:
    """One attempt: its requests share its time. `number` counts from 1."""

    __slots__ = ("_client", "_connect_s", "_ends_at", "number")

    def __init__(self, client: Client, attempt: Attempt) -> None:
        self._client = client
        self._connect_s = attempt.connect_s
        self._ends_at = anyio.current_time() + attempt.timeout_s
        self.number = attempt.number

    async def get(
        self, path: str, query: Mapping[str, Any] | None = None, *, allow: frozenset[int] = frozenset(),
        headers: Mapping[str, str] | None = None,
    ) -> Reply:  # fmt: skip
        """A read. Raises Refused, but for statuses to `allow`."""
        return await self._client.ask(self._limits(), "GET", path, query, allow=allow, headers=headers)

    async def send(
        self, method: str, path: str, body: Any = None, *, allow: frozenset[int] = frozenset()
    ) -> Reply:
        """A write. Raises Refused, but for statuses to `allow`."""
        return await self._client.ask(self._limits(), method, path, None, body, allow=allow)

    async def each(self, path: str, query: Mapping[str, Any], key: str | None = None) -> AsyncIterator[Any]:
        """The items of all pages, as they are needed. Raises Refused."""
        async for reply in pages(self.get, path, query):
            for item in items_of(reply, key):
                yield item

    def _limits(self) -> Limits:
        left_s = self._ends_at - anyio.current_time()
        total_s = max(left_s - LEAD_S, left_s / 2, 0.001)
        return Limits(total_s, min(self._connect_s, total_s), BODY_BYTES_MAX)


class Client:
    """A call's requests. `records`: the gate's. `writing`: something is sent whose end isn't known; `wrote`: something
    has changed. `observed`: what GitHub says is left of its limit.
    """

    __slots__ = ("_call", "_gate", "_need", "_place", "observed", "records", "writing", "wrote")

    def __init__(self, call: Call, context: Context, place: Place, need: str) -> None:
        """`need`: the permission that the operation needs. Raises ConfigError for a policy that can't be."""
        self._call, self._place, self._need = call, place, need
        self._gate = context.gate(policy_of(place, call.timeout_s or DEFAULT_TIMEOUT_S))
        self.records: list[CallRecord] = []
        self.observed: dict[str, int] = {}
        self.writing = self.wrote = False

    @property
    def path(self) -> str:
        """The repository's part of the API."""
        return self._place.path

    async def do(self, work: Callable[[Turn], Awaitable[T]], effects: Effects) -> T:
        """One call through the gate; `work` is done again for each attempt. Raises GateError."""

        async def invoke(attempt: Attempt) -> T:
            return await work(Turn(self, attempt))

        try:
            answer = await self._gate.answer(
                Step(self._call.step, invoke, effects=effects, key=self._call.key)
            )
        except GateError as error:
            if error.record is not None:
                self.records.append(error.record)
            raise
        self.records.append(answer.record)
        found: T = answer.value
        return found

    async def get(self, path: str, query: Mapping[str, Any] | None = None) -> Reply:
        """One read. Raises GateError."""
        return await self.do(lambda turn: turn.get(path, query), "reads")

    async def send(self, method: str, path: str, body: Any = None) -> Reply:
        """One write that comes to the same when it is made twice. Raises GateError."""
        return await self.do(lambda turn: turn.send(method, path, body), "idempotent")

    async def ask(
        self,
        limits: Limits,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        *,
        allow: frozenset[int] = frozenset(),
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request, outside of any gate. Raises Refused."""
        wrote = method != "GET"
        self.writing = self.writing or wrote
        response = await send(self._request(method, path, query, body, headers or {}), limits)
        if isinstance(response, Problem):
            problem = broken(response, wrote=wrote)
            self.writing = self.writing and problem.effect == "unknown"
            raise problem
        return self._read(response, allow, wrote=wrote)

    def _read(self, response: Response, allow: frozenset[int], *, wrote: bool) -> Reply:
        self._observe(response.headers)
        try:
            data = read_json(response.body.decode("utf-8", "replace")) if response.body else None
        except ValueError:
            data = None
        if not (200 <= response.status <= 299 or response.status in allow):
            problem = refused(response, data, self._need, wrote=wrote)
            self.writing = self.writing and problem.effect == "unknown"
            raise problem
        if data is None and response.body:
            raise unreadable("isn't JSON", wrote=wrote)
        if wrote:
            self.writing, self.wrote = False, True
        return Reply(response.status, response.headers, data)

    def _request(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Any, headers: Mapping[str, str]
    ) -> Request:
        url = f"{self._place.api_url}{path}"
        if query:
            url += f"?{urlencode({name: _text(value) for name, value in query.items()})}"
        sent = {
            "Authorization": f"Bearer {self._place.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            **headers,
        }
        raw = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            raw = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        # No template makes the address (place.py), so none of it comes from data.
        return Request(method, url, sent, raw, from_data=False)

    def _observe(self, headers: Mapping[str, str]) -> None:
        found = {name: headers.get(f"x-ratelimit-{name}", "") for name in _OBSERVED}
        if all(value.isascii() and value.isdigit() and len(value) < 16 for value in found.values()):
            self.observed = {name: int(value) for name, value in found.items()}


Get = Callable[[str, Mapping[str, Any]], Awaitable[Reply]]


async def pages(get: Get, path: str, query: Mapping[str, Any]) -> AsyncIterator[Reply]:
    """Page after page; by number, for a link of the far side's may lead anywhere."""
    number = 1
    while True:
        reply = await get(path, {**query, "per_page": PAGE_ITEMS, **({"page": number} if number > 1 else {})})
        yield reply
        if not has_next(reply):
            return
        number += 1


def made_of(reply: Reply) -> dict[str, Any]:
    """An object with the id that it got. Raises Refused."""
    made = reply.data
    if not isinstance(made, dict) or not isinstance(made.get("id"), int):
        raise unreadable("has no id", wrote=True)
    return made


def has_next(reply: Reply) -> bool:
    """Whether the list goes on behind this page; an empty one is the last, whatever it says."""
    return bool(reply.data) and _NEXT.search(reply.headers.get("link", "")[:10_000]) is not None


def items_of(reply: Reply, key: str | None = None) -> list[Any]:
    """The objects of a page of a list; of one below `key`."""
    data = reply.data.get(key) if key is not None and isinstance(reply.data, dict) else reply.data
    return [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []


def policy_of(place: Place, timeout_s: float) -> Policy:
    """What a step's calls go by that says nothing: a few attempts, long waits where GitHub asks for them, no breaker.

    Repeats under a key are one act here, for they look for what an earlier attempt has done.
    """
    return Policy(
        targets=(Target(place.origin, endpoint=place.origin, key_honoured=True),),
        bounds=Bounds(
            attempts_per_target=ATTEMPTS_MAX,
            attempts_max=ATTEMPTS_MAX,
            deadline_s=timeout_s,
            wait_s_max=timeout_s,
        ),
        timers=Timers(attempt_s=min(ATTEMPT_S, timeout_s)),
        backoff=Backoff(base_s=1.0, patience_s=timeout_s),
        breaker=None,
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
