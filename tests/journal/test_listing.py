"""`gonogo runs`: every run in one line, from the ends of its journal."""

from __future__ import annotations

from gonogo.core.decisions import Finished
from gonogo.core.events import CallParked, CancelAsked
from gonogo.core.plan import Plan, Step
from gonogo.journal.codec import encode_line
from gonogo.journal.listing import summaries, summary
from gonogo.journal.records import Record

PLAN = Plan("nightly", {"a": Step("a", "noop", config={"text": "x" * 20_000})})


def kept(disk, run_id: str, records) -> None:
    """A run of these records that nobody writes any more."""
    journal = disk.create(run_id)
    journal.append([Record(one.seq, 1_700_000_060.5, one.event, one.decisions) for one in records])
    journal.close()


def test_a_finished_run_shows_its_verdict_and_times(disk, drive) -> None:
    """Name, event, verdict, start and end; a first line of any length."""
    kept(disk, "r", drive(PLAN, trigger={"name": "push"}, parent={"run_id": "p"}))
    (one,) = summaries(disk)
    assert (one.run_id, one.status, one.workflow, one.event, one.parent) == (
        "r",
        "GO",
        "nightly",
        "push",
        "p",
    )
    assert (one.started_at_ms, one.ended_at_ms) == (1_700_000_000_000, 1_700_000_060_500)


def test_a_parked_run_is_on_hold(disk, drive) -> None:
    """Nothing runs, a person is waited for."""
    kept(disk, "r", drive(PLAN, lambda command: CallParked(call=command.call)))
    assert summary(disk, "r").status == "HOLD"


def test_a_run_without_a_verdict_is_running_or_interrupted(disk, drive) -> None:
    """Its lock tells the two apart."""
    journal = disk.create("r")
    journal.append(drive(PLAN)[:1])
    assert (summary(disk, "r").status, summary(disk, "r").ended_at_ms) == ("running", None)
    journal.close()
    assert summary(disk, "r").status == "interrupted"


def test_a_torn_end_is_passed_over(disk, drive) -> None:
    """The last whole record counts, however long the torn part is."""
    kept(disk, "r", drive(PLAN)[:1])
    with (disk.folder / "r" / "journal.jsonl").open("ab") as file:
        file.write(b'{"seq":' + b"x" * 50_000)
    assert summary(disk, "r").status == "interrupted"


def test_a_cancel_in_a_torn_end_is_passed_over(disk, drive) -> None:
    """A run that a signal stopped was gone on with, and that one's cancel wasn't written to its end."""
    start = drive(PLAN)[0]
    stopped = CancelAsked(at=1.0, by="caller", interrupted=True)
    kept(disk, "r", [start, Record(1, 0.0, stopped, (Finished("NO-GO", because=("cancelled",)),))])
    with (disk.folder / "r" / "journal.jsonl").open("ab") as file:
        file.write(encode_line(Record(2, 0.0, CancelAsked(at=2.0, by="ann")))[:-2])
    assert (summary(disk, "r").status, summary(disk, "r").interrupted) == ("NO-GO", True)


def test_a_long_last_line_is_found(disk, drive) -> None:
    """A last record larger than one read."""
    kept(disk, "r", drive(PLAN, lambda command: "y" * 100_000))
    assert summary(disk, "r").status == "GO"


def test_what_cannot_be_read_is_listed_with_its_reason(disk, drive) -> None:
    """One damaged run hides no other."""
    for name in ("empty", "odd", "well"):
        kept(disk, name, drive(PLAN))
    (disk.folder / "empty" / "journal.jsonl").write_bytes(b"")
    (disk.folder / "odd" / "journal.jsonl").write_bytes(b"no journal\n")
    (disk.folder / "notes.txt").write_text("no run")
    told = {one.run_id: one for one in summaries(disk)}
    assert {name: one.status for name, one in told.items()} == {
        "empty": "unreadable",
        "odd": "unreadable",
        "well": "GO",
    }
    assert told["odd"].note == told["empty"].note == "its end is missing"


def test_the_latest_run_comes_first(disk, drive) -> None:
    """By start, then by id."""
    for name, started in (("a", 1), ("b", 3), ("c", 3)):
        first, *rest = drive(PLAN)
        event = type(first.event)(run_id=name, plan=PLAN, started_at_ms=started)
        kept(disk, name, [Record(0, 0.0, event, first.decisions), *rest])
    assert [one.run_id for one in summaries(disk)] == ["b", "c", "a"]


def test_the_last_line_may_be_the_first(disk, drive) -> None:
    """A run that was stopped after one record."""
    kept(disk, "r", drive(Plan("empty", {})))
    assert (disk.folder / "r" / "journal.jsonl").read_bytes() == encode_line(
        Record(0, 1_700_000_060.5, drive(Plan("empty", {}))[0].event, drive(Plan("empty", {}))[0].decisions)
    )
    assert summary(disk, "r").status == "GO"
