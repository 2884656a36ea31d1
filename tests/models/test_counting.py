"""Tokens and money."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.models.counting import Counts, Price, cost, price_of
from gonogo.models.reply import Usage


def counted(*told: tuple[str, object], input_without_cache: bool = False) -> tuple[Usage, tuple[str, ...]]:
    """Usage and notes of counts as they came."""
    counts = Counts()
    for name, value in told:
        counts.take(name, value)
    usage = counts.usage(input_without_cache=input_without_cache)
    return usage, counts.notes(usage)


@pytest.mark.parametrize("value", [-1, 1.5, "10", True, 10**11, [1]])
def test_a_wrong_count_is_dropped_with_a_note(value: object) -> None:
    """It stays unknown, which is not zero."""
    usage, notes = counted(("input_tokens", value), ("output_tokens", 1))
    assert usage == Usage(None, 1)
    assert notes == ("usage: input_tokens is no count of tokens", "usage: the server didn't count all tokens")


def test_of_running_totals_the_highest_stands() -> None:
    """Where two counts differ, the one that costs more is believed."""
    usage, notes = counted(
        ("input_tokens", 5), ("output_tokens", 1), ("output_tokens", 9), ("output_tokens", 7)
    )
    assert (usage, notes) == (Usage(5, 9), ())


def test_contradictions_are_noted() -> None:
    """A total that is no sum, and more from a cache than there was."""
    told = ("input_tokens", 5), ("output_tokens", 1), ("total_tokens", 7), ("cached_tokens", 6)
    assert len(counted(*told)[1]) == 2


def test_cost_counts_each_kind_of_token_at_its_price() -> None:
    """A million each."""
    usage = Usage(1000, 100, cached_tokens=400, cache_write_tokens=100)
    assert cost(usage, Price(10.0, 50.0, cached=1.0, cache_write=12.5)) == pytest.approx(0.01165)
    assert cost(usage, Price(10.0, 50.0)) == pytest.approx(0.015)


def test_more_cached_tokens_than_input_are_counted_as_all_of_it() -> None:
    """A contradiction of the server's makes no negative rest."""
    assert cost(Usage(10, 0, cached_tokens=1000), Price(10.0, 50.0, cached=1.0)) == pytest.approx(0.00001)
    assert cost(Usage(10, 0, 4, 1000), Price(10.0, 50.0, 1.0, 2.0)) == pytest.approx(0.000016)


def test_unknown_tokens_or_prices_make_the_cost_unknown() -> None:
    """Never zero."""
    assert cost(Usage(5, None), Price(1.0, 1.0)) is None
    assert cost(Usage(5, 5), None) is None


def test_the_price_of_the_served_model_comes_before_that_of_the_asked_one() -> None:
    """An alias may be served by a dated version."""
    prices = {"m": Price(1.0, 1.0), "m-2026": Price(2.0, 2.0)}
    assert price_of(prices, "m-2026", "m") == prices["m-2026"]
    assert price_of(prices, "m-2027", "m") == prices["m"]
    assert price_of(prices, "other") is None


@given(*[st.none() | st.integers(0, 10**6)] * 4, st.floats(0, 100), st.floats(0, 100))
def test_a_cost_is_never_negative(a: int, b: int, c: int, d: int, plain: float, cached: float) -> None:
    """Whatever a server counts."""
    amount = cost(Usage(a, b, c, d), Price(plain, plain, cached, cached))
    assert amount is None or amount >= 0
