"""G12, semantics 20: when what was done is undone, how often, in which scope, and when it stands."""

from __future__ import annotations

from typing import Any

import pytest
from tests.guide.conftest import Play, play
from tests.guide.stage import Fails

from gonogo import app
from gonogo.core import decisions as d

__all__ = ["play"]

BOOKING = """
{top}
steps:
  book: {{type: noop, mutates: true, criticality: external, compensate: unbook}}
  last: {{type: noop, depends_on: book{more}}}
  unbook: {{type: noop}}
"""


def booked(play: Play, answers: dict[str, Any], top: str = "", more: str = "", **given: Any) -> Any:
    """Play a booking and a step that may fail."""
    return play(BOOKING.format(top=top, more=more), {"book": {"seat": 4}, **answers}, **given)


def test_a_run_that_waits_undoes_nothing_yet(play: Play) -> None:
    """Semantics 3, 20: HOLD isn't the end; what a person says decides."""
    more = ", on_fail: {retry: {max: 1, exhausted: hold}}"
    ran = booked(play, {"last": Fails()}, more=more)
    assert (ran.verdict, ran.stage.called("unbook")) == ("HOLD", [])
    done = ran.answered("last", "fail")
    assert (done.verdict, len(ran.stage.called("unbook"))) == ("NO-GO", 1)


def test_a_person_who_accepts_keeps_what_was_done(play: Play) -> None:
    """Semantics 20: the run is GO then."""
    ran = booked(play, {"last": Fails()}, more=", on_fail: {retry: {max: 1, exhausted: hold}}").answered(
        "last", "accept"
    )
    assert (ran.verdict, ran.stage.called("unbook")) == ("GO", [])


def test_a_budget_that_is_used_up_undoes(play: Play) -> None:
    """Semantics 20: it ends NO-GO; undoing has a reserve of its own."""
    ran = booked(play, {}, top="budget: {calls: 1}")
    assert (ran.why("last"), ran.verdict) == (("skipped", "budget"), "NO-GO")
    assert ran.started == ["book", "unbook"]


def test_safe_mode_undoes_nothing_because_nothing_was_done(play: Play) -> None:
    """G21 with G12."""
    ran = booked(play, {"last": Fails("logical")}, safe_mode=True)
    assert (ran.verdict, ran.stage.called("book"), ran.stage.called("unbook")) == ("NO-GO", [], [])


def test_a_tolerated_failure_undoes_nothing(play: Play) -> None:
    """Semantics 1, 20: the run is GO."""
    ran = booked(play, {"last": Fails("logical")}, more=", continue_on_failure: true")
    assert (ran.verdict, ran.stage.called("unbook")) == ("GO", [])


def test_a_step_that_ran_twice_is_undone_twice(play: Play) -> None:
    """Each success is one thing to undo, the latest first."""
    text = """
steps:
  book: {type: noop, mutates: true, compensate: unbook, on_success: {goto_js: "return loop < 1 ? 'book' : null"}}
  last: {type: noop, depends_on: book}
  unbook: {type: noop}
"""
    seats: list[int] = []
    undo = {"unbook": lambda call: seats.append(call.names["args"]["output"]["seat"])}
    play(text, {"book": lambda call: {"seat": call.execution}, "last": Fails("logical"), **undo})
    assert seats == [2, 1]


def test_items_are_undone_each_in_its_scope(play: Play) -> None:
    """Latest first; the item that failed did nothing; each sees its own item."""
    text = """
steps:
  list: {type: noop, forEach: true}
  book: {type: noop, mutates: true, fanout: map, depends_on: list, compensate: unbook}
  unbook: {type: noop}
"""
    book = lambda call: Fails("logical") if call.names["item"] == "b" else {"seat": call.names["item"]}  # noqa: E731
    ran = play(text, {"list": ["a", "b", "c"], "book": book})
    undone = [(call.scope, call.names["args"]["output"]["seat"]) for call in ran.stage.called("unbook")]
    assert undone == [("list#1[2]", "c"), ("list#1[0]", "a")]
    assert ran.verdict == "NO-GO"


def test_undoing_waits_until_all_else_is_over(play: Play) -> None:
    """Also for steps that always run, and for remedies."""
    text = """
steps:
  book: {type: noop, mutates: true, compensate: unbook}
  last: {type: noop, depends_on: book, on_fail: {run: [mend], escalate: page}}
  tidy: {type: noop, depends_on: last, if: always()}
  mend: {type: noop, start: routed}
  page: {type: noop, start: routed}
  unbook: {type: noop}
"""
    ran = play(text, {"book": {}, "last": Fails("logical")})
    assert ran.started[-1] == "unbook"
    assert set(ran.started[:-1]) == {"book", "last", "mend", "page", "tidy"}


def test_what_undoes_is_not_suppressed_by_what_failed(play: Play) -> None:
    """G7 with G12: it changes the outside, behind a failed critical step, and that is its purpose."""
    text = """
steps:
  check: {type: noop, criticality: internal, depends_on: book}
  book: {type: noop, mutates: true, compensate: unbook}
  unbook: {type: github, op: comment.create, criticality: external, depends_on: [{step: check, on_failure: continue}]}
"""
    ran = play(text, {"book": {}, "check": Fails("logical")})
    assert (ran["unbook"].outcome, len(ran.stage.called("unbook"))) == ("passed", 1)


def test_what_was_undone_is_told(play: Play) -> None:
    """G16: after the fault that caused it has ended, and in the report's words."""
    ran = booked(play, {"last": Fails("logical")})
    events = [(one.event, one.step) for one in ran.decisions(d.FaultEvent)]
    assert events.index(("recovery.failed", "last")) < events.index(("compensated", "book"))


@pytest.mark.parametrize(("on", "undone"), [("", 0), ("compensate_on: [no_go, halted, cancelled]", 1)])
def test_a_cancel_undoes_where_the_file_says_so(play: Play, on: str, undone: int) -> None:
    """Semantics 20: `compensate_on` widens it."""
    text = f"""
{on}
steps:
  book: {{type: noop, mutates: true, compensate: unbook}}
  ask: {{type: human-input, prompt: "go?", depends_on: book}}
  unbook: {{type: noop}}
"""
    ran = play(text, {"book": {}})
    assert ran.verdict == "HOLD"
    options = app.Options(runs=ran.runs, table=ran.stage.table())
    assert app.cancel_run(ran.result.run_id, options=options) is not None
    assert len(ran.stage.called("unbook")) == undone
