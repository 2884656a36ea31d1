"""Says what is wrong with a database, in one line and without its password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gonogo.errors import EngineError
from gonogo.journal.postgres.address import Address

_LONGEST = 200


@contextmanager
def told(what: str, address: Address, advice: str) -> Iterator[None]:
    """Raises EngineError for what the database at `address` doesn't do."""
    try:
        yield
    except DBAPIError as problem:
        raise EngineError(f"{what}: {_reason(problem.orig, address)}", advice=advice) from None
    except (psycopg.Error, SQLAlchemyError, ValueError) as problem:
        # A pool may have no connection left for too long, and SQLAlchemy reads a port before anybody connects.
        raise EngineError(f"{what}: {_reason(problem, address)}", advice=advice) from None


def _reason(problem: BaseException | None, address: Address) -> str:
    """Drivers repeat pieces of an address that they couldn't read; hidden before it is cut."""
    return address.scrubbed(str(problem).partition("\n")[0])[:_LONGEST]
