"""Durations as reports give them."""

from __future__ import annotations


def milliseconds(seconds: float) -> int:
    """Whole milliseconds, never less than none."""
    return max(0, round(seconds * 1000))
