"""All that the author of a step type imports.

A step type is one file: a frozen Struct `Config`, an `async def run(call, context)` that returns Done,
Failed or Parked, and one `Provider(...)`. Built-in types are listed in `providers/table.py`; packages
outside register theirs under the entry point group `gonogo.providers`. The same contract test runs over
both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Struct, field

from gonogo.core.faults import Effect, Fault, Issue
from gonogo.core.plan import Effects
from gonogo.expressions.results import Failure, MemoryOp, Result, TemplateProblem, Value

if TYPE_CHECKING:
    from gonogo.gate import Gate, Policy

__all__ = [
    "UNSET",
    "Call",
    "ChildResult",
    "ConfigProblem",
    "Context",
    "Done",
    "Effect",
    "Effects",
    "Failed",
    "Failure",
    "Fault",
    "Issue",
    "MemoryOp",
    "Outcome",
    "Parked",
    "Provider",
    "Result",
    "TemplateProblem",
    "Value",
]


class ConfigProblem(ValueError):  # noqa: N818 - what is wrong with a value, in the words of errors.py
    """What is wrong with the value of a key, raised by a Config's `__post_init__`; a bare ValueError is about all."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


class Call(Struct, frozen=True):
    """One attempt at a step. `config` is the provider's Config after rendering.

    `env` is config and step env merged and rendered, text values; `timeout_s` the time the provider may
    take, None for no limit; `key` the idempotency key; `names` what an expression of this step would see.
    `templated` names the config fields whose texts held template tags, so their values may come from data;
    None means nobody looked, which counts as all. `schema`: the step's JSON Schema, which the host holds the output to.
    `depends_on` names the steps that this one waits for, in its own order. `effects`: what the step does outside, by
    its own word or its type's.
    """

    step: str
    scope: str
    execution: int
    attempt: int
    intent: str
    key: str
    config: Any
    env: Mapping[str, str]
    names: Mapping[str, Any]
    timeout_s: float | None = None
    for_each: bool = False
    templated: frozenset[str] | None = None
    schema: Any = None
    depends_on: tuple[str, ...] = ()
    effects: Effects = "mutates"

    def from_data(self, *fields: str) -> bool:
        """True when a value of one of these config fields may come from data (law 6: deny when unknown)."""
        return self.templated is None or not self.templated.isdisjoint(fields)


class Done(Struct, frozen=True):
    """The call worked. `output` UNSET: there is none; `meta` is `output_meta` (exit_code, status, headers…).

    `memory` is applied in order; with `yields_memory` the output is the last operation's result. `content`
    is text for people. `effect`: what happened outside. A warning worth keeping goes to `context.log` and
    to `meta["warnings"]` (a list of texts).
    """

    output: Any = UNSET
    issues: Sequence[Issue] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    memory: Sequence[MemoryOp] = ()
    yields_memory: bool = False
    content: str | None = None
    effect: Effect = "done"


class Failed(Struct, frozen=True):
    """The call failed; `output` may hold what is known (an error object, the text so far)."""

    fault: Fault
    output: Any = UNSET
    issues: Sequence[Issue] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    memory: Sequence[MemoryOp] = ()
    content: str | None = None
    effect: Effect = "none"


class Parked(Struct, frozen=True):
    """The call waits for a person, and nothing runs. On timeout `default` answers, else the step fails."""

    prompt: str
    details: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None
    default: str | None = None


Outcome = Done | Failed | Parked


class ChildResult(Struct, frozen=True):
    """How a child run ended: verdict GO, NO-GO or HOLD, its outputs, and its worst fault if any.

    `outputs` is a mapping of names, or the bare output of a workflow of one step that declares none (spec E.10 R2).
    `memory` is what the child changed of a memory that was shared with it, in order; empty unless it is GO.
    `usage`: calls, retries, tokens and cost of the child, where the run above it has a budget. `in_doubt`: it waits for
    somebody to say what became of a call.
    """

    run_id: str
    verdict: str
    outputs: Any
    fault: Fault | None = None
    waiting: Sequence[str] = ()
    memory: Sequence[MemoryOp] = ()
    usage: Mapping[str, float] = field(default_factory=dict)
    in_doubt: bool = False


class Context(Protocol):
    """What a host offers to a call. Nothing else of the world should be needed."""

    async def evaluate(self, source: str, kind: str, names: Mapping[str, Any]) -> Result:
        """Evaluate JavaScript (`kind` condition, value or script) in the run's sandbox, under `names`."""
        ...

    def render(self, text: str, names: Mapping[str, Any]) -> str:
        """Render a template. Raises `TemplateProblem`."""
        ...

    def log(self, level: str, text: str) -> None:
        """A line for the person who watches (debug, info, warn, error); redacted by the host."""
        ...

    def progress(self, text: str) -> None:
        """Show what the call is doing now; only the latest line is shown."""
        ...

    async def answer(self, prompt: str, *, multiline: bool, secret: bool) -> str | None:
        """Ask the person at hand (a --message, a terminal, piped input); None when there is nobody."""
        ...

    async def run_child(
        self,
        workflow: str,
        *,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any],
        shares_memory: bool = False,
    ) -> ChildResult:
        """Run (or go on with) the child run of this call; the same call always means the same child.

        With `shares_memory` it starts with a copy of this run's memory; what it changes comes back in the result.
        """
        ...

    async def run_step(
        self, step: str, arguments: Mapping[str, Any], *, number: int, mutates: bool = False
    ) -> Outcome:
        """Run another step of the workflow as a part of this call; it sees `arguments` as `args`.

        `number` tells uses within this call apart. One that changes things is refused unless `mutates`. It is no step
        of the run by that: what came of it is for this call's output and meta.
        """
        ...

    async def pace(self, key: str, requests: int, per_s: float) -> None:
        """Wait until one more request under this key is within `requests` in `per_s`, counted over the run and its
        children.
        """
        ...

    def gate(self, default: Policy | None = None) -> Gate:
        """The gate that this call's requests go through: the step's own policy, else `default`, else one attempt.

        A policy that names no targets takes those of `default`. The call's time limit is the gate's deadline.
        """
        ...

    @property
    def working_directory(self) -> str:
        """Where relative paths start: the folder `gonogo` was started in."""
        ...


class Provider(Struct, frozen=True):
    """A step type.

    `config`: Struct of the type's own keys, frozen and closed. `templates`: names of config fields whose texts (at
    any depth) are Liquid and rendered before the call; `late_templates`: those the provider renders
    itself, because they see what the call gave (`transform` sees `output`): checked at load, not rendered
    by the host. `references`: names of config fields in whose texts `${{ env.X }}`, `${X}` and `$X` stand
    for variables of the environment, secrets included (spec E.6); never of fields that a shell reads. `secrets`: keys,
    at any depth of the config, whose text has to be such a reference: a file is no place for a secret.
    `expressions`: config field → kind (condition, value, script) for the load-time check. `effects`: what
    a call with this config does outside; None means it can't be known and counts as repeatable
    ("idempotent"). `own_timeout`: the provider ends itself in time (it wants to keep partial output); the
    host only backs it up. `inline`: `run` waits for nothing but `context.evaluate`, so that no task is needed for it.
    `gated`: it calls out through `context.gate`, so that a step's `reliability` has a meaning; what it changes outside
    by mutating attempts it changes by nothing else, for a resume goes by what became of them.
    `local_only`: it needs the process that runs the workflow (a child run, the person at hand), so no other worker
    performs it. `handles`: what handles of secret outputs are to its calls. "opened": its templates are given the
    secrets, and a handle in what it gives is none; "shown": they say where a secret came from, and no more; "passed":
    they go in and come out as they are, for a type that works only within the run. `needs_names`: False when
    `call.names` is never read, so that the host need not build it. `needs`:
    Python modules that gonogo doesn't bring, each with what installs it; where one is missing, files are refused.
    `needs_for`: the same for a key of the config, where a step has it.
    """

    name: str
    config: type[msgspec.Struct]
    run: Callable[[Call, Context], Awaitable[Outcome]]
    effects: Effects | Callable[[Any], Effects] = "idempotent"
    templates: frozenset[str] = frozenset()
    late_templates: frozenset[str] = frozenset()
    references: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    expressions: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    default_fanout: str = "map"
    default_timeout_s: float | None = None
    own_timeout: bool = False
    needs_names: bool = True
    inline: bool = False
    gated: bool = False
    local_only: bool = False
    handles: Literal["opened", "shown", "passed"] = "opened"
    needs: Mapping[str, str] = field(default_factory=dict)
    needs_for: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    summary: str = ""

    def checked(self, config: Mapping[str, Any]) -> Any:
        """The Config of a call. Text that a template gave stands for the number or boolean that is due.

        Raises `msgspec.ValidationError`.
        """
        return msgspec.convert(dict(config), self.config, strict=False)

    def effects_of(self, config: Any) -> Effects:
        """What a call with this config does outside."""
        return self.effects if isinstance(self.effects, str) else self.effects(config)
