"""What growth is reckoned with (`python -m bench.growth simulate`): the figures of its page rest on it."""

from __future__ import annotations

import pytest

from bench.growth import simulate
from bench.growth.simulate import Simulation, World


@pytest.fixture(autouse=True)
def _few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "PARKED", 50)


@pytest.mark.parametrize("shards", [1, 3])
def test_no_run_and_no_call_is_lost_where_workers_die(shards: int) -> None:
    """Whatever a worker had goes on with others, to its end."""
    made = Simulation(World(4e5, 8, span_s=120.0, deaths=12, shards=shards))
    told = made.run()
    assert told.runs > 500
    assert told.taken_over > 0
    assert told.repeated > 0
    assert [(worker.runs, worker.calls) for worker in made.workers] == [({}, {})] * 8
    assert [worker.free for worker in made.workers] == [made.world.calls_each] * 8
    assert not made._waiting


def test_a_store_that_is_away_makes_runs_wait_and_loses_none() -> None:
    """As long as it is away, and no longer than it takes to catch up."""
    made = Simulation(World(4e5, 8, span_s=120.0, outage_s=30.0))
    told = made.run()
    assert 25.0 < max(told.delays) < 40.0
    assert told.delay(0.5) < 1.0
    assert [(worker.runs, worker.calls) for worker in made.workers] == [({}, {})] * 8


def test_the_same_world_comes_to_the_same() -> None:
    """Its figures can be had again."""
    world = World(1e5, 4, span_s=60.0, deaths=2)
    assert Simulation(world).run() == Simulation(world).run()
