"""Readers of both wire formats, one by one and in turn."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from tests.models.wires import NOW_S

from gonogo.models import anthropic_stream, openai_stream
from gonogo.models.streaming import StreamReader


@pytest.fixture
def openai() -> Callable[[], StreamReader]:
    """Makes a reader of chat completions."""
    return lambda: openai_stream.reader({}, NOW_S)


@pytest.fixture
def anthropic() -> Callable[[], StreamReader]:
    """Makes a reader of messages."""
    return lambda: anthropic_stream.reader({}, NOW_S)


@pytest.fixture(params=[openai_stream, anthropic_stream], ids=["openai", "anthropic"])
def either(request: pytest.FixtureRequest) -> Callable[[], StreamReader]:
    """A reader of each format in turn."""
    module: ModuleType = request.param
    return lambda: module.reader({}, NOW_S)
