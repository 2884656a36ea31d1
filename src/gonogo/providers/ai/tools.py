"""Tools that a model may call: scripts in the sandbox, steps of the workflow, and listed ones of MCP servers. What a
model says is data here: a name is looked up in the step's own list, arguments are held to their schema (a server holds
them to its own), and the answer is text to the model.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Mapping
from typing import Any, cast

from gonogo.models.conversation import Message, ToolCall
from gonogo.models.conversation import Tool as ModelTool
from gonogo.models.reply import NoAnswer
from gonogo.models.structured import arguments_of
from gonogo.provider import UNSET, Call, Context, Done, Failed, Failure, MemoryOp
from gonogo.providers.ai.config import Config, Tool
from gonogo.providers.ai.lent import Lent, LentTool
from gonogo.providers.ai.schemas import Checker

CALLS_MAX = 64
"""Calls of tools in one call of a step, over all rounds; further ones are refused, and the model is told."""
ANSWER_CHARACTERS_MAX = 50_000
RECORD_CHARACTERS_MAX = 2_000


class InDoubt(Exception):  # noqa: N818 - the name says what happened
    """A tool that changes things broke off, and nobody knows what it did: a person has to look."""


class Toolbox:
    """The tools of one call. `records` tells of each use; `memory` is what scripts want changed when the step is done.

    `changed`: a step that changes things outside has run; `changing`: one is running.
    """

    __slots__ = (
        "_call",
        "_checkers",
        "_context",
        "_lent",
        "_tools",
        "changed",
        "changing",
        "memory",
        "offered",
        "records",
    )

    def __init__(self, call: Call, context: Context, lent: Lent) -> None:
        config: Config = call.config
        self._call = call
        self._context = context
        self._lent = lent
        self._tools = config.tools
        self._checkers = {name: Checker(_object(tool)) for name, tool in config.tools.items()}
        self.offered: tuple[ModelTool, ...] = tuple(
            ModelTool(name, tool.description, _object(tool)) for name, tool in config.tools.items()
        )
        self.records: list[dict[str, Any]] = []
        self.memory: list[MemoryOp] = []
        self.changed = False
        self.changing = False

    @property
    def warnings(self) -> list[str]:
        """What a person should look at."""
        return self._lent.warnings

    async def prepare(self) -> None:
        """Meet the servers whose tools are lent. Raises NoServer; ModuleNotFoundError without the extra `mcp`."""
        self.offered += await self._lent.meet()

    async def use(self, made: ToolCall, round_: int) -> Message:
        """Do what the model wants, or tell it why not. Raises InDoubt."""
        self._context.progress(f"calls {made.name[:64]}")
        record: dict[str, Any] = {
            "round": round_,
            "tool": made.name[:64],
            "arguments": _cut(made.arguments, RECORD_CHARACTERS_MAX),
        }
        text, failed = await self._used(made, record)
        self.records.append({**record, "ok": not failed, "answer": _cut(text, RECORD_CHARACTERS_MAX)})
        return Message("tool", _cut(text, ANSWER_CHARACTERS_MAX), tool_call_id=made.id, failed=failed)

    async def _used(self, made: ToolCall, record: dict[str, Any]) -> tuple[str, bool]:
        tool, lent = self._tools.get(made.name), self._lent.tool(made.name)
        if tool is None and lent is None:
            return f"there is no such tool; there are: {', '.join(each.name for each in self.offered)}", True
        if len(self.records) >= CALLS_MAX:
            return f"no more than {CALLS_MAX} calls of tools; answer now", True
        arguments = arguments_of(made)
        if isinstance(arguments, NoAnswer):
            return arguments.message, True
        if lent is not None:
            return await self._borrowed(lent, arguments, record)
        assert tool is not None
        wrong = self._checkers[made.name].wrong(arguments)
        if wrong is not None:
            return f"the arguments don't fit their schema: {wrong}", True
        if tool.script is not None:
            return await self._script(tool.script, arguments)
        return await self._step(tool, arguments)

    async def _script(self, source: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        own = {"args": arguments}
        names = ChainMap(own, cast("dict[str, Any]", self._call.names))  # never written
        result = await self._context.evaluate(source, "script", names)
        if isinstance(result, Failure):
            return result.message, True
        self.memory += result.memory
        return _text(None if result.undefined else result.value), False

    async def _step(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        assert tool.step is not None
        number = len(self.records) + 1
        self.changing = tool.mutates
        outcome = await self._context.run_step(tool.step, arguments, number=number, mutates=tool.mutates)
        self.changing = False
        if isinstance(outcome, Done | Failed):
            self.memory += outcome.memory
        if isinstance(outcome, Done):
            self.changed = self.changed or tool.mutates
            return _text(None if outcome.output is UNSET else outcome.output), False
        if not isinstance(outcome, Failed):
            return "the tool waits for a person, which it can't here", True
        if tool.mutates and outcome.effect == "unknown":
            raise InDoubt(f"the tool '{tool.step}' broke off: {outcome.fault.message}")
        self.changed = self.changed or (tool.mutates and outcome.effect == "done")
        return outcome.fault.message, True

    async def _borrowed(
        self, tool: LentTool, arguments: Mapping[str, Any], record: dict[str, Any]
    ) -> tuple[str, bool]:
        self.changing = tool.mutates
        answered = await self._lent.use(tool, arguments, len(self.records) + 1)
        self.changing = False
        record |= answered.meta
        if tool.mutates and answered.effect == "unknown":
            raise InDoubt(f"the tool '{tool.name}' of '{tool.server}' broke off: {answered.text[:500]}")
        self.changed = self.changed or (tool.mutates and answered.effect == "done")
        return answered.text, answered.failed


def _object(tool: Tool) -> dict[str, Any]:
    return {"type": "object", **({"properties": {}} if not tool.parameters else {}), **tool.parameters}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else f"{text[:characters_max]}… ({len(text):,} characters)"
