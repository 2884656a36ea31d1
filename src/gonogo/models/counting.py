"""Tokens as servers report them, which may be missing or wrong, and what they cost at prices the user gives.

No price is known here: a list of our own would be wrong the day after.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from gonogo.models.reply import Usage

TOKENS_MAX = 10**10
"""A count above it is a mistake of the server's."""


class Price(Struct, frozen=True, omit_defaults=True):
    """What a million tokens cost, in the user's currency. Cached input is at the input's price if none is given."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None


class Counts:
    """Usage gathered over an answer: counts that streams repeat are running totals, so the highest stands."""

    __slots__ = ("_counts", "_dropped")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._dropped: dict[str, None] = {}

    def take(self, name: str, value: object) -> None:
        """Take a count if it is one. None is no count and no mistake."""
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= TOKENS_MAX:
            self._dropped[f"usage: {name} is no count of tokens"] = None
        else:
            # Money: where two counts differ, the one that costs more is believed.
            self._counts[name] = max(value, self._counts.get(name, 0))

    def usage(self, *, input_without_cache: bool) -> Usage:
        """All that was counted. Some vendors count input without what a cache did: then it is added."""
        counted = self._counts
        total = counted.get("input_tokens")
        if total is not None and input_without_cache:
            total += counted.get("cached_tokens", 0) + counted.get("cache_write_tokens", 0)
        return Usage(
            total,
            counted.get("output_tokens"),
            counted.get("cached_tokens"),
            counted.get("cache_write_tokens"),
            counted.get("reasoning_tokens"),
        )

    def notes(self, usage: Usage) -> tuple[str, ...]:
        """What was dropped, what is missing, and what contradicts itself."""
        notes = list(self._dropped)
        if not usage.known:
            notes.append("usage: the server didn't count all tokens")
        parts = (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0)
        if usage.input_tokens is not None and parts > usage.input_tokens:
            notes.append("usage: more input tokens of a cache than input tokens at all")
        total = self._counts.get("total_tokens")
        if (
            total is not None
            and usage.known
            and total != (usage.input_tokens or 0) + (usage.output_tokens or 0)
        ):
            notes.append("usage: the total isn't the sum of input and output")
        return tuple(notes)


def cost(usage: Usage, price: Price | None) -> float | None:
    """What an answer cost, in the currency of the price; None where tokens or price are unknown, never zero."""
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    written = min(usage.cache_write_tokens or 0, usage.input_tokens - cached)
    plain = usage.input_tokens - cached - written
    return (
        plain * price.input
        + cached * (price.input if price.cached is None else price.cached)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    ) / 1_000_000


def price_of(prices: Mapping[str, Price], *models: str) -> Price | None:
    """The price of the first of these names that has one: the served model first, then the one asked for."""
    return next((prices[model] for model in models if model in prices), None)
