"""One call of an mcp step from its beginning to its outcome: each attempt meets its server anew, through the gate.

Imported when a call is made: a file with such a step is read without the gate and without the `mcp` library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio
from msgspec.structs import replace

from gonogo.gate.failures import GateError
from gonogo.gate.policy import Bounds, Policy, Target, Timers
from gonogo.gate.step import Attempt, Step
from gonogo.provider import Call, Context, Done, Failed, Outcome
from gonogo.providers import _gated
from gonogo.providers._calling import LEAD_S, origin_of
from gonogo.providers._faults import fault
from gonogo.providers._output import read_json
from gonogo.providers._transform import TransformProblem, transform
from gonogo.providers.mcp import process, web
from gonogo.providers.mcp.config import DEFAULT_TIMEOUT_S, Config
from gonogo.providers.mcp.messages import Inbox, Trouble
from gonogo.providers.mcp.results import output_of, text_of

if TYPE_CHECKING:
    from gonogo.providers.mcp.talking import Progress, Used

RULE = "mcp/error"
_ERROR_CHARACTERS_MAX = 2000
_PLACE_CHARACTERS_MAX = 100


async def call_tool(call: Call, context: Context) -> Outcome:
    """Done with what the tool gave; Failed when it says that it failed, or when nothing comes of the call."""
    try:
        arguments = arguments_of(call.config)
    except ValueError as problem:
        return Failed(fault(call, "mcp.arguments", RULE, str(problem)))
    try:
        talking = await _library()
    except ModuleNotFoundError as problem:
        told = f"the package '{problem.name}' isn't installed: pip install 'gonogo[mcp]'"
        return Failed(fault(call, "mcp.not_installed", RULE, told))
    tries = _Tries(call, context, arguments, talking)
    step = Step(call.step, tries.invoke, effects=call.effects, key=call.key)
    try:
        answer = await context.gate(policy_of(call)).answer(step)
    except GateError as error:
        return tries.gave_up(error)
    used: Used = answer.value
    meta = {**used.about, **tries.stderr(), **_gated.meta_of(answer.record)}
    return await _read(call, context, used, meta)


def arguments_of(config: Config) -> Mapping[str, Any]:
    """The tool's arguments. Raises ValueError when `argsTransform` gave no JSON object."""
    if config.argsTransform is None:
        return config.methodArgs
    try:
        value = read_json(config.argsTransform)
    except ValueError as problem:
        raise ValueError(
            f"argsTransform gave no JSON: {problem}; put values in with the filter json: {{{{ x | json }}}}"
        ) from problem
    if not isinstance(value, dict):
        raise ValueError("argsTransform has to give a JSON object: the arguments by name")
    return value


def policy_of(call: Call) -> Policy:
    """One attempt, as long as the step allows, unless the workflow says more."""
    config: Config = call.config
    timeout_s = call.timeout_s or DEFAULT_TIMEOUT_S
    place = place_of(config)
    return Policy(
        targets=(Target(place, endpoint=place),),
        bounds=Bounds(attempts_per_target=1, attempts_max=1, deadline_s=timeout_s),
        timers=Timers(attempt_s=timeout_s),
        breaker=None,
    )


def place_of(config: Config) -> str:
    """Which server it is, for breakers and records: programs are told apart by their arguments, too."""
    if config.url is not None:
        return origin_of(config.url)
    words = " ".join((config.command or "", *config.args))
    if len(words) > _PLACE_CHARACTERS_MAX:
        words = f"{words[:_PLACE_CHARACTERS_MAX]}… {hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return f"stdio:{words}"


async def _library() -> ModuleType:
    """Importing it takes a second or two, in which other steps go on and a cancel is heard."""
    from importlib import import_module

    return await anyio.to_thread.run_sync(
        import_module, "gonogo.providers.mcp.talking", abandon_on_cancel=True
    )


class _Tries:
    """The attempts of one call; what the last one came to is kept for its fault."""

    __slots__ = ("_arguments", "_call", "_called", "_context", "_inbox", "_progress", "_stderr", "_talking")

    def __init__(
        self, call: Call, context: Context, arguments: Mapping[str, Any], talking: ModuleType
    ) -> None:
        self._call = call
        self._context = context
        self._arguments = arguments
        self._talking = talking
        self._inbox = Inbox(context.progress)
        self._progress: Progress = talking.Progress()
        self._called = False
        self._stderr = ""

    async def invoke(self, attempt: Attempt) -> Used:
        """One attempt. Its own limit comes just before the gate's, so that it says how far it got. Raises Trouble."""
        self._called = self._called or self._progress.called
        self._inbox = Inbox(self._context.progress)
        self._progress = self._talking.Progress()
        limit_s = max(attempt.timeout_s - LEAD_S, attempt.timeout_s / 2)
        ended: Used | Trouble | None = None
        async with self._server(attempt) as connection:
            with anyio.move_on_after(limit_s):
                ended = await self._talking.use(
                    connection, self._call.config.method, self._arguments, self._progress
                )
            self._stderr = connection.errors()
            if ended is None or (isinstance(ended, Trouble) and ended.kind != "bad-request"):
                connection.hurry()
        if ended is None:
            raise self._settled(self._late(limit_s))
        if isinstance(ended, Trouble):
            raise self._settled(ended)
        return ended

    def stderr(self) -> dict[str, str]:
        """What a started server wrote there, for the meta."""
        return {"stderr": self._stderr} if self._stderr else {}

    def gave_up(self, error: GateError) -> Failed:
        """What the last attempt came to, with what the gate adds; else what the gate itself says."""
        cause = error.__cause__
        if error.kind in ("deadline", "timeout-total") and error.attempts and not isinstance(cause, Trouble):
            cause = self._settled(self._late(self._call.timeout_s or DEFAULT_TIMEOUT_S))
        if not isinstance(cause, Trouble):
            return _gated.failed(self._call, RULE, error)
        of_call = fault(
            self._call,
            cause.fault_kind,
            RULE,
            f"{cause}{_more(error)}",
            fault_class=cause.fault_class,
            cause=cause.cause,
            retry_after_s=cause.retry_after_s,
        )
        return Failed(
            of_call,
            output={"error": True, "message": of_call.message},
            meta={**self.stderr(), **_gated.meta_of_error(error)},
            effect=error.effect if self._called or self._progress.called else "none",
        )

    def _server(self, attempt: Attempt) -> AbstractAsyncContextManager[Any]:
        if self._call.config.way == "stdio":
            return process.server(self._call, self._context, self._inbox)
        return web.server(self._call, self._inbox, attempt)

    def _late(self, limit_s: float) -> Trouble:
        what = f"the tool '{self._call.config.method}'" if self._progress.called else "the server"
        told = f"{what} didn't answer within {limit_s:.3g} s{self._inbox.hint()}"
        return Trouble("mcp.timeout", "timeout-total", told, fault_class="transient")

    def _settled(self, trouble: Trouble) -> Trouble:
        """With what happened outside: before the tool was called, nothing."""
        if trouble.effect is None:
            trouble.effect = "unknown" if self._progress.called else "none"
        return trouble


def _more(error: GateError) -> str:
    attempts = len(error.attempts)
    return f" (after {attempts} attempts)" if attempts > 1 else ""


async def _read(call: Call, context: Context, used: Used, meta: dict[str, Any]) -> Outcome:
    if used.failed:
        return _tool_failed(call, used, meta)
    warnings = _warnings(call, used)
    for warning in warnings:
        context.log("warn", warning)
    if warnings:
        meta = {**meta, "warnings": warnings}
    text = text_of(used.content)
    done = Done(output_of(used.content, used.structured), meta=meta, content=text or None)
    try:
        transformed = await transform(call, context, done.output)
    except TransformProblem as problem:
        of_call = fault(call, "mcp.transform", f"mcp/{problem.stage}_error", problem.message)
        return Failed(of_call, meta=meta, content=done.content, effect="done")
    return replace(done, output=transformed.value, memory=transformed.memory)


def _tool_failed(call: Call, used: Used, meta: dict[str, Any]) -> Failed:
    """The tool ran and says that it failed; what it did by then nobody knows. As with a command, that may pass."""
    text = text_of(used.content).strip()
    told = text[:_ERROR_CHARACTERS_MAX] or f"the tool '{call.config.method}' says that it failed, and not why"
    of_call = fault(call, "mcp.tool", "mcp/tool_error", told, fault_class="transient")
    return Failed(
        of_call,
        output={"error": True, "message": told, "result": output_of(used.content, used.structured)},
        meta=meta,
        content=text or None,
        effect="unknown",
    )


def _warnings(call: Call, used: Used) -> list[str]:
    """A server's hints decide nothing, but one that says more than the step does is worth a look."""
    if call.effects == "mutates" or not (used.hints.get("destroys") or used.hints.get("reads") is False):
        return []
    return [
        f"the step says that it changes nothing, but the server says that '{call.config.method}' changes things"
    ]
