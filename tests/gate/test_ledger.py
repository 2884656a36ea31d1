"""A ledger of somebody else's: asked before each attempt, told of its end, and what a call goes on with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.gate.world import NO_WAIT, Http, Slow, answered, gate, play, policy, streams, world

from gonogo.gate import (
    Backoff,
    Bounds,
    BreakerPolicy,
    BudgetExceeded,
    Carried,
    DeadlineExceeded,
    Exhausted,
    MemoryStore,
    Usage,
)
from gonogo.gate.decisions import AnyDecision
from gonogo.gate.ledger import Ended, Wanted
from gonogo.gate.policy import Hedge, Policy


@dataclass
class Notes:
    """What was written; `refuses` from this attempt on. `carried` is handed out."""

    refuses: int = 100
    carried: Carried | None = None
    slow_s: float = 0.0
    lines: list[str] = field(default_factory=list)
    ends: list[Ended] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    calls_when_asked: list[int] = field(default_factory=list)
    there: Any = None

    async def ask(self, wanted: Wanted, told: Sequence[AnyDecision]) -> str | None:
        """Takes its time."""
        if self.there is not None:
            self.calls_when_asked.append(len(self.there.calls))
        self.lines.append(f"ask {wanted.number} {wanted.target}")
        self._keep(told)
        await asyncio.sleep(self.slow_s)
        return "no money is left" if wanted.number >= self.refuses else None

    def ended(self, ended: Ended, told: Sequence[AnyDecision]) -> None:
        """The end of an attempt."""
        failure = ended.attempt.failure
        self.lines.append(f"end {ended.attempt.attempt} {failure.kind if failure else 'ok'}")
        self.ends.append(ended)
        self._keep(told)

    def waits(self, wait_s: float, target: str, elapsed_s: float, told: Sequence[AnyDecision]) -> None:
        """A long wait."""
        self.lines.append(f"wait {wait_s:g} {target}")
        self._keep(told)

    def over(self, told: Sequence[AnyDecision]) -> None:
        """The end without an attempt."""
        self.lines.append("over")
        self._keep(told)

    def _keep(self, told: Sequence[AnyDecision]) -> None:
        self.told += [type(each).__name__ for each in told]


def ask(given: Policy, there: Any, notes: Notes, **more: Any) -> Any:
    """A call that writes into these notes."""
    notes.there = there
    return answered(given, there, {"ledger": lambda step: notes}, **more)


def test_each_attempt_is_asked_for_before_it_goes_out() -> None:
    """And told of when it has ended; the last word is said once."""
    notes = Notes()
    ask(policy("a", backoff=NO_WAIT), world(a=[Http(500), "fine"]), notes)
    assert notes.lines == ["ask 1 a", "end 1 server-5xx", "ask 2 a", "end 2 ok"]
    assert notes.calls_when_asked == [0, 1]
    assert [each.over for each in notes.ends] == [False, True]
    assert notes.told == ["AttemptEnded", "RuleDecided", "AttemptEnded", "GateEnded"]


def test_an_attempt_that_is_refused_does_not_go_out() -> None:
    """It ends the call as a budget does; what was set aside for it is free again."""
    notes = Notes(refuses=2)
    there = world(a=Http(500))
    with pytest.raises(BudgetExceeded, match="no money is left"):
        ask(policy("a", backoff=NO_WAIT), there, notes)
    assert there.called == ["a"]
    assert notes.lines == ["ask 1 a", "end 1 server-5xx", "ask 2 a", "over"]


def test_a_refused_probe_gives_its_lease_back() -> None:
    """Else nobody could probe until it expires."""
    given = policy(
        "a", breaker=BreakerPolicy(failures=1, cooldown_s=1.0, jitter=0.0), bounds=Bounds(attempts_max=1)
    )
    store, there = MemoryStore(), world(a=[Http(500), "fine"])

    async def story() -> None:
        one = gate(given, store=store)
        with pytest.raises(Exhausted):
            await one.answer(there.step())
        await asyncio.sleep(10)
        one.ledger = lambda step: Notes(refuses=1)
        with pytest.raises(BudgetExceeded):
            await one.answer(there.step())
        one.ledger = None
        assert (await one.answer(there.step())).value == "fine"

    play(story)
    assert there.called == ["a", "a"]


def test_long_waits_are_written_down_short_ones_are_not() -> None:
    """Longer than a second; with the target that is asked then."""
    notes = Notes()
    given = policy("a", backoff=Backoff(base_s=0.0, patience_s=60.0), bounds=Bounds(deadline_s=600.0))
    ask(given, world(a=[Http(429, retry_after_ms="500"), Http(429, retry_after="30"), "fine"]), notes)
    [wait] = [line for line in notes.lines if line.startswith("wait")]
    assert 30 <= float(wait.split()[1]) < 40


def test_a_cancelled_attempt_is_told_of() -> None:
    """Nobody knows what it did."""
    notes = Notes()
    there = world(a=Slow(100))

    async def story() -> None:
        one = gate(policy("a"), ledger=lambda step: notes)
        task = asyncio.ensure_future(one.answer(there.step()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(story)
    assert notes.lines == ["ask 1 a", "end 1 cancelled"]
    assert notes.ends[0].attempt.effect == "unknown"


def test_a_call_that_is_cancelled_while_it_asks_calls_nothing() -> None:
    """B21, and its lease is free again."""
    notes = Notes(slow_s=10.0)
    there = world(a="fine")

    async def story() -> None:
        one = gate(policy("a", breaker=BreakerPolicy()), ledger=lambda step: notes)
        task = asyncio.ensure_future(one.answer(there.step()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(100)

    play(story)
    assert there.calls == []


def test_leave_that_does_not_come_in_time_ends_the_call() -> None:
    """The deadline is the call's, whoever it waits for; nothing goes out after it."""
    notes = Notes(slow_s=100.0)
    there = world(a="fine")
    with pytest.raises(DeadlineExceeded):
        ask(policy("a", bounds=Bounds(deadline_s=5.0)), there, notes)
    assert there.calls == []
    assert notes.lines == ["ask 1 a", "over"]


def test_both_of_a_hedged_pair_are_written() -> None:
    """The loser's end, too."""
    notes = Notes()
    ask(policy("a", "b", hedge=Hedge(delay_s=1.0)), world(a=Slow(10), b=Slow(2, "quick")), notes)
    assert notes.lines == ["ask 1 a", "ask 2 b", "end 2 ok", "end 1 cancelled"]


def test_a_fallback_is_an_attempt_that_is_asked_for() -> None:
    """It may be refused as well."""

    async def fallback(error: BaseException | None) -> str:
        return "instead"

    notes = Notes()
    one = policy("a", bounds=Bounds(attempts_max=1), backoff=NO_WAIT)
    assert ask(one, world(a=Http(500)), notes, fallback=fallback).value == "instead"
    assert notes.lines == ["ask 1 a", "end 1 server-5xx", "ask 2 fallback", "end 2 ok"]
    with pytest.raises(Exhausted):
        ask(one, world(a=Http(500)), Notes(refuses=2), fallback=fallback)


def test_attempts_of_a_stream_are_written() -> None:
    """As those of an answer."""
    notes = Notes()

    async def story() -> list[Any]:
        one = gate(policy("a", backoff=NO_WAIT), ledger=lambda step: notes)
        there = streams(a=[[Http(500)], ["hello"]])
        async with one.stream(there.step(ends="exhaustion")) as pieces:
            return [piece async for piece in pieces]

    assert play(story) == ["hello"]
    assert notes.lines == ["ask 1 a", "end 1 server-5xx", "ask 2 a", "end 2 ok"]


# --- going on


def test_a_call_goes_on_at_the_target_where_it_stopped() -> None:
    """It doesn't begin its list again."""
    there = world(a=Http(500), b="fine")
    carried = Carried(attempts=2, per_target={"a": 1, "b": 1}, target="b")
    assert ask(policy("a", "b"), there, Notes(carried=carried)).target == "b"
    assert there.called == ["b"]


def test_behind_a_target_that_is_used_up_comes_the_next() -> None:
    """Never one before it."""
    there = world(a="fine", b="fine", c="fine")
    carried = Carried(attempts=3, per_target={"b": 3}, target="b")
    assert ask(policy("a", "b", "c"), there, Notes(carried=carried)).target == "c"


def test_a_target_that_the_policy_no_longer_has_is_passed_over() -> None:
    """The list begins anew."""
    there = world(a="fine")
    assert ask(policy("a"), there, Notes(carried=Carried(attempts=1, target="gone"))).target == "a"


def test_an_attempt_that_a_crash_cut_short_counts() -> None:
    """E43: three are three."""
    there = world(a=Http(500))
    carried = Carried(attempts=2, per_target={"a": 2}, lost="a", target="a")
    with pytest.raises(Exhausted):
        ask(policy("a", backoff=NO_WAIT), there, Notes(carried=carried))
    assert len(there.calls) == 1


def test_the_last_one_is_made_again() -> None:
    """A crash alone fails no call."""
    there = world(a="fine")
    carried = Carried(attempts=3, per_target={"a": 3}, lost="a", target="a")
    assert ask(policy("a", bounds=Bounds(attempts_max=3)), there, Notes(carried=carried)).value == "fine"


def test_the_last_one_is_made_again_after_each_crash() -> None:
    """More attempts were cut short than the bounds allow: the call still has its last one."""
    there = world(a="fine")
    carried = Carried(attempts=7, per_target={"a": 7}, lost="a", target="a")
    assert ask(policy("a", bounds=Bounds(attempts_max=3)), there, Notes(carried=carried)).value == "fine"


def test_the_rest_of_a_wait_is_waited_for() -> None:
    """Never sooner than the far side asked."""
    there = world(a="fine")
    carried = Carried(attempts=1, per_target={"a": 1}, target="a", wait_s=20.0)
    ask(policy("a"), there, Notes(carried=carried))
    assert there.at == [20.0]


def test_a_wait_that_no_longer_fits_is_not_waited_for() -> None:
    """The deadline is the call's, not its last part's."""
    there = world(a="fine")
    carried = Carried(attempts=1, elapsed_s=50.0, target="a", wait_s=20.0)
    ask(policy("a"), there, Notes(carried=carried))
    assert there.at == [0.0]


def test_what_was_used_counts_against_the_calls_bounds() -> None:
    """Tokens before the crash are tokens of the call."""
    carried = Carried(attempts=1, used=Usage(output_tokens=10), target="a")
    with pytest.raises(BudgetExceeded):
        ask(policy("a", bounds=Bounds(tokens_max=10)), world(a="fine"), Notes(carried=carried))


def test_a_call_with_nothing_left_but_its_fallback_asks_that() -> None:
    """All attempts were made before the crash."""

    async def fallback(error: BaseException | None) -> str:
        return "instead"

    there = world(a="fine")
    carried = Carried(attempts=3, per_target={"a": 3}, target="a")
    answer = ask(policy("a"), there, Notes(carried=carried), fallback=fallback)
    assert (answer.value, there.calls) == ("instead", [])
