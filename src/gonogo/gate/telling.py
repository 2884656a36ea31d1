"""What a step tells of an answer, as rules and records see it: its tokens in money, its texts without secrets. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gonogo.gate.events import Usage
from gonogo.gate.policy import Target

DEPTH_MAX = 8


def priced(usage: Usage, target: Target) -> Usage:
    """Tokens in money, by the target's prices, unless the step has told the cost itself."""
    if usage.cost_usd or not (target.input_usd_per_million or target.output_usd_per_million):
        return usage
    cost_usd = (
        usage.input_tokens * target.input_usd_per_million
        + usage.output_tokens * target.output_usd_per_million
    ) / 1e6
    return Usage(usage.input_tokens, usage.output_tokens, cost_usd)


def cleaned(value: Any, clean: Callable[[str], str], depth: int = 0) -> Any:
    """A view of an answer as plain data without secrets."""
    if isinstance(value, str):
        return clean(value)
    if depth < DEPTH_MAX and isinstance(value, dict):
        return {name: cleaned(each, clean, depth + 1) for name, each in value.items()}
    if depth < DEPTH_MAX and isinstance(value, list | tuple):
        return [cleaned(each, clean, depth + 1) for each in value]
    return value if value is None or isinstance(value, bool | int | float) else clean(str(value))
