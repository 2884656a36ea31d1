"""Which names a function or block declares itself."""

from __future__ import annotations

import pytest

from gonogo.expressions.scopes import FUNCTIONS, block_names, function_names, pattern_names
from gonogo.expressions.syntax import parse


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("var a = 1, {b, c: [d]} = x; { var e; let f }", {"a", "b", "d", "e"}),
        ("let a; const {b = q} = x; function c() { var inner } class D {}", {"a", "b", "c", "D"}),
        ("for (var i of x) { for (var j in y) {} }", {"i", "j"}),
    ],
)
def test_a_program_declares_its_own_and_hoisted_names(source: str, names: set[str]) -> None:
    """`var` climbs out of blocks but not out of functions."""
    assert function_names(parse(source)) == names


def test_a_function_declares_its_parameters_and_its_name() -> None:
    """Defaults and computed keys are no declarations."""
    statement = parse("(function f(a, {b, c: d = e}, [g, ...h] = i, ...j) {})").named_children[0]
    function = statement.named_children[0].named_children[0]
    assert function.type in FUNCTIONS
    assert function_names(function) == {"f", "a", "b", "d", "g", "h", "j"}


def test_loops_and_catch_clauses_declare_for_themselves() -> None:
    """Their names end with them."""
    loop = parse("for (const [k, v] of x) {}").named_children[0]
    assert block_names(loop) == {"k", "v"}
    clause = parse("try {} catch ({message}) {}").named_children[0].child_by_field_name("handler")
    assert clause is not None
    assert block_names(clause) == {"message"}


def test_an_expression_binds_nothing() -> None:
    """Only patterns bind."""
    assert list(pattern_names(parse("a.b").named_children[0])) == []
