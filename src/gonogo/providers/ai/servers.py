"""The keys of an ai step that name MCP servers, and which of their tools a model may call. Acts on nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from gonogo.provider import ConfigProblem
from gonogo.providers._auth import Auth

SERVERS_MAX = 10
TOOLS_MAX = 64
TIMEOUT_S = 60.0
RESPONSE_BYTES_MAX = 1024 * 1024
NAME_CHARACTERS_MAX = 64
"""What vendors take as the name of a tool."""
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")
_OF_PROCESSES = ("args", "cwd", "env")
_OF_HTTP = ("headers", "auth")
Word = Annotated[str, Meta(min_length=1, max_length=1000)]


class ServerTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool of a server that the model may call."""

    description: Annotated[
        str | None, Meta(description="Tells the model what it is for; the server's words if absent.")
    ] = None
    mutates: Annotated[
        bool, Meta(description="It changes things outside, and so does this step; false: it only reads.")
    ] = True


class McpServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server: `command` starts it, `url` names it. Tools that aren't listed are neither offered nor called."""

    tools: Annotated[
        Mapping[str, ServerTool],
        Meta(min_length=1, max_length=TOOLS_MAX, description="The tools that the model may call, by name."),
    ]
    command: Annotated[Word | None, Meta(description="Program that is the server; no shell reads it.")] = None
    args: Annotated[list[str], Meta(description="Its arguments; no shell and no template reads them.")] = []
    cwd: Annotated[str | None, Meta(description="Folder to start it in, from where gonogo runs.")] = None
    env: Annotated[
        Mapping[str, str], Meta(description="Variables it gets beside PATH, HOME and the like.")
    ] = {}
    url: Annotated[Word | None, Meta(description="Where the server is (streamable HTTP).")] = None
    headers: Annotated[Mapping[str, str], Meta(description="More headers to send.")] = {}
    auth: Annotated[
        Auth | None, Meta(description="What lets it in: {type: bearer, token: …}, basic or header.")
    ] = None
    timeout_s: Annotated[float, Meta(gt=0, le=3600, description="Seconds that one call may take.")] = (
        TIMEOUT_S
    )
    max_response_bytes: Annotated[
        int, Meta(ge=1024, le=64 * 1024 * 1024, description="Longest message taken, in bytes.")
    ] = RESPONSE_BYTES_MAX

    def __post_init__(self) -> None:
        """One server, reached in one way."""
        if (self.command is None) == (self.url is None):
            raise ConfigProblem(
                "mcp_servers", "a server is a `command` that starts it, or its `url`, one of them"
            )
        for key in _OF_HTTP if self.url is None else _OF_PROCESSES:
            if getattr(self, key):
                way = "that is started" if self.url is None else "at a url"
                raise ConfigProblem("mcp_servers", f"a server {way} has no `{key}`")


def offered_as(server: str, tool: str) -> str:
    """What a model knows a server's tool by: of signs that all vendors take, and no longer than they take."""
    whole = f"{server}__{tool}"
    name = _STRANGE.sub("_", whole)
    if name == whole and len(name) <= NAME_CHARACTERS_MAX:
        return name
    return f"{name[: NAME_CHARACTERS_MAX - 9]}_{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
