"""A request as bytes: what both wire formats do alike when they write one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gonogo.models.conversation import Ask, Schema, Tool


@dataclass(frozen=True, slots=True)
class HttpCall:
    """What to send by POST; the key's header is not in it (see each format's `key_headers`)."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def call(url: str, ask: Ask, payload: dict[str, Any], headers: Mapping[str, str]) -> HttpCall:
    """The request, after its own keys and the vendor's extra ones have been put together.

    Raises ValueError when an extra key says again what the request says, or a value is no JSON.
    """
    again = sorted(payload.keys() & ask.extra.keys())
    if again:
        raise ValueError(f"extra keys say again what the request says: {', '.join(again)}")
    accept = "text/event-stream" if ask.stream else "application/json"
    common = {"content-type": "application/json", "accept": accept}
    return HttpCall(url, {**common, **headers}, json_bytes({**payload, **ask.extra}))


def json_bytes(value: object) -> bytes:
    """JSON in UTF-8. Halves of surrogate pairs, which no UTF-8 can hold, become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except TypeError as problem:
        raise ValueError(f"the request holds something that is no JSON: {problem}") from problem


def checked(ask: Ask) -> Ask:
    """The request itself. Raises ValueError for one that no server could answer."""
    if not ask.messages:
        raise ValueError("a request needs at least one message")
    if not ask.model:
        raise ValueError("a request needs the model's name")
    if ask.tokens_max is not None and ask.tokens_max < 1:
        raise ValueError("the most tokens to write must be at least 1")
    if ask.tool_named is not None and ask.tool_named not in {tool.name for tool in tools_of(ask)}:
        raise ValueError(f"there is no tool '{ask.tool_named}' to be called")
    return ask


def tools_of(ask: Ask) -> tuple[Tool, ...]:
    """The tools, and with them the one that stands for a schema that is asked for by tool."""
    if ask.schema is None or ask.schema.mode != "tool":
        return ask.tools
    return (*ask.tools, _tool_for(ask.schema))


def forced_tool(ask: Ask) -> str | None:
    """The tool that must be called, if one must. A schema's tool is forced unless there are others to choose from."""
    if ask.tool_named is not None:
        return ask.tool_named
    if ask.schema is not None and ask.schema.mode == "tool" and not ask.tools:
        return ask.schema.name
    return None


def _tool_for(schema: Schema) -> Tool:
    return Tool(schema.name, "Give the final answer by calling this tool, once.", schema.schema)
