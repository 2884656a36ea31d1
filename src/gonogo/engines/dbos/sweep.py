"""Deletes what DBOS keeps of workflows that are over: nobody asks for it, and it would stay for ever.

They are kept for an hour, for whoever looks after a worker; those that count towards a rate as long as a rate may look
back. Several workers may sweep at once: each takes what no other has.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

EVERY_S = 60.0
KEPT_S = 3600.0
KEPT_FOR_RATE_S = 90_000.0
"""A rate may look back a day."""
AT_ONCE = 1000
_OVER = "('SUCCESS', 'ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')"
_SWEEP = f"""
    with gone as (
        delete from {{schema}}.workflow_status where workflow_uuid in (
            select workflow_uuid from {{schema}}.workflow_status
            where status in {_OVER} and to_timestamp(updated_at / 1000) < now() - make_interval(secs => :kept) and not (
                rate_limited and to_timestamp(started_at_epoch_ms / 1000) > now() - make_interval(secs => :rated)
            ) limit :most for update skip locked
        ) returning workflow_uuid
    ), inputs as (
        delete from {{schema}}.workflow_input as kept using gone where kept.workflow_uuid = gone.workflow_uuid
    ), outputs as (
        delete from {{schema}}.workflow_output as kept using gone where kept.workflow_uuid = gone.workflow_uuid
    ), takeovers as (
        delete from gonogo_takeovers using gone where workflow = gone.workflow_uuid
    )
    select count(*) from gone
"""  # noqa: S608 - nothing but constants is put in, and the name of a schema that is one of ours

log = logging.getLogger("gonogo.worker")


def sweep(pool: sa.Engine, schema: str) -> int:
    """Delete some, unless there are none; how many. Raises SQLAlchemyError."""
    given = {"kept": KEPT_S, "rated": KEPT_FOR_RATE_S, "most": AT_ONCE}
    with pool.begin() as transaction:
        return int(transaction.execute(sa.text(_SWEEP.format(schema=schema)), given).scalar_one())


async def sweeping(pool: sa.Engine, schema: str) -> NoReturn:
    """Again and again. What goes wrong is told, and tried again."""
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            while await asyncio.to_thread(sweep, pool, schema) == AT_ONCE:
                pass
        except SQLAlchemyError as problem:
            log.warning("what DBOS keeps of ended workflows can't be deleted now: %s", type(problem).__name__)
