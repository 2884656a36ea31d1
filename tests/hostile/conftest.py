"""The command line in this process, for attacks that need no process of their own."""

from __future__ import annotations

from tests.cli.conftest import gonogo

__all__ = ["gonogo"]
