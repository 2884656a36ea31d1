"""Laws that compare runs: the same plan with other orders of events, other slots, a crash, or a broken item."""

from __future__ import annotations

from gonogo.testing.scenarios import Scenario
from gonogo.testing.simulated import Ended


def check(scenario: Scenario, ended: Ended) -> None:
    """Run what there is to compare with. Raises Broken."""
