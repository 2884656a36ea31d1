"""What mutants are made of a text, and what is left alone."""

from __future__ import annotations

import ast

import pytest

from tools.mutants.making import Mutant, mutants_of


def made(source: str) -> list[Mutant]:
    """The mutants of a text."""
    return mutants_of("some", ast.parse(source))


def changed(source: str) -> set[str]:
    """The texts that come of it, one for each mutant."""
    found = set()
    for number, _ in enumerate(made(source)):
        tree = ast.parse(source)
        mutants_of("some", tree)[number].plant()
        compile(tree, "some", "exec")
        found.add(ast.unparse(tree))
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a is None", {"x = a is not None"}),
        ("x = a and b", {"x = a or b", "x = a", "x = b"}),
        ("x = not a", {"x = a"}),
        ("x = a + b", {"x = a - b"}),
        ("x = 1", {"x = 2"}),
        ("x = True", {"x = False"}),
        ("x = 'word'", {"x = 'otherword'"}),
        ("x = f'{a}/rule'", {"x = f'other{a}/rule'"}),
        ("x = a if b else c", {"x = a", "x = c", "x = a if not b else c"}),
        ("x = min(a)", {"x = max(a)"}),
        ("x = call(a, b=c)", {"x = call(a)"}),
        ("x = [a for a in b if c]", {"x = [a for a in b]"}),
        ("a.b = c", {"pass"}),
        ("call()", {"pass"}),
        ("a += b", {"a -= b", "a = b", "pass"}),
    ],
)
def test_one_node_is_changed_at_a_time(source: str, expected: set[str]) -> None:
    """Each kind of node, and nothing else about the text."""
    assert changed(source) == expected


def test_a_guard_is_turned_round_and_left_out() -> None:
    """What is forgotten most easily."""
    assert changed("if a:\n    x()") == {
        "if not a:\n    x()",
        "if False:\n    x()",
        "if a:\n    pass",
    }


def test_functions_return_nothing_and_take_other_defaults() -> None:
    """Defaults are outside of the function's body."""
    source = "def f(a: int=1) -> int:\n    return a"
    assert changed(source) == {
        "def f(a: int=2) -> int:\n    return a",
        "def f(a: int=1) -> int:\n    return None",
    }
    assert [(mutant.top, mutant.inside, mutant.lines) for mutant in made(source)] == [
        ("f", False, (1, 1)),
        ("f", True, (2, 2)),
    ]


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "x = 'words for people'",
        "x = f'so many: {n}'",
        "import a",
        "x: int",
        "X = Literal['a']",
    ],
)
def test_what_decides_nothing_is_left_alone(source: str) -> None:
    """Texts for people, imports, types."""
    assert made(source) == []


def test_names_are_unique_and_know_no_line_numbers() -> None:
    """So that a list of survivors outlives a move of the code."""
    source = "def f():\n    call(1, 1)\n    call(1, 1)"
    names = [mutant.name for mutant in made(source)]
    assert len(set(names)) == len(names) == 6
    assert names == [mutant.name for mutant in made("\n\n" + source)]
