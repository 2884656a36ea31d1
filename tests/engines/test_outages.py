"""A store that can't be reached, is slow, or says nothing: nothing is lost, nothing is done twice, and nobody has to
start anything again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.engines.world import World, pause
from tests.servers.cut import Wire, wire_to
from tests.servers.postgres import Server

from gonogo import app
from gonogo.core.scope import index_of

pytestmark = pytest.mark.slow

ITEMS = 12
LIST = f"""
steps:
  list:
    type: script
    forEach: true
    forEach_concurrency: 4
    content: "return Array.from({{length: {ITEMS}}}, (_, i) => i)"
  each:
    type: command
    depends_on: [list]
    mutates: true
    exec: "echo {{{{ item | shell_escape }}}} >> done; sleep 0.2"
  sum: {{type: script, fanout: reduce, depends_on: [each], content: "return outputs.each.length"}}
"""
AWAY_S = 12.0
"""Longer than anything by which workers are taken for dead."""


@pytest.fixture
def wire(here: World, postgres: Server) -> Iterator[Wire]:
    """By which the workers reach the store, and nobody else."""
    with wire_to(postgres.port) as made:
        here.way = made.through(here.store)
        yield made
        here.close()


def settled(here: World, run_id: str) -> str:
    """The verdict, once a person who looked at what was done has said so of every doubt."""

    def is_over() -> bool:
        if here.state(run_id) is None:
            return False
        view = app.view_run(run_id, here.options)[0]
        for waiting in view.waiting if view.verdict == "HOLD" else ():
            assert waiting.in_doubt
            item = str(index_of(waiting.scope))
            word = "done" if item in here.lines("done") else "again"
            app.answer_run(run_id, waiting.step, word, scope=waiting.scope, options=here.options)
        return view.verdict in ("GO", "NO-GO")

    here.wait(is_over, f"the end of run {run_id}", 180)
    return str(app.view_run(run_id, here.options)[0].verdict)


def test_a_store_that_cannot_be_reached_for_a_while_costs_time_and_nothing_else(
    here: World, wire: Wire
) -> None:
    """It is well all the time; the workers lose their sessions, and get no new ones until it is over."""
    here.worker()
    here.worker()
    run_id = here.submit(LIST)
    here.wait(lambda: len(here.lines("done")) > 3, "some items")
    wire.cut()
    pause(AWAY_S)
    wire.mend()
    assert settled(here, run_id) == "GO"
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
    assert [each.poll() for each in here.workers] == [None, None]


def test_a_store_that_restarts_is_met_again_by_the_same_workers(here: World, postgres: Server) -> None:
    """No supervisor is needed for that."""
    here.worker()
    here.worker()
    run_id = here.submit(LIST)
    here.wait(lambda: len(here.lines("done")) > 3, "some items")
    postgres.restart()
    assert settled(here, run_id) == "GO"
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
    assert [each.poll() for each in here.workers] == [None, None]


def test_a_slow_store_makes_a_slow_run(here: World, wire: Wire) -> None:
    """Forty milliseconds there and back, for each statement."""
    wire.delay_s = 0.02
    here.worker()
    run_id = here.submit(LIST)
    assert settled(here, run_id) == "GO"
    assert Counter(here.lines("done")) == Counter(map(str, range(ITEMS)))
