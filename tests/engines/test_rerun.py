"""Steps of a run that others carry are run again by those, not by who asks for it."""

from __future__ import annotations

import pytest
from tests.engines.world import World

from gonogo.app.again import Wish, hand_over_wish
from gonogo.errors import UsageError

pytestmark = pytest.mark.slow

TALE = """
steps:
  first: {type: command, exec: "echo first-$PPID >> done"}
  second: {type: command, depends_on: [first], exec: "echo second >> done; test -e good"}
"""


def test_a_step_runs_again_where_the_run_is_carried(here: World) -> None:
    """By one of the workers, once, with what depends on it."""
    worker = here.worker()
    run_id = here.submit(TALE)
    assert here.ended(run_id).finished.verdict == "NO-GO"  # type: ignore[union-attr]
    (here.folder / "good").touch()
    known = len(list(here.runs.records(run_id)))
    assert hand_over_wish(run_id, Wish(steps=("second",), by="ann"), here.options)
    here.wait(
        lambda: (
            (state := here.state(run_id)) is not None
            and state.finished is not None
            and state.finished.verdict == "GO"
        ),
        "the end",
    )
    assert [line.partition("-")[0] for line in here.lines("done")] == ["first", "second", "second"]
    assert len(list(here.runs.records(run_id))) > known
    assert here.runs.inbox(run_id).take() == []
    assert hand_over_wish(run_id, Wish(steps=("first",)), here.options)
    here.wait(lambda: len(here.lines("done")) == 5, "the second time")
    assert {line for line in here.lines("done") if line.startswith("first")} == {f"first-{worker.pid}"}


def test_what_does_not_fit_is_refused_before_anybody_is_asked(here: World) -> None:
    """As on one machine."""
    here.worker()
    run_id = here.submit(TALE)
    here.ended(run_id)
    with pytest.raises(UsageError, match="nothing"):
        hand_over_wish(run_id, Wish(steps=("nothing",)), here.options)
    assert here.runs.inbox(run_id).take() == []
