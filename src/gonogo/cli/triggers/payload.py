"""A webhook's body in GitHub's shape: which event it is, and what it says of the pull request or issue.

The body is hostile input: nothing of it is trusted to have a type, and texts are cut. Only what expressions are
promised gets through, never the whole body.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from gonogo.cli.triggers.shape import text
from gonogo.errors import UsageError

BODY_BYTES_MAX = 25 * 1024 * 1024
"""GitHub's own limit of a webhook's body."""

_PR_ACTIONS = {
    "opened": "pr_opened",
    "reopened": "pr_opened",
    "ready_for_review": "pr_opened",
    "closed": "pr_closed",
}
_NAMES = {
    "issue_comment": "issue_comment",
    "workflow_dispatch": "manual",
    "schedule": "schedule",
    "repository_dispatch": "webhook_received",
}
_PR_EVENTS = ("pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment")


class Payload(Struct, frozen=True):
    """What a body says. `event` is None when it is none that workflows know (a push, say)."""

    event: str | None
    trigger: dict[str, Any]
    pr: dict[str, Any] | None
    repository: str | None
    association: str | None
    hints: tuple[str, ...]


def read(path: Path, event_name: str | None) -> Payload:
    """The payload in a file; `event_name` is GitHub's name of the event, if it is known. Raises UsageError."""
    try:
        if not path.is_file() and os.path.exists(path):
            raise UsageError(f"the event's body {path} isn't a file")
        with path.open("rb") as file:
            data = file.read(BODY_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"the event's body {path} can't be read: {error.strerror or error}") from None
    if len(data) > BODY_BYTES_MAX:
        raise UsageError(f"the event's body {path} is larger than {BODY_BYTES_MAX:,} bytes")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError(f"the event's body {path} isn't JSON", advice="give the webhook's body") from None
    if not isinstance(body, dict):
        raise UsageError(f"the event's body {path} isn't a JSON object", advice="give the webhook's body")
    return parse(body, event_name)


def parse(body: Mapping[str, Any], event_name: str | None = None) -> Payload:
    """What a body says."""
    pull = _mapping(body, "pull_request")
    issue = _mapping(body, "issue")
    comment = _mapping(body, "comment") or _mapping(body, "review")
    name = _event(body, event_name)
    repository = text(_mapping(body, "repository").get("full_name"))
    said: dict[str, Any] = {"action": text(body.get("action"))}
    if repository is not None:
        said["repository"] = repository
    if comment:
        said["comment"] = {"body": text(comment.get("body")), "author": _login(comment)}
    if issue:
        said["issue"] = _issue(issue)
    if inputs := _mapping(body, "inputs"):
        said["inputs"] = {str(key): text(value) for key, value in list(inputs.items())[:100]}
    pr = _pull_request(pull) if pull else _pull_request_of(issue)
    association = next(
        (found for one in (comment, pull, issue) if (found := text(one.get("author_association")))), None
    )
    return Payload(name, said, pr, repository, association, _hints(body, pull))


def _event(body: Mapping[str, Any], event_name: str | None) -> str | None:
    """The name workflows use: by GitHub's name of the event where it is known, else by the body's shape."""
    action = text(body.get("action"))
    kind = event_name or _kind(body)
    if kind in _PR_EVENTS:
        return _PR_ACTIONS.get(action or "", "pr_updated")
    if kind == "issues":
        return "issue_opened" if action in ("opened", "reopened", None) else None
    return _NAMES.get(kind) if kind else None


def _kind(body: Mapping[str, Any]) -> str | None:
    for key, kind in (
        ("comment", "issue_comment"),
        ("pull_request", "pull_request"),
        ("issue", "issues"),
        ("schedule", "schedule"),
        ("client_payload", "repository_dispatch"),
        ("inputs", "workflow_dispatch"),
    ):
        if key in body:
            return (
                "pull_request"
                if key == "comment" and "issue" not in body and "pull_request" in body
                else kind
            )
    return None


def _pull_request(pull: Mapping[str, Any]) -> dict[str, Any]:
    head, base = _mapping(pull, "head"), _mapping(pull, "base")
    added, removed = _count(pull, "additions"), _count(pull, "deletions")
    return {
        "number": _count(pull, "number"),
        "title": text(pull.get("title")),
        "body": text(pull.get("body")),
        "author": _login(pull),
        "authorAssociation": text(pull.get("author_association")),
        "branch": text(head.get("ref")),
        "head": text(head.get("ref")),
        "sha": text(head.get("sha")),
        "base": text(base.get("ref")),
        "draft": pull.get("draft") is True,
        "merged": pull.get("merged") is True,
        "totals": {"additions": added, "deletions": removed, "changes": added + removed},
    }


def _pull_request_of(issue: Mapping[str, Any]) -> dict[str, Any] | None:
    """A comment on a pull request comes with an issue that says so; its branches aren't in the body."""
    if not _mapping(issue, "pull_request"):
        return None
    return {
        "number": _count(issue, "number"),
        "title": text(issue.get("title")),
        "body": text(issue.get("body")),
        "author": _login(issue),
        "authorAssociation": text(issue.get("author_association")),
    }


def _issue(issue: Mapping[str, Any]) -> dict[str, Any]:
    labels = issue.get("labels")
    named = [label for label in labels if isinstance(label, dict)] if isinstance(labels, list) else []
    return {
        "number": _count(issue, "number"),
        "title": text(issue.get("title")),
        "body": text(issue.get("body")),
        "author": _login(issue),
        "labels": [name for label in named[:100] if (name := text(label.get("name")))],
        "isPullRequest": bool(_mapping(issue, "pull_request")),
    }


def _hints(body: Mapping[str, Any], pull: Mapping[str, Any]) -> tuple[str, ...]:
    """Commits and branches the change may be compared with, best first."""
    base = _mapping(pull, "base")
    branch = text(base.get("ref"))
    found = (text(base.get("sha")), f"origin/{branch}" if branch else None, text(body.get("before")))
    return tuple(one for one in found if one and not one.startswith("-") and one.strip("0"))


def _login(thing: Mapping[str, Any]) -> str | None:
    return text(_mapping(thing, "user").get("login"))


def _mapping(thing: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = thing.get(key)
    return value if isinstance(value, dict) else {}


def _count(thing: Mapping[str, Any], key: str) -> int:
    value = thing.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0
