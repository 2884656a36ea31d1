"""config/position.py: the place of a character of a scalar's text, in every style of YAML scalar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.config.nodes import Mapping, Scalar
from gonogo.config.position import place_within
from gonogo.config.yaml import parse


def scalar(text: str) -> Scalar:
    """The value of the key `a`."""
    node = parse(text, "a.yaml")
    assert isinstance(node, Mapping)
    found = node.get("a")
    assert isinstance(found, Scalar)
    return found


def place_of_x(text: str) -> tuple[int, int]:
    """Where the X of the scalar's text is in the file."""
    node = scalar(text)
    before = node.text[: node.text.index("X")]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    place = place_within(node, line, column)
    return place.line, place.column


@pytest.mark.parametrize(
    "text",
    [
        "a: b + X\n",
        "a: X\n",
        "a: 'it''s X'\n",
        'a: "tab\\t\\u00e9 \\"q\\" X"\n',
        'a: "line\\nX"\n',
        'a: "con\\\n  tinued X"\n',
        "a: |\n  one\n  two X\n",
        "a: |2\n    indented X\n",
        "a: |-\n\n\n  after blank lines X\n",
        "a: >\n  folded\n  into one X\n\n  more\n",
        "a: >\n  folded\n\n  paragraph X\n",
        "a: plain\n  over lines\n\n  and X\n",
        "a: 'quoted\n  over\n\n  lines X'\n",
        "z: ä\nä: 1\na: ü + X\n",
        "a: !!str X\n",
        "a: &anchor text X\n",
    ],
)
def test_the_place_is_where_the_file_has_the_character(text: str) -> None:
    """Expressions' errors point into block scalars, quoted ones and folded ones."""
    line, column = place_of_x(text)
    assert text.split("\n")[line - 1][column - 1] == "X"


def test_a_place_past_the_end_is_the_end() -> None:
    """A compiler may complain about the end of the text."""
    place = place_within(scalar("a: b +\n"), 1, 99)
    assert (place.line, place.column) == (1, 7)


@given(st.lists(st.text("ab(){}. \n", min_size=1, max_size=30), min_size=1, max_size=5))
def test_literal_blocks_map_every_character(lines: list[str]) -> None:
    """For each non-blank character of a literal block: the file has it at the mapped place."""
    text = "\n".join(f"q{line}".rstrip() for part in lines for line in part.split("\n"))
    file = "a: |\n" + "\n".join(f"    {line}" for line in text.split("\n")) + "\n"
    node = scalar(file)
    for number, line in enumerate(node.text.split("\n"), 1):
        for column, character in enumerate(line, 1):
            place = place_within(node, number, column)
            if character != " ":
                assert file.split("\n")[place.line - 1][place.column - 1] == character
