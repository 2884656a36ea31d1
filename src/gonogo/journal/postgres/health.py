"""Whether a Postgres is fit to keep runs: for a person who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from gonogo.errors import JournalError
from gonogo.journal.postgres.link import Connection, Link, connected

if TYPE_CHECKING:
    from gonogo.journal.postgres.address import Address

__all__ = ["about", "check_sessions"]

_QUERY = """
    select current_setting('server_version'), (select count(*) from gonogo_runs), pg_is_in_recovery(),
           current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on',
           coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false),
           coalesce(inet_client_addr() <<= '127.0.0.0/8' or inet_client_addr() = '::1', true)
"""


def about(address: Address) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What it is, and doubts about it, each with what to do. Raises JournalError."""
    check_sessions(address)
    link = Link(address, patience_s=0.0)
    try:
        row = link.do("ask the store", lambda connection: connection.execute(_QUERY).fetchone())
    finally:
        link.drop()
    assert row is not None
    version, runs, standby, keeps, encrypted, local = row
    doubts = []
    if standby:
        doubts.append(("it is a standby, which takes no runs", "name the primary in --store"))
    if not encrypted and not local:
        doubts.append(("the connection isn't encrypted", "add ?sslmode=verify-full to --store"))
    if not keeps:
        doubts.append(("it may lose what it said it kept", "set fsync and full_page_writes to on"))
    return f"{address}: Postgres {version}, {runs} runs", tuple(doubts)


def check_sessions(address: Address) -> None:
    """Raises JournalError when connections have no session of their own there, on which locks and what is listened to
    depend. Says nothing of a Postgres that can't be reached.
    """
    try:
        if _have_their_own(address):
            return
    except psycopg.Error:
        return
    raise JournalError(
        f"connections to {address} have no session of their own: a pooler gives each transaction to any",
        advice="name Postgres itself in --store, or have the pooler keep sessions (PgBouncer: pool_mode = session)",
    )


def _have_their_own(address: Address) -> bool:
    """Whether two connections have a session each, and the first one still has its own while the second is busy."""
    with connected(address) as one, connected(address) as other:
        first = _session_of(one)
        with other.transaction():
            second = _session_of(other)
            return first != second and _session_of(one) == first


def _session_of(connection: Connection) -> int:
    (found,) = connection.execute("select pg_backend_pid()").fetchall()
    return int(found[0])
