"""What may undo a step (G12)."""

from __future__ import annotations

from typing import Any

import pytest

TEXT = """
steps:
  book: {{type: noop, compensate: {by}}}
  list: {{type: noop, forEach: true}}
  undo: {{type: noop, {keys}}}
  other: {{type: noop}}
"""


@pytest.mark.parametrize(
    ("by", "keys", "codes"),
    [
        ("undo", "group: g", []),
        ("undo", "depends_on: other", []),
        ("undo", "fanout: reduce, depends_on: list", []),
        ("book", "group: g", ["compensate.own"]),
        ("undo", "compensate: other", ["compensate.nested"]),
        ("undo", "compensate: book", ["compensate.nested", "compensate.nested"]),
        ("list", "group: g", ["compensate.fanout"]),
        ("undo", "fanout: map", ["compensate.fanout"]),
        ("undo", "fanout: map, depends_on: list", ["compensate.fanout"]),
    ],
)
def test_G_12_what_undoes_a_step_is_another_that_runs_once(
    load_text: Any, refuse: Any, by: str, keys: str, codes: list[str]
) -> None:
    """G12: never itself, never one that is undone itself, never one with fan-out; each says what to change."""
    text = TEXT.format(by=by, keys=keys)
    if not codes:
        assert load_text(text).plan.steps["book"].compensate == by
        return
    problems = refuse(text)
    assert [problem.code for problem in problems] == codes
    assert all(problem.suggestion for problem in problems)


def test_G_12_a_type_that_maps_by_itself_does_not_undo_behind_a_list(refuse: Any) -> None:
    """C.13 R1: a command behind a list runs once per item without a word."""
    text = """
    steps:
      book: {type: noop, compensate: undo}
      list: {type: noop, forEach: true}
      undo: {type: command, exec: "true", depends_on: list}
    """
    assert [problem.code for problem in refuse(text)] == ["compensate.fanout"]
