"""The keys of a github step, and what each operation does outside (spec E.8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gonogo.provider import ConfigProblem

Op = Literal[
    "labels.add",
    "labels.remove",
    "comment.create",
    "comment.update",
    "review.create",
    "checks.create",
    "checks.update",
    "status.create",
    "issues.list",
    "pr.get",
    "pr.files",
    "comments.list",
    "permissions",
]
READS = frozenset({"issues.list", "pr.get", "pr.files", "comments.list", "permissions"})
ITEMS_MAX = 10_000
ITEMS = 1000
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")

Line = Annotated[int, Meta(ge=1)]


def is_name(text: str) -> bool:
    """Whether an owner or a repository may be called so; a step up or down a path may not."""
    return _NAME.fullmatch(text) is not None and text not in (".", "..")


class Annotation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A remark of a check beside lines of a file, in GitHub's words."""

    path: Annotated[str, Meta(min_length=1, description="File, from the root of the repository.")]
    start_line: Annotated[int, Meta(ge=1, description="First line.")]
    end_line: Annotated[int | None, Meta(description="Last line; the first if absent.")] = None
    annotation_level: Annotated[
        Literal["notice", "warning", "failure"], Meta(description="How bad it is.")
    ] = "warning"
    message: Annotated[str, Meta(min_length=1, description="What to say.")]
    title: Annotated[str | None, Meta(description="Heading.")] = None
    raw_details: Annotated[str | None, Meta(description="More, shown on demand.")] = None
    start_column: Annotated[int | None, Meta(description="First column, of one line.")] = None
    end_column: Annotated[int | None, Meta(description="Last column, of one line.")] = None


class ReviewComment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A remark of a review beside lines of the change, in GitHub's words."""

    path: Annotated[str, Meta(min_length=1, description="File, from the root of the repository.")]
    body: Annotated[str, Meta(min_length=1, description="What to say.")]
    line: Annotated[int | None, Meta(description="Line; the last one of several.")] = None
    side: Annotated[Literal["LEFT", "RIGHT"] | None, Meta(description="Before or after the change.")] = None
    start_line: Annotated[int | None, Meta(description="First of several lines.")] = None
    start_side: Annotated[Literal["LEFT", "RIGHT"] | None, Meta(description="Side of start_line.")] = None


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a github step. Where it acts comes from the event unless it is said."""

    op: Annotated[Op, Meta(description="What to do.")]
    owner: Annotated[str | None, Meta(description="Owner of repo; the event's if absent.")] = None
    repo: Annotated[str | None, Meta(description="Repository, or owner/name; the event's if absent.")] = None
    number: Annotated[Line | None, Meta(description="Pull request or issue; the event's if absent.")] = None
    sha: Annotated[
        str | None, Meta(description="Commit of a check or status; the pull request's head if absent.")
    ] = None
    value: Annotated[str | None, Meta(description="A label, or the body.")] = None
    values: Annotated[
        str | list[str], Meta(description="Labels: a list, its JSON, or one a line; of a body the lines.")
    ] = []
    value_js: Annotated[
        str | None,
        Meta(description="JavaScript in place of value: labels, the body, or a check's annotations."),
    ] = None
    body: Annotated[str | None, Meta(description="Text of a comment or review, sent as it is.")] = None
    comment_id: Annotated[Line | None, Meta(description="Comment to update.")] = None
    event: Annotated[
        Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"] | None,
        Meta(description="What a review says; COMMENT if absent."),
    ] = None
    comments: Annotated[list[ReviewComment], Meta(description="A review's remarks beside lines.")] = []
    check_id: Annotated[Line | None, Meta(description="Check run to update.")] = None
    name: Annotated[str | None, Meta(description="Name of a check; the step's if absent.")] = None
    status: Annotated[
        Literal["queued", "in_progress", "completed"] | None,
        Meta(description="How far a check is; completed once it has a conclusion."),
    ] = None
    conclusion: Annotated[
        Literal["success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required"]
        | None,
        Meta(description="How a check ended."),
    ] = None
    title: Annotated[str | None, Meta(description="Heading of a check's page.")] = None
    summary: Annotated[str | None, Meta(description="A check's summary, Markdown.")] = None
    text: Annotated[str | None, Meta(description="A check's details, Markdown.")] = None
    annotations: Annotated[
        str | list[Annotation], Meta(description="A check's remarks beside lines; a text is JSON of them.")
    ] = []
    state: Annotated[
        Literal["error", "failure", "pending", "success"] | None, Meta(description="What a status says.")
    ] = None
    context: Annotated[
        str | None, Meta(description="Name of a status, which a later one replaces; gonogo if absent.")
    ] = None
    description: Annotated[str | None, Meta(description="A status in a few words (140 characters).")] = None
    details_url: Annotated[str | None, Meta(description="Where a check or status leads.")] = None
    user: Annotated[str | None, Meta(description="Whose permission; the event's author if absent.")] = None
    query: Annotated[
        Mapping[str, str | int | bool], Meta(description="More of a list's query (state, labels, since).")
    ] = {}
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=ITEMS_MAX)] | None,
        Meta(description="Most items of a list; 1,000 if absent."),
    ] = None
    token: Annotated[
        str | None,
        Meta(description="The token, as a reference; GITHUB_TOKEN if absent. It is in no record."),
    ] = None
    api_url: Annotated[
        str | None, Meta(description="The API of a GitHub of your own; GITHUB_API_URL if absent.")
    ] = None

    def __post_init__(self) -> None:
        """Names that lead nowhere else, and all that an operation can't do without."""
        if self.owner is not None and self.repo is None:
            raise ConfigProblem("owner", "an owner needs its `repo`, too")
        if self.op == "status.create" and self.state is None:
            raise ConfigProblem("state", "status.create needs a `state`: error, failure, pending or success")
        if self.op == "comment.update" and self.comment_id is None:
            raise ConfigProblem(
                "comment_id", "comment.update needs the `comment_id` (the output's `id` of comment.create)"
            )
        if self.op == "checks.update" and self.check_id is None:
            raise ConfigProblem(
                "check_id", "checks.update needs the `check_id` (the output's `id` of checks.create)"
            )
        if self.status == "completed" and self.conclusion is None:
            raise ConfigProblem("conclusion", "a completed check needs a `conclusion`")


def effects(config: Any) -> Literal["reads", "mutates"]:
    """All that isn't a read changes what others see."""
    return "reads" if config.op in READS else "mutates"
