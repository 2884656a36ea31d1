"""Calls on offer, in Postgres. What changes something is one statement each, and done once even if its answer is lost:
each claim and each answer has a token, by which one that is sent again is known.

Answers to a run are numbered while its row in `gonogo_pools` is locked: once a number can be seen, no smaller one turns
up any more.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import msgspec

from gonogo.core.commands import StartCall
from gonogo.core.events import AnyEvent
from gonogo.errors import JournalError
from gonogo.journal.pool import Claim, Pool, Ticket
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.bell import PostgresBell, channel_of
from gonogo.journal.postgres.link import PATIENCE_S, Connection, Link

__all__ = ["PostgresPool"]

T = TypeVar("T")

_OFFER = """
    insert into gonogo_tickets (run_id, call, seq, command, label)
    select * from unnest(
        %(runs)s::text[], %(calls)s::bigint[], %(seqs)s::bigint[], %(commands)b::bytea[], %(labels)s::text[]
    )
    on conflict (run_id, call) do nothing
"""
_RING = "select pg_notify(channel, name) from unnest(%(channels)s::text[], %(names)s::text[]) as rung (channel, name)"
_CLAIM = """
    update gonogo_tickets
    set claims = claims + (claimed is distinct from %(token)b)::int, claimed = %(token)b, worker = %(worker)s
    where run_id = %(run)s and call = %(call)s and not ended
        and (%(again)s or claims = 0 or claimed = %(token)b)
    returning seq, command, label, claims - 1, stop
"""
_LEAVE = """
    with ticket as (
        update gonogo_tickets set ended = %(last)s, left_by = %(token)b
        where run_id = %(run)s and call = %(call)s and not ended and left_by is distinct from %(token)b
            and (%(claims)s::int is null or claims = %(claims)s)
        returning run_id
    ), turn as (
        insert into gonogo_pools (run_id) select run_id from ticket
        on conflict (run_id) do update set run_id = excluded.run_id
        returning run_id
    )
    insert into gonogo_answers (run_id, call, event) select turn.run_id, %(call)s, %(event)b from turn
    returning pg_notify(%(channel)s, run_id)
"""
_IS_LEFT = (
    "select true from gonogo_tickets where run_id = %(run)s and call = %(call)s and left_by = %(token)b"
)
_TAKE = "select id, event from gonogo_answers where run_id = %s and id > %s order by id"
_DONE = """
    with gone as (delete from gonogo_answers where run_id = %(run)s and id = any(%(ids)s) returning call)
    delete from gonogo_tickets as ticket using gone
    where ticket.run_id = %(run)s and ticket.call = gone.call and ticket.ended and not exists (
        select from gonogo_answers as more
        where more.run_id = ticket.run_id and more.call = ticket.call and not more.id = any(%(ids)s)
    )
"""
_DROP = "delete from gonogo_tickets where run_id = %(run)s and call = %(call)s and claims = 0 and not ended"
_STOP = """
    update gonogo_tickets set stop = true where run_id = %(run)s and call = %(call)s and not ended and claims > 0
    returning worker
"""

_encode = msgspec.json.Encoder().encode
_command: Callable[[bytes], StartCall] = msgspec.json.Decoder(StartCall).decode
_event: Callable[[bytes], AnyEvent] = msgspec.json.Decoder(AnyEvent).decode


class PostgresPool(Pool):
    """The tickets of a database. One connection, for one thread at a time."""

    def __init__(
        self,
        url: str | Address,
        *,
        tell: Callable[[str], None] = lambda text: None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Raises UsageError for what is no URL of a Postgres."""
        self.address = url if isinstance(url, Address) else Address(url)
        self._link = Link(self.address, tell=tell, patience_s=patience_s)

    def offer(self, tickets: Sequence[Ticket]) -> None:
        """Let these calls be claimed. Raises JournalError."""
        given = {
            "runs": [ticket.run_id for ticket in tickets],
            "calls": [ticket.command.call for ticket in tickets],
            "seqs": [ticket.seq for ticket in tickets],
            "commands": [_encode(ticket.command) for ticket in tickets],
            "labels": [ticket.label for ticket in tickets],
        }

        def work(connection: Connection) -> None:
            with connection.transaction():
                connection.execute(_OFFER, given)
                _ring(connection, {ticket.run_id for ticket in tickets})

        if tickets:
            self._link.do("offer calls", work)

    def claim(self, run_id: str, call: int, worker: str, *, again: bool = True) -> Claim | None:
        """Perform this call; None when there is nothing to perform. Raises JournalError."""
        token = secrets.token_bytes(12)
        given = {"run": run_id, "call": call, "worker": worker, "token": token, "again": again}
        row = self._link.do(
            f"claim a call of run {run_id}",
            lambda connection: connection.execute(_CLAIM, given, binary=True).fetchone(),
        )
        if row is None:
            return None
        seq, command, label, before, stop = row
        offered = self._read(_command, command, f"call {call} of run {run_id}")
        return Claim(Ticket(run_id, offered, seq, label), before, stop)

    def leave(
        self, run_id: str, call: int, event: AnyEvent, last: bool = True, *, before: int | None = None
    ) -> bool:
        """Leave what came of a call; False when nobody waits for it any more. Raises JournalError."""
        given = {
            "run": run_id,
            "call": call,
            "event": _encode(event),
            "last": last,
            "claims": None if before is None else before + 1,
            "token": secrets.token_bytes(12),
            "channel": channel_of(run_id),
        }
        return self._link.do(f"answer a call of run {run_id}", lambda connection: _is_left(connection, given))

    def take(self, run_id: str, after: int = 0) -> list[tuple[int, AnyEvent]]:
        """What was left for a run, by id. Raises JournalError."""
        rows = self._link.do(
            f"read the answers to run {run_id}",
            lambda connection: connection.execute(_TAKE, [run_id, after], binary=True).fetchall(),
        )
        return [
            (number, self._read(_event, data, f"answer {number} to run {run_id}")) for number, data in rows
        ]

    def done(self, run_id: str, ids: Collection[int]) -> None:
        """Forget answers, and tickets with their last one. Raises JournalError."""
        given = {"run": run_id, "ids": list(ids)}
        if ids:
            self._link.do(
                f"write the answers to run {run_id}", lambda connection: connection.execute(_DONE, given)
            )

    def withdraw(self, run_id: str, call: int, instead: AnyEvent | None = None) -> bool:
        """Take a call back, or ask it to stop. Raises JournalError."""
        given: dict[str, Any] = {"run": run_id, "call": call}
        if instead is not None:
            given |= {"event": _encode(instead), "last": True, "claims": 0, "channel": channel_of(run_id),
                      "token": secrets.token_bytes(12)}  # fmt: skip
        return self._link.do(
            f"take back a call of run {run_id}",
            lambda connection: _is_withdrawn(connection, given, answered=instead is not None),
        )

    def to_stop(self, worker: str) -> set[tuple[str, int]]:
        """What this worker should stop. Raises JournalError."""
        query = "select run_id, call from gonogo_tickets where worker = %s and stop and not ended"
        rows = self._link.do(
            "read what is to be stopped", lambda connection: connection.execute(query, [worker]).fetchall()
        )
        return set(rows)

    def open(self, run_id: str) -> set[int]:
        """Calls that aren't gone. Raises JournalError."""
        query = "select call from gonogo_tickets where run_id = %s"
        rows = self._link.do(
            f"read the calls of run {run_id}",
            lambda connection: connection.execute(query, [run_id]).fetchall(),
        )
        return {call for (call,) in rows}

    def clear(self, run_id: str) -> None:
        """Forget all of a run. Raises JournalError."""

        def work(connection: Connection) -> None:
            with connection.transaction():
                for table in ("gonogo_tickets", "gonogo_answers", "gonogo_pools"):
                    connection.execute(f"delete from {table} where run_id = %s", [run_id])  # noqa: S608

        self._link.do(f"clear the calls of run {run_id}", work)

    def bell(self, names: Collection[str]) -> PostgresBell:
        """Hears what is rung with these names. Raises JournalError."""
        return PostgresBell(self.address, names)

    def close(self) -> None:
        """Let go of the connection; what is done next makes a new one."""
        self._link.drop()

    def _read(self, decode: Callable[[bytes], T], data: bytes, what: str) -> T:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise JournalError(
                f"{what} in {self.address} can't be read: {error}",
                advice="its row was changed, or a newer gonogo wrote it; 'gonogo cancel' ends the run",
            ) from error


def _is_left(connection: Connection, given: dict[str, Any]) -> bool:
    if connection.execute(_LEAVE, given).rowcount == 1:
        return True
    return connection.execute(_IS_LEFT, given).fetchone() is not None


def _is_withdrawn(connection: Connection, given: dict[str, Any], *, answered: bool) -> bool:
    """A claim in between leaves the ticket as it is: then it is under way."""
    if answered and _is_left(connection, given):
        return True
    with connection.transaction():
        if not answered and connection.execute(_DROP, given).rowcount == 1:
            return True
        row = connection.execute(_STOP, given).fetchone()
        if row is not None:
            _ring(connection, {str(row[0])})
    return False


def _ring(connection: Connection, names: Collection[str]) -> None:
    ordered = sorted(names)
    connection.execute(_RING, {"channels": [channel_of(name) for name in ordered], "names": ordered})
