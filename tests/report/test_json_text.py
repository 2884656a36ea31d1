"""JSON in pieces: the same text as the standard library's, and never whole."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.journal.lazily import Elements, Members, plain_data
from gonogo.report.json_text import BATCH, json_pieces, json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def lazily(value: Any) -> Any:
    """Objects as members, their lists as elements."""
    if isinstance(value, dict):
        return Members(lambda: ((name, lazily(inner)) for name, inner in value.items()))
    return Elements(lambda: value) if isinstance(value, list) else value


@given(VALUES, st.booleans())
def test_the_text_is_the_one_of_the_standard_library(value: Any, unicode: bool) -> None:
    """Indented by two, with other signs as they are or as escapes; made at once or while it is written."""
    expected = json.dumps(value, indent=2, ensure_ascii=not unicode) + "\n"
    assert json_text(value, unicode=unicode) == expected
    assert json_text(lazily(value), unicode=unicode) == expected
    assert plain_data(lazily(value)) == value


@pytest.mark.parametrize("length", [0, 1, BATCH, BATCH + 1, 3 * BATCH])
def test_a_list_of_any_length_is_one_list(length: int) -> None:
    """Whatever is written at a time."""
    value = {"items": [{"index": index} for index in range(length)]}
    assert json_text(lazily(value)) == json.dumps(value, indent=2) + "\n"


def test_a_list_is_made_while_it_is_written() -> None:
    """An endless one begins."""
    pieces = json_pieces({"": Elements(count)}[""])
    assert [next(pieces)[:10] for _ in range(3)] == [
        "[\n  0,\n  1",
        f",\n  {BATCH},\n  "[:10],
        f",\n  {2 * BATCH},\n "[:10],
    ]


@pytest.mark.parametrize("value", ["half \udce9", 2**70])
def test_what_the_fast_writer_refuses_is_written_all_the_same(value: Any) -> None:
    """Half a character in the name of a file, a whole number beyond 64 bits."""
    assert json.loads(json_text([value], unicode=False)) == [value]
