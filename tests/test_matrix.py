"""Every cell of the behaviour matrix is a run of the engine, and the page shows the matrix as it is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from tests.matrix import BEHIND, CRITICALITIES, LIFE, ROWS, Row, Turn
from tests.whole import Ran, runner

from gonogo.core import decisions as d
from tools import matrix

CELLS = [(row, criticality) for row in ROWS for criticality in CRITICALITIES]


def step_of(ran: Ran) -> str:
    """`failed, 1 call, NO-GO`: as the table says it."""
    calls = ran.calls["it"]
    outcome = ran["it"].outcome.replace("_", " ")
    return f"{outcome}, {calls} {'call' if calls == 1 else 'calls'}, {ran.verdict}"


def behind_of(ran: Ran) -> str:
    """`skipped / suppressed / suppressed`, or `all run`: as the table says it."""
    words = [word_of(ran, name) for name in BEHIND]
    if len(set(words)) > 1:
        return " / ".join(words)
    return {"runs": "all run", "waits": "all wait"}.get(words[0], f"all {words[0]}")


def word_of(ran: Ran, name: str) -> str:
    """What became of a step behind."""
    outcome, reason = ran.why(name)
    if outcome == "skipped":
        return "suppressed" if reason == "suppressed" else "skipped"
    return {"passed": "runs", "waiting": "waits"}[outcome]


@pytest.mark.parametrize(
    ("row", "criticality"), CELLS, ids=[f"{row.construct}-{row.case}-{level}" for row, level in CELLS]
)
def test_a_run_comes_to_what_its_cell_says(row: Row, criticality: str, tmp_path: Path) -> None:
    """C.5 to C.12: outcome, calls and verdict of the step, and what becomes of the steps behind it."""
    ran = runner(tmp_path)(row.workflow(criticality))
    assert turns_of(ran) <= {(turn.before, turn.after) for turn in LIFE}
    assert step_of(ran) == getattr(row.step, criticality)
    assert behind_of(ran) == getattr(row.behind, criticality)


def turns_of(ran: Ran) -> set[tuple[str, str]]:
    """Which events of a fault followed each other."""
    by_fault: dict[int, list[str]] = {}
    for one in ran.decisions(d.FaultEvent):
        by_fault.setdefault(one.fault, []).append(one.event)
    return {turn for events in by_fault.values() for turn in pairwise(events)}


@pytest.mark.parametrize("turn", LIFE, ids=lambda turn: f"{turn.before}-{turn.after}")
def test_a_fault_takes_each_turn_of_its_life(turn: Turn, tmp_path: Path) -> None:
    """G16: the diagram shows nothing that doesn't happen."""
    assert (turn.before, turn.after) in turns_of(runner(tmp_path)(turn.workflow))


def test_the_page_shows_the_matrix_as_it_is() -> None:
    """After a change of the table: `python -m tools.matrix`."""
    assert matrix.PAGE.read_text() == matrix.filled_in(matrix.PAGE.read_text())


def test_the_page_shows_every_row() -> None:
    """None is lost on its way into the page, and no two are the same."""
    page = matrix.PAGE.read_text()
    heads = [f"| {row.construct} | {row.case} |" for row in ROWS]
    assert [head for head in heads if page.count(head) != 2] == []
