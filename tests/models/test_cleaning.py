"""Texts of the far side, made fit to be shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gonogo.models.cleaning import identifier, named, shown


@given(st.text(st.characters(), max_size=50), st.integers(1, 20))
def test_any_text_becomes_one_short_line(text: str, characters_max: int) -> None:
    """Printable, and cut with a mark."""
    line = shown(text, characters_max)
    assert line.isprintable()
    assert len(line) <= characters_max + 1


def test_what_is_no_text_is_nothing() -> None:
    """Numbers are names of their own; true is none."""
    assert [shown(value) for value in (None, 7, ["x"], b"x")] == ["", "", "", ""]
    assert [named(value) for value in (None, 7, True, 10**50, "m-1")] == ["", "7", "", "", "m-1"]


def test_an_id_goes_back_as_it_came() -> None:
    """Even a long one; what can't be shown is made fit, what is no text is none."""
    long = "call_1__thought__" + "x" * 5000
    assert identifier(long) == long
    assert [identifier(value) for value in ("a\x1bb", None, 7)] == ["a b", "", "7"]
    assert len(identifier("x" * 100_000)) <= 101
