"""Requests to a run as rows, numbered in their order; a host that listens hears of each (bell.py)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection

import msgspec

from gonogo.journal.inbox import REQUEST_BYTES_MAX, normalise_request
from gonogo.journal.postgres.bell import channel_of
from gonogo.journal.postgres.link import Connection, Link
from gonogo.journal.store import Inbox, Request

__all__ = ["PostgresInbox"]

_PUT = """
    insert into gonogo_inbox (run_id, token, request) values (%(run)s, %(token)s, %(request)b)
    on conflict (token) do update set token = excluded.token
    returning id, pg_notify(%(channel)s, %(run)s)
"""
_TAKE = f"""
    select id, case when octet_length(request) <= {REQUEST_BYTES_MAX} then request end
    from gonogo_inbox where run_id = %s and not refused order by id
"""  # noqa: S608 - nothing but a constant is put in
"""What is too large for a request is left where it is: it may be larger than this process' memory."""

_decode: Callable[[bytes], Request] = msgspec.json.Decoder(Request).decode


class PostgresInbox(Inbox):
    """Requests to one run. Ids have as many digits each, so that they sort as they were made."""

    def __init__(self, run_id: str, link: Link) -> None:
        self._run_id = run_id
        self._link = link

    def put(self, request: Request) -> str:
        """Leave a request; it is on disk when this returns. The answer is its id.

        Raises:
            JournalError: it is too large, no plain text, or can't be written.
        """
        whole = normalise_request(msgspec.structs.replace(request, request=""))
        given = {
            "run": self._run_id,
            "token": secrets.token_bytes(
                12
            ),  # one that is sent twice, for its answer was lost, is there once
            "request": msgspec.json.encode(whole),
            "channel": channel_of(self._run_id),
        }
        row = self._link.do(
            f"leave a request for run {self._run_id}",
            lambda connection: connection.execute(_PUT, given).fetchone(),
        )
        assert row is not None
        return _name_of(row[0])

    def take(self, seen: Collection[str] = ()) -> list[Request]:
        """Requests in their order, without those the journal has `seen` (these are removed). Raises JournalError."""
        return self._link.do(f"read run {self._run_id}", lambda connection: self._taken(connection, seen))

    def done(self, request_id: str) -> None:
        """Remove a request, once the journal holds it. Raises JournalError."""
        if not request_id.isdecimal():
            return
        query = "delete from gonogo_inbox where run_id = %s and id = %s"
        given = [self._run_id, int(request_id)]
        self._link.do(f"write run {self._run_id}", lambda connection: connection.execute(query, given))

    def refused(self) -> list[str]:
        """Ids of rows that were no requests, set aside by `take`, for a warning. Raises JournalError."""
        query = "select id from gonogo_inbox where run_id = %s and refused order by id"
        rows = self._link.do(
            f"read run {self._run_id}",
            lambda connection: connection.execute(query, [self._run_id]).fetchall(),
        )
        return [_name_of(number) for (number,) in rows]

    def _taken(self, connection: Connection, seen: Collection[str]) -> list[Request]:
        found = []
        for number, data in connection.execute(_TAKE, [self._run_id], binary=True).fetchall():
            name = _name_of(number)
            if name in seen:
                connection.execute("delete from gonogo_inbox where id = %s", [number])
            elif (request := _read(data)) is not None:
                found.append(msgspec.structs.replace(request, request=name))
            else:
                connection.execute("update gonogo_inbox set refused = true where id = %s", [number])
        return found


def _name_of(number: int) -> str:
    return f"{number:020d}"


def _read(data: bytes | None) -> Request | None:
    if data is None:
        return None
    try:
        return _decode(data)
    except (ValueError, RecursionError):
        return None
