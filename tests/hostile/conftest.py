"""The command line in this process, for attacks that need none of their own."""

from tests.cli.conftest import gonogo

__all__ = ["gonogo"]
