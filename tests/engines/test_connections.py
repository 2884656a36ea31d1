"""Where DBOS' workers connect to, under which name, and what workers of one database have in common."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.engines.test_outages import settled
from tests.engines.world import World
from tests.servers.postgres import Server

from gonogo.app.engines import Carrier
from gonogo.engines.dbos.names import schema_of
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.identity import identity_of

ONE = "steps:\n  a: {type: command, exec: 'echo a >> done'}\n"
SLOW = "steps:\n  a: {type: command, exec: 'echo + >> at; sleep 0.5; echo - >> at'}\n"


def names_of(url: str) -> set[str]:
    """What the connections to a database are called, ours apart."""
    query = """
        select application_name from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
            and application_name not in ('', 'gonogo')
    """
    with psycopg.connect(url) as connection:
        return {name for (name,) in connection.execute(query).fetchall()}


def service_of(url: str, path: Path) -> str:
    """The URL of a service that stands for this one."""
    to = urlsplit(url)
    path.write_text(
        f"[x]\nhost={to.hostname}\nport={to.port}\nuser={to.username}\npassword={to.password}\ndbname={to.path[1:]}\n"
    )
    return "postgresql://?service=x"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["own name", "service", "in the query"])
def test_all_connections_of_a_worker_carry_its_name_however_its_store_is_named(
    on_dbos: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Who takes over from it ends them by this name; libpq reads the URL, for DBOS, too."""
    to = urlsplit(on_dbos.store)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    on_dbos.way = {
        "own name": f"{on_dbos.store}?application_name=mine",
        "service": service_of(on_dbos.store, tmp_path / "services"),
        "in the query": f"postgresql://{to.path}?host={to.hostname}&port={to.port}&user={to.username}&password={to.password}",
    }[way]
    on_dbos.worker()
    assert settled(on_dbos, on_dbos.submit(ONE)) == "GO"
    (name,) = names_of(on_dbos.store)
    assert name.startswith("gonogo-")


@pytest.mark.slow
def test_a_frozen_worker_has_no_connection_left_once_its_work_is_with_others(on_dbos: World) -> None:
    """By one that is left it could write when it wakes up: DBOS' own too."""
    frozen = on_dbos.worker()
    (name,) = names_of(on_dbos.store)
    on_dbos.worker()
    frozen.send_signal(signal.SIGSTOP)
    on_dbos.wait(lambda: any(f"{name} is gone or stands still" in line for line in on_dbos.said), "the other")
    assert name not in names_of(on_dbos.store)
    assert len(names_of(on_dbos.store)) == 1


@pytest.mark.slow
def test_stores_in_two_schemas_of_a_database_have_no_queue_in_common(
    on_dbos: World, tmp_path: Path, postgres: Server
) -> None:
    """A worker of the one would take runs of the other, which it doesn't know."""
    postgres.execute("create schema one; create schema two", on_dbos.store)
    first, second = (
        World(f"{on_dbos.store}?options=-csearch_path%3D{name}", tmp_path, Carrier("dbos"))
        for name in ("one", "two")
    )
    try:
        first.worker()
        second.worker()
        for each in (first, second, first, second):
            assert settled(each, each.submit(ONE)) == "GO"
        assert not any("aside" in line or "there is no run" in line for line in [*first.said, *second.said])
    finally:
        first.close()
        second.close()


@pytest.mark.slow
def test_stores_that_share_a_temporal_have_no_queue_in_common(
    on_dbos: World, tmp_path: Path, postgres: Server, temporal: str
) -> None:
    """Nobody gave it a name; a worker of the one would take runs and calls of the other."""
    stores = [on_dbos.store, postgres.new_database()]
    worlds = [World(store, tmp_path, Carrier("temporal", temporal)) for store in stores]
    try:
        for each in worlds:
            each.worker()
        for each in [*worlds, *worlds]:
            assert settled(each, each.submit(ONE)) == "GO"
        said = [line for each in worlds for line in each.said]
        assert not any("aside" in line or "there is no run" in line for line in said)
    finally:
        for each in worlds:
            each.close()
        postgres.drop(stores[1])


def test_a_store_keeps_its_name(on_dbos: World, postgres: Server) -> None:
    """And no other has it, be it in another schema of the same database."""
    postgres.execute("create schema one", on_dbos.store)
    one, other = Address(on_dbos.store), Address(f"{on_dbos.store}?options=-csearch_path%3Done")
    assert identity_of(one) == identity_of(one) != identity_of(other)


def test_each_schema_has_a_schema_of_its_own_for_dbos_whatever_its_name() -> None:
    """Of a name that is long or odd there is a hash."""
    names = ["public", "runs", "runs_2", "Runs", 'od"d', "x" * 60, "x" * 61]
    made = [schema_of(name) for name in names]
    assert made[:3] == ["gonogo_dbos", "gonogo_dbos_runs", "gonogo_dbos_runs_2"]
    assert len(set(made)) == len(names)
    assert all(len(name) < 64 and name.replace("_", "").isalnum() and name.islower() for name in made)


@pytest.mark.slow
def test_a_worker_takes_no_more_runs_than_it_was_told_whatever_others_were_told(on_dbos: World) -> None:
    """DBOS keeps one number for all, which is that of the worker that started last."""
    on_dbos.worker("--runs", "1")
    other = on_dbos.worker("--runs", "50")
    other.send_signal(signal.SIGTERM)
    assert other.wait(60) == 0
    for run_id in [on_dbos.submit(SLOW) for _ in range(3)]:
        assert settled(on_dbos, run_id) == "GO"
    assert on_dbos.lines("at") == ["+", "-"] * 3
