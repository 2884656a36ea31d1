"""Each story is told on DBOS and on Temporal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.world import World, temporal_server, world
from tests.servers.postgres import Server


@pytest.fixture(scope="session")
def temporal() -> Iterator[str]:
    """A Temporal server for all tests of this process that want one."""
    with temporal_server() as address:
        yield address


@pytest.fixture(params=["dbos", "temporal"])
def here(request: pytest.FixtureRequest, postgres: Server, tmp_path: Path) -> Iterator[World]:
    """A world without workers, on each engine in turn."""
    address = request.getfixturevalue("temporal") if request.param == "temporal" else ""
    with world(postgres, tmp_path, address) as made:
        yield made


@pytest.fixture
def on_dbos(postgres: Server, tmp_path: Path) -> Iterator[World]:
    """For what only DBOS can."""
    with world(postgres, tmp_path) as made:
        yield made
