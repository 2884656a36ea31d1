"""The expressions a sandbox knows, and which of them the child has."""

from __future__ import annotations

from gonogo.expressions.analyse import Reading
from gonogo.expressions.compiled import FUNCTIONS_MAX, Functions


def test_an_expression_is_read_once() -> None:
    """Its parameters are the data names it reads, its keys the entries it names."""
    functions = Functions()
    found = functions.compiled("outputs.a.n > item && always() && outputs['b'] && Math.max(1)")
    assert found.parameters == ("item", "outputs")
    assert found.keys == {"outputs": ("a", "b")}
    assert (found.reads_status, found.reads_association) == (True, False)
    assert functions.compiled(found.source) is found


def test_a_reading_that_is_known_is_not_made_again() -> None:
    """Hints decide what is given, also when they say that nothing is read."""
    assert Functions().compiled("item", Reading(names=("index",))).parameters == ("index",)
    assert Functions().compiled("item", Reading()).parameters == ()
    assert Functions().compiled("item").parameters == ("item",)


def test_text_that_is_no_expression_fails_without_the_engine() -> None:
    """EXP-1: it never gets a place in the child."""
    assert Functions().compiled("{{ x }}").failure is not None


def test_text_the_parser_stumbles_over_is_given_every_name() -> None:
    """The engine may still accept it; then no name may be missing."""
    assert "conversation" in Functions().compiled("output..n").parameters


def test_the_longest_unused_is_dropped_in_the_child_too() -> None:
    """A run with ever new expressions stays small."""
    functions = Functions()
    first = functions.compiled("0")
    for n in range(1, FUNCTIONS_MAX + 1):
        functions.compiled(str(n))
    assert functions.take_parts() == ["x", str(first.number)]
    assert functions.take_parts() == []


def test_a_new_child_has_nothing() -> None:
    """Everything is sent again after a restart."""
    functions = Functions()
    functions.compiled("1").sent = True
    functions.forget_all()
    assert not functions.compiled("1").sent
    kept = functions.compiled("1")
    functions.forget("1")
    assert functions.compiled("1") is not kept
