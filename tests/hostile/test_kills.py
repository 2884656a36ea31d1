"""Real runs killed at random moments; the campaign behind it does as many as one likes (`tests.hostile.kills`)."""

from __future__ import annotations

import pytest
from tests.hostile.kills import campaign

KILLS = 10


@pytest.mark.slow
def test_RES_1_a_killed_run_loses_nothing_and_does_nothing_twice() -> None:
    """Law 3, RES-1, semantics 16: ten kills -9 at random moments; a server outside counts what was done."""
    told: list[str] = []
    done, wrong = campaign(KILLS, 0, told.append)
    assert wrong == []
    assert done >= KILLS, told
