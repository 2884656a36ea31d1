"""Small versioned texts by key: what circuit breakers know, shared by all machines.

What is in them is the business of `gate/sheets.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.link import Link

__all__ = ["PATIENCE_S", "PostgresSheets"]

PATIENCE_S = 2.0
"""No call waits longer than this for what a breaker knows; it goes on without."""

_REPLACE = """
    update gonogo_breakers set version = %(next)s, sheet = %(sheet)b where key = %(key)s and version = %(version)s
"""
_MAKE = "insert into gonogo_breakers (key, version, sheet) values (%(key)s, %(next)s, %(sheet)b) on conflict do nothing"


class PostgresSheets:
    """The rows of `gonogo_breakers`. One connection, for one thread at a time."""

    def __init__(self, address: Address, *, tell: Callable[[str], None] = lambda text: None) -> None:
        self._link = Link(address, tell=tell, patience_s=PATIENCE_S)

    def sheet(self, key: str) -> tuple[int, bytes] | None:
        """Version and content; None when there is none. Raises JournalError."""
        query = "select version, sheet from gonogo_breakers where key = %s"
        return self._link.do(
            "read a breaker", lambda connection: connection.execute(query, [key], binary=True).fetchone()
        )

    def replace_sheet(self, key: str, version: int, data: bytes) -> bool:
        """Put it there as the next version if this one is there. Raises JournalError.

        After a lost answer it may say no although it was done; then the caller looks again, as after any no.
        """
        given = {"key": key, "version": version, "next": version + 1, "sheet": data}
        query = _REPLACE if version else _MAKE
        return self._link.do(
            "write a breaker", lambda connection: connection.execute(query, given).rowcount == 1
        )

    def sheets(self, limit: int) -> list[tuple[str, bytes]]:
        """Keys and contents, by key. Raises JournalError."""
        query = "select key, sheet from gonogo_breakers order by key limit %s"
        return self._link.do(
            "list breakers", lambda connection: connection.execute(query, [limit], binary=True).fetchall()
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._link.drop()
