"""The keys of an mcp step: which server, which tool, with which arguments. Acts on nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gonogo.provider import ConfigProblem
from gonogo.providers._auth import Auth

Word = Annotated[str, Meta(min_length=1, max_length=1000)]
DEFAULT_TIMEOUT_S = 60.0
RESPONSE_BYTES_MAX = 8 * 1024 * 1024
_OF_PROCESSES = ("command", "args", "cwd")
_OF_HTTP = ("url", "headers", "auth", "allow_private")


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of an mcp step: `command` starts a server, `url` names one. Names in camel case are those of other
    systems, whose files have them.
    """

    method: Annotated[Word, Meta(description="Name of the tool.")]
    transport: Annotated[
        Literal["stdio", "http"] | None,
        Meta(description="stdio with command, http (streamable) with url; what is given says it."),
    ] = None
    command: Annotated[Word | None, Meta(description="Program that is the server; no shell reads it.")] = None
    args: Annotated[list[str], Meta(description="Its arguments, as they are.")] = []
    cwd: Annotated[str | None, Meta(description="Folder to start it in, from where gonogo runs.")] = None
    url: Annotated[str | None, Meta(description="Where the server is; a template.")] = None
    headers: Annotated[Mapping[str, str], Meta(description="More headers to send.")] = {}
    auth: Annotated[
        Auth | None, Meta(description="What lets it in: {type: bearer, token: …}, basic or header.")
    ] = None
    methodArgs: Annotated[  # noqa: N815 - a key of other systems, whose files have it
        Mapping[str, Any], Meta(description="The tool's arguments; texts in it are templates.")
    ] = {}
    argsTransform: Annotated[  # noqa: N815 - as above
        str | None, Meta(description="Template that gives the arguments as JSON, in place of methodArgs.")
    ] = None
    transform: Annotated[str | None, Meta(description="Template that makes the output from `output`.")] = None
    transform_js: Annotated[
        str | None, Meta(description="JavaScript that makes the output from `output`.")
    ] = None
    allow_private: Annotated[
        bool, Meta(description="Allow private addresses in a URL that comes from data.")
    ] = False
    max_response_bytes: Annotated[
        int, Meta(ge=1024, le=1024**3, description="Longest message taken, in bytes.")
    ] = RESPONSE_BYTES_MAX

    def __post_init__(self) -> None:
        """One server, reached in one way, and arguments said once."""
        if (self.command is None) == (self.url is None):
            raise ValueError("an mcp step needs a `command` that is the server, or its `url`, one of them")
        if self.transport is not None and self.transport != self.way:
            wanted = "command" if self.transport == "stdio" else "url"
            raise ConfigProblem("transport", f"transport: {self.transport} needs `{wanted}`")
        strange = _OF_HTTP if self.way == "stdio" else _OF_PROCESSES
        for key in strange:
            if getattr(self, key):
                raise ConfigProblem(key, f"a server over {self.way} has no `{key}`")
        if self.methodArgs and self.argsTransform is not None:
            raise ConfigProblem("argsTransform", "the arguments are given by methodArgs, too; keep one")

    @property
    def way(self) -> Literal["stdio", "http"]:
        """How the server is reached."""
        return "stdio" if self.command is not None else "http"
