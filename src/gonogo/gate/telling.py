"""What a step tells of an answer, as rules and records see it: its tokens in money, its texts without secrets. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from gonogo.gate.events import Usage
from gonogo.gate.policy import Target
from gonogo.gate.signals import Signal

DEPTH_MAX = 8


Clean = Callable[[str], str]
"""Takes secrets out of a text."""


def hidden(signal: Signal, clean: Clean) -> Signal:
    """A signal without secrets: the far side may repeat what it got wherever it writes anything."""
    return structs.replace(
        signal,
        codes=tuple(clean(code) for code in signal.codes),
        request_id=_clean(signal.request_id, clean),
        message=clean(signal.message),
        body_excerpt=_clean(signal.body_excerpt, clean),
        note=_clean(signal.note, clean),
    )


def _clean(text: str | None, clean: Clean) -> str | None:
    return None if text is None else clean(text)


def priced(usage: Usage, target: Target) -> Usage:
    """Tokens in money, by the target's prices, unless the step has told the cost itself."""
    if usage.cost_usd or not (target.input_usd_per_million or target.output_usd_per_million):
        return usage
    cost_usd = (
        usage.input_tokens * target.input_usd_per_million
        + usage.output_tokens * target.output_usd_per_million
    ) / 1e6
    return Usage(usage.input_tokens, usage.output_tokens, cost_usd)


def cleaned(value: Any, clean: Clean, depth: int = 0) -> Any:
    """A view of an answer as plain data without secrets."""
    if isinstance(value, str):
        return clean(value)
    if depth < DEPTH_MAX and isinstance(value, dict):
        return {name: cleaned(each, clean, depth + 1) for name, each in value.items()}
    if depth < DEPTH_MAX and isinstance(value, list | tuple):
        return [cleaned(each, clean, depth + 1) for each in value]
    return value if value is None or isinstance(value, bool | int | float) else clean(str(value))
