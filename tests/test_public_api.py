"""What is public is written down in public_api.txt, so that a name that comes or goes is seen in review.

Edit the file by hand, with a fragment in changes/ that tells users.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

WRITTEN = Path(__file__).with_name("public_api.txt")
PUBLIC_MODULES = ("gonogo", "gonogo.gate", "gonogo.provider", "gonogo.testing")


def written_names(module: str) -> set[str]:
    """The names that the file lists for a module."""
    lines = WRITTEN.read_text().split()
    return {name for line in lines for of, _, name in [line.rpartition(".")] if of == module}


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_names_are_written_down(module: str) -> None:
    """`__all__` and the file say the same."""
    assert set(importlib.import_module(module).__all__) == written_names(module)


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_names_can_be_had(module: str) -> None:
    """Each name in `__all__` is there, once, in a readable order."""
    found = importlib.import_module(module)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []
    assert len(set(found.__all__)) == len(found.__all__)


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_what_is_public_explains_itself(module: str) -> None:
    """Classes and functions that others use have a docstring of their own."""
    found = importlib.import_module(module)
    things = {name: getattr(found, name) for name in found.__all__}
    silent = [
        name
        for name, thing in things.items()
        if callable(thing) and getattr(thing, "__module__", "").startswith("gonogo") and not thing.__doc__
    ]
    assert silent == []


def test_the_file_is_sorted_and_names_public_modules_only() -> None:
    """A change of the file is easy to read."""
    lines = WRITTEN.read_text().split()
    assert lines == sorted(set(lines))
    assert {line.rpartition(".")[0] for line in lines} <= set(PUBLIC_MODULES)
