"""on_success, on_fail, on_finish: what they run, retry and go to (spec A.4, C.9, C.10)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from gonogo.config.schema.base import Condition, DelaySeconds, Event, LimitSeconds, Noun, one_or_many
from gonogo.config.structs import Written


class RunItem(Noun, frozen=True, kw_only=True):
    """A step or workflow to run, with the arguments it sees as `args`."""

    step: Annotated[str | None, Meta(description="Name of the step to run.")] = None
    workflow: Annotated[str | None, Meta(description="Id of an imported workflow to run.")] = None
    with_: Annotated[dict[str, Any], Meta(description="Arguments; text with {{ }} is a template.")] = field(
        name="with", default={}
    )

    overrides: Annotated[
        dict[str, Any] | None, Meta(description="Keys to replace in the workflow's steps, by step.")
    ] = None
    output_mapping: Annotated[
        dict[str, str] | None, Meta(description="New names of the workflow's outputs: {name: output}.")
    ] = None

    def __post_init__(self) -> None:
        if (self.step is None) == (self.workflow is None):
            raise ValueError("expected either step or workflow")
        if self.workflow is None and (self.overrides is not None or self.output_mapping is not None):
            raise ValueError("overrides and output_mapping are for a workflow")


def _spelled_out(value: Any) -> Any:
    """`name` is short for `{step: name}`; one item is a list of one."""
    items = value if isinstance(value, list) else [value]
    return [{"step": item} if isinstance(item, str) else item for item in items]


RunItems = Annotated[list[RunItem], Written(_spelled_out, str | RunItem | list[str | RunItem])]


ON_INIT_ITEMS_MAX = 50
"""What a step may have run before it, items of lists counted each (spec C.10 R8)."""


class InitItem(RunItem, frozen=True, kw_only=True):
    """A step or workflow to run before a step, with the arguments it sees as `args`."""

    as_: Annotated[str | None, Meta(description="Name of its output for the step; its own if absent.")] = (
        field(name="as", default=None)
    )


InitItems = Annotated[
    list[InitItem],
    Meta(max_length=ON_INIT_ITEMS_MAX),
    Written(_spelled_out, str | InitItem | list[str | InitItem]),
]


class Init(Noun, frozen=True, kw_only=True):
    """What runs before a step, once per run of it: in order, each to its end."""

    run: Annotated[InitItems, Meta(description="Steps to run, in order.")] = []
    run_js: Annotated[str | None, Meta(description="JavaScript that gives a list of steps to run.")] = None

    def __post_init__(self) -> None:
        if not self.run and self.run_js is None:
            raise ValueError("expected run or run_js")


class Transition(Noun, frozen=True, kw_only=True):
    """`when` true: go `to` a step; `to: null` stops looking."""

    when: Annotated[Condition, Meta(description="JavaScript condition.")]
    to: Annotated[str | None, Meta(description="Step to go to; null for none.")] = None
    goto_event: Annotated[Event | None, Meta(description="Event the forward wave runs under.")] = None


class Backoff(Noun, frozen=True, kw_only=True):
    """How long to wait before an attempt."""

    spellings: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"delay": "delay_ms", "max_delay": "max_delay_ms"}
    )

    mode: Annotated[
        Literal["fixed", "exponential"], Meta(description="exponential doubles the delay each time.")
    ] = "fixed"
    delay: Annotated[DelaySeconds | None, Meta(description="Milliseconds, or text like 2s.")] = field(
        name="delay_ms", default=None
    )
    max_delay: Annotated[DelaySeconds, Meta(description="Never wait longer.")] = field(
        name="max_delay_ms", default=60.0
    )
    jitter: Annotated[float, Meta(ge=0, le=1, description="Share by which the delay varies.")] = 0.1

    def __post_init__(self) -> None:
        if self.delay is not None and self.delay > self.max_delay:
            raise ValueError(
                f"the delay, {self.delay:g} s, is more than max_delay_ms allows, {self.max_delay:g} s"
            )


RETRIES_MAX = 1000
"""More than this is a mistake, whatever the criticality allows (law 2)."""


class AfterRetries(Noun, frozen=True, kw_only=True):
    """Where the run goes when the last attempt failed."""

    goto: Annotated[str, Meta(description="Step to go to.")]


class Retry(Noun, frozen=True, kw_only=True):
    """Further attempts at a failed step."""

    max: Annotated[
        Annotated[int, Meta(ge=0, le=RETRIES_MAX)],
        Meta(description="Further attempts after the first; at most 2 for critical steps, 3 for others."),
    ]
    backoff: Annotated[Backoff | None, Meta(description="Wait between attempts; none without it.")] = None
    retry_on: Annotated[
        list[Literal["transient", "logical"]] | None,
        Meta(description="Classes of faults worth another attempt; transient when left out."),
    ] = None
    count: Annotated[
        Literal["together", "separately"],
        Meta(description="Whether attempts inside a call count against max."),
    ] = "together"
    exhausted: Annotated[
        Literal["fail", "continue", "hold"] | AfterRetries,
        Meta(
            description="After the last one it stands, is tolerated, a person decides, or the run goes elsewhere."
        ),
    ] = "fail"


class Success(Noun, frozen=True, kw_only=True):
    """What follows a step that passed; also the shape of on_finish."""

    run: Annotated[RunItems, Meta(description="Steps to run next.")] = []
    run_js: Annotated[str | None, Meta(description="JavaScript that gives a list of steps to run.")] = None
    goto: Annotated[str | None, Meta(description="Step to go back or forward to.")] = None
    goto_js: Annotated[
        str | None, Meta(description="JavaScript that gives the name of the step to go to.")
    ] = None
    goto_event: Annotated[Event | None, Meta(description="Event the forward wave runs under.")] = None
    transitions: Annotated[list[Transition], Meta(description="First rule that holds wins.")] = []


class Fail(Success, frozen=True, kw_only=True):
    """What follows a step that failed."""

    retry: Annotated[Retry | None, Meta(description="Try the step again.")] = None
    retry_on: Annotated[
        list[Literal["transient", "logical"]] | None, Meta(description="Same as retry.retry_on.")
    ] = None
    escalate: Annotated[
        str | None, Meta(description="Step to run once when nothing else helped; the failure stands.")
    ] = None


class FailureCondition(Noun, frozen=True, kw_only=True):
    """A named detector: true reports an issue."""

    condition: Annotated[Condition, Meta(description="JavaScript condition.")]
    message: Annotated[str | None, Meta(description="What the issue says.")] = None
    severity: Annotated[Literal["info", "warning", "error"], Meta(description="error fails the step.")] = (
        "error"
    )
    halt_execution: Annotated[bool, Meta(description="true stops the run.")] = False


Approver = Annotated[str, Meta(min_length=1, max_length=100)]
Approvers = Annotated[list[Approver], Meta(max_length=100), Written(one_or_many, str | list[str])]
Quorum = Annotated[int, Meta(ge=1, le=100)]
REMINDERS_MAX = 100
"""More than anybody reads (law 2)."""


class Remind(Noun, frozen=True, kw_only=True):
    """A step to run again and again while nobody has answered."""

    every: Annotated[LimitSeconds, Meta(description="Time between two reminders, such as 4h.")]
    run: Annotated[str, Meta(description="Step that reminds; it sees what is waited for as args.")]
    max: Annotated[
        Annotated[int, Meta(ge=1, le=REMINDERS_MAX)], Meta(description="Most reminders in one wait.")
    ] = 5


class Escalate(Noun, frozen=True, kw_only=True):
    """What changes when nobody has answered for long; the wait goes on."""

    after: Annotated[LimitSeconds, Meta(description="Time after which it happens, such as 1d.")]
    run: Annotated[str | None, Meta(description="Step to run then, once.")] = None
    approvers: Annotated[Approvers, Meta(description="Who may answer from then on, too.")] = []
    quorum: Annotated[Quorum | None, Meta(description="How many must say yes from then on.")] = None

    def __post_init__(self) -> None:
        if self.run is None and not self.approvers and self.quorum is None:
            raise ValueError("expected run, approvers or quorum")


def _condition_only(value: Any) -> Any:
    return {"condition": value} if isinstance(value, (str, bool)) else value


FailureConditions = dict[
    str,
    Annotated[FailureCondition, Written(_condition_only, str | bool | FailureCondition)],
]
