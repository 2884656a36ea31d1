"""The Postgres that Debian installs, which is older than the wheel's; where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.test_carried import LIST, SLOW, verdict
from tests.engines.world import World, world
from tests.servers.postgres import installed, running

PROGRAMS = installed()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAMS is None, reason="Debian's Postgres isn't installed"),
]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[World]:
    """A world on such a server."""
    with running(PROGRAMS) as server, world(server, tmp_path) as made:
        yield made


def test_an_older_postgres_carries_runs_and_takes_over_from_the_dead(here: World) -> None:
    """A list over two workers, and a call of one that is killed."""
    first = here.worker("--label", "here")
    run_id = here.submit(SLOW)
    here.wait(lambda: len(here.lines("began")) == 1, "the call")
    here.worker("--label", "here")
    first.kill()
    here.wait(lambda: len(here.lines("began")) == 2, "the second try")
    (here.folder / "go").touch()
    assert verdict(here.ended(run_id)) == "GO"
    (here.folder / "done").unlink()
    assert verdict(here.ended(here.submit(LIST))) == "GO"
    assert sorted(map(int, here.lines("done"))) == list(range(24))
