"""A step's engine keys (spec A.4, A.7). The keys of its type are the provider's Config and not here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from gonogo.config.schema.base import (
    Condition,
    Conditions,
    CriticalityWord,
    Env,
    Event,
    Label,
    LimitSeconds,
    Loops,
    Noun,
    Parallel,
    Runs,
    SchemaValue,
    Tag,
)
from gonogo.config.schema.blocks import (
    Approvers,
    Escalate,
    Fail,
    FailureConditions,
    Init,
    Quorum,
    Remind,
    Success,
)
from gonogo.config.structs import Written


class Dependency(Noun, frozen=True, kw_only=True):
    """A step that must be settled first; `a|b` is satisfied by either."""

    step: Annotated[str, Meta(description="Step name, or several joined by |.")]
    on_failure: Annotated[
        Literal["block", "continue"], Meta(description="continue lets its failure pass.")
    ] = "block"


def _dependencies(value: Any) -> Any:
    items = value if isinstance(value, list) else [value]
    return [{"step": item} if isinstance(item, str) else item for item in items]


Dependencies = Annotated[list[Dependency], Written(_dependencies, str | Dependency | list[str | Dependency])]


class Step(Noun, frozen=True, kw_only=True):
    """One step of a workflow. Keys beside these belong to its type."""

    spellings: ClassVar[Mapping[str, str]] = MappingProxyType({"concurrency": "forEach_concurrency"})

    type: Annotated[str, Meta(description="What the step does; `gonogo providers` lists the types.")] = "ai"
    description: Annotated[str | None, Meta(description="For people.")] = None
    on: Annotated[list[Event] | None, Meta(description="Events it runs for; any when left out.")] = None
    tags: Annotated[
        list[Tag],
        Meta(description="Left out unless --tags names one; critical, external, internal, info infer."),
    ] = []
    group: Annotated[str | None, Meta(description="Group in reports.")] = None
    if_: Annotated[Condition | None, Meta(description="Run only when true; else skip.")] = field(
        name="if", default=None
    )
    assume: Annotated[Conditions, Meta(description="Preconditions; one that is false skips.")] = []
    guarantee: Annotated[Conditions, Meta(description="Postconditions; one that is false fails.")] = []
    fail_if: Annotated[Condition | None, Meta(description="Fails the step when true.")] = None
    failure_conditions: Annotated[FailureConditions, Meta(description="Named detectors.")] = {}
    depends_on: Annotated[Dependencies, Meta(description="Steps to settle first.")] = []
    continue_on_failure: Annotated[
        bool | None, Meta(description="Let dependents run although it failed.")
    ] = None
    criticality: Annotated[
        CriticalityWord | None, Meta(description="How much a failure matters; inferred if absent.")
    ] = None
    critical: Annotated[
        bool | None, Meta(description="true: external if it mutates, else internal. false: info.")
    ] = None
    mutates: Annotated[bool | None, Meta(description="Whether a call changes the outside.")] = None
    schema_: Annotated[
        SchemaValue | None, Meta(description="JSON Schema of the output, or the name of a renderer.")
    ] = field(name="schema", default=None)
    output_schema: Annotated[dict[str, Any] | None, Meta(description="Older name of schema.")] = None
    for_each: Annotated[bool, Meta(description="Its output is a list whose items fan out.")] = field(
        name="forEach", default=False
    )
    for_each_concurrency: Annotated[
        Parallel | None,
        Meta(description="Items at a time in a run; what their list says, else 1, if absent."),
    ] = field(name="forEach_concurrency", default=None)
    fanout: Annotated[
        Literal["map", "reduce"] | None, Meta(description="Behind a list: once per item, or once.")
    ] = None
    reduce: Annotated[bool | None, Meta(description="true is fanout: reduce.")] = None
    on_init: Annotated[Init | None, Meta(description="What to run before the step, once per run of it.")] = (
        None
    )
    on_success: Annotated[Success | None, Meta(description="What follows when it passed.")] = None
    on_fail: Annotated[Fail | None, Meta(description="What follows when it failed.")] = None
    on_finish: Annotated[
        Success | None, Meta(description="What follows when all items are done; needs forEach.")
    ] = None
    max_runs: Annotated[Runs | None, Meta(description="Most runs of this step; 0 or less for no limit.")] = (
        None
    )
    timeout: Annotated[LimitSeconds | None, Meta(description="Milliseconds, or text like 30s.")] = None
    start: Annotated[
        Literal["auto", "routed"], Meta(description="routed: only when another step routes to it.")
    ] = "auto"
    assume_mode: Annotated[Literal["skip", "fail"], Meta(description="What a false assume does.")] = "skip"
    guarantee_mode: Annotated[Literal["fail", "issue"], Meta(description="issue: recorded, not fatal.")] = (
        "fail"
    )
    schema_mode: Annotated[Literal["fail", "issue"], Meta(description="issue: recorded, not fatal.")] = "fail"
    idempotency_key: Annotated[str | None, Meta(description="Template of a key that holds across runs.")] = (
        None
    )
    secret_outputs: Annotated[
        list[str],
        Meta(
            description="Paths of the output that are secrets, `.` for all of it: sealed, for later calls alone."
        ),
    ] = []
    env: Annotated[Env, Meta(description="Environment; numbers and booleans become text.")] = {}
    allow_unescaped: Annotated[
        bool, Meta(description="Accept templates without shell_escape in a command.")
    ] = False
    loop_budget: Annotated[
        Loops | None, Meta(description="Most loops this step may ask for in a scope, in place of max_loops.")
    ] = None
    reliability: Annotated[
        str | dict[str, Any] | None,
        Meta(
            description="How its outbound calls are tried: a policy of the top's reliability, or one of its own."
        ),
    ] = None
    runs_on: Annotated[
        Label | None, Meta(description="Label of the workers that may perform it; a local run has none.")
    ] = None
    approvers: Annotated[
        Approvers, Meta(description="Who may answer: names, or patterns with * and ?; anybody if absent.")
    ] = []
    quorum: Annotated[
        Quorum | None,
        Meta(description="It is an approval: so many different people must say yes, one no is enough."),
    ] = None
    remind: Annotated[Remind | None, Meta(description="What to run while nobody has answered.")] = None
    escalate: Annotated[
        Escalate | None, Meta(description="Who may answer, too, when nobody has for long; whom to tell.")
    ] = None
    compensate: Annotated[
        str | None, Meta(description="Step that undoes this one when the run doesn't end well.")
    ] = None


# Keys other systems know on a step; they are about sessions, models and chat, outside of what gonogo decides.
OUT_OF_SCOPE = frozenset(
    """
    triggers schedule debounce debounce_key command reuse_ai_session session_mode sandbox policy focus ai
    ai_model ai_provider ai_mcp_servers template
    """.split()
)
