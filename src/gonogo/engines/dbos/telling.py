"""Says what is wrong with a database, in one line and without its password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError

from gonogo.errors import EngineError

_LONGEST = 200


@contextmanager
def told(what: str, advice: str) -> Iterator[None]:
    """Raises EngineError for what the database doesn't do."""
    try:
        yield
    except DBAPIError as problem:
        raise EngineError(f"{what}: {_reason(problem.orig)}", advice=advice) from None
    except psycopg.Error as problem:
        raise EngineError(f"{what}: {_reason(problem)}", advice=advice) from None


def _reason(problem: BaseException | None) -> str:
    return str(problem).partition("\n")[0][:_LONGEST]
