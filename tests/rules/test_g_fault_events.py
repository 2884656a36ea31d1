"""G16: what happens to each fault, told as events: detected, isolated, attempts, and exactly one end."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.guide.conftest import Play, Played, play
from tests.guide.stage import Fails, Turns

from gonogo.core import decisions as d

__all__ = ["play"]

ENDS = ("recovery.succeeded", "recovery.failed")
AFTERWARDS = ("compensated", "escalated")


def told(ran: Played, step: str | None = None) -> list[str]:
    """The events of a run, in order."""
    return [one.event for one in ran.decisions(d.FaultEvent, step)]


def by_fault(ran: Played) -> dict[int, list[str]]:
    """The events of each fault, in order."""
    events = sorted(ran.decisions(d.FaultEvent), key=lambda one: one.fault)
    return {
        fault: [one.event for one in group] for fault, group in groupby(events, key=lambda one: one.fault)
    }


def test_G_16_nothing_is_told_when_nothing_fails(play: Play) -> None:
    """G16: skips and tolerances of conditions are no faults."""
    ran = play("steps: {a: {type: noop}, b: {type: noop, if: 'false'}, c: {type: noop, assume: 'false'}}")
    assert told(ran) == []


SCENARIOS: dict[str, tuple[str, Any, list[str]]] = {
    "no remedy": ("group: g", Fails("logical"), ["detected", "recovery.failed"]),
    "a retry that mends": (
        "on_fail: {retry: {max: 2}}",
        Turns(Fails(), {}),
        ["detected", "recovery.attempted", "recovery.succeeded"],
    ),
    "retries that don't": (
        "on_fail: {retry: {max: 2}}",
        Fails(),
        ["detected", "recovery.attempted", "recovery.attempted", "recovery.failed"],
    ),
    "a wrong result": (
        "fail_if: output.bad, on_fail: {retry: {max: 2}}",
        {"bad": True},
        ["detected", "recovery.failed"],
    ),
    "a broken contract": ("guarantee: output.fine", {}, ["detected", "recovery.failed"]),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_G_16_a_fault_has_a_beginning_and_one_end(play: Play, scenario: str) -> None:
    """G16: detected, then attempts, then succeeded or failed; a new failure of the same step is the same fault."""
    keys, answer, expected = SCENARIOS[scenario]
    ran = play(f"steps: {{a: {{type: noop, {keys}}}}}", {"a": answer})
    assert told(ran) == expected
    assert {one.fault for one in ran.decisions(d.FaultEvent)} == {1}


def test_G_16_a_remedy_is_an_attempt(play: Play) -> None:
    """G16: remediation scheduled; with a retry behind it the fault ends well."""
    text = "steps: {a: {type: noop, on_fail: {run: [mend], retry: {max: 1}}}, mend: {type: noop}}"
    ran = play(text, {"a": Turns(Fails(), {})})
    events = told(ran, "a")
    assert (events[0], events[-1]) == ("detected", "recovery.succeeded")
    assert set(events[1:-1]) == {"recovery.attempted"}


def test_G_16_gated_dependents_are_isolation(play: Play) -> None:
    """G16: a failure that doesn't spread says whom it was kept from."""
    ran = play("steps: {a: {type: noop}, b: {type: noop, depends_on: a}}", {"a": Fails("logical")})
    assert sorted(told(ran)) == ["detected", "isolated", "recovery.failed"]
    isolated = next(one for one in ran.decisions(d.FaultEvent) if one.event == "isolated")
    assert (isolated.step, "b" in str(isolated.detail)) == ("a", True)


def test_G_16_an_isolated_item_is_told_with_its_scope(play: Play) -> None:
    """G16, law 5: of three items one fails."""
    text = "steps: {list: {type: noop, forEach: true}, each: {type: noop, fanout: map, depends_on: list}}"
    bad = {"list": [1, 2, 3], "each": lambda call: Fails("logical") if call.names["item"] == 2 else {}}
    ran = play(text, bad)
    assert {(one.step, one.scope) for one in ran.decisions(d.FaultEvent)} == {("each", "list#1[1]")}
    assert "isolated" in told(ran)


def test_G_16_an_event_says_what_failed(play: Play) -> None:
    """G16: step, scope, attempt, kind, class and rule of the fault."""
    ran = play("steps: {a: {type: noop, guarantee: 'false'}}")
    detected = ran.decisions(d.FaultEvent)[0]
    assert (detected.step, detected.scope, detected.attempt) == ("a", "", 1)
    assert (detected.fault_class, detected.rule_id) == ("logical", "contract/guarantee_failed")
    assert detected.kind


def test_G_16_a_later_failure_is_another_fault(play: Play) -> None:
    """G16: failed, mended, failed again: two faults, each with its end."""
    text = """
steps:
  a: {type: noop, on_fail: {retry: {max: 1}}, on_success: {goto_js: "return loop === 0 ? 'a' : null"}}
"""
    ran = play(text, {"a": Turns(Fails(), {}, Fails(), {})})
    assert list(by_fault(ran).values()) == [["detected", "recovery.attempted", "recovery.succeeded"]] * 2


def test_G_16_a_refused_loop_ends_in_failure(play: Play) -> None:
    """G16: budget refused."""
    text = "routing: {max_loops: 1}\nsteps: {a: {type: noop, on_fail: {goto: a}}}"
    events = told(play(text, {"a": Fails("logical")}))
    assert (events[0], events[-1], sum(event in ENDS for event in events)) == (
        "detected",
        "recovery.failed",
        1,
    )


MIXED = """
routing: {max_loops: 2}
steps:
  list: {type: noop, forEach: true, on_fail: {retry: {max: 1}}}
  each: {type: noop, fanout: map, depends_on: list, on_fail: {retry: {max: 1}, run: [mend]}}
  mend: {type: noop}
  sum: {type: noop, depends_on: each, on_fail: {goto: list}}
  last: {type: noop, depends_on: sum}
"""
answers = st.lists(
    st.sampled_from([{}, Fails(), Fails("logical"), Fails("bug")]), min_size=1, max_size=4
).map(lambda given: Turns(*given))


@given(
    made=st.fixed_dictionaries(dict.fromkeys(("each", "mend", "sum", "last"), answers)),
    lists=st.lists(st.sampled_from([Fails(), [], [1], [1, 2]]), min_size=1, max_size=3),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_G_16_every_fault_is_told_in_order(play: Play, made: dict[str, Turns], lists: list[Any]) -> None:
    """G16: detected, isolated or attempted, one end, and only then compensated or escalated; whatever fails."""
    ran = play(MIXED, {**made, "list": Turns(*lists)})
    for events in by_fault(ran).values():
        assert events[0] == "detected"
        assert events.count("detected") == 1
        assert sum(event in ENDS for event in events) == 1
        end = next(place for place, event in enumerate(events) if event in ENDS)
        assert set(events[1:end]) <= {"isolated", "recovery.attempted"}
        assert set(events[end + 1 :]) <= set(AFTERWARDS)
