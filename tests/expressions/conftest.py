"""One sandbox for the tests of a module, and a short way to evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gonogo.expressions.names import Kind
from gonogo.expressions.results import Result
from gonogo.expressions.sandbox import Request, Sandbox

Evaluate = Callable[..., Result]

NOW_MS = 1_700_000_000_000.0


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Started at the first evaluation, ended with the module."""
    made = Sandbox(now_ms=NOW_MS)
    yield made
    made.close()


@pytest.fixture
def evaluate(sandbox: Sandbox) -> Evaluate:
    """`evaluate(source, kind, **names)` gives the one result."""

    def run(source: str, kind: Kind = "value", **names: Any) -> Result:
        return sandbox.evaluate([Request(source, kind, names)])[0]

    return run
