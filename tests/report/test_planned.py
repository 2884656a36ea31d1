"""What would run, in levels."""

from __future__ import annotations

import pytest

from gonogo.core.plan import Edge, Need, Plan, Step
from gonogo.report import planned


def chained(number: int) -> Step:
    """A step that needs the one before it."""
    needs = (Need((Edge(f"s{number - 1}"),)),) if number else ()
    return Step(f"s{number}", "noop", depends_on=needs)


def test_a_level_is_one_more_than_the_highest_that_comes_before() -> None:
    """In configuration order within a level, whatever the order of the levels is."""
    both = Step("both", "noop", depends_on=(Need((Edge("s1"), Edge("free"))),))
    steps = [chained(1), both, Step("free", "noop"), chained(0)]
    view = planned.preview(Plan("p", {step.name: step for step in steps}), None, ())
    assert view.levels == (("free", "s0"), ("s1",), ("both",))


def test_levels_look_at_each_step_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: a chain of 500 steps isn't gone through again for each of its levels."""
    asked: list[str] = []
    before = planned._before

    def counted(plan: Plan, name: str) -> list[str]:
        asked.append(name)
        return before(plan, name)

    monkeypatch.setattr(planned, "_before", counted)
    view = planned.preview(Plan("p", {f"s{n}": chained(n) for n in range(500)}), None, ())
    assert len(view.levels) == 500
    assert len(asked) == 500
