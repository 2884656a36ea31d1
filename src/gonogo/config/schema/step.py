"""A step's engine keys (spec A.4, A.7). The keys of its type are the provider's Config and not here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from gonogo.config.schema.base import (
    Condition,
    Conditions,
    CriticalityWord,
    Env,
    Event,
    Noun,
    Positive,
    SchemaValue,
    Seconds,
    Tag,
)
from gonogo.config.schema.blocks import Fail, FailureConditions, Success


class Dependency(Noun):
    """A step that must be settled first; `a|b` is satisfied by either."""

    step: str = Field(description="Step name, or several joined by |.")
    on_failure: Literal["block", "continue"] = Field(
        default="block", description="continue lets its failure pass."
    )


def _dependencies(value: Any) -> Any:
    items = value if isinstance(value, list) else [value]
    return [{"step": item} if isinstance(item, str) else item for item in items]


Dependencies = Annotated[
    list[Dependency],
    BeforeValidator(_dependencies, json_schema_input_type=str | Dependency | list[str | Dependency]),
]


class Step(Noun):
    """One step of a workflow. Keys beside these belong to its type."""

    type: str = Field(default="ai", description="What the step does; `gonogo providers` lists the types.")
    description: str | None = Field(default=None, description="For people.")
    on: list[Event] | None = Field(default=None, description="Events it runs for; any when left out.")
    tags: list[Tag] = Field(
        default_factory=list, description="For --tags; critical, external, internal, info infer."
    )
    group: str | None = Field(default=None, description="Group in reports.")
    if_: Condition | None = Field(default=None, alias="if", description="Run only when true; else skip.")
    assume: Conditions = Field(default_factory=list, description="Preconditions; one that is false skips.")
    guarantee: Conditions = Field(
        default_factory=list, description="Postconditions; one that is false fails."
    )
    fail_if: Condition | None = Field(default=None, description="Fails the step when true.")
    failure_conditions: FailureConditions = Field(default_factory=dict, description="Named detectors.")
    depends_on: Dependencies = Field(default_factory=list, description="Steps to settle first.")
    continue_on_failure: bool | None = Field(
        default=None, description="Let dependents run although it failed."
    )
    criticality: CriticalityWord | None = Field(
        default=None, description="How much a failure matters; inferred if absent."
    )
    critical: bool | None = Field(
        default=None, description="true: external if it mutates, else internal. false: info."
    )
    mutates: bool | None = Field(default=None, description="Whether a call changes the outside.")
    schema_: SchemaValue | None = Field(
        default=None, alias="schema", description="JSON Schema of the output, or the name of a renderer."
    )
    output_schema: dict[str, Any] | None = Field(default=None, description="Older name of schema.")
    for_each: bool = Field(
        default=False, alias="forEach", description="Its output is a list whose items fan out."
    )
    for_each_concurrency: Positive | None = Field(
        default=None,
        validation_alias=AliasChoices("forEach_concurrency", "concurrency"),
        description="Items at a time; 1 when left out.",
    )
    fanout: Literal["map", "reduce"] | None = Field(
        default=None, description="Behind a list: once per item, or once."
    )
    reduce: bool | None = Field(default=None, description="true is fanout: reduce.")
    on_init: dict[str, Any] | None = Field(
        default=None, description="What to run before the step. Doesn't act yet."
    )
    on_success: Success | None = Field(default=None, description="What follows when it passed.")
    on_fail: Fail | None = Field(default=None, description="What follows when it failed.")
    on_finish: Success | None = Field(
        default=None, description="What follows when all items are done; needs forEach."
    )
    max_runs: int | None = Field(default=None, description="Most runs of this step; 0 or less for no limit.")
    timeout: Seconds | None = Field(default=None, description="Milliseconds, or text like 30s.")
    start: Literal["auto", "routed"] = Field(
        "auto", description="routed: only when another step routes to it."
    )
    assume_mode: Literal["skip", "fail"] = Field(default="skip", description="What a false assume does.")
    guarantee_mode: Literal["fail", "issue"] = Field(
        default="fail", description="issue: recorded, not fatal."
    )
    schema_mode: Literal["fail", "issue"] = Field(default="fail", description="issue: recorded, not fatal.")
    idempotency_key: str | None = Field(default=None, description="Template of a key that holds across runs.")
    secret_outputs: list[str] = Field(
        default_factory=list,
        description="Paths of the output to mask: kept nowhere, not for later steps either.",
    )
    env: Env = Field(default_factory=dict, description="Environment; numbers and booleans become text.")
    allow_unescaped: bool = Field(
        default=False, description="Accept templates without shell_escape in a command."
    )
    loop_budget: Positive | None = Field(
        default=None, description="Most loops this step may drive. Doesn't act yet."
    )
    compensate: str | None = Field(default=None, description="Step that undoes this one. Doesn't act yet.")


# Keys other systems know on a step; they are about sessions, models and chat, outside of what gonogo decides.
OUT_OF_SCOPE = frozenset(
    """
    triggers schedule debounce debounce_key command reuse_ai_session session_mode sandbox policy focus ai
    ai_model ai_provider ai_mcp_servers template
    """.split()
)
