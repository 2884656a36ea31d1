"""A statement body gets a value: its last expression, where nothing is returned."""

from __future__ import annotations

import pytest

from gonogo.expressions.shape import shape


@pytest.mark.parametrize("source", ["a + b", "a // c", "({a: 1})", "x => { return x }"])
def test_one_expression_is_left_alone(source: str) -> None:
    """It is compiled as an expression."""
    assert shape(source).body == ""


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("a; b", "a; $c=(b)"),
        ("a;", "$c=(a);"),
        ("const x = 1; x; function f() {}", "const x = 1; $c=(x); function f() {}"),
        ("if (a) { b } else c", "if (a) { $c=(b) } else $c=(c)"),
        ("try { a } catch { b } finally { 1 }", "try { $c=(a) } catch { $c=(b) } finally { 1 }"),
        ("for (const x of y) { x; t += x }", "for (const x of y) { x; $c=(t += x) }"),
        (
            "switch (a) { case 1: b; break; default: c }",
            "switch (a) { case 1: $c=(b); break; default: $c=(c) }",
        ),
        ("a; return b", "a; return b"),
        ("[1].map(x => { x; })\n;a, b", "[1].map(x => { x; })\n;$c=(a, b)"),
        ("'é'; b", "'é'; $c=(b)"),
    ],
)
def test_the_last_expression_is_what_a_body_comes_to(source: str, body: str) -> None:
    """Also inside the branches of the last statement; never inside functions."""
    assert shape(source).body == body


def test_text_with_mistakes_is_passed_on_as_it_is() -> None:
    """The engine reports it; nothing was put in that would move its columns."""
    made = shape("a; b +")
    assert (made.body, made.insertions, made.trusted) == ("a; b +", (), False)


def test_what_was_put_in_is_known_for_messages() -> None:
    """Row, byte column and length of each insertion."""
    assert shape("a;\n 'é'").insertions == ((1, 1, 4), (1, 5, 1))
