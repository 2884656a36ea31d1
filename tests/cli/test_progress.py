"""What the moving display shows."""

from __future__ import annotations

from io import StringIO

from gonogo.app import Options, Start, loads, start_run
from gonogo.cli.output import Output
from gonogo.cli.progress import ITEMS_S, ROWS_MAX, STILL_S, Lines, log_text, row, rows, still_text
from gonogo.core.decisions import Started
from gonogo.hosts.base import LogLine
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.records import Record
from gonogo.report.watching import Activity, Watch


def test_a_row_tells_time_attempts_waits_and_items() -> None:
    """By kind."""
    assert row(Activity("a", "", "running", 1.0, "attempt 2"), 3.5)[0] == "▸ a  2.5 s  attempt 2"
    assert row(Activity("a", "", "items", 0.0, done=3, total=1000), 1.0)[0] == "▸ a  3 of 1,000 items  1.0 s"
    assert (
        row(Activity("a", "x#1[0]", "waiting", 0.0, "retry 1", due_s=4.0), 1.0)[0]
        == "◦ a@x#1[0]  waits  retry 1 in 3.0 s"
    )


def test_many_rows_are_counted_and_fit_the_terminal() -> None:
    """The last row is the whole run."""
    watch = Watch()
    watch.planned = 50
    for number in range(20):
        watch.active[f"step-{number}" * 20, ""] = Activity(f"step-{number}" * 20, "", "running", 0.0)
    shown = rows(watch, 1.0, 40)
    assert len(shown) == ROWS_MAX + 2
    assert all(len(line) <= 40 for line, _ in shown)
    assert "12 more" in shown[-2][0]
    assert shown[-1][0].startswith("0 of 50 steps done")


def test_log_lines_are_escaped() -> None:
    """What a call says can't reach the terminal's controls."""
    assert log_text(LogLine("r", "a", "", "warn", "x\x1b[2J\ny")) == "a: warn: x\\x1b[2J\n  y"


def test_a_log_says_what_is_under_way_when_there_was_no_news_for_long() -> None:
    """Once a minute of silence is over, and not again before the next one is."""
    stderr, now = StringIO(), [0.0]
    lines = Lines(Output({}, StringIO(), stderr), clock=lambda: now[0])
    loaded = loads('version: "1.0"\nsteps: {tests: {type: noop}}')
    seen: list[Record] = []
    start_run(loaded.plan, Start(), Options(runs=MemoryRuns(), sinks=(seen.append,)))
    for record in seen:
        lines.see(record)
        if any(isinstance(decision, Started) for decision in record.decisions):
            break
    for now[0] in (STILL_S - 1, STILL_S, STILL_S + 1):
        lines.still()
    with lines.paused():
        now[0] = 3 * STILL_S
        lines.still()
    told = [line for line in stderr.getvalue().splitlines() if "under way" in line]
    assert len(told) == 1
    assert "under way: tests for 60.0 s" in told[0]


def test_what_is_under_way_is_told_with_its_items_and_cut() -> None:
    """The first few by name."""
    some = [Activity("a", "x#1[0]", "running", 1.0), Activity("b", "", "items", 0.0, done=1, total=3)]
    assert still_text(some, 61.0) == "under way: a@x#1[0] for 60.0 s, b for 61.0 s (1 of 3 items)"
    assert still_text(some[:1] * (ROWS_MAX + 2), 61.0).endswith(" and 2 more")


def test_a_log_says_how_far_a_list_is_now_and_then() -> None:
    """Not of each item: after another tenth of it, and after some seconds."""
    stderr, now = StringIO(), [0.0]
    lines = Lines(Output({}, StringIO(), stderr), clock=lambda: now[0])
    steps = """{
      list: {type: script, forEach: true, content: "return [...Array(100).keys()]"},
      each: {type: script, fanout: map, depends_on: list, content: "if (item === 3) throw new Error('three')"}}"""
    loaded = loads(f'version: "1.0"\nsteps: {steps}')
    seen: list[Record] = []
    start_run(loaded.plan, Start(), Options(runs=MemoryRuns(), sinks=(seen.append,)))
    for record in seen:
        now[0] += ITEMS_S / 5  # five seconds are some five records, so not every tenth is told
        lines.see(record)
    told = [line.split("  ")[-1] for line in stderr.getvalue().splitlines() if "items done" in line]
    assert 1 < len(told) <= 10
    assert all(" of 100 items done, 1 failed" in line for line in told)
