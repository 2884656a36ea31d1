"""What http_client shows to be let in (`auth`), and how often it asks (`rate_limit`): their keys, and what they mean.

Secrets come from the environment: a file that writes one out is refused when it is loaded, and what is filled in is
masked everywhere.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from gonogo.provider import ConfigProblem

if TYPE_CHECKING:
    from gonogo.gate.policy import Policy

_PER = re.compile(r"(?:(\d+(?:\.\d+)?)\s*)?(ms|s|m|h|second|minute|hour|day)s?")
_UNIT_S = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
}
_PER_S_MAX = 86400.0
_NEEDED = {"bearer": ("token",), "basic": ("username", "password"), "header": ("name", "value")}
_REFERENCE = re.compile(r"\$\{\{[^}]*\}\}|\$\{\w+\}|\$[A-Za-z_]\w*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


class Auth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a request is let in. The secret is a reference: `${{ env.NAME }}`."""

    type: Annotated[Literal["bearer", "basic", "header"], Meta(description="What is sent.")]
    token: Annotated[str | None, Meta(description="bearer: the token, as ${{ env.NAME }}.")] = None
    username: Annotated[str | None, Meta(description="basic: the name.")] = None
    password: Annotated[str | None, Meta(description="basic: the password, as ${{ env.NAME }}.")] = None
    name: Annotated[str | None, Meta(description="header: its name.")] = None
    value: Annotated[str | None, Meta(description="header: its value, as ${{ env.NAME }}.")] = None

    def __post_init__(self) -> None:
        """All that the type needs, and nothing else, which would not be sent."""
        needed = _NEEDED[self.type]
        for key in ("token", "username", "password", "name", "value"):
            given = getattr(self, key)
            if key in needed and not given:
                raise ConfigProblem(
                    "auth", f"auth of type {self.type} needs `{key}`, and it must not be empty"
                )
            if key not in needed and given is not None:
                raise ConfigProblem(
                    "auth", f"auth of type {self.type} has no `{key}`; it has: {', '.join(needed)}"
                )
        if self.type == "header" and not _HEADER_NAME.fullmatch(self.name or ""):
            raise ConfigProblem("auth", "auth.name is no name of a header")
        if self.type == "basic" and ":" in (self.username or ""):
            raise ConfigProblem("auth", "auth.username can't hold a colon (RFC 7617)")

    def unset(self) -> bool:
        """Whether a reference is still one: its variable isn't set, and nobody is let in by its name."""
        given = (self.token, self.username, self.password, self.value)
        return any(text is not None and _REFERENCE.fullmatch(text.strip()) for text in given)

    def headers(self) -> dict[str, str]:
        """What is sent."""
        if self.type == "header":
            return {self.name or "": self.value or ""}
        if self.type == "bearer":
            return {"Authorization": f"Bearer {self.token}"}
        both = f"{self.username}:{self.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(both).decode('ascii')}"}


class RateLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most so many requests in a time, over a run and its children, and how often a limited one is repeated."""

    requests: Annotated[int, Meta(ge=1, le=100_000, description="How many.")]
    per: Annotated[str, Meta(description="In how much time: second, minute, hour, or text like 500ms, 10s.")]
    key: Annotated[str | None, Meta(description="Steps with the same key share; the server, if absent.")] = (
        None
    )
    max_retries: Annotated[
        int, Meta(ge=0, le=20, description="Repeats of a call that failed in passing.")
    ] = 3
    initial_delay_ms: Annotated[
        int, Meta(ge=0, le=600_000, description="First wait, unless it is told one.")
    ] = 1000
    backoff: Annotated[Literal["exponential", "fixed"], Meta(description="How the waits grow.")] = (
        "exponential"
    )

    def __post_init__(self) -> None:
        """A time that can be read."""
        if self.per_s <= 0 or self.per_s > _PER_S_MAX:
            raise ConfigProblem(
                "rate_limit",
                "rate_limit.per: expected second, minute, hour, day, or text like 500ms, 10s; at most a day",
            )

    @property
    def per_s(self) -> float:
        """In seconds; 0 for what can't be read."""
        found = _PER.fullmatch(self.per.strip())
        return 0.0 if found is None else float(found[1] or 1) * _UNIT_S[found[2]]

    def policy(self, once: Policy) -> Policy:
        """What the gate goes by where the step has no `reliability`: the type's own policy, with repeats."""
        from gonogo.gate.policy import Backoff, Bounds, Timers

        attempts = self.max_retries + 1
        base_s = self.initial_delay_ms / 1000
        return replace(
            once,
            bounds=Bounds(
                attempts_per_target=attempts, attempts_max=attempts, deadline_s=once.bounds.deadline_s
            ),
            timers=Timers(attempt_s=once.bounds.deadline_s),
            backoff=Backoff(base_s=base_s, cap_s=base_s if self.backoff == "fixed" else max(base_s, 60.0)),
        )


def with_auth(headers: Mapping[str, str], auth: Auth | None) -> dict[str, str]:
    """The headers of a request; `auth` wins over one of the same name."""
    shown = auth.headers() if auth is not None else {}
    lower = {name.lower() for name in shown}
    return {**{name: text for name, text in headers.items() if name.lower() not in lower}, **shown}
