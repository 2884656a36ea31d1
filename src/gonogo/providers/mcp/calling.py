"""One call of an mcp step from its beginning to its outcome: each attempt meets its server anew, through the gate.

Imported when a call is made: a file with such a step is read without the gate and without the `mcp` library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gonogo.gate.failures import GateError
from gonogo.gate.step import Step
from gonogo.provider import Call, Context, Done, Failed, Outcome
from gonogo.providers import _gated
from gonogo.providers._faults import fault
from gonogo.providers._mcp.messages import Trouble
from gonogo.providers._mcp.results import output_of, text_of
from gonogo.providers._mcp.server import Server, policy_of
from gonogo.providers._mcp.tries import Tries, library
from gonogo.providers._output import read_json
from gonogo.providers._transform import TransformProblem, transform
from gonogo.providers.mcp.config import DEFAULT_TIMEOUT_S, Config

if TYPE_CHECKING:
    from gonogo.providers._mcp.talking import Connection, Progress, Used

RULE = "mcp/error"
_ERROR_CHARACTERS_MAX = 2000


async def call_tool(call: Call, context: Context) -> Outcome:
    """Done with what the tool gave; Failed when it says that it failed, or when nothing comes of the call."""
    try:
        arguments = arguments_of(call.config)
    except ValueError as problem:
        return Failed(fault(call, "mcp.arguments", RULE, str(problem)))
    try:
        talking = await library()
    except ModuleNotFoundError as problem:
        told = f"the package '{problem.name}' isn't installed: pip install 'gonogo[mcp]'"
        return Failed(fault(call, "mcp.not_installed", RULE, told))
    server, tool = server_of(call), call.config.method

    async def ask(connection: Connection, progress: Progress) -> Used | Trouble:
        found: Used | Trouble = await talking.use(connection, tool, arguments, progress)
        return found

    tries = Tries(server, context, talking, f"the tool '{tool}'", ask)
    step = Step(call.step, tries.invoke, effects=call.effects, key=call.key)
    try:
        answer = await context.gate(policy_of(server, call.timeout_s or DEFAULT_TIMEOUT_S)).answer(step)
    except GateError as error:
        return _gave_up(call, tries, error)
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


def server_of(call: Call) -> Server:
    """The server that the step names, with what it gives to one that is started."""
    config: Config = call.config
    return Server(
        call.key,
        config.max_response_bytes,
        config.command,
        tuple(config.args),
        config.cwd or "",
        call.env,
        config.url or "",
        config.headers,
        config.auth,
        call.from_data("url"),
        config.allow_private,
    )


def _gave_up(call: Call, tries: Tries[Used], error: GateError) -> Failed:
    """What the last attempt came to, with what the gate adds; else what the gate itself says."""
    cause = tries.cause(error, call.timeout_s or DEFAULT_TIMEOUT_S)
    if cause is None:
        return _gated.failed(call, RULE, error)
    of_call = fault(
        call,
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
        meta={**tries.stderr(), **_gated.meta_of_error(error)},
        effect=error.effect if tries.called else "none",
    )


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
