"""What `gonogo workers` says to people."""

from __future__ import annotations

from gonogo.cli.verbs.workers import table
from gonogo.journal.postgres.workers import About, Present, Waiting
from gonogo.report.layout import Style

NEAR = Present("w1", About("dbos", "build-3", 17, ("near",), 100, 16), 0.0, runs=1, calls=2)


def test_what_waits_is_counted_by_label_in_colours_too() -> None:
    """Red is what nobody takes."""
    waiting = Waiting(1, {"": 1, "far": 2, "near": 1})
    lines = table([NEAR], waiting, ["far"], Style(colour=True))
    assert lines[0].startswith("\x1b[1mw1\x1b[0m  dbos  on build-3 (pid 17)  labels near  runs 1/100")
    assert lines[1:] == [
        "waiting: 1 run, 1 call without a label",
        "\x1b[31mwaiting: 2 calls for far: no worker has --label far\x1b[0m",
        "waiting: 1 call for near",
    ]


def test_labels_that_somebody_forged_are_shown_escaped() -> None:
    """Rows of a store may hold anything."""
    lines = table([], Waiting(0, {"\x1b]0;title\x07": 1}), ["\x1b]0;title\x07"], Style())
    assert "\x1b" not in "".join(lines)
