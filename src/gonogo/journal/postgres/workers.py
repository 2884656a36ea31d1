"""Which workers a store has, of whatever engine: each renews a row of its own. For people, and to find calls that wait
for a label that nobody has.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.link import PATIENCE_S, Connection, Link
from gonogo.journal.postgres.schema import alone

__all__ = ["About", "Present", "Waiting", "Workers"]

GONE_S = 7.0
"""Whose row is older isn't there any more, or stands still."""
_FORGOTTEN_S = 60.0

_MAKE = """
create table if not exists gonogo_present (
    id text collate "C" primary key,
    since timestamptz not null default clock_timestamp(),
    seen timestamptz not null default clock_timestamp(),
    about jsonb not null
)
"""
_THERE = "select to_regclass('gonogo_present') is not null"
_RENEW = f"""
    with gone as (
        delete from gonogo_present
        where seen < clock_timestamp() - make_interval(secs => {_FORGOTTEN_S}) and id <> %(id)s
    )
    insert into gonogo_present (id, about) values (%(id)s, %(about)s::jsonb)
    on conflict (id) do update set seen = clock_timestamp(), about = excluded.about
"""  # noqa: S608 - nothing but constants is put in
_LIVING = f"""
    select id, about::text, extract(epoch from since)::float8,
        (select count(*) from gonogo_runs
            where owner_host = about ->> 'machine' and owner_pid = (about ->> 'pid')::int),
        (select count(*) from gonogo_tickets where worker = id and not ended)
    from gonogo_present
    where seen > clock_timestamp() - make_interval(secs => {GONE_S}) order by since, id
"""  # noqa: S608 - nothing but constants is put in
_QUEUED = """
    select count(*) from gonogo_runs where submitted is not null and next_seq is null and aside is null
        and owner_host is null
"""
_LABELS = "select label, count(*) from gonogo_tickets where not ended and ({nobodys}) group by label"
_OF_RUN = """
    select label, count(*) from gonogo_tickets
    where not ended and ({nobodys}) and (run_id = %(run)s or starts_with(run_id, %(run)s || '.')) group by label
"""
_NOBODYS = "worker is null"
_NOBODYS_NOW = f"""
    worker is null or not exists (
        select from gonogo_present
        where id = worker and seen > clock_timestamp() - make_interval(secs => {GONE_S})
    )
"""
"""DBOS takes a call from a worker that is gone; on Temporal it stays with that one until another has it."""
_STRANDED = f"""
    select run_id, call from gonogo_tickets as ticket
    where not ended and claims > 0 and label <> '' and ({_NOBODYS_NOW})
        and position('"effects":"mutates"'::bytea in command) > 0
        and not exists (
            select from gonogo_present
            where about -> 'labels' ? ticket.label and seen > clock_timestamp() - make_interval(secs => {GONE_S})
        )
    order by run_id, call limit {{most}}
"""  # noqa: S608 - nothing but constants is put in
_HOST_OF = "select owner_host from gonogo_runs where run_id = %s"


class About(Struct, frozen=True):
    """What a worker says of itself. `queue`: Temporal's. `wire`: of which version the work has to be."""

    engine: str
    machine: str
    pid: int
    labels: tuple[str, ...] = ()
    runs: int = 0
    calls: int = 0
    version: str = ""
    wire: str = ""
    queue: str = ""


class Present(Struct, frozen=True):
    """A worker that lives: since when (Unix seconds), and how many runs and calls it has now."""

    name: str
    about: About
    since: float
    runs: int
    calls: int


class Waiting(Struct, frozen=True):
    """What no worker has yet: runs that nobody has begun with, and calls by their label."""

    runs: int
    calls: Mapping[str, int]


class Workers:
    """Those of one store, by a connection of its own. Every method may raise JournalError."""

    def __init__(
        self,
        address: Address,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._link = Link(address, patience_s=patience_s)

    def renew(self, name: str, about: About) -> None:
        """Say that a worker is there."""
        given = {"id": name, "about": msgspec.json.encode(about).decode()}

        def renewed(connection: Connection) -> None:
            _make(connection)
            connection.execute(_RENEW, given)

        self._link.do("tell others that this worker is there", renewed)

    def remove(self, name: str) -> None:
        """It ended in good order. Waits for nothing."""
        self._link.attempt(lambda it: it.execute("delete from gonogo_present where id = %s", [name]))

    def living(self) -> list[Present]:
        """Those that are there, the oldest first."""
        return self._link.do("list workers", _living)

    def waiting(self) -> Waiting:
        """What waits for one."""

        def found(connection: Connection) -> Waiting:
            runs = connection.execute(_QUEUED).fetchone()
            return Waiting(runs[0] if runs else 0, dict(_calls(connection, _LABELS)))

        return self._link.do("count what waits", found)

    def waits(self, run_id: str) -> tuple[bool, frozenset[str]]:
        """Whether nobody has the run now, and the labels of those of its calls that nobody has, its children's too."""

        def found(connection: Connection) -> tuple[bool, frozenset[str]]:
            row = connection.execute(_HOST_OF, [run_id]).fetchone()
            labels = _calls(connection, _OF_RUN, run=run_id)
            return row is None or row[0] is None, frozenset(label for label, _ in labels)

        return self._link.do(f"see who has run {run_id}", found)

    def stranded(self, most: int) -> list[tuple[str, int]]:
        """Calls (run, number) that mutate, and whose worker is gone with all others that have the call's label."""

        def found(connection: Connection) -> list[tuple[str, int]]:
            if not _is_there(connection):
                return []
            return connection.execute(_STRANDED.format(most=most)).fetchall()

        return self._link.do("look for calls whose workers are gone", found)

    def close(self) -> None:
        """Let go of the connection."""
        self._link.close()


def _make(connection: Connection) -> None:
    if not _is_there(connection):
        with alone(connection):
            connection.execute(_MAKE)


def _calls(connection: Connection, query: str, **given: str) -> list[tuple[str, int]]:
    """How many calls there are that nobody has, by label."""
    nobodys = _NOBODYS_NOW if _is_there(connection) else _NOBODYS
    return connection.execute(query.format(nobodys=nobodys), given).fetchall()


def _is_there(connection: Connection) -> bool:
    """Whether a worker was ever there."""
    return bool(connection.execute(_THERE).fetchall()[0][0])


def _living(connection: Connection) -> list[Present]:
    if not _is_there(connection):
        return []
    rows = connection.execute(_LIVING).fetchall()
    return [Present(name, msgspec.json.decode(about, type=About), *rest) for name, about, *rest in rows]
