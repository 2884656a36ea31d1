"""Loading texts in tests: with the real step types; the sandbox is real only where a test asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import dedent
from typing import Any

import pytest

from gonogo.config import Loaded, loads
from gonogo.errors import ConfigError, Problem
from gonogo.expressions.sandbox import Sandbox
from gonogo.providers.table import Table, built_in

Load = Callable[..., Loaded]
Refuse = Callable[..., tuple[Problem, ...]]


@pytest.fixture(scope="session")
def providers() -> Table:
    """The step types a program uses."""
    return built_in()


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """The real sandbox."""
    made = Sandbox(0.0)
    yield made
    made.close()


def _accept_all(sources: Sequence[Any]) -> list[None]:
    return [None] * len(sources)


@pytest.fixture
def load_text(providers: Table) -> Load:
    """Load a text that must be usable; `version` is put in front unless the text has one."""

    def load(text: str, **more: Any) -> Loaded:
        more.setdefault("compile_expressions", _accept_all)
        more.setdefault("providers", providers)
        return loads(versioned(text), **more)

    return load


@pytest.fixture
def refuse(load_text: Load) -> Refuse:
    """Load a text that must be refused; gives the errors."""

    def refused(text: str, **more: Any) -> tuple[Problem, ...]:
        with pytest.raises(ConfigError) as caught:
            load_text(text, **more)
        return tuple(problem for problem in caught.value.problems if problem.severity == "error")

    return refused


@pytest.fixture
def warn(load_text: Load) -> Refuse:
    """Load a usable text; gives its warnings and notes."""

    def warned(text: str, **more: Any) -> tuple[Problem, ...]:
        return load_text(text, **more).problems

    return warned


def versioned(text: str) -> str:
    """`text` without its indentation and with a version as its last line, so that lines keep their numbers."""
    text = dedent(text).lstrip("\n")
    return text if "version:" in text else f"{text.rstrip()}\nversion: '1.0'\n"
