"""The core by itself: events in, decisions and commands out (B10, law 1); what a journal needs (semantics 23)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.gate.world import NO_WAIT, Http, answered, golden, policy, world

from gonogo.errors import Bug
from gonogo.gate import BreakerPolicy, NotRetryable
from gonogo.gate import commands as c
from gonogo.gate import decisions as d
from gonogo.gate import events as e
from gonogo.gate.machine import advance, begin
from gonogo.gate.replaying import carried_after, replay
from gonogo.gate.signals import Classification


def began(**more: Any) -> e.Began:
    """A call that begins at second 0."""
    return e.Began(0.0, "c-1", **more)


def test_a_clean_call_is_three_events() -> None:
    """Begin, admitted, answered."""
    given, event = policy("a"), began()
    state = begin(given, event)
    assert advance(given, state, event).commands == [c.Admit(0, False)]
    [start] = advance(given, state, e.Admitted(0.0)).commands
    assert start == c.StartAttempt(1, 0, 30.0)
    assert advance(given, state, e.Answered(1.0)).commands == [c.Return()]
    with pytest.raises(Bug, match="can't go from ended"):
        advance(given, state, e.Waited(2.0))


def test_a_refusal_that_comes_with_a_time_is_waited_for() -> None:
    """B39: the first that may be asked again."""
    given, event = policy("a", "b", breaker=BreakerPolicy()), began()
    state = begin(given, event)
    advance(given, state, event)
    assert advance(given, state, e.Refused(0.0, "breaker", "open", 9.0)).commands == [c.Admit(1, False)]
    assert advance(given, state, e.Refused(0.0, "breaker", "open", 5.0)).commands == [c.Wait(5.0)]
    assert advance(given, state, e.Waited(5.0)).commands == [c.Admit(1, False)]


def test_the_deadline_is_the_sooner_of_the_callers_and_the_policys() -> None:
    """F25."""
    given, event = policy("a"), began(deadline_at=4.0)
    state = begin(given, event)
    advance(given, state, event)
    [start] = advance(given, state, e.Admitted(1.0)).commands
    assert (start.limit_s, start.deadline_first) == (3.0, True)


def test_events_and_decisions_survive_a_journal() -> None:
    """Law 1: read back from JSON, they decide the same again."""
    there = world(a=[Http(429, retry_after="1"), Http(503), Http(503)], b=[Http(401)])

    async def canned(error: BaseException | None) -> str:
        return "canned"

    given = golden(breaker=BreakerPolicy(failures=2, jitter=0.0))
    record = answered(given, there, fallback=canned).record
    events = msgspec.json.decode(msgspec.json.encode(record.events), type=list[e.AnyEvent])
    decisions = msgspec.json.decode(msgspec.json.encode(record.decisions), type=list[d.AnyDecision])
    assert events == record.events
    assert msgspec.json.encode(replay(given, events)) == msgspec.json.encode(record.decisions)
    assert msgspec.json.encode(decisions) == msgspec.json.encode(record.decisions)


def test_what_is_to_outlive_a_crash_is_kept_before_it_is_done() -> None:
    """Semantics 23: the start of an attempt is kept before the target is called; who can't keep it, doesn't call."""
    there = world(a=["fine"])
    seen: list[tuple[str, int]] = []

    def keep(call: str, event: e.AnyEvent, decisions: list[d.AnyDecision]) -> None:
        seen.extend((type(each).__name__, len(there.calls)) for each in decisions)

    answered(policy("a"), there, {"keep": keep})
    assert seen == [("AttemptStarted", 0), ("AttemptEnded", 1), ("GateEnded", 1)]

    def full(call: str, event: e.AnyEvent, decisions: list[d.AnyDecision]) -> None:
        raise OSError("no space left")

    there = world(a="fine")
    with pytest.raises(OSError, match="no space"):
        answered(policy("a"), there, {"keep": full})
    assert there.calls == []


@pytest.mark.parametrize("effects", ["reads", "mutates"])
def test_a_call_broken_off_by_a_crash_goes_on_with_its_counters(effects: Any) -> None:
    """F21, law 3: an attempt without its end was made; if it changes something, it isn't made again."""
    given = policy("a", backoff=NO_WAIT)
    failure = Classification("rate-limit", "test", effect="none")
    events = [
        began(effects=effects),
        e.Admitted(0.0),
        e.Answered(1.0, failure, effect="none"),
        e.Admitted(1.0),
    ]
    carried = carried_after(given, events)
    assert carried is not None
    assert (carried.attempts, carried.elapsed_s) == (2, 1.0)
    assert carried.unclear == ("a" if effects == "mutates" else None)
    there = world(a="fine")
    if effects == "reads":
        assert answered(given, there, carried=carried).value == "fine"
    else:
        with pytest.raises(NotRetryable):
            answered(given, there, carried=carried, effects="mutates")
        assert there.calls == []


def test_a_call_that_never_began_carries_nothing() -> None:
    """No events, no counters."""
    assert carried_after(policy("a"), []) is None
