"""A whole workflow file (spec A.3, A.7): everything beside the steps."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gonogo.config.schema.base import (
    Condition,
    Count,
    Env,
    Names,
    Noun,
    Positive,
    Tag,
    number_as_text,
)
from gonogo.config.schema.blocks import Fail, FailureConditions


# Validated like a written `{}`: an instance made here would build its class's validator at import.
def _empty() -> Any:
    return {}


class RoutingDefaults(Noun):
    """Base of blocks that steps have."""

    on_fail: Fail | None = Field(default=None, description="Base of every on_fail block that a step has.")


class Routing(Noun):
    """Limits and defaults of routing."""

    max_loops: Count = Field(default=10, description="Most routed re-entries per scope of the target.")
    defaults: RoutingDefaults = Field(
        default_factory=_empty, validate_default=True, description="Base of steps' blocks."
    )


class Limits(Noun):
    """Limits of a run."""

    max_runs_per_check: int = Field(default=50, description="Most runs of one step; 0 or less for no limit.")
    max_workflow_depth: Positive = Field(default=3, description="Deepest nesting of workflows.")
    max_items: Positive = Field(default=200_000, description="Most items one list may fan out over.")


class TagFilter(Noun):
    """Which steps run, by tag."""

    include: list[Tag] = Field(
        default_factory=list, description="Steps with one of these, and untagged ones."
    )
    exclude: list[Tag] = Field(default_factory=list, description="Steps with one of these never run.")


class Memory(Noun):
    """The run's memory. Doesn't act yet: memory is kept in the run's journal and lives as long as the run."""

    storage: Literal["memory", "file"] = Field(default="memory", description="file keeps it between runs.")
    format: Literal["json", "csv"] = Field(default="json", description="Format of the file.")
    file: str | None = Field(default=None, description="Path of the file.")
    namespace: str = Field(default="default", description="Default namespace.")
    auto_load: bool = Field(default=True, description="Read the file at the start.")
    auto_save: bool = Field(default=True, description="Write the file after changes.")


class Input(Noun):
    """One input of a workflow file."""

    name: str = Field(description="Name under `inputs`.")
    description: str | None = Field(default=None, description="For people.")
    schema_: Any = Field(default=None, alias="schema", description="JSON Schema of the value.")
    type: str | None = Field(default=None, description="Shorthand for schema: {type: …}.")
    required: bool = Field(default=True, description="false: may be left out.")
    default: Any = Field(default=None, description="Value when left out; makes it optional.")


class Output(Noun):
    """One output of a workflow file."""

    name: str = Field(description="Name under the step's output.")
    description: str | None = Field(default=None, description="For people.")
    value: Any = Field(default=None, description="Template.")
    value_js: str | None = Field(default=None, description="JavaScript value.")


def _named(value: Any) -> Any:
    """`{a: {…}}` is short for `[{name: a, …}]`."""
    if not isinstance(value, dict):
        return value
    return [
        {"name": name, **(rest if isinstance(rest, dict) else {"value": rest})}
        for name, rest in value.items()
    ]


class Document(Noun):
    """A gonogo workflow file."""

    version: Annotated[str, BeforeValidator(number_as_text, json_schema_input_type=str | float)] = Field(
        description="Version of the format."
    )
    id: str | None = Field(default=None, description="Makes the file a workflow that others can import.")
    name: str | None = Field(default=None, description="Name shown in reports.")
    description: str | None = Field(default=None, description="For people.")
    steps: dict[str, Any] = Field(
        default_factory=dict, description="The steps by name, in order of preference."
    )
    extends: Names = Field(default_factory=list, description="Files to start from.")
    include: Names = Field(default_factory=list, description="Same as extends.")
    imports: Names = Field(default_factory=list, description="Workflow files that steps may run.")
    inputs: Annotated[list[Input], BeforeValidator(_named)] = Field(
        default_factory=list, description="What a workflow file takes, by name."
    )
    outputs: Annotated[list[Output], BeforeValidator(_named)] = Field(
        default_factory=list, description="What a workflow file gives, by name."
    )
    routing: Routing = Field(
        default_factory=_empty, validate_default=True, description="Limits and defaults of routing."
    )
    limits: Limits = Field(default_factory=_empty, validate_default=True, description="Limits of a run.")
    max_parallelism: Positive = Field(default=3, description="Steps at a time.")
    max_ai_concurrency: Positive | None = Field(default=None, description="Model calls at a time.")
    fail_fast: bool = Field(default=False, description="Start nothing new after a final failure.")
    fail_if: Condition | None = Field(default=None, description="Checked after every step; never gates.")
    failure_conditions: FailureConditions = Field(default_factory=dict, description="Detectors of all steps.")
    tag_filter: TagFilter = Field(
        default_factory=_empty, validate_default=True, description="Which steps run, by tag."
    )
    env: Env = Field(default_factory=dict, description="Environment of all steps.")
    memory: Memory | None = Field(default=None, description="The run's memory. Doesn't act yet.")
    safety: Literal["off", "standard", "strict"] = Field(
        "standard", description="strict makes warnings errors."
    )
    mode: Literal["native"] = Field(default="native", description="The only mode there is.")
    seed: str | None = Field(default=None, description="Seed of jitter; the run's id when left out.")
    clock: Literal["wall", "virtual"] = Field(default="wall", description="virtual is for tests.")


# Known elsewhere, outside of what gonogo decides: accepted, and said so.
OUT_OF_SCOPE = frozenset(
    """
    output hooks ai_model ai_provider ai_mcp_servers tools http_server frontends workspace sandbox sandboxes
    sandbox_defaults slack telegram email whatsapp teams scheduler policy agent_protocol tests
    """.split()
)
OUT_OF_SCOPE_PREFIX = "task_"
