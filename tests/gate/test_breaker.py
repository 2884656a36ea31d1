"""The breaker's record and its pure functions (C.3)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.gate import BreakerPolicy
from gonogo.gate import breaker as b

FIRM = BreakerPolicy(failures=2, jitter=0.0, cooldown_s=30, calls_min=1000)


def fail(
    record: b.BreakerRecord, now_s: float, times: int = 1, policy: BreakerPolicy = FIRM
) -> b.BreakerRecord:
    """So many failures of callers without a lease."""
    for _ in range(times):
        record = b.failed(policy, record, now_s, "x", "server-5xx")
    return record


def opened(now_s: float = 0.0) -> b.BreakerRecord:
    """An open breaker."""
    return fail(b.CLOSED, now_s, 2)


def ask(
    record: b.BreakerRecord, now_s: float, owner: str = "x", **more: Any
) -> tuple[b.BreakerRecord, b.Admission]:
    """Ask for admission with a lease of 10 s."""
    return b.admit(FIRM, record, now_s, owner, 10.0, **more)


def test_it_opens_at_failures_in_a_row_and_a_success_starts_over() -> None:
    """B31: consecutive failures."""
    once = fail(b.CLOSED, 0)
    assert once.state == "closed"
    assert fail(b.succeeded(FIRM, once, 0, "x", 0.1), 0).state == "closed"
    assert fail(once, 0).state == "open"


def test_it_opens_at_a_rate_over_enough_calls() -> None:
    """B31: half of at least twenty calls of the window; older ones are forgotten."""
    policy = BreakerPolicy(failures=100)
    record = b.CLOSED
    for number in range(19):
        act = b.succeeded if number % 2 else None
        record = (
            act(policy, record, number, "x", 0.1) if act else b.failed(policy, record, number, "x", "network")
        )
    assert record.state == "closed"
    assert b.failed(policy, record, 19, "x", "network").state == "open"
    assert b.failed(policy, record, 200, "x", "network").state == "closed"


def test_slow_answers_can_open_it() -> None:
    """B31: off unless wanted."""
    policy = BreakerPolicy(slow_s=5, calls_min=4)
    record = b.CLOSED
    for _ in range(4):
        record = b.succeeded(policy, record, 0, "x", 6.0)
    assert record.state == "open"
    record = b.CLOSED
    for _ in range(40):
        record = b.succeeded(BreakerPolicy(), record, 0, "x", 6.0)
    assert record.state == "closed"


def test_open_refuses_until_its_cooldown_is_over_and_says_when() -> None:
    """The refusal carries the time of the next chance."""
    _, refused = ask(opened(), 29.9)
    assert (refused.admitted, refused.until_s) == (False, 30.0)
    record, admitted = ask(opened(), 30.0)
    assert (admitted.admitted, admitted.probe, record.state) == (True, True, "half-open")


def test_LLM_3_e_fifty_callers_at_half_open_are_one_probe() -> None:
    """LLM-3 e, X32, B33: the others are refused with the time of the next try."""
    record, admissions = opened(), []
    for caller in range(50):
        record, admission = ask(record, 31.0, f"caller {caller}")
        admissions.append(admission)
    assert [admission.admitted for admission in admissions] == [True] + [False] * 49
    assert {admission.until_s for admission in admissions[1:]} == {41.0}


def test_LLM_3_a_b_d_a_probe_that_says_nothing_frees_its_place() -> None:
    """LLM-3 a, b, d: an error that doesn't count, a cancellation, a reader who leaves."""
    record, _ = ask(opened(), 31.0, "first")
    record = b.released(record, "first")
    assert ask(record, 31.0, "second")[1].probe


def test_LLM_3_c_a_probe_that_fails_opens_for_longer() -> None:
    """LLM-3 c, B34: twice as long each time, up to the cap."""
    record, spans = opened(), []
    now_s = 0.0
    for _ in range(6):
        now_s = record.open_until_s
        record, _ = ask(record, now_s)
        record = fail(record, now_s)
        spans.append(record.open_until_s - now_s)
    assert spans == [60, 120, 240, 300, 300, 300]


def test_a_prober_that_died_wedges_nothing() -> None:
    """B33: a lease expires by itself, and its late owner no longer decides."""
    record, _ = ask(opened(), 31.0, "dead")
    record, admission = ask(record, 41.0, "next")
    assert admission.probe
    assert b.succeeded(FIRM, record, 42, "dead", 0.1).state == "half-open"
    assert b.succeeded(FIRM, record, 42, "next", 0.1).state == "closed"


def test_late_callers_change_nothing_while_it_is_open() -> None:
    """C.2: neither their success nor their failure."""
    assert b.succeeded(FIRM, opened(), 1, "late", 0.1) == opened()
    assert fail(opened(), 1) == opened()


def test_a_wish_of_the_far_side_raises_the_cooldown_within_bounds() -> None:
    """B34."""
    record = b.failed(FIRM, fail(b.CLOSED, 0), 0, "x", "overloaded", retry_after_s=100)
    assert record.open_until_s == 100
    record = b.failed(FIRM, fail(b.CLOSED, 0), 0, "x", "overloaded", retry_after_s=1e9)
    assert record.open_until_s == 300


def test_a_resting_target_is_left_alone_without_opening() -> None:
    """D.2: rate-limit cools."""
    record = b.resting(b.CLOSED, 0, "x", 7)
    assert ask(record, 6.9)[1].reason == "resting"
    assert ask(record, 7.0)[1].admitted
    assert record.state == "closed"


def test_an_isolated_target_stays_out_whatever_is_forced() -> None:
    """B38."""
    record = b.isolated(b.CLOSED, 0, "x", b.Isolation(100, "maintenance", "maria"))
    assert ask(record, 99, force=True)[1].reason == "isolated: maintenance"
    assert ask(record, 100)[1].admitted


def test_each_change_of_state_is_told_once() -> None:
    """LLM-3: open, half-open, closed."""
    record, _ = ask(opened(), 31)
    closed = b.succeeded(FIRM, record, 31, "x", 0.1)
    changes = [b.change("k", *pair) for pair in ((b.CLOSED, opened()), (opened(), record), (record, closed))]
    assert [(change.before, change.after, change.reason) for change in changes if change] == [
        ("closed", "open", "server-5xx"),
        ("open", "half-open", "probe"),
        ("half-open", "closed", "recovered"),
    ]
    assert b.change("k", closed, closed) is None


@given(st.integers(1, 10_000), st.text(max_size=10), st.floats(0, 1e12) | st.none())
def test_every_cooldown_is_finite_and_within_its_cap(
    openings: int, identity: str, wish_s: float | None
) -> None:
    """RET-1, for breakers."""
    policy = BreakerPolicy()
    cooldown_s = b.cooldown_s(policy, openings, wish_s, identity)
    assert math.isfinite(cooldown_s)
    assert 0 < cooldown_s <= policy.cooldown_s_max * 1.2


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["admit", "ok", "fail", "release", "rest"]), st.integers(0, 4), st.floats(0, 40)
        )
    )
)
def test_no_story_lets_more_probes_out_than_there_are_leases(moves: list[tuple[str, int, float]]) -> None:
    """B33, whatever happens in whatever order."""
    record, now_s = b.CLOSED, 0.0
    for move, caller, later_s in moves:
        now_s += later_s
        owner = f"caller {caller}"
        if move == "admit":
            record, _ = ask(record, now_s, owner)
        elif move == "ok":
            record = b.succeeded(FIRM, record, now_s, owner, 0.1)
        elif move == "fail":
            record = b.failed(FIRM, record, now_s, owner, "network")
        elif move == "release":
            record = b.released(record, owner)
        else:
            record = b.resting(record, now_s, owner, 5)
        assert len([lease for lease in record.leases if now_s < lease.until_s]) <= FIRM.probes
        assert record.open_until_s <= now_s + b.reach_s(FIRM)


@pytest.mark.parametrize("by_s", [-1e6, -3600.0, 3600.0, 1e6])
def test_a_record_moved_to_another_clock_never_asks_for_a_longer_wait(by_s: float) -> None:
    """TIM-2: clamped to the reach."""
    there = b.moved(opened(1000.0), by_s, 1000.0, b.reach_s(FIRM))
    assert there.open_until_s <= 1000.0 + b.reach_s(FIRM)
