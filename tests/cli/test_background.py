"""Work beside the main thread."""

from __future__ import annotations

import threading

import pytest

from gonogo.cli.background import Background
from gonogo.errors import UsageError


def test_it_works_while_others_do() -> None:
    """It starts before its result is asked for."""
    begun = threading.Event()
    work = Background(lambda: begun.set() or 42)
    assert begun.wait(10)
    assert work.result() == 42


def test_what_it_raises_comes_with_the_result() -> None:
    """In the thread that asks."""

    def fail() -> None:
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        Background(fail).result()
