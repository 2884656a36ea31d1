"""What all nouns share: strict types, no unknown keys, free `x-` keys, and the few shorthands YAML authors have.

A shorthand (one text for a list of one, a name for `{step: name}`) is spelled out before validation, so each
field has one shape and each error one place.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION_S_MAX = 366 * 86400.0
COUNT_MAX = 1_000_000_000


class Noun(BaseModel):
    """Base of all nouns: strict, frozen, closed; keys that start with `x-` are the user's own."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, protected_namespaces=(), defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_out_free_keys(cls, data: Any) -> Any:
        if isinstance(data, dict) and any(key.startswith("x-") for key in data):
            return {key: value for key, value in data.items() if not key.startswith("x-")}
        return data


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys a model takes, as written in YAML."""
    keys: list[str] = []
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        if isinstance(alias, str):
            keys.append(alias)
        elif alias is not None and hasattr(alias, "choices"):
            keys.extend(str(choice) for choice in alias.choices if isinstance(choice, str))
        else:
            keys.append(name)
        if alias is not None and _also_by_name(model):
            keys.append(name)
    return tuple(keys)


def _also_by_name(model: type[BaseModel]) -> bool:
    return bool(model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name"))


def seconds(value: Any) -> Any:
    """A duration as seconds: a number is milliseconds, a text has its unit (E.1 D). Raises ValueError."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise ValueError("expected a duration: milliseconds as a number, or text like 500ms, 30s, 5m")
        amount = float(found[1]) * _UNIT_S[found[2]]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        amount = value / 1000
    else:
        raise ValueError("expected a duration: milliseconds as a number, or text like 500ms, 30s, 5m")
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


Seconds = Annotated[float, BeforeValidator(seconds, json_schema_input_type=float | str)]
Condition = Annotated[str, BeforeValidator(condition_text, json_schema_input_type=str | bool)]
Conditions = Annotated[
    list[Condition], BeforeValidator(one_or_many, json_schema_input_type=str | bool | list[str | bool])
]
Names = Annotated[list[str], BeforeValidator(one_or_many, json_schema_input_type=str | list[str])]
Tag = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)]
Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Positive = Annotated[int, Field(ge=1, le=COUNT_MAX)]
EnvValue = Annotated[
    Any, BeforeValidator(env_value), WithJsonSchema({"type": ["string", "number", "boolean"]})
]
SchemaValue = Annotated[Any, BeforeValidator(schema_value), WithJsonSchema({"type": ["string", "object"]})]
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
CriticalityWord = Literal["external", "internal", "policy", "info"]
