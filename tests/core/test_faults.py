"""Faults that the core makes itself, as data (spec D.1)."""

from __future__ import annotations

from gonogo.core.faults import Fault, cancellation


def test_a_stopped_call_comes_to_a_cancellation_of_its_step() -> None:
    """Of a class that nothing is tried again for; the message says when."""
    assert cancellation("a", "stopped while waiting") == Fault(
        "run.cancelled", "cancelled", "a/cancelled", "stopped while waiting"
    )
