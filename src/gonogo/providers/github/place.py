"""Where a github step acts and with which token: what it says itself, else the event, else GitHub's own variables.

The token goes nowhere but to the API that the operator names: its address is never made by a template, and is https
or an address of this machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from gonogo.provider import Call
from gonogo.providers.github.config import Config, is_name

API_URL = "https://api.github.com"
_THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "::1"})


class Missing(Exception):  # noqa: N818 - the name says what happened
    """Something that the step needs isn't there. `kind` and `rule` are those of the fault."""

    def __init__(self, message: str, kind: str = "missing_context", rule: str = "missing_context") -> None:
        super().__init__(message)
        self.kind = kind
        self.rule = rule


class Place(Struct, frozen=True):
    """A repository at an API, and the token for it."""

    api_url: str
    owner: str
    repo: str
    token: str

    @property
    def origin(self) -> str:
        """Scheme, host and port of the API."""
        parts = urlsplit(self.api_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def path(self) -> str:
        """The repository's part of the API."""
        return f"/repos/{self.owner}/{self.repo}"


def place_of(call: Call) -> Place:
    """Raises Missing."""
    config: Config = call.config
    owner, repo = _repository(call, config)
    if not (is_name(owner) and is_name(repo)):
        raise Missing(
            f"'{owner[:100]}/{repo[:100]}' is no repository; say `repo: owner/name`", "invalid_context"
        )
    return Place(_api_url(config), owner, repo, _token(call, config))


def number_of(call: Call) -> int:
    """The pull request's or issue's number. Raises Missing."""
    config: Config = call.config
    if config.number is not None:
        return config.number
    found = _at(call.names, "pr", "number") or _at(call.names, "event", "issue", "number")
    if isinstance(found, int) and found > 0:
        return found
    raise Missing("no pull request or issue is known; run it for an event that has one, or say `number`")


def sha_of(call: Call) -> str | None:
    """The commit that the step or the event names; None: ask for the pull request's head."""
    config: Config = call.config
    found = config.sha or _at(call.names, "pr", "sha")
    return found if isinstance(found, str) and found else None


def sha_of_run(call: Call) -> str:
    """The commit that GitHub's own variable names, where there is no pull request. Raises Missing."""
    found = variable(call, "GITHUB_SHA")
    if not found:
        raise Missing("no commit is known; say `sha`, or run it for a pull request")
    return found


def person_of(call: Call) -> str:
    """Whose permission is asked for. Raises Missing."""
    config: Config = call.config
    found = config.user or next(
        (
            name
            for path in (("event", "comment", "author"), ("pr", "author"), ("event", "issue", "author"))
            if (name := _at(call.names, *path))
        ),
        None,
    )
    if not isinstance(found, str) or not found:
        raise Missing("nobody is known whose permission could be asked for; say `user`")
    return found


def variable(call: Call, name: str) -> str | None:
    """A variable of the step's or the workflow's, else of the environment."""
    return call.env.get(name) or os.environ.get(name) or None


def _repository(call: Call, config: Config) -> tuple[str, str]:
    if config.owner is not None and config.repo is not None:
        return config.owner, config.repo
    said = config.repo or _at(call.names, "event", "repository") or variable(call, "GITHUB_REPOSITORY")
    if not isinstance(said, str) or not said:
        raise Missing("no repository is known; say `repo: owner/name`, or run it for an event that names one")
    owner, found, repo = said.partition("/")
    if not found:
        raise Missing(
            f"'{said[:100]}' has no owner; say `repo: owner/name`, or `owner`, too", "invalid_context"
        )
    return owner, repo


def _token(call: Call, config: Config) -> str:
    token = config.token if config.token is not None else variable(call, "GITHUB_TOKEN")
    if not token or "$" in token:
        named = "GITHUB_TOKEN" if config.token is None else "the variable that `token` names"
        advice = "in a workflow of GitHub Actions give the step `env: GITHUB_TOKEN: ${{ github.token }}`"
        raise Missing(f"there is no token: {named} isn't set; {advice}", "missing_token", "missing_octokit")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise Missing("the token holds characters that no token has", "missing_token", "missing_octokit")
    return token


def _api_url(config: Config) -> str:
    # Not from the step's env, which templates may fill.
    url = (config.api_url or os.environ.get("GITHUB_API_URL") or API_URL).rstrip("/")
    try:
        parts = urlsplit(url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_MACHINE)
    except ValueError:
        safe = False
    if not safe or parts.query or parts.fragment or parts.username is not None:
        raise Missing(
            "api_url has to be https://… without a query, for the token goes there", "invalid_context"
        )
    return url


def _at(names: Mapping[str, Any], *path: str) -> Any:
    found: Any = names
    for part in path:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
