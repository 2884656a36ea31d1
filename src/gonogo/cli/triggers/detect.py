"""Puts event and change together. What was asked for wins over the payload, the payload over GitHub Actions'
environment, that over git. With no event from any of them the run has none, and no step's `on` is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from gonogo.cli.triggers import payload as payloads
from gonogo.cli.triggers.git import Change, change_in
from gonogo.cli.triggers.payload import Payload
from gonogo.cli.triggers.shape import change_names, text, totals
from gonogo.errors import UsageError


class Asked(Struct, frozen=True):
    """What the command line says: `--event`, `--payload`, `--base`."""

    event: str | None = None
    payload: Path | None = None
    base: str | None = None


CODE_REVIEW = "code-review"
"""The `schema` of steps that report on a change."""


class Detected(Struct, frozen=True):
    """`trigger` is None for no event; `context` goes into the run as it is; `notes` are for the person."""

    trigger: dict[str, Any] | None
    context: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def detect(asked: Asked, environment: Mapping[str, str], folder: Path) -> Detected:
    """Event and change. Raises UsageError when the event is none, or the payload or the base can't be used."""
    if asked.event not in (None, "all"):
        _refuse_unknown(str(asked.event))
    payload = _payload(asked, environment)
    hints = (*(payload.hints if payload else ()), *_base_of_actions(environment))
    change = change_in(folder, base=asked.base, environment=environment, hints=hints)
    return Detected(
        _trigger(asked, payload, environment),
        _context(payload, change, environment),
        change.notes if change else (),
    )


def for_plan(detected: Detected, asked: Asked, renderers: Iterable[str | None]) -> Detected:
    """A workflow that reviews code is about an updated pull request where nothing says otherwise (spec C.2 R10)."""
    if detected.trigger is not None or asked.event is not None or CODE_REVIEW not in renderers:
        return detected
    return replace(detected, trigger={"name": "pr_updated", "event_name": "pr_updated"})


def _refuse_unknown(event: str) -> None:
    """An event that no `on` can list would leave such steps out, and a gate without them says GO."""
    from gonogo.config.collect import nearest
    from gonogo.config.schema.base import Event

    known = get_args(Event)
    if event not in known:
        near = nearest(event, known)
        advice = f"did you mean {near}?" if near else f"it is one of {', '.join(known)}, or all for no event"
        raise UsageError(f"there is no event {event!r} (--event)", advice=advice)


def _payload(asked: Asked, environment: Mapping[str, str]) -> Payload | None:
    name = environment.get("GITHUB_EVENT_NAME") or None
    if asked.payload is not None:
        return payloads.read(asked.payload, name)
    path = environment.get("GITHUB_EVENT_PATH")
    if not path or environment.get("GITHUB_ACTIONS") != "true":
        return None
    return payloads.read(Path(path), name)


def _trigger(asked: Asked, payload: Payload | None, environment: Mapping[str, str]) -> dict[str, Any] | None:
    name = asked.event or (payload.event if payload else None)
    if name is None or (asked.event == "all"):
        return None
    repository = environment.get("GITHUB_REPOSITORY")
    said = {key: value for key, value in payload.trigger.items() if value is not None} if payload else {}
    if repository and "repository" not in said:
        said["repository"] = repository
    return {"name": name, "event_name": name, **said}


def _base_of_actions(environment: Mapping[str, str]) -> Sequence[str]:
    base = environment.get("GITHUB_BASE_REF")
    return (f"origin/{base}", base) if base else ()


def _context(
    payload: Payload | None, change: Change | None, environment: Mapping[str, str]
) -> dict[str, Any]:
    files = change.files if change else ()
    pr = _pr(payload, change)
    branch = (pr or {}).get("branch") or _branch(change, environment)
    base = (pr or {}).get("base") or environment.get("GITHUB_BASE_REF") or (change.base if change else None)
    names = change_names(files)
    if pr is not None:
        pr = {**pr, "branch": branch, "head": branch, "base": base}
        if files or "totals" not in pr:
            pr["totals"] = totals(files)
        # Patches are in `files` only: the first record needn't hold them twice.
        pr["files"] = [{**file, "patch": None} if "patch" in file else file for file in names["files"]]
    found = {
        **names,
        "pr": pr,
        "branch": branch,
        "baseBranch": base,
        "repository": (payload.repository if payload else None) or environment.get("GITHUB_REPOSITORY"),
        "authorAssociation": payload.association if payload else None,
    }
    known = {name: value for name, value in found.items() if value is not None}
    if change is not None and change.unknown:
        # Not none changed, but nobody knows: expressions see null, so that no count of files looks like an answer.
        known |= dict.fromkeys(("files", "filesChanged", "filesCount"))
    return known


def _branch(change: Change | None, environment: Mapping[str, str]) -> str | None:
    """The branch; CI checks out a commit, so there its environment knows the name."""
    if change is not None and change.branch is not None:
        return change.branch
    return environment.get("GITHUB_HEAD_REF") or environment.get("GITHUB_REF_NAME") or None


def _pr(payload: Payload | None, change: Change | None) -> dict[str, Any] | None:
    """The pull request of the payload; without a payload, the last commit told like one (without a number)."""
    if payload is not None:
        return payload.pr
    if change is None or change.commit is None:
        return None
    return {
        "number": None,
        "title": text(change.commit.subject),
        "body": text(change.commit.body),
        "author": text(change.commit.author),
        "authorAssociation": None,
    }
