"""Tells stores apart that share something else, as a Temporal server: each has a short name of its own in its tables,
which goes with them into a backup and to a standby.
"""

from __future__ import annotations

import secrets

from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.link import Connection, Link

__all__ = ["identity_of"]

_LOCK = 0x676F6E6F676F0002
"""The advisory lock of whoever names the store: "gonogo" and 2."""
_TABLE = """
    create table if not exists gonogo_store (
        is_named boolean primary key default true check (is_named), name text collate "C" not null
    )
"""
_NAMED = "insert into gonogo_store (name) values (%s) on conflict do nothing"


def identity_of(address: Address) -> str:
    """The store's name: ten small letters and digits, made when it is first asked for. Raises JournalError."""
    link = Link(address, patience_s=0.0)
    try:
        return link.do("read the store's name", _identity)
    finally:
        link.drop()


def _identity(connection: Connection) -> str:
    name = _name(connection)
    if name is None:
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
            connection.execute(_TABLE)
            connection.execute(_NAMED, [secrets.token_hex(5)])
        name = _name(connection)
    assert name is not None
    return name


def _name(connection: Connection) -> str | None:
    """None without the table, or without its row, as where only the tables were restored."""
    if not connection.execute("select to_regclass('gonogo_store')::text").fetchall()[0][0]:
        return None
    row = connection.execute("select name from gonogo_store").fetchone()
    return None if row is None else str(row[0])
