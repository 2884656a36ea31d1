"""What bounds calls over all workers: who says nothing of it changes nothing, and a change is told by everybody."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from tests.engines.world import World

from gonogo.engines.dbos import names

LIST = """
max_parallelism: 40
steps:
  list: {type: script, forEach: true, forEach_concurrency: 40, content: "return Array.from({length: 24}, (_, i) => i)"}
  each: {type: command, depends_on: [list], exec: "echo + >> at; sleep 0.3; echo - >> at"}
"""

pytestmark = pytest.mark.slow


def most_at_once(here: World) -> int:
    """Of the calls of a run with a list, begun now."""
    (here.folder / "at").unlink(missing_ok=True)
    state = here.ended(here.submit(LIST))
    assert state.finished is not None
    assert state.finished.verdict == "GO"
    most = now = 0
    for line in here.lines("at"):
        now += 1 if line == "+" else -1
        most = max(most, now)
    return most


def bound(here: World, *columns: str) -> tuple[object, ...]:
    """What DBOS keeps of the queue of calls."""
    query = sql.SQL("select {} from {} where name = %s").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(names.schema_of("public"), "queues")
    )
    with psycopg.connect(here.store) as connection:
        row = connection.execute(query, [names.CALLS]).fetchone()
    assert row is not None
    return row


def told(here: World, text: str) -> int:
    """How many workers said it."""
    return len({line.partition("]")[0] for line in here.said if text in line})


def test_a_worker_that_says_nothing_of_a_bound_leaves_what_others_set(on_dbos: World) -> None:
    """It keeps it, too, and so do those that were there before; each says what is in force."""
    on_dbos.worker()
    on_dbos.worker("--calls-everywhere", "2")
    on_dbos.worker()
    on_dbos.wait(lambda: told(on_dbos, "another worker set 2 at once; it was no bound") == 1, "the news")
    assert told(on_dbos, "over all workers calls: 2 at once") == 2
    most_at_once(on_dbos)  # a queue that was looked at just then may be emptied once under the old bound
    (on_dbos.folder / "at").unlink()
    assert most_at_once(on_dbos) == 2
    assert bound(on_dbos, "concurrency", "worker_concurrency") == (2, 2)


def test_another_value_holds_for_all_and_everybody_says_so(on_dbos: World) -> None:
    """Whoever set it, and whoever lived under the one before."""
    on_dbos.worker("--calls-everywhere", "2")
    on_dbos.worker("--calls-everywhere", "5")
    on_dbos.wait(lambda: told(on_dbos, "another worker set 5 at once; it was 2 at once") == 1, "the news")
    assert (
        told(on_dbos, "WARNING calls over all workers: 5 at once from now on, set here; 2 at once before")
        == 1
    )
    assert 2 < most_at_once(on_dbos) <= 5


def test_a_bound_is_lifted_on_purpose(on_dbos: World) -> None:
    """One of the two, while the other stays; then calls go in groups again."""
    on_dbos.worker("--calls-everywhere", "2", "--rate", "500/1")
    on_dbos.worker("--calls-everywhere", "unlimited")
    assert bound(on_dbos, "concurrency", "rate_limit_max", "rate_limit_period_sec") == (None, 500, 1.0)
    on_dbos.worker("--rate", "unlimited")
    assert bound(on_dbos, "rate_limit_max", "rate_limit_period_sec", "worker_concurrency") == (None, None, 16)
    on_dbos.wait(lambda: told(on_dbos, "another worker set no bound") == 2, "the news")
    assert most_at_once(on_dbos) > 5
