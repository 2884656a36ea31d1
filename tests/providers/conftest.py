"""What all tests of step types use: one call of a built-in type, in a context that the test scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from gonogo.provider import Outcome
from gonogo.providers.table import built_in
from gonogo.testing import ScriptedContext, call_for

Do = Callable[..., Outcome]


@pytest.fixture
def context(tmp_path: Path) -> ScriptedContext:
    """A context that starts in an empty folder."""
    return ScriptedContext(working_directory=str(tmp_path))


@pytest.fixture
def do(context: ScriptedContext) -> Do:
    """Call a type once: `do("command", {"exec": "true"})`; further words change the call."""

    def call(name: str, config: Mapping[str, Any], **changes: Any) -> Outcome:
        provider = built_in().get(name)
        return anyio.run(provider.run, call_for(provider, config, **changes), context)

    return call
