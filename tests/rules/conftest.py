"""Whole runs, each in a folder of its own."""

from __future__ import annotations

from tests.whole import run_yaml

__all__ = ["run_yaml"]
