"""Budgets of calls, of runs and of a process; gates within gates (F.6, F3, RET-2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.world import NO_WAIT, Http, Slow, StepFailed, answered, gate, play, policy, world

from gonogo.gate import (
    Amounts,
    Bounds,
    BudgetExceeded,
    DeadlineExceeded,
    Exhausted,
    GateError,
    Purse,
    RetryShare,
    Step,
    Target,
    Usage,
)
from gonogo.gate import Policy as GatePolicy


def priced(*names: str, **more: Any) -> GatePolicy:
    """Targets at a dollar a million tokens in, two out."""
    targets = tuple(Target(name, input_usd_per_million=1.0, output_usd_per_million=2.0) for name in names)
    return GatePolicy(targets=targets, breaker=None, backoff=NO_WAIT, **more)


def test_every_attempt_is_billed_and_totals_are_the_sums() -> None:
    """B23, X19, F26: a retried success costs both."""
    failed = StepFailed("server-5xx", usage=Usage(1_000_000, 0))
    there = world(a=[failed, "fine"])
    answer = answered(priced("a"), there, usage=lambda value: Usage(0, 1_000_000))
    assert [attempt.usage.cost_usd for attempt in answer.record.attempts] == [1.0, 2.0]
    assert (answer.usage.cost_usd, answer.record.wasted.cost_usd) == (3.0, 1.0)
    assert answer.record.outcome.used == answer.usage


def test_a_cost_bound_stops_the_next_attempt() -> None:
    """X1, B12: and says what was spent."""
    there = world(a=StepFailed("server-5xx", usage=Usage(60_000, 0)))
    with pytest.raises(BudgetExceeded, match=r"\$0\.1200 of \$0\.1000"):
        answered(priced("a", bounds=Bounds(cost_usd_max=0.1)), there)
    assert there.called == ["a", "a"]


def test_a_token_bound_counts_failed_attempts() -> None:
    """F26."""
    there = world(a=StepFailed("server-5xx", usage=Usage(10, 0)))
    with pytest.raises(BudgetExceeded):
        answered(priced("a", bounds=Bounds(tokens_max=15)), there)
    assert there.called == ["a", "a"]


def test_a_reservation_is_refused_before_the_call() -> None:
    """What an attempt may need is set aside first."""
    there = world(a="fine")
    with pytest.raises(BudgetExceeded, match="tokens: 100 would pass the budget of 50"):
        answered(
            priced("a", bounds=Bounds(tokens_max=50)), there, estimate=lambda target: Amounts(tokens=100)
        )
    assert there.called == []


def test_RET_2_a_run_budget_of_four_stops_the_multiplication() -> None:
    """RET-2: three calls of up to three attempts, a purse of four: exactly four requests, then it is named."""
    there = world(a=Http(503))

    async def story() -> list[type]:
        purse, ends = Purse(attempts_max=4), []
        one = gate(policy("a", backoff=NO_WAIT), purse=purse)
        for _ in range(3):
            try:
                await one.call(there.step())
            except GateError as error:
                ends.append(type(error))
        return ends

    assert play(story) == [Exhausted, BudgetExceeded, BudgetExceeded]
    assert len(there.called) == 4


def test_RET_2_an_inner_gate_spends_the_outer_ones_attempts() -> None:
    """RET-2, F3: three layers of three would be 27 requests; the outermost budget holds."""
    there = world(a=Http(503))
    names = ["outer", "middle", "inner"]

    async def story() -> GateError:
        gates = {name: gate(policy("a", backoff=NO_WAIT, bounds=Bounds(attempts_max=4))) for name in names}

        async def middle() -> Any:
            return await gates["inner"].call(there.step())

        async def outer() -> Any:
            return await gates["middle"].call(middle)

        with pytest.raises(GateError) as raised:
            await gates["outer"].call(outer)
        return raised.value

    error = play(story)
    assert len(there.called) <= 4
    assert error.attempts[0].failure is not None
    assert error.attempts[0].failure.kind == "inner-gate"


def test_an_outer_gate_that_retries_its_inner_one_stays_within_its_budget() -> None:
    """F3: inner attempts beyond the first count; a rule that retries the inner gate can't multiply."""
    from gonogo.gate import rule

    there = world(a=Http(503))
    again = (rule("retry", {"error_kind": {"ne": "ok"}}),)

    async def story() -> None:
        inner = gate(policy("a", backoff=NO_WAIT))
        outer = gate(
            policy("x", after=again, backoff=NO_WAIT, bounds=Bounds(attempts_max=4, attempts_per_target=9))
        )

        async def ask() -> Any:
            return await inner.call(there.step())

        with pytest.raises(GateError):
            await outer.call(ask)

    play(story)
    assert len(there.called) == 4


def test_an_exhausted_inner_gate_is_not_retried_by_the_outer_one() -> None:
    """A chain that has tried everything must not look worth a retry."""
    there = world(a=Http(503))

    async def story() -> None:
        inner, outer = gate(policy("a", backoff=NO_WAIT)), gate(policy("x", backoff=NO_WAIT))

        async def ask() -> Any:
            return await inner.call(there.step())

        with pytest.raises(Exhausted):
            await outer.call(ask)

    play(story)
    assert len(there.called) == 3


def test_a_nested_call_inherits_the_deadline() -> None:
    """F25."""
    there = world(a=Slow(1000))

    async def story() -> float:
        inner, outer = gate(policy("a")), gate(policy("x", bounds=Bounds(deadline_s=5)))

        async def ask() -> Any:
            return await inner.call(there.step())

        with pytest.raises(DeadlineExceeded):
            await outer.call(ask)
        return outer.clock.now()

    assert play(story) == 5.0


def test_the_watcher_of_the_outer_call_hears_the_inner_one() -> None:
    """B5: no wrapper between the two can silence it."""
    heard: list[str] = []

    async def story() -> None:
        inner = gate(policy("a"), seed="inner")
        outer = gate(policy("x"), seed="outer", watch=lambda call, decision: heard.append(call))

        async def ask() -> Any:
            return await inner.call(world(a="fine").step())

        await outer.call(ask)

    play(story)
    assert {"outer-1", "inner-1"} <= set(heard)


def test_usage_of_nested_calls_is_counted_once() -> None:
    """F26: in the outer record, and in the run's purse."""
    purse = Purse()

    async def story() -> Any:
        inner = gate(priced("a"))
        outer = gate(policy("x"), purse=purse)

        async def ask() -> Any:
            return await inner.call(world(a="fine").step(usage=lambda value: Usage(1_000_000, 0)))

        return await outer.answer(ask)

    assert play(story).usage.cost_usd == 1.0
    assert (purse.spent.cost_usd, purse.spent.attempts) == (1.0, 1)


def test_the_share_of_retries_is_the_process_s() -> None:
    """F22: an outage isn't multiplied by everybody's retries; the floor is always there."""
    there = world(a=Http(503))

    async def story() -> int:
        one = gate(policy("a", backoff=NO_WAIT), retries=RetryShare(share=0.1, floor=3))
        for _ in range(20):
            with pytest.raises(GateError):
                await one.call(there.step())
        return len(there.called)

    assert play(story) == 20 + 3


def test_S15_who_may_not_ask_the_same_again_goes_elsewhere() -> None:
    """S15, F22: the share is of retries on one target; a call's first attempt on another one is none there."""
    there = world(a=Http(503), b="from b")

    async def story() -> list[str]:
        one = gate(policy("a", "b", backoff=NO_WAIT), retries=RetryShare(floor=1))
        served = [(await one.answer(there.step())).target for _ in range(5)]
        assert set(served) == {"b"}
        return there.called

    assert play(story) == ["a", "a", "b", *["a", "b"] * 4]


def test_the_share_comes_back_with_time() -> None:
    """A window, not a lifetime."""
    share = RetryShare(floor=1, window_s=10)
    assert share.take(0.0) is None
    assert share.take(1.0) is not None
    assert share.take(12.0) is None


def test_what_lacks_its_share_may_still_fall_back() -> None:
    """The fallback loads nobody."""
    there = world(a=Http(503))

    async def canned(error: BaseException | None) -> str:
        return "canned"

    answer = answered(policy("a", backoff=NO_WAIT), there, {"retries": RetryShare(floor=0)}, fallback=canned)
    assert (answer.value, there.called) == ("canned", ["a"])


@given(
    st.lists(st.tuples(st.integers(1, 5), st.floats(0.01, 2.0)), min_size=1, max_size=12),
    st.integers(0, 20),
)
def test_no_budget_is_overspent_by_calls_side_by_side(calls: list[tuple[int, float]], limit: int) -> None:
    """Reserve, call, settle: never more than the limit, at any moment, and nothing stays reserved."""
    purse = Purse(tokens_max=limit)
    high = [0]

    async def story() -> None:
        one = gate(policy("a", backoff=NO_WAIT), purse=purse)

        async def ask(tokens: int, after_s: float) -> None:
            async def invoke(attempt: Any) -> str:
                total = purse.spent.tokens + purse.reserved.tokens
                high[0] = max(high[0], total)
                await asyncio.sleep(after_s)
                return "fine"

            step = Step(
                "ask",
                invoke,
                usage=lambda value: Usage(tokens, 0),
                estimate=lambda target: Amounts(tokens=tokens),
            )
            try:
                await one.call(step)
            except BudgetExceeded:
                pass

        await asyncio.gather(*(ask(tokens, after_s) for tokens, after_s in calls))

    play(story)
    assert high[0] <= limit
    assert purse.spent.tokens <= limit
    assert purse.reserved == Amounts()


def test_a_probe_that_no_budget_allows_leaves_its_place_to_others() -> None:
    """B33: the lease is given back, since nothing was called."""
    from gonogo.gate import BreakerPolicy

    there = world(a=[Http(500), "fine"])

    async def story() -> Any:
        purse = Purse(attempts_max=2)
        one = gate(
            policy("a", breaker=BreakerPolicy(failures=1, jitter=0), bounds=Bounds(attempts_max=1)),
            purse=purse,
        )
        with pytest.raises(GateError):
            await one.call(there.step())
        await asyncio.sleep(30)
        purse.attempts_max = 1
        with pytest.raises(BudgetExceeded):
            await one.call(there.step())
        purse.attempts_max = 2
        return await one.call(there.step()), one.clock.now()

    assert play(story) == ("fine", 30.0)


def test_a_cancelled_call_gives_back_what_it_set_aside() -> None:
    """Nothing leaks."""
    purse = Purse(tokens_max=10)

    async def story() -> None:
        one = gate(policy("a"), purse=purse)
        task = asyncio.create_task(
            one.call(world(a=Slow(100)).step(estimate=lambda target: Amounts(tokens=10)))
        )
        await asyncio.sleep(1)
        assert purse.reserved.tokens == 10
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(story)
    assert purse.reserved.tokens == 0
