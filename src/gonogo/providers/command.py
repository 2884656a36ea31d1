"""command: a shell command (spec E.2). Says what its ending means; starting and ending it is `_process.py`'s part.

The environment is gonogo's own, under the config's and the step's. Standard input is empty unless `stdin:`
gives text. What a command leaves running is ended with it; `_family.py` says how far that reaches, and how
to leave a server.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from gonogo.core.secrecy import is_inherited
from gonogo.provider import Call, Context, Done, Failed, Issue, Outcome, Provider
from gonogo.providers import _issues, _output, _process
from gonogo.providers._arguments import too_large
from gonogo.providers._faults import fault
from gonogo.providers._transform import TransformProblem, transform

RAW_BYTES_MAX = 64 * 1024
"""Output that isn't UTF-8 is kept beside its text as base64 up to this size."""
_STDERR_CHARACTERS_MAX = 4000
_LAST_LINES = 3
DEFAULT_TIMEOUT_S = 60.0


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a command step."""

    exec: Annotated[str, Meta(min_length=1, description="The shell command; a template. Exit code 0 passes.")]
    stdin: Annotated[str | None, Meta(description="Text for its standard input; a template.")] = None
    cwd: Annotated[str | None, Meta(description="Folder to run in, from where gonogo runs.")] = None
    parse: Annotated[
        Literal["auto", "json", "text"],
        Meta(description="auto: JSON where the output is or ends with JSON, else text."),
    ] = "auto"
    parse_issues: Annotated[
        bool, Meta(description="Take lists that look like findings as issues, not only the key issues.")
    ] = False
    transform: Annotated[str | None, Meta(description="Template that makes the output from `output`.")] = None
    transform_js: Annotated[
        str | None, Meta(description="JavaScript that makes the output from `output`.")
    ] = None


async def run(call: Call, context: Context) -> Outcome:
    """Done with what it printed; Failed when it can't start, runs out of time, or ends with another code than 0."""
    own = {name: text for name, text in os.environ.items() if is_inherited(name, os.environ)}
    environment = {**own, "GONOGO_IDEMPOTENCY_KEY": call.key, **call.env}
    problem = too_large(call.config.exec, call.env, environment)
    if problem is not None:
        return Failed(fault(call, "command.too_large", "command/execution_error", problem))
    started = time.monotonic()
    try:
        ended = await _process.run(_command(call, context, environment), context.progress)
    except _process.StartProblem as problem_at_start:
        return _not_started(call, problem_at_start)
    meta = _meta(call, context, ended)
    if ended.timed_out:
        return _timed_out(call, ended, meta, time.monotonic() - started)
    if ended.exit_code != 0:
        return _ended_badly(call, ended, meta)
    return await _ended_well(call, context, ended, meta)


def _command(call: Call, context: Context, environment: Mapping[str, str]) -> _process.Command:
    config: Config = call.config
    return _process.Command(
        arguments=("/bin/sh", "-c", config.exec),
        environment=environment,
        directory=os.path.join(context.working_directory, config.cwd or ""),
        stdin=None if config.stdin is None else config.stdin.encode("utf-8", "replace"),
        timeout_s=call.timeout_s,
    )


def _not_started(call: Call, problem: _process.StartProblem) -> Failed:
    fault_class: Literal["transient", "logical"] = "transient" if problem.transient else "logical"
    return Failed(
        fault(call, "command.start", "command/execution_error", problem.message, fault_class=fault_class)
    )


def _timed_out(call: Call, ended: _process.Ended, meta: dict[str, Any], took_s: float) -> Failed:
    message = f"the command took longer than {call.timeout_s:g} s and was ended"
    text = ended.stdout.text()
    return Failed(
        fault(call, "command.timeout", "command/timeout", message, fault_class="transient"),
        output={"error": True, "timeout": True, "message": message, "text": text},
        meta={**meta, "took_s": round(took_s, 3)},
        content=text,
        effect="unknown",
    )


def _ended_badly(call: Call, ended: _process.Ended, meta: dict[str, Any]) -> Failed:
    """Exit codes other than 0 count as execution failures, and those as transient (spec C.9 rule 5)."""
    stderr = ended.stderr.text().strip()
    how = f"ended by {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
    stdout = ended.stdout.text().strip()
    message = _tail(stderr) if stderr else f"the command failed: {how}" + _last_lines(stdout)
    output = {"error": True, "exit_code": ended.exit_code, "message": message, "text": stdout or stderr}
    if stdout:
        output["stdout"] = stdout
    return Failed(
        fault(call, "command.exit", "command/execution_error", message, fault_class="transient", cause=how),
        output=output,
        meta=meta,
        content=stdout or stderr,
        effect="unknown",
    )


async def _ended_well(call: Call, context: Context, ended: _process.Ended, meta: dict[str, Any]) -> Outcome:
    text = ended.stdout.text().strip()
    try:
        output = _parsed(call.config, text, ended.stdout)
    except ValueError as problem:
        message = f"`parse: json`, but the output isn't JSON: {problem}"
        return Failed(
            fault(call, "command.output", "command/execution_error", message), text, meta=meta, effect="done"
        )
    issues: Sequence[Issue] = ()
    if not call.for_each:
        output, issues = _issues.taken_from(output, parse_issues=call.config.parse_issues)
    done = Done(output, issues, meta, content=text if isinstance(output, str) else None)
    return await _transformed(call, context, done)


def _parsed(config: Config, text: str, stdout: _process.Stream) -> Any:
    """Raises ValueError under `parse: json`. A cut output is never guessed at."""
    if config.parse == "json":
        if stdout.dropped_bytes:
            raise ValueError(f"of {stdout.size_bytes:,} bytes only {_process.KEPT_BYTES_MAX:,} are kept")
        return _output.read_json(text)
    if config.parse == "text" or stdout.dropped_bytes:
        return text
    return _output.guess(text)


async def _transformed(call: Call, context: Context, done: Done) -> Outcome:
    try:
        transformed = await transform(call, context, done.output)
    except TransformProblem as problem:
        rule = f"command/{problem.stage}_error"
        failed = fault(call, "command.transform", rule, problem.message)
        return Failed(failed, issues=done.issues, meta=done.meta, content=done.content, effect="done")
    return replace(done, output=transformed.value, memory=transformed.memory)


def _meta(call: Call, context: Context, ended: _process.Ended) -> dict[str, Any]:
    meta: dict[str, Any] = {"exit_code": ended.exit_code}
    if ended.signal:
        meta["signal"] = ended.signal
    if ended.stderr.size_bytes:
        meta["stderr"] = _tail(ended.stderr.text().strip())
    for name, stream in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        meta.update(_about(name, stream))
    warnings = _warnings(ended)
    for warning in warnings:
        context.log("warn", warning)
    return {**meta, "warnings": warnings} if warnings else meta


def _about(name: str, stream: _process.Stream) -> dict[str, Any]:
    """What the text alone can't tell: the true size of a cut output, the bytes of one that isn't UTF-8."""
    facts: dict[str, Any] = {}
    if stream.dropped_bytes:
        facts[f"{name}_bytes"] = stream.size_bytes
    elif not stream.is_utf8 and stream.size_bytes <= RAW_BYTES_MAX:
        facts[f"{name}_base64"] = base64.b64encode(stream.head + stream.tail).decode("ascii")
    return facts


def _warnings(ended: _process.Ended) -> list[str]:
    warnings = []
    if ended.left_behind:
        count = len(ended.left_behind)
        warnings.append(f"{count} process{'es' if count > 1 else ''} left running by the command, ended")
    if ended.killed:
        warnings.append(f"{len(ended.killed)} process(es) didn't end on TERM and were killed")
    return warnings


def _last_lines(stdout: str) -> str:
    """What a command that is silent on stderr said last; many test tools report on stdout alone."""
    said = " | ".join(line.strip() for line in stdout.splitlines()[-_LAST_LINES:] if line.strip())
    return f"; it said last: {_tail(said)}" if said else ""


def _tail(text: str) -> str:
    """The end of a long text: what went wrong is said last."""
    return text if len(text) <= _STDERR_CHARACTERS_MAX else f"…{text[-_STDERR_CHARACTERS_MAX:]}"


PROVIDER = Provider(
    name="command",
    config=Config,
    run=run,
    templates=frozenset({"exec", "stdin"}),
    late_templates=frozenset({"transform"}),
    expressions={"transform_js": "value"},
    default_timeout_s=DEFAULT_TIMEOUT_S,
    own_timeout=True,
    summary="runs a shell command",
)
