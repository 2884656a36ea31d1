"""Sixteen faults of model servers, played over real connections at ten times the speed (G.3, F.8.2).

`make failover` plays them in real time and prints the table. Durations aren't judged here: a machine under load has its
own; that each limit is kept to the moment is held in virtual time (test_scenarios.py, test_streaming.py).
"""

from __future__ import annotations

import asyncio

import pytest
from tests.servers.failover import NAMES, played

SCALE = 0.1


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """What was wrong, by scenario; all are played side by side."""

    async def story() -> list[list[str]]:
        return await asyncio.gather(*(played(name, SCALE) for name in NAMES))

    return dict(zip(NAMES, asyncio.run(story()), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_clean_pass(name: str, found: dict[str, list[str]]) -> None:
    """F.8.2: S01 S02 S03 S04 S05 S06 S07 S08 S09 S10 S11 S12 S13 S14 S15 S16."""
    assert found[name] == []
