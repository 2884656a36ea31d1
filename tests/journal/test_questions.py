"""What a run waits for, through its children's journals, which are hostile input like any other."""

from __future__ import annotations

from typing import Any

import pytest

from gonogo.core.events import CallParked
from gonogo.core.plan import Plan, Step
from gonogo.journal.questions import asked
from gonogo.journal.view import Waiting, run_view


def kept(runs, drive, run_id: str, details: Any, steps: int = 1) -> tuple[Waiting, ...]:
    """What a run waits for whose steps all hold with these details."""
    plan = Plan("test", {f"s{number}": Step(f"s{number}", "noop") for number in range(steps)})
    records = drive(
        plan, lambda command: CallParked(call=command.call, prompt=run_id, details=details), run_id=run_id
    )
    journal = runs.create(run_id)
    journal.append(records)
    journal.close()
    return run_view(records).waiting


def test_a_child_that_names_itself_is_looked_into_once(runs, drive) -> None:
    """Law 2: a forged circle of runs ends, however many steps name it."""
    kept(runs, drive, "b", {"child": "a"}, steps=3)
    waiting = kept(runs, drive, "a", {"child": "b"}, steps=3)
    assert [one.step for one in asked(runs, "a", waiting)] == ["s0.s0", "s0.s1", "s0.s2", "s1", "s2"]


@pytest.mark.parametrize(
    "details", [{}, {"child": 3}, {"child": "gone"}, {"child": "../../etc"}, {"child": ""}]
)
def test_a_child_that_cannot_be_read_leaves_its_parents_own_words(runs, drive, details: Any) -> None:
    """No such run, no name of a run, damage: the report of the parent is shown all the same."""
    waiting = kept(runs, drive, "a", details)
    assert tuple(asked(runs, "a", waiting)) == waiting
