"""What is said to a server: hello, which tools are there, call this one. The protocol itself is the `mcp` library's.

The library gets a connection of ours in place of its own transports, which open HTTP and start processes by
themselves. Schemas that a server gives aren't evaluated: a hostile one could take all the time there is.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Container, Mapping
from difflib import get_close_matches
from importlib.metadata import version
from typing import Any, Protocol, TypeVar

import anyio
from anyio.abc import TaskStatus
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    Tool,
)
from msgspec import Struct, convert, field, json
from pydantic import ValidationError

from gonogo.core.faults import Effect
from gonogo.providers._mcp.messages import NOT_SUPPORTED, Message, Trouble

T = TypeVar("T")

PAGES_MAX = 50
TOOLS_MAX = 10_000
SHOWN_BYTES_MAX = 256 * 1024
"""Of what isn't the result of the tool: checking it takes a tenth of a second at most."""
_LISTED_MAX = 20
_NAME_CHARACTERS_SHOWN = 100
_TEXT_CHARACTERS_MAX = 1500
_MODERN_ONLY = frozenset({NOT_SUPPORTED, -32022, -32600})
"""How a server without the handshake may answer it: method not found, unsupported version, invalid request."""


class Connection(Protocol):
    """One server, however it is reached."""

    async def ask(self, message: Message, headers: Mapping[str, str]) -> Message:
        """The answer to a request. Raises Trouble."""
        ...

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send what has no answer."""
        ...


class Progress(Struct):
    """How far a call has come. `called`: the tool was, so it may have done something."""

    called: bool = False


class Used(Struct, frozen=True):
    """What a tool gave: blocks of content as the protocol has them, structured content if there is any (not None).

    `about` is for the step's meta. `hints` are what the server says of the tool: whether it only reads, destroys.
    """

    content: list[dict[str, Any]]
    structured: Any
    failed: bool
    about: dict[str, Any]
    hints: dict[str, bool]


class Told(Struct, frozen=True):
    """What a server says of one of its tools: somebody else's words and schema, to be bounded by whoever uses them."""

    name: str
    description: str
    parameters: dict[str, Any]
    hints: dict[str, bool]


class _Result(Struct, frozen=True):
    """The answer to tools/call."""

    content: list[dict[str, Any]] = []
    structured: Any = field(name="structuredContent", default=None)
    failed: bool = field(name="isError", default=False)
    kind: str = field(name="resultType", default="complete")


class _Dispatcher:
    """Hands the session's messages to a connection. What a server asks or tells is the connection's to deal with.

    The session is shown no more of a result than it needs: its checks take seconds for some megabytes, in which
    nothing else would go on. `names` are the tools that were listed, `result` is what the last one called gave.
    """

    def __init__(self, connection: Connection, tools: Container[str]) -> None:
        self._connection = connection
        self._last = 0
        self._tools = tools
        self.names: list[str] = []
        self.result: dict[str, Any] = {}

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Nothing to drive: whoever asks reads."""
        task_status.started()
        await anyio.sleep_forever()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """The result. Raises MCPError for an error of the server, Trouble for everything else."""
        self._last += 1
        given = dict(params or {})
        if method == "tools/call":
            given["_meta"] = {**(given.get("_meta") or {}), "progressToken": self._last}
        message: Message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": given}
        answer = await self._connection.ask(message, _headers(opts))
        if isinstance(answer.get("error"), dict):
            raise _error(answer["error"])
        result = answer.get("result")
        if not isinstance(result, dict):
            raise Trouble("mcp.protocol", "malformed-stream", f"the answer to {method} is no object")
        shown = self._shown(method, result)
        if _size_bytes(shown) > SHOWN_BYTES_MAX:
            told = f"the answer to {method} is larger than {SHOWN_BYTES_MAX:,} bytes, or nested too deeply"
            raise Trouble("mcp.too_large", "bad-request", told)
        return shown

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send it."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = dict(params)
        await self._connection.tell(message, _headers(opts))

    def _shown(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        if method == "tools/call":
            self.result = result
            return {"content": [], "resultType": "complete"}
        if method == "tools/list":
            return {**result, "tools": self._wanted(result.get("tools"))}
        return result

    def _wanted(self, tools: Any) -> list[Any]:
        """Of the tools of one page, those that are asked about."""
        if not (isinstance(tools, list) and all(isinstance(_name(tool), str) for tool in tools)):
            raise Trouble("mcp.protocol", "malformed-stream", "the server's list of tools is none")
        self.names += [tool["name"][:_NAME_CHARACTERS_SHOWN] for tool in tools]
        if len(self.names) > TOOLS_MAX:
            raise Trouble("mcp.too_many", "bad-request", f"the server has more than {TOOLS_MAX:,} tools")
        return [tool for tool in tools if tool["name"] in self._tools]


async def use(
    connection: Connection, tool: str, arguments: Mapping[str, Any], progress: Progress
) -> Used | Trouble:
    """What the tool gave, or why nothing came of it. (A Trouble that was raised would come out of here in groups.)"""

    async def ask(session: ClientSession, dispatcher: _Dispatcher) -> Used:
        return await _used(session, dispatcher, tool, arguments, progress)

    return await _asked(connection, frozenset({tool}), ask)


async def listed(connection: Connection, tools: frozenset[str]) -> tuple[Told, ...] | Trouble:
    """What the server says of these tools, or why it doesn't. One that it hasn't is a Trouble."""

    async def ask(session: ClientSession, dispatcher: _Dispatcher) -> tuple[Told, ...]:
        await _meet(session)
        found = await _find(session, dispatcher, tools)
        return tuple(
            Told(name, found[name].description or "", found[name].input_schema, _hints(found[name]))
            for name in sorted(tools)
        )

    return await _asked(connection, tools, ask)


async def _asked(
    connection: Connection,
    tools: frozenset[str],
    ask: Callable[[ClientSession, _Dispatcher], Awaitable[T]],
) -> T | Trouble:
    client = Implementation(name="gonogo", version=version("gonogo"))
    dispatcher = _Dispatcher(connection, tools)
    async with ClientSession(dispatcher=dispatcher, client_info=client) as session:
        try:
            return await ask(session, dispatcher)
        except Trouble as trouble:
            return trouble
        except MCPError as error:
            told = f"the server refuses: {_cut(error.message)} (code {error.code})"
            # What isn't known to the server it can't have done.
            effect: Effect | None = "none" if error.code == NOT_SUPPORTED else None
            return Trouble("mcp.error", "bad-request", told, effect=effect, cause=str(error.code))
        except (ValidationError, ValueError) as error:  # pydantic refuses some depths with a bare ValueError
            return Trouble(
                "mcp.protocol", "malformed-stream", f"the server's answer is wrong: {_first(error)}"
            )
    raise AssertionError("a session swallows nothing")


async def _used(
    session: ClientSession,
    dispatcher: _Dispatcher,
    tool: str,
    arguments: Mapping[str, Any],
    progress: Progress,
) -> Used:
    await _meet(session)
    found = (await _find(session, dispatcher, frozenset({tool})))[tool]
    progress.called = True
    params = CallToolRequestParams(name=tool, arguments=dict(arguments))
    await session.send_request(CallToolRequest(params=params), CallToolResult)
    result = convert(dispatcher.result, _Result)
    if result.kind == "input_required":
        told = "the tool asks for more while it runs (a person's input, a model), which a step can't give"
        raise Trouble("mcp.input_required", "bad-request", told)
    return Used(result.content, result.structured, result.failed, _about(session), _hints(found))


async def _meet(session: ClientSession) -> None:
    """Say hello: by the handshake that all servers have known, else by what came in place of it in 2026."""
    try:
        try:
            await session.initialize()
        except MCPError as error:
            if error.code not in _MODERN_ONLY:
                raise
            await session.discover()
    except RuntimeError as problem:  # a version that nobody here speaks
        raise Trouble("mcp.protocol", "bad-request", _cut(str(problem).lower())) from problem


async def _find(session: ClientSession, dispatcher: _Dispatcher, tools: frozenset[str]) -> dict[str, Tool]:
    """The tools, looked for page by page. Raises Trouble when the server lacks one: then nothing is called."""
    found: dict[str, Tool] = {}
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        found = {**{tool.name: tool for tool in page.tools}, **found}
        if len(found) == len(tools):
            return found
        cursor = page.next_cursor
        if not cursor:
            break
    names = list(dict.fromkeys(dispatcher.names))
    missing = min(tools - found.keys())
    raise Trouble("mcp.unknown_tool", "bad-request", _unknown(missing, names), effect="none")


def _unknown(tool: str, names: list[str]) -> str:
    near = get_close_matches(tool, names[:1000], n=1)
    hint = f", did you mean '{near[0]}'?" if near else ""
    more = f" and {len(names) - _LISTED_MAX:,} more" if len(names) > _LISTED_MAX else ""
    return f"the server has no tool '{tool}'{hint} (it has: {', '.join(names[:_LISTED_MAX]) or 'none'}{more})"


def _size_bytes(value: Any) -> float:
    """As JSON; without end for what can't be written again."""
    try:
        return len(json.encode(value))
    except (RecursionError, OverflowError, ValueError):
        return math.inf


def _name(tool: Any) -> Any:
    return tool.get("name") if isinstance(tool, dict) else None


def _about(session: ClientSession) -> dict[str, Any]:
    """Who answered, and in which version of the protocol."""
    about: dict[str, Any] = {"protocol": session.protocol_version}
    if session.server_info is not None:
        about["server"] = {
            "name": session.server_info.name[:200],
            "version": session.server_info.version[:200],
        }
    return about


def _hints(tool: Tool) -> dict[str, bool]:
    said = tool.annotations
    hints = {} if said is None else {"reads": said.read_only_hint, "destroys": said.destructive_hint}
    return {name: value for name, value in hints.items() if value is not None}


def _headers(opts: CallOptions | None) -> Mapping[str, str]:
    return (opts or {}).get("headers", {})


def _error(error: Mapping[str, Any]) -> MCPError:
    code, message = error.get("code"), error.get("message")
    known = isinstance(code, int) and not isinstance(code, bool)
    return MCPError(code if known else 0, message if isinstance(message, str) else "", error.get("data"))  # type: ignore[arg-type]


def _first(error: ValueError) -> str:
    """Where, and what was expected; never what was there, which may be long."""
    if not isinstance(error, ValidationError):
        return _cut(str(error).lower())
    one = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in one["loc"])
    return _cut(f"{place}: {one['msg'].lower()}" if place else one["msg"].lower())


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_CHARACTERS_MAX else f"{text[:_TEXT_CHARACTERS_MAX]}…"
