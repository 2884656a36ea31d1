"""Glimpses count as whole records do, and pass over what isn't counted."""

from __future__ import annotations

from gonogo.core.events import CallFailed
from gonogo.core.faults import Fault
from gonogo.core.plan import Block, Expression, Plan, Retry, Step
from gonogo.journal.counts import Counts
from gonogo.journal.glimpse import glimpses_of
from gonogo.journal.records import Record
from gonogo.journal.tally import Tally

FLAKY = Fault(kind="http.status", fault_class="transient", rule_id="x/busy", message="busy")
PLAN = Plan(
    "test",
    {
        "a": Step(
            "a", "noop", on_fail=Block(retry=Retry(2, delay_s=1.0, jitter=0.0)), on_success=Block(goto="b")
        ),
        "b": Step("b", "noop"),
        "c": Step("c", "noop", if_condition=0),
    },
    expressions=(Expression("false", "condition"),),
)


def told(tally: Tally) -> object:
    """All that a tally knows, to compare."""
    counts = {
        name: (one.runs, one.failed, one.skips, one.retries, one.durations)
        for name, one in tally.counts.items()
    }
    return counts, tally.faults, tally.refusals, tally.conditions, tally.suppressed


def kept(runs, drive) -> list[Record]:
    """A run with a retry, a superseded step and a condition that doesn't hold, kept as `r`."""
    flaky = lambda command: CallFailed(call=command.call, fault=FLAKY) if command.attempt == 1 else "ok"  # noqa: E731
    records = drive(PLAN, flaky, value=lambda ask: False)
    journal = runs.create("r")
    journal.append(records)
    journal.close()
    return records


def test_lines_are_counted_as_the_records_they_hold(runs, drive) -> None:
    """Retries, faults, refusals and conditions are the same, from disk and from memory."""
    records = kept(runs, drive)
    tally = Tally(runs.glimpses("r"))
    assert told(tally) == told(Tally(glimpses_of(records)))
    assert tally.counts["a"].retries == 1
    assert tally.conditions["c"].result is False


def test_a_glimpse_holds_no_plan_and_no_output(runs, drive) -> None:
    """A second look at a long journal keeps nothing of it."""
    kept(runs, drive)
    (first, *_) = runs.glimpses("r")
    assert (first.event.type, first.event.at) == ("run_started", 0.0)
    assert not hasattr(first.event, "plan")


def test_records_one_by_one_are_those_read_at_once(runs, drive) -> None:
    """And their number is known in the end."""
    records = kept(runs, drive)
    reading = runs.records("r")
    assert list(reading) == runs.read("r").records == records
    assert (reading.count, reading.notes) == (len(records), ())


def test_nothing_is_counted_before_it_is_asked_for() -> None:
    """And then once."""
    passes = []
    counts = Counts(lambda: passes.append(1) or [])
    assert not passes
    assert counts.tally is counts.tally
    assert passes == [1]
