"""Calls on offer, in Postgres. What changes something is one statement each, and done once even if its answer is lost:
each claim and each answer has a token, by which one that is sent again is known.

Answers to a run are numbered while its row in `gonogo_pools` is locked: once a number can be seen, no smaller one turns
up any more.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

from gonogo.core.events import AnyEvent
from gonogo.journal.pool import Claim, Leave, Pool, Ticket
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.bell import PostgresBell, channel_of
from gonogo.journal.postgres.link import PATIENCE_S, Connection, Link
from gonogo.journal.postgres.tickets import claim_in, event_in, token_of

__all__ = ["PostgresPool"]

T = TypeVar("T")

CLAIMS_MAX = 2**31 - 1
_OFFER = """
    insert into gonogo_tickets (run_id, call, seq, command, label)
    select * from unnest(
        %(runs)s::text[], %(calls)s::bigint[], %(seqs)s::bigint[], %(commands)b::bytea[], %(labels)s::text[]
    )
    on conflict (run_id, call) do nothing
"""
_RING = "select pg_notify(channel, name) from unnest(%(channels)s::text[], %(names)s::text[]) as rung (channel, name)"
_CLAIM = """
    with found as (
        select call, claimed as had from gonogo_tickets
        where run_id = %(run)s and call = any(%(calls)s) and not ended
            and (%(again)s or worker is null or claimed = %(token)b)
            and (claims < %(below)s or claimed = %(token)b)
        order by call for update{mode}
    )
    update gonogo_tickets as ticket
    set claims = claims + (claimed is distinct from %(token)b)::int, claimed = %(token)b, worker = %(worker)s,
        lets = case when claimed = %(token)b then lets end
    from found where ticket.run_id = %(run)s and ticket.call = found.call
    returning ticket.call, seq, command, label, claims - 1, stop, found.had
"""
_CLAIM_ONE = _CLAIM.format(mode="")
_CLAIM_FREE = _CLAIM.format(mode=" skip locked")
_LOSE = """
    with freed as (
        update gonogo_tickets set worker = null where worker = %(worker)s and not ended
        returning run_id, call, label
    )
    select run_id, call, label from freed union
    select run_id, call, label from gonogo_tickets where worker is null and claims > 0 and not ended
    order by run_id, call
"""
_LEAVE = """
    with given as (
        select * from unnest(%(calls)s::bigint[], %(events)b::bytea[], %(claims)s::int[])
            with ordinality as given (call, event, claims, place)
    ), ticket as (
        update gonogo_tickets as ticket set ended = %(last)s, left_by = %(token)b from given
        where ticket.run_id = %(run)s and ticket.call = given.call and not ticket.ended
            and ticket.left_by is distinct from %(token)b
            and (given.claims is null or ticket.claims = given.claims)
        returning ticket.call, given.event, given.place
    ), turn as (
        insert into gonogo_pools (run_id) select %(run)s where exists (select from ticket)
        on conflict (run_id) do update set run_id = excluded.run_id
        returning run_id
    )
    insert into gonogo_answers (run_id, call, event)
    select turn.run_id, ticket.call, ticket.event from turn, ticket order by ticket.place
    returning call, pg_notify(%(channel)s, run_id)
"""
_IS_LEFT = (
    "select call from gonogo_tickets where run_id = %(run)s and call = any(%(calls)s) and left_by = %(token)b"
)
_TAKE = "select id, call, event from gonogo_answers where run_id = %s and id > %s order by id"
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
_GIVE_BACK = """
    update gonogo_tickets set claims = claims - 1, claimed = null, worker = null, passed = %(why)s
    where run_id = %(run)s and call = %(call)s and worker = %(worker)s and claims = %(claims)s and not ended
"""
_LET = """
    update gonogo_tickets set lets = array_append(array_remove(lets, %(said)s), %(said)s)
    where run_id = %(run)s and call = %(call)s and not ended
    returning worker
"""
_LET_TO = "select run_id, call, lets from gonogo_tickets where worker = %s and lets is not null and not ended"

_encode = msgspec.json.Encoder().encode


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

        if tickets:
            self._link.do("offer calls", lambda connection: connection.execute(_OFFER, given))

    def claim(
        self, run_id: str, call: int, worker: str, *, again: bool = True, below: int | None = None
    ) -> Claim | None:
        """Perform this call; None when there is nothing to perform. Raises JournalError."""
        found = self._claimed(_CLAIM_ONE, run_id, [call], worker, again=again, below=below)
        return found[0] if found else None

    def claim_free(
        self, run_id: str, calls: Collection[int], worker: str, *, below: int | None = None
    ) -> list[Claim]:
        """Perform those that nobody has. Raises JournalError."""
        return self._claimed(_CLAIM_FREE, run_id, list(calls), worker, again=False, below=below)

    def suspects(self, run_id: str, calls: Collection[int], least: int) -> list[int]:
        """Those that have had so many claims, and no end. Raises JournalError."""
        query = (
            "select call from gonogo_tickets where run_id = %s and call = any(%s) and claims >= %s and not ended"
            " order by call"
        )
        rows = self._link.do(
            f"look after calls of run {run_id}",
            lambda connection: connection.execute(query, [run_id, list(calls), least]).fetchall(),
        )
        return [call for (call,) in rows]

    def lose(self, worker: str) -> list[tuple[str, int, str]]:
        """Let others claim what this worker has; all that is free like this. Raises JournalError."""
        return self._link.do(
            "give calls of a worker free",
            lambda connection: connection.execute(_LOSE, {"worker": worker}).fetchall(),
        )

    def pass_over(self, claim: Claim, worker: str, why: str) -> None:
        """Give back a call that wasn't begun. Raises JournalError."""
        run_id, call = claim.ticket.run_id, claim.ticket.command.call
        told = why.replace("\0", "\N{REPLACEMENT CHARACTER}")
        given = {"run": run_id, "call": call, "worker": worker, "claims": claim.before + 1, "why": told}
        self._link.do(
            f"pass over a call of run {run_id}", lambda connection: connection.execute(_GIVE_BACK, given)
        )

    def passed_over(self, run_id: str, call: int) -> str:
        """Why, if somebody did. Raises JournalError."""
        query = "select passed from gonogo_tickets where run_id = %s and call = %s and passed is not null"
        row = self._link.do(
            f"read a call of run {run_id}",
            lambda connection: connection.execute(query, [run_id, call]).fetchone(),
        )
        return str(row[0]) if row is not None else ""

    def let(self, leave: Leave) -> None:
        """Answer a wish. Raises JournalError."""
        said = f"{leave.ticket}:{leave.refusal}".replace("\0", "\N{REPLACEMENT CHARACTER}")
        given = {"run": leave.run_id, "call": leave.call, "said": said}

        def work(connection: Connection) -> None:
            row = connection.execute(_LET, given).fetchone()
            if row is not None and row[0] is not None:
                _ring(connection, {str(row[0])})

        self._link.do(f"answer a call of run {leave.run_id}", work)

    def let_to(self, worker: str) -> list[Leave]:
        """What was said to the wishes of its calls. Raises JournalError."""
        rows = self._link.do(
            "read what calls may do", lambda connection: connection.execute(_LET_TO, [worker]).fetchall()
        )
        return [
            Leave(run_id, call, int(ticket), refusal)
            for run_id, call, lets in rows
            for ticket, _, refusal in (said.partition(":") for said in lets)
            if ticket.isdecimal()
        ]

    def leave(
        self, run_id: str, call: int, event: AnyEvent, last: bool = True, *, before: int | None = None
    ) -> bool:
        """Leave what came of a call; False when nobody waits for it any more. Raises JournalError."""
        return call in self._left(run_id, [(call, event, before)], last=last)

    def leave_all(self, run_id: str, answers: Sequence[tuple[int, AnyEvent, int]]) -> set[int]:
        """Leave what came of several; which of them somebody waits for. Raises JournalError."""
        return self._left(run_id, answers, last=True)

    def take(self, run_id: str, after: int = 0) -> list[tuple[int, AnyEvent]]:
        """What was left for a run, by id. Raises JournalError."""
        rows = self._link.do(
            f"read the answers to run {run_id}",
            lambda connection: connection.execute(_TAKE, [run_id, after], binary=True).fetchall(),
        )
        return [
            (number, event_in(data, call, f"answer {number} to run {run_id} in {self.address}"))
            for number, call, data in rows
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
        given = {"run": run_id, "call": call}
        answer = None if instead is None else _answers(run_id, [(call, instead, -1)], last=True)
        return self._link.do(
            f"take back a call of run {run_id}",
            lambda connection: _is_withdrawn(connection, given, answer),
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

    def holds(self, run_id: str, call: int, before: int) -> bool:
        """Whether a claim is still the last one. Raises JournalError."""
        query = (
            "select true from gonogo_tickets where run_id = %s and call = %s and claims = %s and not ended"
        )
        given = [run_id, call, before + 1]
        row = self._link.do(
            f"look after a call of run {run_id}",
            lambda connection: connection.execute(query, given).fetchone(),
        )
        return row is not None

    def unclaimed(self, run_id: str) -> list[tuple[int, str]]:
        """Call and label of those that nobody ever claimed. Raises JournalError."""
        query = "select call, label from gonogo_tickets where run_id = %s and claims = 0 and not ended order by call"
        return self._link.do(
            f"read the calls of run {run_id}",
            lambda connection: connection.execute(query, [run_id]).fetchall(),
        )

    def ring(self, names: Collection[str]) -> None:
        """Ring with each of these names. Raises JournalError."""
        self._link.do("ring", lambda connection: _ring(connection, names))

    def clear(self, run_id: str) -> None:
        """Forget all of a run. Raises JournalError."""

        def work(connection: Connection) -> None:
            with connection.transaction():
                for table in ("gonogo_tickets", "gonogo_answers", "gonogo_pools"):
                    connection.execute(f"delete from {table} where run_id = %s", [run_id])  # noqa: S608

        self._link.do(f"clear the calls of run {run_id}", work)

    @property
    def is_away(self) -> bool:
        """Whether Postgres is waited for just now."""
        return self._link.is_away

    def at_once(self, work: Callable[[], T]) -> T:
        """What `work` makes, without waiting. Raises StoreAway."""
        return self._link.at_once(work)

    def bell(self, names: Collection[str]) -> PostgresBell:
        """Hears what is rung with these names. Raises JournalError."""
        return PostgresBell(self.address, names)

    def close(self) -> None:
        """Let go of the connection; what is done next makes a new one."""
        self._link.close()

    def _claimed(
        self, query: str, run_id: str, calls: list[int], worker: str, *, again: bool, below: int | None
    ) -> list[Claim]:
        token = token_of(worker)
        most = CLAIMS_MAX if below is None else below
        given = {
            "run": run_id,
            "calls": calls,
            "worker": worker,
            "token": token,
            "again": again,
            "below": most,
        }
        rows = self._link.do(
            f"claim a call of run {run_id}",
            lambda connection: connection.execute(query, given, binary=True).fetchall(),
        )
        found, unreadable = [], []
        for row in sorted(rows, key=itemgetter(0)):
            claim = claim_in(row, run_id, token, self.address)
            if isinstance(claim, Claim):
                found.append(claim)
            else:
                unreadable.append((claim.call, claim, row[4]))
        if unreadable:
            self._left(run_id, unreadable, last=True)
        return found

    def _left(
        self, run_id: str, answers: Sequence[tuple[int, AnyEvent, int | None]], *, last: bool
    ) -> set[int]:
        given = _answers(run_id, answers, last=last)
        return self._link.do(
            f"answer a call of run {run_id}", lambda connection: _are_left(connection, given)
        )


def _answers(
    run_id: str, answers: Sequence[tuple[int, AnyEvent, int | None]], *, last: bool
) -> dict[str, Any]:
    return {
        "run": run_id,
        "calls": [call for call, _, _ in answers],
        "events": [_encode(event) for _, event, _ in answers],
        "claims": [None if before is None else before + 1 for _, _, before in answers],
        "last": last,
        "token": secrets.token_bytes(12),
        "channel": channel_of(run_id),
    }


def _are_left(connection: Connection, given: dict[str, Any]) -> set[int]:
    """Which calls are answered by this, or were by an earlier try whose own answer was lost."""
    left = {call for call, _ in connection.execute(_LEAVE, given).fetchall()}
    if len(left) < len(given["calls"]):
        left |= {call for (call,) in connection.execute(_IS_LEFT, given).fetchall()}
    return left


def _is_withdrawn(connection: Connection, given: dict[str, Any], instead: dict[str, Any] | None) -> bool:
    """A claim in between leaves the ticket as it is: then it is under way."""
    if instead is not None and _are_left(connection, instead):
        return True
    with connection.transaction():
        if instead is None and connection.execute(_DROP, given).rowcount == 1:
            return True
        row = connection.execute(_STOP, given).fetchone()
        if row is not None and row[0] is not None:
            _ring(connection, {str(row[0])})
    return False


def _ring(connection: Connection, names: Collection[str]) -> None:
    ordered = sorted(names)
    connection.execute(_RING, {"channels": [channel_of(name) for name in ordered], "names": ordered})
