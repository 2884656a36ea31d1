"""What became of each fault, folded from the events in the records (spec G16)."""

from __future__ import annotations

import json
from typing import Any

from gonogo.core.events import CallFailed
from gonogo.core.faults import Fault
from gonogo.core.plan import Block, Edge, Need, Plan, Retry, Step, Target
from gonogo.journal.fault_log import FaultLog, FaultStory, lines_of
from gonogo.journal.view import run_view

BUSY = Fault(kind="http.status", fault_class="transient", rule_id="get/busy", message="busy")
TRIES = Step("get", "noop", on_fail=Block(run=(Target("fix"),), retry=Retry(max=2)))
PLAN = Plan("test", {"get": TRIES, "fix": Step("fix", "noop", start="routed")})


def fails(times: int):
    """The first calls of `get` fail."""
    left = [times]

    def outcome(command: Any) -> Any:
        if command.step == "get":
            left[0] -= 1
        return CallFailed(call=command.call, fault=BUSY) if command.step == "get" and left[0] >= 0 else "done"

    return outcome


def stories(records: Any) -> tuple[FaultStory, ...]:
    """The faults of a run."""
    return run_view(records).fault_stories


def test_G16_a_fault_is_told_from_its_detection_to_its_end(drive) -> None:
    """With the message of the failure it began with, and each turn with its record and time."""
    records = drive(PLAN, outcome=fails(1))
    [fault] = stories(records)
    assert (fault.place, fault.kind, fault.fault_class, fault.message) == (
        "get",
        "http.status",
        "transient",
        "busy",
    )
    assert [turn.event for turn in fault.turns] == [
        "detected", "recovery.attempted", "recovery.attempted", "recovery.succeeded"
    ]  # fmt: skip
    assert fault.end == "recovery.succeeded"
    assert [records[turn.seq].event.at for turn in fault.turns] == [turn.at_s for turn in fault.turns]
    assert next(fault.details("recovery.attempted")) == {"action": "run", "step": "fix"}


def test_a_fault_that_is_still_open_has_no_end(drive) -> None:
    """A journal may be looked at while its run is under way."""
    records = drive(PLAN, outcome=fails(1))
    [detected] = [
        record.seq
        for record in records
        if any(one.__class__.__name__ == "FaultEvent" for one in record.decisions)
    ][:1]
    [fault] = stories(records[: detected + 1])
    assert fault.end is None


def test_a_run_without_a_fault_has_no_stories_and_reads_nothing_for_them(drive) -> None:
    """Nothing is paid when nothing fails."""
    view = run_view(drive(PLAN, outcome=fails(0)))
    assert view.fault_stories == ()
    assert view.counts._tally is None
    assert view.counts._fault_log is None


def test_each_item_has_its_own_faults(drive) -> None:
    """Two items fail; two stories, each with its scope."""
    listed = Step("list", "script", for_each=True)
    work = Step("work", "noop", depends_on=(Need((Edge("list"),)),), fanout="map")
    records = drive(
        Plan("test", {"list": listed, "work": work}),
        outcome=lambda command: (
            ["a", "b"] if command.step == "list" else CallFailed(call=command.call, fault=BUSY)
        ),
    )
    assert [fault.place for fault in stories(records)] == ["work@list#1[0]", "work@list#1[1]"]


def test_G16_the_report_has_every_event_in_the_order_they_happened(drive) -> None:
    """{event, fault, seq, ts, run_id, step, scope, attempt, kind, class, rule_id}, as strict JSON."""
    told = run_view(drive(PLAN, outcome=fails(3))).as_json()["fault_events"]
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert [one["event"] for one in told][:1] == ["fault.detected"]
    assert [one["event"] for one in told][-1:] == ["fault.recovery.failed"]
    assert sorted(one["seq"] for one in told) == [one["seq"] for one in told]
    assert told[0].keys() >= {"fault", "ts", "run_id", "step", "scope", "attempt", "kind", "class", "rule_id"}
    assert 0 <= told[-1]["ts"] - 1_700_000_000 < 60


def test_the_lines_of_a_fault_are_those_while_it_was_open(drive) -> None:
    """Not how the step began, and not what it did after the fault was over."""
    records = drive(PLAN, outcome=fails(1))
    [fault] = stories(records)
    kinds = [line.kind for line in lines_of(fault, records)]
    assert (kinds[0], kinds[-1]) == ("ended", "fault")
    assert kinds.count("started") == 1
    assert {line.step for line in lines_of(fault, records)} == {"get"}


def test_the_quick_way_tells_what_the_records_tell(runs, drive) -> None:
    """Lines that tell nothing of faults are passed over, on disk and in memory; the rest is the same."""
    records = drive(PLAN, outcome=fails(3))
    journal = runs.create("r")
    journal.append(records)
    journal.close()
    quick = FaultLog()
    glimpses = list(runs.fault_glimpses("r"))
    for glimpse in glimpses:
        quick.see(glimpse)
    assert list(quick.stories.values()) == list(stories(records))
    assert [glimpse.seq for glimpse in glimpses] == [record.seq for record in records]
    assert sum(bool(glimpse.decisions) for glimpse in glimpses) < len(records)
