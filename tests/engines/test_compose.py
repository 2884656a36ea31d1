"""The compose file for trying, held by what can be held without a container engine: its commands, names and order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from psycopg import sql
from tests.engines.world import World, free_port, until_open
from tests.servers.postgres import Server

from gonogo.app.engines import Carrier
from gonogo.cli.group import Verbs

FILE = Path(__file__).parent.parent.parent / "compose.yaml"
WORKERS = ("worker", "temporal-worker")
PASSWORD = "p@ss/w:rd#?%25 é"
TEMPORAL = Path(sys.executable).with_name("temporal")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file as compose reads it, variables put in."""
    told = {"GONOGO_DB_PASSWORD": "$password"}
    text = re.sub(r"\$\{(\w+):[?-][^}]*\}", lambda found: told.get(found[1], "''"), FILE.read_text())
    read: dict[str, Any] = yaml.safe_load(text)
    return read


def service(compose: dict[str, Any], name: str) -> dict[str, Any]:
    """One of them."""
    found: dict[str, Any] = compose["services"][name]
    return found


@pytest.mark.parametrize("name", WORKERS)
def test_workers_are_started_by_commands_that_gonogo_has(compose: dict[str, Any], name: str) -> None:
    """Read by the command line itself."""
    program, verb, *arguments = service(compose, name)["command"]
    command = Verbs().get_command(None, verb)  # type: ignore[arg-type]
    assert command is not None
    assert (program, command.make_context(verb, arguments).params["engine"]) == (
        "gonogo",
        service(compose, name)["profiles"][0],
    )


def test_everything_is_started_again_and_waits_for_what_it_needs(compose: dict[str, Any]) -> None:
    """A worker that comes before its store ends at once."""
    for one in compose["services"].values():
        assert one["restart"] == "unless-stopped"
        for needed, how in one.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in service(compose, needed)
    assert {name: set(service(compose, name)["depends_on"]) for name in WORKERS} == {
        "worker": {"store"},
        "temporal-worker": {"store", "temporal"},
    }


def test_a_profile_starts_one_engine_and_builds_one_image(compose: dict[str, Any]) -> None:
    """The store belongs to both."""
    profiles = {name: one.get("profiles") for name, one in compose["services"].items()}
    assert profiles == {
        "store": None,
        "worker": ["dbos"],
        "temporal": ["temporal"],
        "temporal-worker": ["temporal"],
    }
    assert {service(compose, name)["image"] for name in WORKERS} == {"gonogo-worker"}
    assert "-h" in service(compose, "store")["healthcheck"]["test"]


@pytest.mark.slow
def test_its_worker_takes_work_from_its_store_whatever_the_password(
    compose: dict[str, Any], postgres: Server, tmp_path: Path
) -> None:
    """As a process with the service's environment; the store has its user and database."""
    store = service(compose, "store")["environment"]
    user, database = sql.Identifier(store["POSTGRES_USER"]), sql.Identifier(store["POSTGRES_DB"])
    postgres.execute(sql.SQL("create role {} login password {}").format(user, sql.Literal(PASSWORD)))
    postgres.execute(sql.SQL("create database {} owner {}").format(database, user))
    environment = {**service(compose, "worker")["environment"], "PGPASSWORD": PASSWORD}
    url = environment["GONOGO_STORE"].replace("@store/", f"@127.0.0.1:{postgres.port}/")
    here = World(postgres.url(store["POSTGRES_DB"]), tmp_path, Carrier("dbos"))
    try:
        command = [sys.executable, "-m", *service(compose, "worker")["command"]]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, **environment, "GONOGO_STORE": url},
            stderr=subprocess.PIPE,
            text=True,
        )
        here.listen(process)
        here.wait(lambda: here.began(process) > 0, "its worker")
        assert here.ended(here.submit("steps: {a: {type: noop}}\n")).finished is not None
        assert not [line for line in here.said if PASSWORD in line]
    finally:
        here.close()
        postgres.execute(sql.SQL("drop database {} with (force)").format(database))
        postgres.execute(sql.SQL("drop role {}").format(user))


@pytest.mark.slow
def test_its_temporal_starts_and_is_found_healthy(compose: dict[str, Any]) -> None:
    """The same version from a wheel, with the service's own words, on a port of ours."""
    temporal, port = service(compose, "temporal"), free_port()
    version = subprocess.run([TEMPORAL, "--version"], capture_output=True, text=True, check=True).stdout
    assert temporal["image"] == f"temporalio/temporal:{version.split()[2]}"
    started = [*temporal["command"], "--port", str(port), "--log-level", "never"]
    started[started.index("0.0.0.0")] = "127.0.0.1"
    process = subprocess.Popen([TEMPORAL, *started], stdout=subprocess.DEVNULL)
    try:
        until_open(port)
        kind, program, *asked = temporal["healthcheck"]["test"]
        assert (kind, program) == ("CMD", TEMPORAL.name)
        subprocess.run([TEMPORAL, *asked, "--address", f"127.0.0.1:{port}"], check=True, timeout=60)
    finally:
        process.kill()
        process.wait(30)
