"""The tables, their version, and how they come to be.

One row a run says how far it is, who writes it and what a list shows; it is changed in the statement that adds records,
so the two can't differ. Lines and blobs are the bytes that the local files would have. Nothing refers to calls on offer
(tickets, answers) but themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gonogo.errors import JournalError
from gonogo.journal.lines import NewerJournal

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["VERSION", "alone", "make_ready"]

VERSION = 4
"""Rises when an older gonogo could misread what a newer one keeps, or a newer one misses what an older one made."""
_MAKING = 0x676F6E6F676F0001
"""The advisory lock of whoever makes the tables: "gonogo" and 1."""

_SEALS = """
create table gonogo_seals (
    run_id text collate "C" not null references gonogo_runs on delete cascade,
    tag text collate "C" not null,
    sealed bytea not null,
    primary key (run_id, tag)
);
"""
_TURNS = """
create table gonogo_turns (
    run_id text collate "C" not null references gonogo_runs on delete cascade,
    key text collate "C" not null,
    due float8[] not null,
    next float8 not null,
    taken boolean not null,
    primary key (run_id, key)
);
"""
_TABLES = (
    """
create table gonogo_schema (version int not null);

create table gonogo_runs (
    run_id text collate "C" primary key,
    epoch bigint not null default 1,
    first_seq bigint,
    next_seq bigint,
    workflow text not null default '',
    event text,
    parent text,
    started_at_ms bigint not null default 0,
    last_at double precision not null default 0,
    verdict text,
    submitted bytea,
    aside text,
    written timestamptz,
    owner_host text,
    owner_pid int,
    owner_since_ms bigint,
    owner_backend int,
    owner_token bytea
) with (fillfactor = 70);

create table gonogo_records (
    run_id text collate "C" not null references gonogo_runs on delete cascade,
    seq bigint not null,
    line bytea not null,
    primary key (run_id, seq)
);

create table gonogo_blobs (
    run_id text collate "C" not null references gonogo_runs on delete cascade,
    digest text collate "C" not null,
    data bytea not null,
    primary key (run_id, digest)
);
alter table gonogo_blobs alter column data set storage external;

create table gonogo_inbox (
    id bigint generated always as identity primary key,
    run_id text collate "C" not null references gonogo_runs on delete cascade,
    token bytea not null unique,
    request bytea not null,
    refused boolean not null default false
);
create index gonogo_inbox_waiting on gonogo_inbox (run_id, id) where not refused;

create table gonogo_tickets (
    run_id text collate "C" not null,
    call bigint not null,
    seq bigint not null,
    command bytea not null,
    label text not null,
    claims int not null default 0,
    claimed bytea,
    left_by bytea,
    worker text,
    stop boolean not null default false,
    ended boolean not null default false,
    passed text,
    lets text[],
    primary key (run_id, call)
);
create index gonogo_tickets_to_stop on gonogo_tickets (worker) where stop and not ended;
create index gonogo_tickets_let on gonogo_tickets (worker) where lets is not null and not ended;

create table gonogo_pools (run_id text collate "C" primary key);

create table gonogo_answers (
    id bigint generated always as identity primary key,
    run_id text collate "C" not null,
    call bigint not null,
    event bytea not null
);
create index gonogo_answers_of_run on gonogo_answers (run_id, id);

create table gonogo_breakers (
    key text collate "C" primary key,
    version bigint not null,
    sheet bytea not null
);
"""
    + _SEALS
    + _TURNS
)
_LATER = {
    1: "alter table gonogo_runs add column aside text, add column written timestamptz;" + _SEALS,
    2: "alter table gonogo_tickets add column passed text, add column lets text[];"
    " create index gonogo_tickets_let on gonogo_tickets (worker) where lets is not null and not ended;",
    3: _TURNS,
}
"""What tables of a version lack that those of the next one have."""


def make_ready(connection: Connection[Any], place: str) -> None:
    """Make the tables where there are none, and add to those of an older gonogo what they lack.

    Raises NewerJournal when a newer gonogo made them, JournalError when the database can't hold what runs say,
    psycopg.Error.
    """
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise JournalError(
            f"the database in {place} is encoded in {encoding}, which can't hold every text",
            advice="give --store one that is encoded in UTF8: createdb --encoding UTF8 --template template0 NAME",
        )
    if not _are_there(connection):
        _make(connection)
    found = _version(connection)
    if found < VERSION and found in _LATER:
        _bring_up_to_date(connection)
        found = _version(connection)
    if found > VERSION:
        raise NewerJournal(
            f"a newer gonogo made the tables in {place}: version {found}; this one knows up to {VERSION}",
            advice="update gonogo on this machine, or give --store another database",
        )
    if found < VERSION:
        raise JournalError(
            f"the tables in {place} have no version that any gonogo wrote",
            advice="restore gonogo_schema from a backup, or give --store another database",
        )


def _make(connection: Connection[Any]) -> None:
    with alone(connection):
        if not _are_there(connection):
            with connection.transaction():
                connection.execute(_TABLES)
                connection.execute("insert into gonogo_schema values (%s)", [VERSION])


def _bring_up_to_date(connection: Connection[Any]) -> None:
    with alone(connection), connection.transaction():
        found = _version(connection)
        while found in _LATER:
            connection.execute(_LATER[found])
            found += 1
        connection.execute("update gonogo_schema set version = %s where version < %s", [found, found])


@contextmanager
def alone(connection: Connection[Any]) -> Iterator[None]:
    """One process at a time makes tables. The lock is the session's: a name is looked up afresh only in a new
    transaction.
    """
    connection.execute("select pg_advisory_lock(%s)", [_MAKING])
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("select pg_advisory_unlock(%s)", [_MAKING])


def _are_there(connection: Connection[Any]) -> bool:
    found = connection.execute("select to_regclass('gonogo_schema') is not null").fetchone()
    return found is not None and bool(found[0])


def _version(connection: Connection[Any]) -> int:
    versions = connection.execute("select version from gonogo_schema").fetchall()
    return max((version for (version,) in versions), default=0)
