"""From what the child says to values and failures, with places in the user's text."""

from __future__ import annotations

import pytest

from gonogo.expressions.outcomes import Needs, outcome, syntax_failure
from gonogo.expressions.results import Failure, MemoryOp, Value
from gonogo.expressions.shape import Shape, shape

PLAIN = Shape("", (), True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t", Value(value=True)),
        ("f", Value(value=False)),
        ('{"v":[1]}', Value(value=[1])),
        ('{"u":1}', Value(undefined=True)),
        ('{"v":1,"m":[],"l":["a"]}', Value(value=1, logs=("a",))),
        (
            '{"v":1,"m":[{"op":"clear","key":null,"value":null,"namespace":null}],"l":[]}',
            Value(value=1, memory=(MemoryOp(op="clear"),)),
        ),
        ('{"n":[["outputs","a"],["outputs",null]]}', Needs((("outputs", "a"), ("outputs", None)))),
        ('{"e":["TypeError","bad"," at <input>:3:4"]}', Failure("error", "TypeError: bad", 2, 4)),
        ('{"e":["Error","mine",""]}', Failure("error", "mine")),
        ('{"e":["Unusable","no data",""]}', Failure("result", "no data")),
    ],
)
def test_answers_are_read(text: str, expected: object) -> None:
    """Each form has one meaning."""
    assert outcome(text, "first\nsecond line", PLAIN, 1.0) == expected


@pytest.mark.parametrize(
    ("text", "kind"), [("!InternalError: interrupted", "limit"), ("!null", "memory"), ("!Odd", "error")]
)
def test_what_stops_the_engine_is_told_apart(text: str, kind: str) -> None:
    """Time, memory, and the rest."""
    result = outcome(text, "x", PLAIN, 1.0)
    assert isinstance(result, Failure)
    assert result.kind == kind


@pytest.mark.parametrize("text", ["{", "[1]", '{"e":1}', '{"n":[1]}', '{"m":[{}]}'])
def test_an_answer_of_no_known_form_raises(text: str) -> None:
    """The sandbox makes a failure of it; a child that was taken over can't do more."""
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        outcome(text, "x", PLAIN, 1.0)


def test_places_inside_our_own_scripts_are_skipped() -> None:
    """The first place in the user's text counts."""
    said = '{"e":["TypeError","x","at contains (<input>:100012:3)\\n at <input>:2:5"]}'
    assert outcome(said, "a + contains(b)", PLAIN, 1.0) == Failure("error", "TypeError: x", 1, 5)


def test_columns_are_moved_back_to_the_users_text() -> None:
    """Bytes become characters, and what shape put in is taken off."""
    source = "'é'; b.c"
    said = '{"e":["TypeError","x","<input>:2:11"]}'  # é takes two bytes, `$c=(` four
    assert outcome(said, source, shape(source), 1.0) == Failure("error", "TypeError: x", 1, 6)


def test_of_two_complaints_the_one_that_got_further_is_told() -> None:
    """Text that is nearly an expression, or nearly a body."""
    complaints = "SyntaxError: a\n    at <input>:2:3\n\x01SyntaxError: b\n    at <input>:2:9\n"
    assert syntax_failure(complaints, "0123456789", PLAIN) == Failure("syntax", "SyntaxError: b", 1, 9)


def test_no_memory_to_compile_with_says_nothing_about_the_text() -> None:
    """It is not a syntax error, so it isn't remembered as one."""
    assert syntax_failure("null\n\x01null\n", "a", PLAIN).kind == "memory"


def test_an_expression_that_ends_too_early_is_told_without_the_wrapper() -> None:
    """The bracket that the engine stumbles over isn't the author's; one that is stays in the message."""
    early = "SyntaxError: unexpected token in expression: ']'\n    at <input>:3:1\n"
    assert syntax_failure(f"{early}\x01{early}", "output >", PLAIN) == Failure(
        "syntax", "SyntaxError: the expression ends too early", 1, 9
    )
    within = "SyntaxError: unexpected token in expression: ']'\n    at <input>:2:3\n"
    assert "']'" in syntax_failure(f"{within}\x01{within}", "1+] + 2", PLAIN).message
