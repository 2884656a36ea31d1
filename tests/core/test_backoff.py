"""How long to wait before a retry (spec C.9 R4)."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gonogo.core.backoff import delay_s, jitter
from gonogo.core.plan import Retry


def test_exponential_doubles_and_fixed_stays() -> None:
    """1, 2, 4 seconds; or the same each time."""
    growing = Retry(5, mode="exponential", delay_s=1, jitter=0)
    same = Retry(5, mode="fixed", delay_s=3, jitter=0)
    assert [delay_s(growing, k, "x") for k in (1, 2, 3)] == [1, 2, 4]
    assert [delay_s(same, k, "x") for k in (1, 2, 3)] == [3, 3, 3]


@given(st.integers(1, 10_000), st.text(max_size=20), st.floats(0, 100), st.floats(0, 100))
def test_RET_1_every_delay_is_finite_and_within_its_cap(
    number: int, identity: str, base: float, cap: float
) -> None:
    """Never negative, never above the cap, however many attempts."""
    delay = delay_s(Retry(10_000, mode="exponential", delay_s=base, max_delay_s=cap), number, identity)
    assert math.isfinite(delay)
    assert 0 <= delay <= cap


def test_RET_1_without_jitter_the_sequence_never_decreases() -> None:
    """Over two thousand attempts."""
    retry = Retry(2_000, mode="exponential", delay_s=2, max_delay_s=30, jitter=0)
    delays = [delay_s(retry, k, "x") for k in range(1, 2_001)]
    assert delays == sorted(delays)


@given(st.text(max_size=30))
def test_jitter_depends_on_the_identity_alone_and_stays_within_one(identity: str) -> None:
    """The same seed gives the same sequence."""
    assert jitter(identity) == jitter(identity)
    assert -1 <= jitter(identity) <= 1


def test_jitter_differs_between_attempts() -> None:
    """Two clients don't march in step."""
    retry = Retry(5, delay_s=10)
    assert len({delay_s(retry, k, "seed") for k in range(1, 6)}) == 5


def test_the_far_sides_wish_raises_a_delay_but_not_above_the_cap() -> None:
    """Retry-After is honoured up to max_delay_s."""
    retry = Retry(3, delay_s=1, jitter=0)
    assert delay_s(retry, 1, "x", retry_after_s=7) == 7
    assert delay_s(retry, 1, "x", retry_after_s=86_400) == 60
