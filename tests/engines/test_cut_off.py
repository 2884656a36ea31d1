"""One worker of several is cut off from the store, which the others reach."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from tests.engines.test_outages import ITEMS, LIST, settled
from tests.engines.world import World
from tests.servers.cut import Wire, wire_to
from tests.servers.postgres import Server

pytestmark = [pytest.mark.slow, pytest.mark.long]

HELD = LIST.replace(
    "  list:\n",
    '  held: {type: command, exec: "while [ ! -e go ]; do sleep 0.05; done"}\n  list:\n    depends_on: [held]\n',
)
SECOND = "steps:\n  a: {type: noop}\n"


@pytest.fixture
def wire(here: World, postgres: Server) -> Iterator[Wire]:
    """By which one worker alone reaches the store."""
    with wire_to(postgres.port) as made:
        yield made
        here.close()


def records(here: World, run_id: str) -> list[tuple[int, bytes]]:
    """The run as it is kept."""
    query = "select seq, line from gonogo_records where run_id = %s order by seq"
    with psycopg.connect(here.store) as connection:
        return connection.execute(query, [run_id], binary=True).fetchall()


@pytest.mark.parametrize("silent", [False, True], ids=["cut", "silent"])
def test_others_take_over_from_a_worker_that_is_cut_off_and_it_does_nothing_stale_when_it_is_back(
    here: World, wire: Wire, silent: bool
) -> None:
    """Its connections end, or say nothing more. What it had under way others can't know: of that they ask."""
    here.way = wire.through(here.store)
    alone = here.worker()
    run_id = here.submit(HELD)
    here.wait(lambda: here.host(run_id) == alone.pid, "the worker that is cut off")
    here.way = ""
    other = here.worker()
    (here.folder / "go").touch()
    here.wait(lambda: len(here.lines("done")) > 2, "some items")
    wire.cut(silently=silent)
    assert len(here.lines("done")) < ITEMS
    assert settled(here, run_id) == "GO"
    before = records(here, run_id)
    wire.mend()
    other.send_signal(signal.SIGTERM)
    other.wait(60)
    second = here.submit(SECOND)
    assert settled(here, second) == "GO"
    assert records(here, run_id) == before
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
    assert alone.poll() is None
