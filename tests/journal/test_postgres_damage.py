"""Rows that were changed or lost, tables of other versions, servers that refuse: each told with what to do."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from tests.servers.postgres import Server

from gonogo.core.commands import StartCall
from gonogo.core.events import CallLost, CancelAsked
from gonogo.errors import JournalError, UsageError
from gonogo.journal.blobs import BLOB_BYTES
from gonogo.journal.pool import Ticket
from gonogo.journal.postgres.address import Address, is_address
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.postgres.schema import VERSION

Ask = Callable[..., list[tuple[Any, ...]]]
LARGE = "x" * BLOB_BYTES
HERE = Path(__file__).parent


@pytest.fixture
def ask(postgres: Server, database: str) -> Ask:
    """Does a statement behind everybody's back."""
    return lambda statement: postgres.execute(statement, database)


@pytest.fixture
def written(tables: PostgresRuns, record) -> PostgresRuns:
    """Run r has records 0 to 5."""
    journal = tables.create("r")
    journal.append([record(seq) for seq in range(6)])
    journal.close()
    return tables


DAMAGE = {
    "set line = overlay(line placing 'X' from 20) where seq = 3": "line 4 is damaged: its checksum doesn't match",
    "set line = substring(line for 40) where seq = 3": "record 3 is cut short",
    "set line = substring(line for 40) where seq = 5": "record 5 is cut short",
    "set line = substring(line for length(line) - 1) where seq = 5": "record 5 is cut short",
    "set line = '' where seq = 0": "record 0 is cut short",
    r"set line = '\x7b7d0a' where seq = 2": "line 3 is damaged: its end is missing",
    "set seq = 99 where seq = 4": "line 5 is damaged: expected record 4, found 5",
    "set line = (select line from gonogo_records where seq = 1) where seq = 2": "expected record 2, found 1",
}


@pytest.mark.parametrize(("change", "expected"), DAMAGE.items())
def test_changed_rows_are_told_and_never_built_upon(written, ask: Ask, change: str, expected: str) -> None:
    """Reading and resuming are refused, with the run, the place and the line."""
    ask(f"update gonogo_records {change}")
    for attempt in (written.read, written.reopen, lambda run_id: list(written.glimpses(run_id))):
        with pytest.raises(JournalError, match=expected) as caught:
            attempt("r")
        assert f"run r in {written.address}" in caught.value.message
        assert caught.value.advice is not None


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("seq = 3", "expected record 3, found 4"),
        ("seq > 3", "records 4 to 5 are missing"),
        ("seq = 0", "the start of the run is missing"),
        ("true", "records 0 to 5 are missing"),
    ],
)
def test_missing_rows_are_told(written, ask: Ask, where: str, expected: str) -> None:
    """Those at the end, too: the run's own row knows how many there were."""
    ask(f"delete from gonogo_records where {where}")
    for attempt in (written.read, written.reopen):
        with pytest.raises(JournalError, match=expected):
            attempt("r")


def test_a_run_that_cannot_be_read_can_be_looked_at_by_others_again(written, ask: Ask, record) -> None:
    """A failed resume lets go of the run; once its rows are restored it goes on."""
    ask("create table gonogo_aside as select * from gonogo_records where seq = 3")
    ask("delete from gonogo_records where seq = 3")
    with pytest.raises(JournalError):
        written.reopen("r")
    ask("insert into gonogo_records select * from gonogo_aside")
    journal = written.reopen("r")
    journal.append([record(6)])
    journal.close()
    assert len(written.read("r").records) == 7


def test_a_large_value_that_was_changed_or_lost_is_named(tables, ask: Ask, record) -> None:
    """And `show` still shows the rest."""
    journal = tables.create("r")
    journal.append([record(0), record(1, LARGE)])
    journal.close()
    ask("update gonogo_blobs set data = overlay(data placing 'y' from 5)")
    with pytest.raises(JournalError, match="its content doesn't match its name"):
        tables.reopen("r")
    ask("delete from gonogo_blobs")
    loaded = tables.read("r")
    assert len(loaded.records) == 2
    assert "is missing" in loaded.notes[0]


def test_a_large_value_that_was_changed_is_written_anew(tables, ask: Ask) -> None:
    """Content decides what a row holds."""
    journal = tables.create("r")
    kept = journal.blobs.put(LARGE)
    ask("update gonogo_blobs set data = 'short'")
    journal.blobs.put(LARGE)
    assert journal.blobs.get(kept) == LARGE
    assert ask("select count(*) from gonogo_blobs") == [(1,)]
    journal.close()


BAD_REQUESTS = {
    "no json": b"{",
    "another event": b'{"type":"timer_fired","timer":1}',
    "too deep": b"[" * 100_000,
    "too large": b'{"type":"cancel_asked","by":"' + b"x" * 2**20 + b'"}',
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("content", BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_a_row_that_is_no_request_is_set_aside_once(written, ask: Ask, database: str, content: bytes) -> None:
    """Hostile rows neither stop the run nor get in front of what comes after them."""
    inbox = written.inbox("r")
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("insert into gonogo_inbox (run_id, token, request) values ('r', 'x', %s)", [content])
    good = inbox.put(CancelAsked(by="ann"))
    assert [one.request for one in inbox.take()] == [good]
    assert len(inbox.refused()) == 1
    assert [one.request for one in inbox.take()] == [good]


def test_what_is_too_large_for_a_request_is_not_even_read(written, ask: Ask, database: str) -> None:
    """A row may be larger than the memory of who reads it."""
    with psycopg.connect(database, autocommit=True) as other:
        other.execute(
            "insert into gonogo_inbox (run_id, token, request) "
            "values ('r', 'x', convert_to(repeat('x', 64000000), 'utf8'))"
        )
    tracemalloc.start()
    try:
        assert written.inbox("r").take() == []
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("row", [b"{", b"[" * 100_000, b'{"type":"nothing"}', b'"\xff"'])
def test_a_call_or_an_answer_that_is_none_comes_to_an_end(
    tables, database: str, row: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows of calls are no more trusted than those of runs. Nobody can perform it, so its run is told; what became of a
    call whose answer can't be read nobody knows. Calls beside it are well.
    """
    assert tables.ids() == []
    with psycopg.connect(database, autocommit=True) as other:
        other.execute(
            "insert into gonogo_tickets (run_id, call, seq, command, label) values ('r', 1, 0, %s, '')", [row]
        )
        other.execute("insert into gonogo_answers (run_id, call, event) values ('r', 1, %s)", [row])
    well = Ticket("r", StartCall(2, "a", "", 1, 1, "r//a/1", "reads"), 0)
    tables.pool.offer([well])
    assert [each.ticket for each in tables.pool.claim_free("r", [1, 2], "w")] == [well]
    (_, unread), (_, unperformed) = tables.pool.take("r")
    assert unread == CallLost(call=1)
    assert (unperformed.call, unperformed.fault.kind, unperformed.effect) == (1, "call.unreadable", "none")
    assert "call 1 of run r in" in caplog.text
    assert "answer 1 to run r in" in caplog.text


def test_a_forged_row_hides_no_other_run(written, ask: Ask) -> None:
    """Numbers that can't be reckoned with, and a start that is none."""
    ask("""insert into gonogo_runs (run_id, first_seq, next_seq, last_at, started_at_ms, verdict) values
        ('far', -5, 9223372036854775807, 'Infinity', 9223372036854775807, 'GO'), ('nan', 0, 3, 'NaN', -1, 'GO')""")
    ask("insert into gonogo_runs (run_id, submitted) values ('start', '[')")
    told = {one.run_id: one for one in written.summaries(["far", "nan", "r", "start"])}
    assert (told["r"].records, told["far"].last_at_ms, told["nan"].last_at_ms) == (6, 0, 0)
    assert (told["start"].status, told["start"].note[:28]) == ("unreadable", "run start can't be started: ")
    with pytest.raises(JournalError, match="run start in .* is damaged: what would start it can't be read"):
        written.submitted("start")


def test_names_that_postgres_cannot_hold_stop_no_run(tables, record) -> None:
    """A workflow may be called anything."""
    first = record(0)
    plan = msgspec.structs.replace(first.event.plan, name="a\0b")
    event = msgspec.structs.replace(first.event, plan=plan, trigger={"name": "x\0"})
    journal = tables.create("r")
    journal.append([msgspec.structs.replace(first, event=event)])
    journal.close()
    assert (tables.summaries(["r"])[0].workflow, tables.summaries(["r"])[0].event) == ("a\ufffdb", "x\ufffd")
    assert tables.read("r").records[0].event.plan.name == "a\0b"


def test_a_full_disk_keeps_what_was_there_and_can_be_resumed(written, ask: Ask, record) -> None:
    """The server's error is told with its own words; the run stops before it acts on what isn't kept."""
    ask("""create function refuse() returns trigger language plpgsql as $$ begin
           raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$""")
    ask("create trigger full_disk before insert on gonogo_records execute function refuse()")
    journal = written.reopen("r")
    with pytest.raises(JournalError, match="can't write run r in .*: No space left on device") as caught:
        journal.append([record(6)], sync=True)
    assert caught.value.advice is not None
    assert "make room on the server, then go on with 'gonogo resume'" in caught.value.advice
    ask("drop trigger full_disk on gonogo_records")
    again = written.reopen("r")
    again.append([record(6)])
    again.close()
    assert len(written.read("r").records) == 7


def test_a_ticket_that_says_what_this_gonogo_has_no_words_for_is_a_newer_ones(written, ask: Ask) -> None:
    """Whole JSON, as a newer version may write it; nothing is known of it but which call it is."""
    ask("""insert into gonogo_tickets (run_id, call, seq, command, label)
        values ('r', 9, 1, '{"call": 9, "effects": "wonders"}', '')""")
    (claim,) = written.pool.claim_free("r", [9], "w")
    assert claim.ticket.command.call == 9
    assert claim.newer.startswith("its ticket says what this version has no words for")


def test_tables_of_a_newer_gonogo_are_left_alone(written, ask: Ask, database: str) -> None:
    """What this one could misread; both ways out are told."""
    ask(f"update gonogo_schema set version = {VERSION + 1}")
    with PostgresRuns(database) as runs:
        for _ in range(2):
            with pytest.raises(
                JournalError, match=f"version {VERSION + 1}; this one knows up to {VERSION}"
            ) as caught:
                runs.ids()
        assert "update gonogo on this machine" in str(caught.value.advice)


MADE = """select table_name, column_name, data_type, is_nullable, column_default is null
          from information_schema.columns where table_schema = current_schema() order by 1, 2"""


@pytest.fixture
def old(postgres: Server, database: str) -> Iterator[str]:
    """A schema with tables of version 1, and a run in them that began and ended nowhere."""
    url = postgres.new_schema()
    for statement in (HERE / "tables_1.sql").read_text(encoding="utf-8").split(";\n"):
        if statement.strip():
            postgres.execute(statement, url)
    postgres.execute("insert into gonogo_runs (run_id) values ('r')", url)
    yield url
    postgres.drop_schema(url)


def test_tables_of_an_older_gonogo_get_what_they_lack(
    written, postgres: Server, database: str, old: str
) -> None:
    """They become what a new gonogo makes, and keep their runs."""
    with PostgresRuns(old) as runs:
        assert list(runs.ids()) == ["r"]
    assert postgres.execute(MADE, old) == postgres.execute(MADE, database)
    assert postgres.execute("select version from gonogo_schema", old) == [(VERSION,)]


def test_many_processes_may_bring_tables_up_to_date_at_once(old: str) -> None:
    """One does it; the others find it done."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_ids_in, [old] * 4)) == [["r"]] * 4


def _ids_in(database: str) -> list[str]:
    with PostgresRuns(database) as runs:
        return list(runs.ids())


def test_tables_without_a_version_are_told(written, ask: Ask, database: str) -> None:
    """Nobody knows who made them."""
    ask("delete from gonogo_schema")
    with (
        PostgresRuns(database) as runs,
        pytest.raises(JournalError, match="have no version that any gonogo wrote"),
    ):
        runs.ids()


def test_a_user_who_may_make_no_tables_is_told_what_to_grant(postgres: Server, database: str) -> None:
    """The first use makes them."""
    name = database.rpartition("%3D")[2]
    postgres.execute(f"create role {name} login password 'weak'")
    url = database.replace(f"postgres:{postgres.password}", f"{name}:weak")
    postgres.execute(f"grant usage on schema {name} to {name}")
    try:
        with (
            PostgresRuns(url) as runs,
            pytest.raises(JournalError, match="permission denied for schema") as caught,
        ):
            runs.ids()
        assert "the right to create tables" in str(caught.value.advice)
        postgres.execute(f"grant create on schema {name} to {name}")
        with PostgresRuns(url) as runs:
            assert runs.ids() == []
    finally:
        postgres.execute(f"drop owned by {name}")
        postgres.execute(f"drop role {name}")


def test_old_runs_are_forgotten_with_one_statement(tables, ask: Ask, record) -> None:
    """Records, large values and requests go with the run's row; others stay."""
    for run_id in ("old", "new"):
        journal = tables.create(run_id)
        journal.append([record(0, run_id=run_id), record(1, LARGE)])
        journal.inbox.put(CancelAsked())
        journal.close()
    ask(
        "delete from gonogo_runs where run_id = 'old' and last_at < extract(epoch from now() - interval '90 days')"
    )
    assert tables.ids() == ["new"]
    for table in ("records", "blobs", "inbox"):
        assert ask(f"select distinct run_id from gonogo_{table}") == [("new",)]
    assert len(tables.read("new").records) == 2


def test_a_list_tells_what_each_run_is(tables, ask: Ask, record) -> None:
    """Running while somebody writes it, interrupted when nobody does; one without records, and one that isn't there."""
    journal = tables.create("r")
    journal.append([record(0), record(1)])
    tables.create("s").close()
    running, empty, missing = tables.summaries(["r", "s", "nope"])
    assert (running.status, running.workflow, running.records, running.last_at_ms) == (
        "running",
        "small",
        2,
        1_001_500,
    )
    assert (empty.status, missing.status) == ("unreadable", "unreadable")
    journal.close()
    assert tables.summaries(["r"])[0].status == "interrupted"


def test_a_run_that_is_set_aside_says_so_until_somebody_goes_on_with_it(written, record) -> None:
    """In a list, with the reason; the next record undoes it."""
    written.set_aside("r", "it lost 6 workers\0")
    assert written.summaries(["r"])[0].aside == "it lost 6 workers\ufffd"
    again = written.reopen("r")
    again.append([record(6)])
    again.close()
    assert written.summaries(["r"])[0].aside is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db:5432/x", "postgresql://ann:***@db:5432/x"),
        ("postgres://ann:s3cret@db/x?sslmode=require", "postgres://ann:***@db/x?sslmode=require"),
        ("postgresql://ann:p%40ss@db/x", "postgresql://ann:***@db/x"),
        ("postgresql://ann:p@ss/wo:rd@db/x", "postgresql://ann:***@db/x"),
        ("postgresql://ann:a?b#c@db/x", "postgresql://ann:***@db/x"),
        ("postgresql://:s3cret@db/x", "postgresql://:***@db/x"),
        ("postgresql:///x?user=ann&password=s3cret&host=db", "postgresql:///x?user=ann&password=***&host=db"),
        ("postgresql://db/x?sslpassword=s3cret", "postgresql://db/x?sslpassword=***"),
        ("postgresql://db/x?p%61ssword=s3cret&a=b", "postgresql://db/x?p%61ssword=***&a=b"),
        ("postgresql://ann@db1,db2:5433/x", "postgresql://ann@db1,db2:5433/x"),
        ("postgresql:///x?host=/run/postgresql", "postgresql:///x?host=/run/postgresql"),
    ],
)
def test_an_address_is_shown_without_its_passwords(url: str, shown: str) -> None:
    """However they were written; nothing that prints it can forget to."""
    address = Address(url)
    assert (str(address), f"{address!r}", address.url) == (shown, f"Address({shown!r})", url)
    for secret in ("s3cret", "p%40ss", "p@ss/wo:rd", "a?b#c"):
        if secret in url:
            assert secret not in address.scrubbed(f"wrong password {secret}, in {url}")


@pytest.mark.parametrize("url", ["postgresql://ann:pa@s3cret@db/x", "postgresql://ann:pa/s3cret@db/x"])
def test_a_piece_of_a_password_that_was_taken_for_a_host_is_not_told(url: str) -> None:
    """Whoever doesn't escape a password reads of it in pieces."""
    told = Address(url).scrubbed("failed to resolve host 's3cret@db'")
    assert "s3cret" not in told


def test_a_password_as_short_as_a_syllable_ruins_no_message() -> None:
    """It is hidden in the URL; elsewhere nobody could tell it from other letters."""
    address = Address("postgresql://ann:a@db/x")
    assert address.scrubbed(f"can't reach {address.url}") == "can't reach postgresql://ann:***@db/x"


@pytest.mark.parametrize(
    "text", ["", "x", "mysql://h/x", "postgresql:x", "postgresql://a b/x", "postgresql://a\0/x"]
)
def test_what_is_no_address_of_a_postgres_is_refused(text: str) -> None:
    """What was given isn't repeated."""
    with pytest.raises(UsageError, match="the store isn't a URL of Postgres"):
        Address(text)
    assert is_address("postgres://") is True


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_text_is_refused(postgres: Server, encoding: str) -> None:
    """Before there is anything in it; the message says how to make one that can."""
    name = f"encoded_{encoding.lower()}"
    postgres.execute(f"create database {name} encoding '{encoding}' template template0")
    try:
        with PostgresRuns(postgres.url(name)) as runs, pytest.raises(JournalError, match=encoding) as refused:
            runs.create("r")
        assert "createdb --encoding UTF8" in str(refused.value.advice)
    finally:
        postgres.drop(postgres.url(name))
