"""The command line in this process, for attacks that need none of their own; and signals as commands expect them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.cli.conftest import gonogo

__all__ = ["gonogo"]


@pytest.fixture(autouse=True, scope="session")
def hang_ups_are_heard() -> Iterator[None]:
    """Under nohup they are ignored, by each command that is started, too: rightly, but not what is tried here."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
