"""What all nouns share: strict types, no unknown keys, free `x-` keys, and the few shorthands YAML authors have.

A shorthand (one text for a list of one, a name for `{step: name}`) is spelled out before it is read, so each
field has one shape and each error one place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from gonogo.config.structs import Written

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION_S_MAX = 366 * 86400.0
DELAY_S_MAX = 86400.0
COUNT_MAX = 1_000_000_000
# Far too long, and still a float: whole numbers of a file may be larger than any.
_MILLISECONDS_READ_MAX = 10**15


class Noun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all nouns: frozen and closed; keys that start with `x-` are the user's own."""

    takes_free_keys: ClassVar[bool] = True
    spellings: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys with a second spelling: other key → usual key."""


def limit_s(value: Any) -> Any:
    """As `seconds`, for what may not be nothing: no time at all is no limit but an end. Raises ValueError."""
    amount = seconds(value)
    if not amount:
        raise ValueError("expected a duration of more than 0, and at most 366 days")
    return amount


def delay_s(value: Any) -> Any:
    """As `seconds`, for what somebody waits for. Raises ValueError."""
    amount = seconds(value)
    if amount > DELAY_S_MAX:
        raise ValueError("expected a delay from 0 to 24 hours")
    return amount


def seconds(value: Any) -> Any:
    """A duration as seconds: a number is milliseconds, a text has its unit (E.1 D). Raises ValueError."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise ValueError("expected a duration: milliseconds as a number, or text like 500ms, 30s, 5m, 3d")
        amount = float(found[1]) * _UNIT_S[found[2]]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        amount = min(value, _MILLISECONDS_READ_MAX) / 1000
    else:
        raise ValueError("expected a duration: milliseconds as a number, or text like 500ms, 30s, 5m, 3d")
    if not 0 <= amount <= DURATION_S_MAX:
        raise ValueError("expected a duration from 0 to 366 days")
    return amount


def one_or_many(value: Any) -> Any:
    """One text is a list of one."""
    return [value] if isinstance(value, (str, bool)) else value


def condition_text(value: Any) -> Any:
    """`true` and `false` without quotes are expressions too (A.4)."""
    return ("true" if value else "false") if isinstance(value, bool) else value


def number_as_text(value: Any) -> Any:
    """`version: 1.0` means the text; YAML reads a number."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def env_value(value: Any) -> Any:
    """Environment values are text; numbers and booleans are written as YAML shows them."""
    if isinstance(value, (str, int, float)):
        return value
    raise ValueError("expected text, a number, true or false")


def schema_value(value: Any) -> Any:
    """A renderer's name or a JSON Schema."""
    if isinstance(value, dict) or (isinstance(value, str) and value):
        return value
    raise ValueError("expected a JSON Schema (a mapping) or the name of a renderer")


Safety = Literal["off", "standard", "strict"]
LimitSeconds = Annotated[float, Written(limit_s, float | str)]
DelaySeconds = Annotated[float, Written(delay_s, float | str)]
Condition = Annotated[str, Written(condition_text, str | bool)]
Conditions = Annotated[list[Condition], Written(one_or_many, str | bool | list[str | bool])]
Names = Annotated[list[str], Written(one_or_many, str | list[str])]
Tag = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Parallel = Annotated[int, Meta(ge=1, le=10_000)]
Loops = Annotated[int, Meta(ge=0, le=100_000)]
Label = Annotated[str, Meta(pattern="^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$")]
"""A label of workers; it is part of a queue's name."""
EnvValue = Annotated[Any, Written(env_value, str | float | bool)]
Runs = Annotated[int, Meta(ge=-COUNT_MAX, le=COUNT_MAX)]
SchemaValue = Annotated[Any, Written(schema_value, str | dict[str, Any])]
Env = dict[str, EnvValue]
Event = Literal[
    "pr_opened",
    "pr_updated",
    "pr_closed",
    "issue_opened",
    "issue_comment",
    "manual",
    "schedule",
    "webhook_received",
    "slack_message",
    "telegram_message",
    "email_message",
    "whatsapp_message",
    "teams_message",
]
SAFETY: tuple[Safety, ...] = ("off", "standard", "strict")
CriticalityWord = Literal["external", "internal", "policy", "info"]
