"""Real workers killed at random moments; the campaign behind it does as many as one likes."""

from __future__ import annotations

import pytest
from tests.engines.campaign import campaign
from tests.engines.world import World

pytestmark = pytest.mark.slow

KILLS = 5
RUNS = 4


def test_nothing_is_done_twice_or_lost_however_workers_die(here: World) -> None:
    """Law 3: kills -9 of workers with four random workflows at a time; a server outside counts what was done."""
    said: list[str] = []
    homes = here.folder / "homes"
    homes.mkdir()
    kills, runs, wrong = campaign(here, homes, kills=KILLS, seed=0, say=said.append, runs=RUNS)
    assert (kills, wrong) == (KILLS, []), "\n".join([*said, *here.said[-40:]])
    assert runs >= RUNS
