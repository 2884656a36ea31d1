"""The laws that simulated runs are held to: what they must let pass, and what they must not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gonogo.core import compensation
from gonogo.core.plan import Block, Edge, Limits, Need, Plan, Step
from gonogo.testing.behaviours import Behaviour
from gonogo.testing.broken import Broken
from gonogo.testing.judging import failure_of
from gonogo.testing.scenarios import Crash, Scenario
from gonogo.testing.simulated import Simulation


def needs(*names: str) -> tuple[Need, ...]:
    """Plain dependencies."""
    return tuple(Need((Edge(name),)) for name in names)


def scenario(*steps: Step, behaviours: dict[str, Behaviour] | None = None, **changes: object) -> Scenario:
    """A scenario of these steps with one slot; calls pass unless a behaviour is given."""
    end = {"compensate_on": ("no_go", "cancelled")}
    plan = Plan("t", {step.name: step for step in steps}, (), Limits(max_parallelism=1), **end)  # type: ignore[arg-type]
    all_pass = {step.name: Behaviour() for step in steps}
    return replace(Scenario(1, plan, {**all_pass, **(behaviours or {})}), **changes)  # type: ignore[arg-type]


UNDONE = (
    Step("one", "noop", compensate="back"),
    Step("two", "noop", compensate="back", depends_on=needs("one")),
    Step("three", "noop", depends_on=needs("two")),
    Step("four", "noop", depends_on=needs("three")),
    Step("back", "noop"),
)


@pytest.mark.parametrize("turn", range(4, 9))
def test_an_undoing_that_a_crash_cut_short_and_a_resume_took_back_is_over(turn: int) -> None:
    """semantics 20: what a cancel had undone, and was undoing, is done again, and undone once more if it must be."""
    fails = {"four": Behaviour(logical=100)}
    cut_short = scenario(*UNDONE, behaviours=fails, cancels=(3,), crashes=(Crash(turn, "performed"),))
    assert failure_of(cut_short) is None


def test_undoing_out_of_order_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that can't be broken holds nothing."""

    def first(turn: object, *, ends_well: bool) -> bool:
        state = turn.state  # type: ignore[attr-defined]
        state.undoable.reverse()
        return whole(turn, ends_well=ends_well)  # type: ignore[arg-type]

    whole = compensation.go_on
    monkeypatch.setattr(compensation, "go_on", first)
    with pytest.raises(Broken, match="out of order"):
        Simulation(scenario(*UNDONE, behaviours={"three": Behaviour(logical=100)})).run()


@pytest.mark.parametrize("turn", [2, 3])
def test_a_one_shot_step_that_a_cancel_cut_short_may_run_after_a_resume(turn: int) -> None:
    """Spec C.15: it has not had its run."""
    steps = (Step("one", "noop"), Step("once", "noop", tags=("one_shot",), depends_on=needs("one")))
    assert failure_of(scenario(*steps, cancels=(turn,), goes_on=True)) is None


def test_a_step_that_runs_in_an_item_only_lifts_nothing_outside() -> None:
    """Spec C.8: what waits outside for a step that nothing sent the run to there stays blocked."""
    steps = (
        Step("list", "noop", for_each=True),
        Step("told", "noop"),
        Step("work", "noop", depends_on=needs("list"), fanout="map", on_fail=Block(escalate="told")),
        Step("behind", "noop", depends_on=(*needs("list"), *needs("told")), fanout="map"),
        Step("after", "noop", depends_on=needs("behind"), fanout="map"),
    )
    some = {"list": Behaviour(items=1), "work": Behaviour(logical=100)}
    assert failure_of(scenario(*steps, behaviours=some)) is None
