"""What the moving display shows."""

from __future__ import annotations

from gonogo.cli.progress import ROWS_MAX, log_text, row, rows
from gonogo.hosts.base import LogLine
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
