"""What answers cost: at the prices of the step, else, where the extra `ai` is installed, at those it knows.

The step's are in the currency of the budget. Known ones are list prices in US dollars, as the installed version of
genai-prices has them; nothing is fetched. A server that isn't a vendor's has none: the model's name alone says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

import anyio
from msgspec import Struct

from gonogo.models.counting import Price, cost, price_of
from gonogo.models.reply import Usage
from gonogo.providers.ai.config import Config
from gonogo.providers.ai.ways import Way, ways_of

LIBRARY = "genai_prices"
_MILLION = 1_000_000


class Known(Struct, frozen=True):
    """Prices of the installed library, which is `module`."""

    module: Any

    @property
    def name(self) -> str:
        """Whose prices they are, for the record."""
        return f"genai-prices {self.module.__version__}"

    def cost(self, used: Usage, way: Way, models: Iterable[str]) -> float | None:
        """US dollars, by the first of these models that has a price; None where tokens or price are unknown."""
        if used.input_tokens is None or used.output_tokens is None:
            return None
        cached = min(used.cached_tokens or 0, used.input_tokens)
        written = min(used.cache_write_tokens or 0, used.input_tokens - cached)
        counts = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        counts |= {"cache_read_tokens": cached} if cached else {}
        counts |= {"cache_write_tokens": written} if written else {}
        found = (self._total(counts, way, model) for model in models if model)
        return next((total for total in found if total is not None), None)

    def price(self, way: Way) -> Price | None:
        """A million tokens of either side: what is set aside before a call. Of tiers it is the one for long prompts."""
        asked = self._total({"input_tokens": _MILLION}, way, way.model)
        answered = self._total({"output_tokens": _MILLION}, way, way.model)
        return None if asked is None or answered is None else Price(asked, answered)

    def _total(self, counts: Mapping[str, int], way: Way, model: str) -> float | None:
        whose = {"provider_id": way.vendor} if way.own_url else {"provider_api_url": way.url}
        try:
            found = self.module.calc_price(self.module.Usage(**counts), model, **whose)
        except (LookupError, ValueError):  # no such vendor or model; counts that its prices don't fit
            return None
        return float(found.total_price)


class Pricing(Struct, frozen=True):
    """All prices of a step."""

    given: Mapping[str, Price]
    known: Known | None = None

    def expected(self, way: Way) -> Price | None:
        """Of a target, before it is asked."""
        price = self.given.get(way.model)
        return price if price is not None or self.known is None else self.known.price(way)

    def cost(self, used: Usage, way: Way, served: str) -> float | None:
        """Of an answer; the model that served it goes before the one that was asked for."""
        price = price_of(self.given, served, way.model)
        if price is not None or self.known is None:
            return cost(used, price)
        return self.known.cost(used, way, (served, way.model))

    def by(self, way: Way, served: str) -> str | None:
        """Whose prices those of an answer are; None for the step's own."""
        own = price_of(self.given, served, way.model) is not None
        return None if own or self.known is None else self.known.name


async def pricing_of(config: Config) -> Pricing:
    """The step's prices. The library is loaded where one is missing, in a thread: it takes half a second."""
    given = {
        model: Price(price.input, price.output, price.cached, price.cache_write)
        for model, price in config.prices.items()
    }
    missing = any(way.vendor != "mock" and way.model not in given for way in ways_of(config))
    if not missing or find_spec(LIBRARY) is None:
        return Pricing(given)
    from importlib import import_module

    module = await anyio.to_thread.run_sync(import_module, LIBRARY, abandon_on_cancel=True)
    return Pricing(given, Known(module))
