"""What a run is doing, folded record by record."""

from __future__ import annotations

from gonogo.app import Options, loads, start_run
from gonogo.journal.memory import MemoryRuns
from gonogo.report.watching import Watch, log_lines

STEPS = """
version: "1.0"
steps:
  list: {type: script, forEach: true, content: "return [1, 2, 3]"}
  each: {type: script, depends_on: list, fanout: map, content: "if (item === 2) throw new Error('two'); return item"}
  ask: {type: human-input, prompt: "Go?"}
"""


def watched() -> tuple[Watch, list[int], list[str], list[str]]:
    """A watch that saw a run, how many items it saw done at each record, and both logs."""
    watch, done, usual, all_lines = Watch(), [], [], []

    def see(record):  # type: ignore[no-untyped-def]
        watch.see(record)
        activity = watch.active.get(("each", ""))
        if activity is not None and activity.kind == "items":
            done.append(activity.done)
        usual.extend(f"{place}: {told}" for place, told in log_lines(record, everything=False))
        all_lines.extend(f"{place}: {told}" for place, told in log_lines(record, everything=True))

    start_run(loads(STEPS).plan, options=Options(runs=MemoryRuns(), sinks=(see,)))
    return watch, done, usual, all_lines


def test_a_watch_counts_items_and_steps_and_keeps_what_waits() -> None:
    """Items while the fan-out is under way; at the end only what holds the run is left."""
    watch, done, _, _ = watched()
    assert done == sorted(done)
    assert done[0] == 0
    assert max(done) >= 2
    assert (watch.planned, watch.settled, watch.failed) == (3, 2, 1)
    assert [(one.step, one.kind) for one in watch.active.values()] == [("ask", "waiting")]


def test_a_log_tells_news_and_with_everything_all_of_it() -> None:
    """Items that start or pass are no news: there may be very many."""
    _, _, usual, all_lines = watched()
    assert "list: started" in usual
    assert any(line.startswith("each@list#1[1]: failed") for line in usual)
    assert not any(line.startswith("each@list#1[0]: ") for line in usual)
    assert any(line.startswith("each@list#1[0]: passed") for line in all_lines)
    assert len(all_lines) > len(usual)
