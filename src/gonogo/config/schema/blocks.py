"""on_success, on_fail, on_finish: what they run, retry and go to (spec A.4, C.9, C.10)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from gonogo.config.schema.base import Condition, Count, Event, Noun, Seconds, Tag


class RunItem(Noun):
    """A step or workflow to run, with the arguments it sees as `args`."""

    step: str | None = Field(default=None, description="Name of the step to run.")
    workflow: str | None = Field(default=None, description="Id of an imported workflow to run.")
    with_: dict[str, Any] = Field(
        default_factory=dict, alias="with", description="Arguments; text with {{ }} is a template."
    )

    @model_validator(mode="after")
    def _one_target(self) -> RunItem:
        if (self.step is None) == (self.workflow is None):
            raise ValueError("expected either step or workflow")
        return self


def _spelled_out(value: Any) -> Any:
    """`name` is short for `{step: name}`; one item is a list of one."""
    items = value if isinstance(value, list) else [value]
    return [{"step": item} if isinstance(item, str) else item for item in items]


RunItems = Annotated[
    list[RunItem], BeforeValidator(_spelled_out, json_schema_input_type=str | RunItem | list[str | RunItem])
]


class Transition(Noun):
    """`when` true: go `to` a step; `to: null` stops looking."""

    when: Condition = Field(description="JavaScript condition.")
    to: str | None = Field(default=None, description="Step to go to; null for none.")
    goto_event: Event | None = Field(default=None, description="Event the forward wave runs under.")


class Backoff(Noun):
    """How long to wait before an attempt."""

    mode: Literal["fixed", "exponential"] = Field(
        "fixed", description="exponential doubles the delay each time."
    )
    delay: Seconds | None = Field(
        default=None,
        validation_alias=AliasChoices("delay_ms", "delay"),
        description="Milliseconds, or text like 2s.",
    )
    max_delay: Seconds = Field(
        60.0, validation_alias=AliasChoices("max_delay_ms", "max_delay"), description="Never wait longer."
    )
    jitter: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.1, description="Share by which the delay varies."
    )


class Retry(Noun):
    """Further attempts at a failed step."""

    max: Count = Field(
        description="Further attempts after the first; at most 2 for critical steps, 3 for others."
    )
    backoff: Backoff | None = Field(default=None, description="Wait between attempts; none without it.")
    retry_on: list[Literal["transient", "logical"]] | None = Field(
        default=None, description="Classes of faults worth another attempt; transient when left out."
    )
    count: Literal["together", "separately"] = Field(
        "together", description="Whether attempts inside a call count against max."
    )


class Success(Noun):
    """What follows a step that passed; also the shape of on_finish."""

    run: RunItems = Field(default_factory=list, description="Steps to run next.")
    run_js: str | None = Field(default=None, description="JavaScript that gives a list of steps to run.")
    goto: str | None = Field(default=None, description="Step to go back or forward to.")
    goto_js: str | None = Field(
        default=None, description="JavaScript that gives the name of the step to go to."
    )
    goto_event: Event | None = Field(default=None, description="Event the forward wave runs under.")
    transitions: list[Transition] = Field(default_factory=list, description="First rule that holds wins.")


class Fail(Success):
    """What follows a step that failed."""

    retry: Retry | None = Field(default=None, description="Try the step again.")
    retry_on: list[Literal["transient", "logical"]] | None = Field(
        default=None, description="Same as retry.retry_on."
    )
    escalate: Tag | None = Field(
        default=None, description="Step to run once when nothing else helped. Doesn't act yet."
    )


class FailureCondition(Noun):
    """A named detector: true reports an issue."""

    condition: Condition = Field(description="JavaScript condition.")
    message: str | None = Field(default=None, description="What the issue says.")
    severity: Literal["info", "warning", "error"] = Field(
        default="error", description="error fails the step."
    )
    halt_execution: bool = Field(default=False, description="true stops the run.")


def _condition_only(value: Any) -> Any:
    return {"condition": value} if isinstance(value, (str, bool)) else value


FailureConditions = dict[
    str,
    Annotated[
        FailureCondition,
        BeforeValidator(_condition_only, json_schema_input_type=str | bool | FailureCondition),
    ],
]
