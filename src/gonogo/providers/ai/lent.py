"""Tools of MCP servers, lent to a model: asked for what they are, then used, each time as a gated call of its own.

A tool that the step doesn't list isn't there. What a server says of its tools is somebody else's words: bounded, told
to the model, and never evaluated here; a schema that a hostile server gives could take all the time there is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gonogo.core.faults import FaultClass
from gonogo.gate.failures import GateError
from gonogo.gate.gate import Gate
from gonogo.gate.record import CallRecord
from gonogo.gate.step import Step
from gonogo.gate.summary import summary
from gonogo.models.cleaning import shown
from gonogo.models.conversation import Tool as ModelTool
from gonogo.provider import Call, Context, Effect
from gonogo.providers import _gated
from gonogo.providers._mcp.messages import Trouble
from gonogo.providers._mcp.results import output_of
from gonogo.providers._mcp.server import Server, policy_of
from gonogo.providers._mcp.tries import Tries, library
from gonogo.providers.ai.servers import McpServer, offered_as

if TYPE_CHECKING:
    from gonogo.providers._mcp.talking import Connection, Progress, Told, Used

DESCRIPTION_CHARACTERS_MAX = 1000
SCHEMA_BYTES_MAX = 32 * 1024


class NoServer(Exception):  # noqa: N818 - the name says what happened
    """A server that the step names can't be met, or lacks a tool."""

    def __init__(self, kind: str, message: str, fault_class: FaultClass = "logical") -> None:
        super().__init__(message)
        self.kind = kind
        self.fault_class: FaultClass = fault_class


class LentTool(Struct, frozen=True):
    """A tool that the model may call, and where."""

    server: str
    name: str
    mutates: bool


class Answered(Struct, frozen=True):
    """What came of a use, as the model is told; `effect` is what it did outside, `meta` the gate's record of it."""

    text: str
    failed: bool
    effect: Effect
    meta: Mapping[str, Any]


class Lent:
    """The servers of one call. `warnings` are what a person should look at."""

    __slots__ = ("_call", "_context", "_gate", "_servers", "_talking", "_tools", "warnings")

    def __init__(self, call: Call, context: Context, gate: Gate, servers: Mapping[str, McpServer]) -> None:
        self._call = call
        self._context = context
        self._gate = gate
        self._servers = servers
        self._talking: ModuleType | None = None
        self._tools = {
            offered_as(name, tool): LentTool(name, tool, said.mutates)
            for name, server in servers.items()
            for tool, said in server.tools.items()
        }
        self.warnings: list[str] = []

    def tool(self, offered: str) -> LentTool | None:
        """The tool that a model knows by this name."""
        return self._tools.get(offered)

    async def meet(self) -> tuple[ModelTool, ...]:
        """Ask each server for its listed tools. Raises NoServer; ModuleNotFoundError without the extra `mcp`."""
        found: list[ModelTool] = []
        for name, server in self._servers.items():
            self._talking = self._talking or await library()
            found += [self._offered(name, server, told) for told in await self._listed(name, server)]
        return tuple(found)

    async def use(self, tool: LentTool, arguments: Mapping[str, Any], number: int) -> Answered:
        """One call. What fails is told to the model, too."""
        assert self._talking is not None  # nothing is offered before the servers were met
        talking, server = self._talking, self._servers[tool.server]
        key = _key(self._call.key, tool, arguments, number)

        async def ask(connection: Connection, progress: Progress) -> Used | Trouble:
            used: Used | Trouble = await talking.use(connection, tool.name, arguments, progress)
            return used

        tries = Tries(self._server(server, key), self._context, talking, f"the tool '{tool.name}'", ask)
        step = Step(
            f"{self._call.step}: {tool.server}/{tool.name}",
            tries.invoke,
            effects="mutates" if tool.mutates else "reads",
            key=key,
        )
        try:
            answer = await self._beside(server).answer(step)
        except GateError as error:
            cause = tries.cause(error, server.timeout_s)
            effect = error.effect if tries.called else "none"
            text = self._clean(str(cause) if cause is not None else _gated.told(error))
            return Answered(text, True, effect, _meta(error.record))
        used = answer.value
        output = output_of(used.content, used.structured)
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        # What a tool did by the time it says that it failed nobody knows.
        effect = "unknown" if used.failed else "done"
        return Answered(self._clean(text), used.failed, effect, _meta(answer.record))

    async def _listed(self, name: str, server: McpServer) -> tuple[Told, ...]:
        assert self._talking is not None
        talking, wanted = self._talking, frozenset(server.tools)

        async def ask(connection: Connection, progress: Progress) -> tuple[Told, ...] | Trouble:
            told: tuple[Told, ...] | Trouble = await talking.listed(connection, wanted)
            return told

        given = self._server(server, self._call.key)
        tries = Tries(given, self._context, talking, f"the server '{name}'", ask)
        try:
            step = Step(self._call.step, tries.invoke, effects="reads")
            found: tuple[Told, ...] = (await self._beside(server).answer(step)).value
        except GateError as error:
            cause = tries.cause(error, server.timeout_s)
            if cause is None:
                told = f"the server '{name}': {_gated.told(error)}"
                raise NoServer(f"gate.{error.kind}", told, _gated.fault_class(error)) from error
            raise NoServer(cause.fault_kind, f"the server '{name}': {cause}", cause.fault_class) from error
        return found

    def _offered(self, name: str, server: McpServer, told: Told) -> ModelTool:
        said = server.tools[told.name]
        if len(json.dumps(told.parameters)) > SCHEMA_BYTES_MAX:
            message = (
                f"the server '{name}': the schema of '{told.name}' is larger than {SCHEMA_BYTES_MAX:,} bytes"
            )
            raise NoServer("mcp.too_large", message)
        if not said.mutates and (told.hints.get("destroys") or told.hints.get("reads") is False):
            self.warnings.append(
                f"the step says that '{told.name}' of '{name}' changes nothing, but the server says that it does"
            )
        description = said.description or shown(self._clean(told.description), DESCRIPTION_CHARACTERS_MAX)
        parameters = self._cleaned(name, told)
        return ModelTool(offered_as(name, told.name), description, {**parameters, "type": "object"})

    def _cleaned(self, name: str, told: Told) -> dict[str, Any]:
        """The schema of a tool without secrets. Raises NoServer where none is left of it."""
        try:
            cleaned = json.loads(self._clean(json.dumps(told.parameters, ensure_ascii=False)))
        except ValueError:
            cleaned = None
        if not isinstance(cleaned, dict):
            raise NoServer("mcp.protocol", f"the server '{name}': the schema of '{told.name}' is a secret")
        return cleaned

    def _beside(self, server: McpServer) -> Gate:
        return self._gate.beside(policy_of(self._server(server, ""), server.timeout_s))

    def _server(self, server: McpServer, key: str) -> Server:
        return Server(
            key,
            server.max_response_bytes,
            server.command,
            tuple(server.args),
            server.cwd or "",
            server.env,
            server.url or "",
            server.headers,
            server.auth,
            self._call.from_data("mcp_servers"),
        )

    def _clean(self, text: str) -> str:
        """Without the secrets that a server was given: the model is told this, and whoever serves it."""
        return text if self._gate.redact is None else self._gate.redact(text)


def _meta(record: CallRecord | None) -> dict[str, Any]:
    """The use's own record, beside those of the model's questions."""
    return {} if record is None else {"gate": summary(record)}


def _key(key: str, tool: LentTool, arguments: Mapping[str, Any], number: int) -> str:
    """The same for the same use in another attempt of the step, another one for any other."""
    said = json.dumps([key, tool.server, tool.name, arguments, number], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]
