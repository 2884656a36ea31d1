"""What DBOS keeps of workflows doesn't pile up."""

from __future__ import annotations

import psycopg
import pytest
from tests.engines.test_outages import settled
from tests.engines.world import World

from gonogo.engines.dbos import sweep
from gonogo.engines.dbos.connections import pool_of
from gonogo.engines.dbos.names import schema_of
from gonogo.journal.postgres import sweep as sweep_of_store
from gonogo.journal.postgres.address import Address

LIST = """
steps:
  list: {type: script, forEach: true, content: "return Array.from({length: 12}, (_, i) => i)"}
  each: {type: command, depends_on: [list], exec: "true"}
"""
ASKING = "steps:\n  far: {type: command, runs_on: far, exec: 'true'}\n"
TABLES = [f"gonogo_dbos.{name}" for name in ("workflow_status", "workflow_input", "workflow_output")]


def rows(url: str, *tables: str) -> int:
    """How many there are in all of them."""
    with psycopg.connect(url) as connection:
        found = [connection.execute(f"select count(*) from {table}").fetchall()[0][0] for table in tables]
    return sum(found)


@pytest.mark.slow
def test_workflows_that_are_over_are_deleted_and_those_under_way_are_not(
    on_dbos: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks for what came of them: the journal has it."""
    on_dbos.worker()
    for _ in range(2):
        assert settled(on_dbos, on_dbos.submit(LIST)) == "GO"
    on_dbos.wait(lambda: rows(on_dbos.store, f"{TABLES[0]} where status <> 'SUCCESS'") == 0, "their ends")
    with psycopg.connect(on_dbos.store) as connection:
        connection.execute(
            "insert into gonogo_takeovers select workflow_uuid from gonogo_dbos.workflow_status"
        )
    waiting = on_dbos.submit(ASKING)
    on_dbos.wait(lambda: rows(on_dbos.store, "gonogo_tickets") == 1, "a call that waits for a worker")
    pool = pool_of(Address(on_dbos.store), 1)
    assert sweep.sweep(pool, schema_of("public")) == 0
    monkeypatch.setattr(sweep, "KEPT_S", -60.0)
    assert sweep.sweep(pool, schema_of("public")) > 1
    pool.dispose()
    assert rows(on_dbos.store, *TABLES[1:], "gonogo_takeovers") <= rows(on_dbos.store, TABLES[0]) == 2
    on_dbos.worker("--label", "far")
    assert settled(on_dbos, waiting) == "GO"


@pytest.mark.slow
def test_what_calls_of_forgotten_runs_left_goes_with_the_next_sweep(here: World) -> None:
    """Neither tickets nor answers refer to their run."""
    here.worker()
    tables = ("gonogo_pools", "gonogo_tickets", "gonogo_answers")
    over = here.submit(LIST)
    assert settled(here, over) == "GO"
    waiting = here.submit(ASKING)
    here.wait(lambda: rows(here.store, "gonogo_tickets") == 1, "a call that waits for a worker")
    assert rows(here.store, f"gonogo_pools where run_id = '{over}'") == 1
    sweep_of_store.sweep(Address(here.store))
    assert rows(here.store, *tables) == 1
    with psycopg.connect(here.store) as connection:
        connection.execute("delete from gonogo_runs where run_id = %s", [waiting])
    sweep_of_store.sweep(Address(here.store))
    assert rows(here.store, *tables) == 0
