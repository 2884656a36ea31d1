"""Parsing: a tree for anything, a refusal for what is no expression at all."""

from __future__ import annotations

import pytest

from gonogo.expressions.syntax import (
    SOURCE_BYTES_MAX,
    ExpressionProblem,
    encode,
    parse,
    place_of,
    refuse_what_is_no_expression,
)


def test_broken_text_still_gives_a_tree() -> None:
    """The engine, not the parser, says what is wrong."""
    assert parse("1 +").has_error


def test_length_is_limited_in_bytes() -> None:
    """A quarter of a megabyte is far beyond any honest expression."""
    encode("x" * SOURCE_BYTES_MAX)
    with pytest.raises(ExpressionProblem, match="at most 256 KiB"):
        encode("é" * SOURCE_BYTES_MAX)


def test_half_a_character_is_refused_with_its_place() -> None:
    """Line and column point at it."""
    with pytest.raises(ExpressionProblem) as problem:
        encode("a\n b\ud83d")
    assert (problem.value.line, problem.value.column) == (2, 3)


def test_a_template_is_refused_where_its_braces_begin() -> None:
    """EXP-1."""
    with pytest.raises(ExpressionProblem) as problem:
        refuse_what_is_no_expression("'{{' +\n a == {{ b }}")
    assert (problem.value.line, problem.value.column) == (2, 7)


def test_absurd_nesting_is_refused_before_parsing() -> None:
    """Depth counts, not number; brackets in strings are text."""
    refuse_what_is_no_expression("[[1],[2]]," * 1000)
    refuse_what_is_no_expression("'" + "(" * 1000 + "'")
    with pytest.raises(ExpressionProblem, match="nested at most 500"):
        refuse_what_is_no_expression("(" * 501 + "1" + ")" * 501)


@pytest.mark.parametrize("repeated", ["/* ", "\\'", '\\"', "\\`"])
def test_what_is_never_closed_is_searched_once(repeated: str) -> None:
    """Searched again from each opening, this much would take hours."""
    with pytest.raises(ExpressionProblem, match="not template"):
        refuse_what_is_no_expression("{{" + repeated * 80_000)
    with pytest.raises(ExpressionProblem, match="nested at most 500"):
        refuse_what_is_no_expression("(" * 501 + repeated * 80_000)


@pytest.mark.parametrize("before", ["'it\\'s'", '"\\\\"', "`a\n'`", "/* ' */", "// '\n", "it's", "a\\"])
def test_braces_are_found_behind_any_string_or_comment(before: str) -> None:
    """Also behind an apostrophe that opens nothing."""
    with pytest.raises(ExpressionProblem, match="not template"):
        refuse_what_is_no_expression(before + " + {{ x }}")
    refuse_what_is_no_expression("'{{' + " + '"{%" + `{{` /* {{ */ // {{')


def test_places_count_characters_not_bytes() -> None:
    """From 1, also after text that takes several bytes."""
    assert place_of("é😀x\nöy".encode(), len("é😀x\nö".encode())) == (2, 2)
