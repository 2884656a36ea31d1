"""script: JavaScript in the run's sandbox, with memory to read and write (spec E.3). It reaches nothing outside."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from gonogo.provider import UNSET, Call, ConfigProblem, Context, Done, Failed, Failure, Outcome, Provider
from gonogo.providers._faults import fault
from gonogo.providers._transform import told

DEFAULT_TIMEOUT_S = 10.0
_LIMITS = frozenset({"limit", "memory", "crash"})


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a script step. Scripts are never given a network, a shell or tools."""

    content: Annotated[
        str, Meta(min_length=1, description="The JavaScript; its returned or last value is the output.")
    ]
    enable_fetch: Annotated[bool, Meta(description="Refused when true: scripts reach nothing outside.")] = (
        False
    )
    enable_bash: Annotated[bool, Meta(description="Refused when true: scripts reach nothing outside.")] = (
        False
    )
    tools: Annotated[Any, Meta(description="Refused: scripts reach nothing outside.")] = None
    tools_js: Annotated[str | None, Meta(description="Refused: scripts reach nothing outside.")] = None

    def __post_init__(self) -> None:
        """Say so at load, instead of leaving a script to find out."""
        for key in ("enable_fetch", "enable_bash", "tools", "tools_js"):
            if getattr(self, key):
                message = "scripts reach nothing outside; use a command or http_client step before it"
                raise ConfigProblem(key, message)


async def run(call: Call, context: Context) -> Outcome:
    """The returned value, or the last expression's. Changes to memory are applied when the script is done."""
    result = await context.evaluate(call.config.content, "script", call.names)
    if isinstance(result, Failure):
        return _failed(call, result)
    for line in result.logs:
        context.log("info", line)
    return Done(
        UNSET if result.undefined else result.value,
        memory=result.memory,
        content=result.value if isinstance(result.value, str) else None,
        effect="none",
    )


def _failed(call: Call, failure: Failure) -> Failed:
    """A throw counts as an execution failure, so another attempt may be made (spec C.6, C.9 rule 5)."""
    kind = "script.limit" if failure.kind in _LIMITS else "script.error"
    rule = "script/execution_error"
    return Failed(fault(call, kind, rule, told(failure), fault_class="transient", cause=failure.kind))


PROVIDER = Provider(
    name="script",
    config=Config,
    run=run,
    effects="idempotent",
    expressions={"content": "script"},
    default_fanout="reduce",
    default_timeout_s=DEFAULT_TIMEOUT_S,
    inline=True,
    handles="passed",
    summary="runs JavaScript in the sandbox",
)
