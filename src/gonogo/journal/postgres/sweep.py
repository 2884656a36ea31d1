"""Deletes what belongs to no run, or to none that goes on: calls on offer and their answers refer to nothing, so that
offering one locks no run.
"""

from __future__ import annotations

import psycopg

from gonogo.errors import JournalError
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.link import connected, first_line

__all__ = ["sweep"]

_FORGOTTEN = """
    with answers as (
        delete from gonogo_answers as answer
        where not exists (select from gonogo_runs as run where run.run_id = answer.run_id)
    )
    delete from gonogo_tickets as ticket
    where not exists (select from gonogo_runs as run where run.run_id = ticket.run_id)
"""
_OVER = """
    delete from gonogo_pools as pool where not exists (
        select from gonogo_runs as run where run.run_id = pool.run_id and coalesce(run.verdict, 'HOLD') = 'HOLD'
    ) and not exists (select from gonogo_tickets as ticket where ticket.run_id = pool.run_id)
"""
"""Whoever answers next makes the row again: numbers of answers are the table's."""


def sweep(address: Address) -> None:
    """Over a connection of its own. Raises JournalError."""
    try:
        with connected(address) as connection:
            for query in (_FORGOTTEN, _OVER):
                connection.execute(query)
    except psycopg.Error as error:
        told = address.scrubbed(first_line(error))
        raise JournalError(
            f"can't sweep {address}: {told}", advice="it is tried again; see the server's log"
        ) from error
