"""The Liquid dialect: its tags and filters, and that nothing in it reads a clock or a file."""

from __future__ import annotations

import pytest

from gonogo.expressions.filters import CONTEXT_FILTERS, FILTERS
from gonogo.expressions.liquid_room import Room
from gonogo.expressions.template import Renderer, TemplateProblem


def test_every_filter_of_ours_is_there() -> None:
    """B.11, and nothing that marks text as safe."""
    room = Room()
    assert {*FILTERS, *CONTEXT_FILTERS, "where_exp", "date"} <= set(room.filters)
    assert "safe" not in room.filters


def test_no_tag_reads_files() -> None:
    """semantics.md 13: templates read no files."""
    for name in ("include", "render", "readfile"):
        assert type(Room().tags[name]).__name__.startswith("Refused")
    assert not {"extends", "block", "import", "macro", "translate"} & set(Room().tags)


@pytest.mark.parametrize(
    "text", ["{{ 'now' | date: '%s' }}", "{{ 'today' | date: '%Y' }}", "{{ now }}", "{{ today }}"]
)
def test_the_clock_is_the_runs_own(text: str) -> None:
    """Determinism: the same names give the same text at any time."""
    assert Renderer().render(text, {}) in ("", "0", "1970")


@pytest.mark.parametrize("name", sorted(Room().filters))
def test_a_filter_given_nonsense_fails_as_a_template_problem(name: str) -> None:
    """Whatever the input, nothing but TemplateProblem comes out."""
    for value in (None, "text", -1, 1.5, True, [], [{}], {"a": [1]}, "9" * 400):
        for arguments in ("", ": x", ": x, x", ": 'a', 'b'"):
            try:
                Renderer().render("{{ x | " + name + arguments + " }}", {"x": value})
            except TemplateProblem:
                continue
