"""The lists of names: complete, and without overlap where it would matter."""

from __future__ import annotations

from tests.expressions.conftest import Evaluate

from gonogo.expressions.names import (
    BUILTINS,
    HELPERS,
    KNOWN_NAMES,
    LAZY_NAMES,
    PERMISSION_HELPERS,
    STATUS_HELPERS,
)
from gonogo.expressions.results import Value


def test_a_name_is_data_helper_or_builtin_but_never_two() -> None:
    """B.2: what a name means doesn't depend on the place."""
    assert not KNOWN_NAMES & HELPERS
    assert not KNOWN_NAMES & BUILTINS
    assert not HELPERS & BUILTINS


def test_special_lists_are_part_of_the_general_ones() -> None:
    """Lazy names are data, status and permission helpers are helpers."""
    assert LAZY_NAMES <= KNOWN_NAMES
    assert PERMISSION_HELPERS | STATUS_HELPERS <= HELPERS


def test_every_builtin_exists_in_the_sandbox_and_no_other_does(evaluate: Evaluate) -> None:
    """Validation knows exactly the names that would work."""
    found = evaluate("Reflect.ownKeys(globalThis).filter(k => typeof k === 'string')")
    assert isinstance(found, Value)
    offered = set(found.value) - HELPERS - {"Float16Array"}
    assert offered == BUILTINS - {"arguments"}
