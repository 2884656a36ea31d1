"""No secret is in what an engine keeps: not in the store's tables, not in DBOS', not in Temporal's histories."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from tests.engines.world import World

from gonogo import app

pytestmark = pytest.mark.slow

TALE = """
inputs: [{name: given}]
steps:
  make: {type: command, exec: "cat made.json", parse: json, secret_outputs: [key]}
  list: {type: script, depends_on: [make], forEach: true, content: "return [1, 2]"}
  use:
    type: command
    depends_on: [list]
    env: {KEY: "{{ outputs.make.key }}", GIVEN: "{{ inputs.given }}"}
    exec: 'printf "%s %s" "$HIDDEN_TOKEN" "$KEY" >> used; echo "$HIDDEN_TOKEN $KEY $GIVEN"'
  fail:
    type: command
    depends_on: [make]
    runs_on: far
    env: {KEY: "{{ outputs.make.key }}"}
    exec: 'echo "$HIDDEN_TOKEN $KEY" >&2; exit 3'
    criticality: info
  ask: {type: human-input, prompt: "well, {{ outputs.make.key }}?", depends_on: [make]}
"""


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> str:
    """A secret of everybody's environment, and a key for secret outputs."""
    value = f"token-{secrets.token_hex(12)}"
    monkeypatch.setenv("HIDDEN_TOKEN", value)
    monkeypatch.setenv("GONOGO_SEAL_KEY", base64.b64encode(secrets.token_bytes(32)).decode())
    return value


def in_tables(url: str) -> Iterator[tuple[str, bytes]]:
    """Every row of every table of a database, with bytes as they are."""
    tables = """select table_schema, table_name from information_schema.tables where table_type = 'BASE TABLE'
        and table_schema not in ('pg_catalog', 'information_schema')"""
    with psycopg.connect(url) as connection:
        for schema, table in connection.execute(tables).fetchall():
            query = sql.SQL("select * from {}").format(sql.Identifier(schema, table))
            for row in connection.execute(query).fetchall():
                fields = (each if isinstance(each, bytes) else str(each).encode() for each in row)
                yield f"{schema}.{table}", b"\0".join(fields)


async def in_histories(address: str) -> list[tuple[str, bytes]]:
    """Every event of every workflow, payloads as they are."""
    from temporalio.client import Client

    client = await Client.connect(address)
    found = []
    async for one in client.list_workflows():
        history = await client.get_workflow_handle(one.id, run_id=one.run_id).fetch_history()
        found += [(one.id, event.SerializeToString()) for event in history.events]
    return found


def test_no_secret_is_in_what_an_engine_keeps(here: World, hidden: str) -> None:
    """Of the environment, given as an input, made by a step, printed, in an error, in a question and in its answer."""
    made = f"made-{secrets.token_hex(12)}"
    (here.folder / "made.json").write_text(f'{{"key": "{made}"}}')
    here.worker("--label", "far")
    here.worker()
    run_id = here.submit(TALE, inputs={"given": hidden})
    state = here.ended(run_id)
    assert state.nodes["ask"][""].hold is not None, state.nodes
    app.answer_run(run_id, "ask", f"it is {hidden}", options=here.options)
    here.wait(
        lambda: (told := here.state(run_id)) is not None and told.nodes["ask"][""].hold is None, "the end"
    )
    assert hidden in "".join(here.lines("used"))
    assert made in "".join(here.lines("used"))
    kept = list(in_tables(here.store))
    if here.carrier.name == "temporal":
        kept += asyncio.run(in_histories(here.carrier.address))
    assert {place for place, _ in kept} >= {"public.gonogo_records", "public.gonogo_seals"}
    assert [place for place, data in kept if hidden.encode() in data or made.encode() in data] == []
