"""Who can be asked: a step's targets with all their keys, and the policy that holds unless the workflow has one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gonogo.gate.policy import Bounds, Policy, Timers
from gonogo.gate.policy import Target as GateTarget
from gonogo.models.conversation import SchemaMode
from gonogo.models.counting import Price
from gonogo.models.formats import FormatName
from gonogo.providers.ai.config import DEADLINE_S, Asked, Config, Mock, Target, Vendor

TIMERS = Timers(connect_s=10.0, first_token_s=60.0, idle_s=30.0, attempt_s=180.0)
"""A model may think for a minute before its first word, and write for some more."""
_URLS: Mapping[Vendor, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "mistral": "https://api.mistral.ai",
    "mock": "",
}


class Way(Struct, frozen=True):
    """One target, complete. `own_url`: the address is the vendor's, which no data has had a hand in."""

    name: str
    vendor: Vendor
    model: str
    url: str
    own_url: bool
    api_key: str | None
    headers: Mapping[str, str]
    params: Mapping[str, Any]
    temperature: float | None
    tokens_max: int | None
    structured: SchemaMode
    mock: Mock | None
    tier: int = 0
    weight: float | None = None
    window_tokens: int | None = None
    older: bool = False

    @property
    def format(self) -> FormatName:
        """How its server is spoken to."""
        if self.vendor == "anthropic":
            return "anthropic"
        return "openai-older" if self.older else "openai"

    def hidden(self, text: str) -> str:
        """A text without the key, whatever the far side repeats of what it got."""
        return text if not self.api_key or len(self.api_key) < 4 else text.replace(self.api_key, "***")


def ways_of(config: Config) -> tuple[Way, ...]:
    """All that may be asked, in the order of the file, each with a name of its own."""
    ways = [_way(config, target) for target in config.targets] or [_way(config, Target())]
    taken = {"fallback"}  # the gate's own word
    named = []
    for way in ways:
        numbered = (f"{way.name}-{number}" for number in count(2))
        name = next(name for name in chain((way.name,), numbered) if name not in taken)
        taken.add(name)
        named.append(replace(way, name=name))
    return tuple(named)


def _way(config: Config, target: Target) -> Way:
    """A target that names its own server or vendor gets neither the step's key nor its headers: they aren't for it."""
    elsewhere = target.url is not None or target.provider not in (None, config.provider)
    near: Asked = Target() if elsewhere else config
    vendor = target.provider or config.provider or "mock"
    url = target.url or near.url
    model = target.model or config.model or "mock"
    return Way(
        target.name or model,
        vendor,
        model,
        url or _URLS[vendor],
        url is None,
        target.api_key or near.api_key,
        {**near.headers, **target.headers},
        {**config.params, **target.params},
        config.temperature if target.temperature is None else target.temperature,
        target.max_tokens or config.max_tokens,
        target.structured or config.structured or ("tool" if vendor == "mistral" else "native"),
        target.mock or config.mock,
        target.tier,
        target.weight,
        target.window_tokens,
        (target.dialect or near.dialect) == "older",
    )


def policy_of(ways: tuple[Way, ...], prices: Iterable[Price | None], timeout_s: float | None) -> Policy:
    """What holds when the workflow says nothing: three attempts a target, two minutes each, while the step has time.

    `prices` are those of the ways, where they are known.
    """
    deadline_s = DEADLINE_S if timeout_s is None else timeout_s
    return Policy(
        targets=tuple(map(_target, ways, prices)),
        bounds=Bounds(attempts_max=3 + 2 * len(ways), deadline_s=deadline_s),
        timers=TIMERS,
    )


def _target(way: Way, price: Price | None) -> GateTarget:
    return GateTarget(
        way.name,
        model=way.model,
        tier=way.tier,
        weight=way.weight,
        window_tokens=way.window_tokens,
        input_usd_per_million=price.input if price else 0.0,
        output_usd_per_million=price.output if price else 0.0,
        endpoint=_place(way.url),
    )


def _place(url: str) -> str:
    """A URL for breakers' names: without who it was and what may be secret in it."""
    scheme, mark, rest = url.partition("?")[0].partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def way_to(ways: tuple[Way, ...], target: GateTarget) -> Way:
    """The way that a gate's target means: by its client or name, else the first, with what the policy says of it."""
    by_name = {way.name: way for way in ways}
    found = by_name.get(target.client) or by_name.get(target.name)
    way = found or ways[0]
    return replace(way, model=target.model or way.model, params={**way.params, **target.params})
