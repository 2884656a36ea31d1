"""For all tests: properties are tried without a clock, and in CI with the same examples each time; a real Postgres."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.servers.postgres import Server

settings.register_profile("house", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("house")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A Postgres for all tests of this process that want one; who restarts it leaves it running."""
    from tests.servers.postgres import running

    with running() as server:
        yield server


@pytest.fixture
def database(postgres: Server) -> Iterator[str]:
    """The URL of a part of a database (a schema) that is this test's own."""
    url = postgres.new_schema()
    yield url
    postgres.drop_schema(url)
