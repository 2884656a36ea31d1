"""The group of tests that need a real model, and the model."""

from __future__ import annotations

import pytest
from tests.servers.real_model import real_model

__all__ = ["real_model"]


def pytest_configure(config: pytest.Config) -> None:
    """Name the group, so that `-m real_model` and `-m "not real_model"` choose."""
    config.addinivalue_line("markers", "real_model: talks to a real small model (about ten seconds)")
