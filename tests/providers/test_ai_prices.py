"""ai: what answers cost where the step has no prices: the list of the extra `ai`, for the vendors' own servers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import genai_prices
import pytest
from msgspec.structs import replace
from tests.servers.faulty import FaultyServer
from tests.servers.model import says, words

from gonogo.gate import Policy
from gonogo.gate.budgets import Purse
from gonogo.gate.gate import Gate
from gonogo.models.counting import Price
from gonogo.models.reply import Usage
from gonogo.provider import Done, Failed, Outcome
from gonogo.providers.ai import PROVIDER, ways
from gonogo.providers.ai.config import Config
from gonogo.providers.ai.pricing import Known, Pricing
from gonogo.providers.ai.ways import Way, ways_of
from gonogo.testing import ScriptedContext, call_for

Do = Callable[..., Outcome]
MODEL = "gpt-4o"
KNOWN = Known(genai_prices)
USED = Usage(input_tokens=1000, output_tokens=100)


def way(**changes: Any) -> Way:
    """The vendor's own server."""
    return replace(ways_of(Config(prompt="hi", provider="openai", model=MODEL))[0], **changes)


def listed(provider: str = "openai", **counts: int) -> float:
    """What the list says."""
    found = genai_prices.calc_price(genai_prices.Usage(**counts), MODEL, provider_id=provider)
    return float(found.total_price)


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    """A scripted server in the place of the vendor's own."""
    with FaultyServer(says(words("one two three"))) as server:
        monkeypatch.setattr(ways, "_URLS", {"openai": f"{server.url}/v1", "anthropic": "", "mock": ""})
        yield server


def test_the_list_prices_tokens_of_a_vendors_model() -> None:
    """In US dollars, cached tokens at their own price."""
    assert KNOWN.cost(USED, way(), (MODEL,)) == listed(input_tokens=1000, output_tokens=100) > 0
    cached = KNOWN.cost(Usage(1000, 100, cached_tokens=400), way(), (MODEL,))
    assert cached == listed(input_tokens=1000, cache_read_tokens=400, output_tokens=100)


def test_a_vendor_is_known_by_its_address_too() -> None:
    """A step may write it out."""
    written = way(own_url=False, url="https://api.openai.com/v1")
    assert KNOWN.cost(USED, written, (MODEL,)) == KNOWN.cost(USED, way(), (MODEL,))


@pytest.mark.parametrize(
    ("changes", "models", "used"),
    [
        ({"own_url": False, "url": "http://127.0.0.1:8080/v1"}, (MODEL,), USED),
        ({}, ("no-such-model", ""), USED),
        ({}, (MODEL,), Usage(input_tokens=5)),
        ({"own_url": False, "url": "not a url"}, (MODEL,), USED),
    ],
)
def test_what_is_not_on_the_list_has_no_price(
    changes: dict[str, Any], models: tuple[str, ...], used: Usage
) -> None:
    """A server of one's own costs what its owner says; an unknown count isn't zero."""
    assert KNOWN.cost(used, way(**changes), models) is None


def test_the_model_that_served_goes_before_the_one_asked_for() -> None:
    """As with prices of the step's own."""
    assert KNOWN.cost(USED, way(), ("no-such-model", MODEL)) == KNOWN.cost(USED, way(), (MODEL,))
    assert KNOWN.cost(USED, way(), ("gpt-4o-mini", MODEL)) != KNOWN.cost(USED, way(), (MODEL,))


def test_counts_that_contradict_each_other_are_priced_all_the_same() -> None:
    """More tokens of a cache than tokens at all: a server's mistake, no way out of a budget."""
    cost = KNOWN.cost(Usage(10, 100, cached_tokens=400, cache_write_tokens=7), way(), (MODEL,))
    assert cost == listed(input_tokens=10, cache_read_tokens=10, output_tokens=100)


def test_prices_of_the_step_win() -> None:
    """Zero is a price, too."""
    pricing = Pricing({MODEL: Price(0, 0)}, KNOWN)
    assert pricing.cost(USED, way(), "") == 0
    assert pricing.expected(way()) == Price(0, 0)
    assert pricing.by(way(), "") is None


def test_an_answer_is_priced_and_its_record_says_by_whom(do: Do, vendor: FaultyServer) -> None:
    """The step says nothing of prices."""
    outcome = do("ai", {"provider": "openai", "model": MODEL, "prompt": "hi"})
    assert isinstance(outcome, Done), outcome
    assert outcome.meta["cost"] == pytest.approx(
        listed(input_tokens=10, output_tokens=outcome.meta["tokens"]["output"])
    )
    assert outcome.meta["priced_by"] == f"genai-prices {genai_prices.__version__}"


def test_a_server_of_ones_own_is_not_priced(do: Do, vendor: FaultyServer) -> None:
    """Though its model has a vendor's name."""
    outcome = do("ai", {"provider": "openai", "model": MODEL, "url": f"{vendor.url}/v1", "prompt": "hi"})
    assert isinstance(outcome, Done), outcome
    assert outcome.meta["cost"] == 0
    assert "priced_by" not in outcome.meta


class Poor(ScriptedContext):
    """A context with a budget of a thousandth of a cent."""

    def gate(self, default: Policy | None = None) -> Gate:
        """With that purse."""
        assert default is not None
        return Gate(default, purse=Purse(cost_usd_max=0.00001), clock=self.clock)


def test_a_budget_of_money_holds_without_prices_in_the_step(vendor: FaultyServer) -> None:
    """What a question may cost is set aside before it is asked; this one isn't, since nothing is left for it."""
    call = call_for(PROVIDER, {"provider": "openai", "model": MODEL, "prompt": "hi " * 500})
    outcome = anyio.run(PROVIDER.run, call, Poor())
    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "ai.budget_exceeded"
    assert vendor.requests == []


def test_a_step_without_need_of_the_list_does_not_load_it() -> None:
    """Start-up: with prices of its own, or with scripted answers."""
    code = """
import sys, anyio
from gonogo.providers.ai.config import Config
from gonogo.providers.ai.pricing import pricing_of
from gonogo.providers.ai.config import Mock, Price
anyio.run(pricing_of, Config(prompt="hi", provider="mock", mock=Mock(answers=["a"])))
anyio.run(pricing_of, Config(prompt="hi", provider="openai", model="m", prices={"m": Price(input=1, output=1)}))
print("genai_prices" in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"
