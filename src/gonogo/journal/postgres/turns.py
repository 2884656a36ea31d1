"""Turns under a rate limit, shared by all workers of a run and of the runs beneath it: one row a key, kept with the
topmost run, by the database's clock.
"""

from __future__ import annotations

from collections.abc import Callable

from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.link import Link
from gonogo.journal.postgres.sheets import PATIENCE_S

__all__ = ["PostgresTurns"]

KEPT_MAX = 5000
"""Turns in a row. A limit of more requests is one of so many in a part of its time: that never lets through more."""

_NOW = "(select extract(epoch from clock_timestamp())::float8)"
_TAKE = f"""
    with recursive above as (
        select run_id, parent from gonogo_runs where run_id = %(run)s
        union
        select run.run_id, run.parent from gonogo_runs as run join above on run.run_id = above.parent
    )
    insert into gonogo_turns as turns (run_id, key, due, next, taken)
    select run_id, %(key)s, array[now_s], now_s, true from above, {_NOW} as clock (now_s)
    where not exists (select from gonogo_runs as run where run.run_id = above.parent)
    on conflict (run_id, key) do update set (due, next, taken) = (
        select case when soon then recent || due_s else recent end, due_s, soon
        from {_NOW} as clock (now_s),
            lateral (
                select coalesce(array_agg(each order by place), array[]::float8[])
                from unnest(turns.due) with ordinality as turn (each, place) where each > now_s - %(per_s)s::float8
            ) as kept (recent),
            lateral (
                select greatest(
                    now_s, recent[cardinality(recent) - %(requests)s::int + 1] + %(per_s)s::float8
                )
            ) as following (due_s),
            lateral (select due_s - now_s <= %(ahead_s)s::float8) as near (soon)
    )
    returning next - {_NOW}, taken
"""  # noqa: S608 - nothing but constants is put in


class PostgresTurns:
    """The rows of `gonogo_turns`. One connection, for one thread at a time."""

    def __init__(self, address: Address, *, tell: Callable[[str], None] = lambda text: None) -> None:
        self._link = Link(address, tell=tell, patience_s=PATIENCE_S)

    def take(
        self, run_id: str, key: str, requests: int, per_s: float, ahead_s: float
    ) -> tuple[float, bool] | None:
        """In how many seconds the next turn is, and whether it is taken now: not when it is further `ahead`. None for a
        run that isn't there. One that nobody uses after all, as when an answer is lost, is lost. Raises JournalError.
        """
        parts = -(-requests // KEPT_MAX)
        given = {
            "run": run_id,
            "key": key,
            "requests": requests // parts,
            "per_s": per_s / parts,
            "ahead_s": ahead_s,
        }
        row = self._link.do(
            "take a turn", lambda connection: connection.execute(_TAKE, given, binary=True).fetchone()
        )
        return None if row is None else (max(0.0, row[0]), row[1])

    def close(self) -> None:
        """Let go of the connection."""
        self._link.drop()
