"""Connections to a store's database for SQLAlchemy, which DBOS uses, as libpq makes them.

SQLAlchemy reads URLs its own way: of several hosts one, and no service. And DBOS gives its connections names of its
own. Here libpq reads the URL, so each connection is to where the store's are, under the worker's name.
"""

from __future__ import annotations

from typing import Any

import psycopg
import sqlalchemy as sa

from gonogo.journal.postgres.address import Address

KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
    "connect_timeout": 5,
}
_IDLE = "select set_config('idle_in_transaction_session_timeout', '60s', false)"
"""Else what a worker locked stays locked when it stands still."""


def pool_of(address: Address, size: int) -> sa.Engine:
    """So many connections at most, made when they are needed. To ask each whether it lives costs as many round trips as
    the rest, so a lost one shows at its next use.
    """
    pool = sa.create_engine("postgresql+psycopg://", pool_size=size, max_overflow=0, pool_pre_ping=False)

    @sa.event.listens_for(pool, "do_connect")
    def connected(_dialect: Any, _record: Any, _cargs: Any, given: dict[str, Any]) -> psycopg.Connection[Any]:
        connection = psycopg.connect(address.url, **given, **KEEPALIVE)
        try:
            connection.execute(_IDLE)
            connection.commit()
        except BaseException:
            connection.close()
            raise
        return connection

    return pool
