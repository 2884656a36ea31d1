"""A whole workflow file (spec A.3, A.7): everything beside the steps."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, field

from gonogo.config.schema.base import (
    COUNT_MAX,
    Condition,
    Count,
    Env,
    LimitSeconds,
    Loops,
    Names,
    Noun,
    Parallel,
    Runs,
    Safety,
    Tag,
    number_as_text,
)
from gonogo.config.schema.blocks import Fail, FailureConditions
from gonogo.config.structs import Written

Depth = Annotated[int, Meta(ge=1, le=100)]
Items = Annotated[int, Meta(ge=1, le=10_000_000)]


class RoutingDefaults(Noun, frozen=True, kw_only=True):
    """Base of blocks that steps have."""

    on_fail: Annotated[Fail | None, Meta(description="Base of every on_fail block that a step has.")] = None


class Routing(Noun, frozen=True, kw_only=True):
    """Limits and defaults of routing."""

    max_loops: Annotated[Loops, Meta(description="Most routed re-entries per scope of the target.")] = 10
    defaults: Annotated[RoutingDefaults, Meta(description="Base of steps' blocks.")] = RoutingDefaults()


class Limits(Noun, frozen=True, kw_only=True):
    """Limits of a run."""

    max_runs_per_check: Annotated[
        Runs, Meta(description="Most runs of one step; 0 or less for no limit.")
    ] = 50
    max_workflow_depth: Annotated[Depth, Meta(description="Deepest nesting of workflows.")] = 3
    max_items: Annotated[Items, Meta(description="Most items one list may fan out over.")] = 200000


class Budget(Noun, frozen=True, kw_only=True):
    """What a run may spend in all, its child runs too; what is left out has no limit."""

    time: Annotated[
        LimitSeconds | None,
        Meta(description="Milliseconds, or text like 30m; waiting for a person doesn't count."),
    ] = None
    calls: Annotated[Count | None, Meta(description="Calls of steps.")] = None
    retries: Annotated[Count | None, Meta(description="Further attempts of all steps.")] = None
    tokens: Annotated[Count | None, Meta(description="Tokens, as step types report them.")] = None
    money: Annotated[
        Annotated[float, Meta(ge=0, le=COUNT_MAX)] | None,
        Meta(description="Cost, in whatever unit step types report it."),
    ] = None


class TagFilter(Noun, frozen=True, kw_only=True):
    """Which steps run, by tag."""

    include: Annotated[list[Tag], Meta(description="Steps with one of these, and untagged ones.")] = []
    exclude: Annotated[list[Tag], Meta(description="Steps with one of these never run.")] = []


class Memory(Noun, frozen=True, kw_only=True):
    """The run's memory. Doesn't act yet: memory is kept in the run's journal and lives as long as the run."""

    storage: Annotated[Literal["memory", "file"], Meta(description="file keeps it between runs.")] = "memory"
    format: Annotated[Literal["json", "csv"], Meta(description="Format of the file.")] = "json"
    file: Annotated[str | None, Meta(description="Path of the file.")] = None
    namespace: Annotated[str, Meta(description="Default namespace.")] = "default"
    auto_load: Annotated[bool, Meta(description="Read the file at the start.")] = True
    auto_save: Annotated[bool, Meta(description="Write the file after changes.")] = True


class Input(Noun, frozen=True, kw_only=True):
    """One input of a workflow file."""

    name: Annotated[str, Meta(description="Name under `inputs`.")]
    description: Annotated[str | None, Meta(description="For people.")] = None
    schema_: Annotated[Any, Meta(description="JSON Schema of the value.")] = field(
        name="schema", default=None
    )
    type: Annotated[str | None, Meta(description="Shorthand for schema: {type: …}.")] = None
    required: Annotated[bool, Meta(description="false: may be left out.")] = True
    default: Annotated[Any, Meta(description="Value when left out; makes it optional.")] = UNSET


class Output(Noun, frozen=True, kw_only=True):
    """One output of a workflow file."""

    name: Annotated[str, Meta(description="Name under the step's output.")]
    description: Annotated[str | None, Meta(description="For people.")] = None
    value: Annotated[Any, Meta(description="Template.")] = None
    value_js: Annotated[str | None, Meta(description="JavaScript value.")] = None


def _inputs_named(value: Any) -> Any:
    """As `_named`; an input alone (`a:`) takes any value."""
    if not isinstance(value, dict):
        return value
    for name, rest in value.items():
        if rest is not None and not isinstance(rest, dict):
            message = f"the input {str(name)[:80]!r} needs a mapping, such as {{type: string, default: …}}"
            raise ValueError(message)
    return _named({name: rest or {} for name, rest in value.items()})


def _named(value: Any) -> Any:
    """`{a: {…}}` is short for `[{name: a, …}]`."""
    if not isinstance(value, dict):
        return value
    return [
        {"name": name, **(rest if isinstance(rest, dict) else {"value": rest})}
        for name, rest in value.items()
    ]


class Document(Noun, frozen=True, kw_only=True):
    """A gonogo workflow file."""

    version: Annotated[str, Written(number_as_text, str | float), Meta(description="Version of the format.")]
    id: Annotated[str | None, Meta(description="Makes the file a workflow that others can import.")] = None
    name: Annotated[str | None, Meta(description="Name shown in reports.")] = None
    description: Annotated[str | None, Meta(description="For people.")] = None
    steps: Annotated[dict[str, Any], Meta(description="The steps by name, in order of preference.")] = {}
    extends: Annotated[Names, Meta(description="Files to start from.")] = []
    include: Annotated[Names, Meta(description="Same as extends.")] = []
    imports: Annotated[Names, Meta(description="Workflow files that steps may run.")] = []
    inputs: Annotated[
        list[Input],
        Written(_inputs_named, list[Input] | dict[str, Any]),
        Meta(description="What a workflow file takes, by name."),
    ] = []
    outputs: Annotated[
        list[Output],
        Written(_named, list[Output] | dict[str, Any]),
        Meta(description="What a workflow file gives, by name."),
    ] = []
    routing: Annotated[Routing, Meta(description="Limits and defaults of routing.")] = Routing()
    limits: Annotated[Limits, Meta(description="Limits of a run.")] = Limits()
    max_parallelism: Annotated[Parallel, Meta(description="Steps at a time.")] = 3
    max_ai_concurrency: Annotated[Parallel | None, Meta(description="Model calls at a time.")] = None
    fail_fast: Annotated[bool, Meta(description="Start nothing new after a final failure.")] = False
    fail_if: Annotated[Condition | None, Meta(description="Checked after every step; never gates.")] = None
    failure_conditions: Annotated[FailureConditions, Meta(description="Detectors of all steps.")] = {}
    tag_filter: Annotated[TagFilter, Meta(description="Which steps run, by tag.")] = TagFilter()
    env: Annotated[Env, Meta(description="Environment of all steps.")] = {}
    memory: Annotated[Memory | None, Meta(description="The run's memory. Doesn't act yet.")] = None
    safety: Annotated[
        Safety | None,
        Meta(
            description="strict: warnings are errors; off: no caps; standard unless a workflow around it says."
        ),
    ] = None
    budget: Annotated[Budget, Meta(description="What a run may spend in all.")] = Budget()
    reliability: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="Policies for outbound calls, by name; `default` holds for steps that name none."),
    ] = {}
    compensate_on: Annotated[
        list[Literal["no_go", "halted", "cancelled"]] | None,
        Meta(description="Ends of a run at which what was done is undone; no_go and halted if absent."),
    ] = None
    mode: Annotated[Literal["native"], Meta(description="The only mode there is.")] = "native"
    seed: Annotated[str | None, Meta(description="Seed of jitter; the run's id when left out.")] = None
    clock: Annotated[Literal["wall", "virtual"], Meta(description="virtual is for tests.")] = "wall"


# Known elsewhere, outside of what gonogo decides: accepted, and said so.
OUT_OF_SCOPE = frozenset(
    """
    output hooks ai_model ai_provider ai_mcp_servers tools http_server frontends workspace sandbox sandboxes
    sandbox_defaults slack telegram email whatsapp teams scheduler policy agent_protocol tests
    """.split()
)
OUT_OF_SCOPE_PREFIX = "task_"
