"""What bounds the calls of a queue over all workers: kept in DBOS' table of queues, so one worker's word holds for all.

A worker that is told of no bound leaves what is there; to lift one takes a word, too. Whoever finds a bound changed
says so. DBOS counts workflows: where a queue is bounded, each has to stand for one call, whoever set the bound.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import psycopg
from msgspec import Struct

from gonogo.engines.base import Limits
from gonogo.engines.dbos import names

POLL_S = 5.0
"""How often a queue of calls is looked at when nobody rings; whoever puts some there does, unless cut off."""
POLL_BOUNDED_S = 0.05
"""The same where it is bounded: when there is room again, nobody is told."""

_THERE = "select to_regclass('{queues}') is not null"
_LOOK = f"""
    select name, concurrency, rate_limit_max, rate_limit_period_sec from {{queues}}
    where name = '{names.CALLS}' or name like '{names.CALLS}-%'
"""  # noqa: S608 - nothing but constants is put in
_AGREE = f"""
    with before as (
        select * from {{queues}} where name = any(%(queues)s) for update
    ), meant as (
        select name,
            case when %(calls)s::int is null then concurrency else nullif(%(calls)s::int, 0) end as calls,
            case when %(most)s::int is null then rate_limit_max else nullif(%(most)s::int, 0) end as most,
            case when %(most)s::int is null then rate_limit_period_sec
                else %(seconds)s::float end as seconds
        from before
    )
    update {{queues}} as queue
    set concurrency = meant.calls, worker_concurrency = least(%(own)s::int, meant.calls),
        rate_limit_max = meant.most, rate_limit_period_sec = meant.seconds,
        polling_interval_sec = case when meant.calls is null and meant.most is null then {POLL_S}
            else {POLL_BOUNDED_S} end
    from before, meant where queue.name = before.name and queue.name = meant.name
    returning queue.name, queue.concurrency, queue.rate_limit_max, queue.rate_limit_period_sec,
        before.concurrency, before.rate_limit_max, before.rate_limit_period_sec
"""  # noqa: S608 - nothing but constants is put in

log = logging.getLogger("gonogo.worker")


class Bound(Struct, frozen=True):
    """Most calls at once, and how many in how many seconds; None for no such bound."""

    calls: int | None = None
    rate: tuple[int, float] | None = None

    def __bool__(self) -> bool:
        return self.calls is not None or self.rate is not None

    def __str__(self) -> str:
        told = [f"{self.calls} at once"] if self.calls is not None else []
        told += [f"{self.rate[0]} in {self.rate[1]:g} s"] if self.rate is not None else []
        return " and ".join(told) or "no bound"


class Bounds:
    """As one worker knows them, on its session. Asked from any thread; `agree` and `look` from one at a time."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        """`schema`: where DBOS' tables are."""
        self._connection = connection
        self._there, self._look, self._agree = (
            query.format(queues=f"{schema}.queues") for query in (_THERE, _LOOK, _AGREE)
        )
        self._known: dict[str, Bound] = {}

    def counts(self, label: str) -> bool:
        """Whether each workflow in the queue of this label has to stand for one call."""
        return bool(self._known.get(names.queue_of(label)))

    def together(self, most: int) -> int:
        """How many calls a workflow may stand for, whichever queue it goes into."""
        return 1 if any(tuple(self._known.values())) else most  # another thread may find one more meanwhile

    def of(self, queues: Iterable[str]) -> str:
        """The bounds of these queues, for a person; empty when there are none."""
        return "; ".join(
            f"{_named(queue)}: {self._known[queue]}" for queue in queues if self._known.get(queue)
        )

    def agree(self, queues: Sequence[str], limits: Limits) -> None:
        """Set what this worker was told for these queues, which are there, and leave the rest. Raises psycopg.Error."""
        most, seconds = limits.rate or (None, None)
        given = {
            "queues": list(queues), "own": limits.calls, "calls": limits.calls_everywhere,
            "most": most, "seconds": seconds if most else None,
        }  # fmt: skip
        for queue, *numbers in self._connection.execute(self._agree, given).fetchall():
            now, before = _bound(*numbers[:3]), _bound(*numbers[3:])
            self._known[queue] = now
            if now != before:
                level = logging.WARNING if before else logging.INFO
                log.log(
                    level,
                    "%s over all workers: %s from now on, set here; %s before",
                    _named(queue),
                    now,
                    before,
                )

    def look(self, changed: Callable[[str], object] = lambda queue: None) -> None:
        """See what others have set meanwhile; `changed` hears of which queues. Raises psycopg.Error."""
        if not self._known and not self._connection.execute(self._there).fetchall()[0][0]:
            return
        for queue, *numbers in self._connection.execute(self._look).fetchall():
            now, before = _bound(*numbers), self._known.get(queue)
            self._known[queue] = now
            if before is not None and now != before:
                changed(queue)
                log.warning(
                    "%s over all workers: another worker set %s; it was %s", _named(queue), now, before
                )


def _named(queue: str) -> str:
    label = queue.removeprefix(names.CALLS).removeprefix("-")
    return f"calls for {label}" if label else "calls"


def _bound(calls: int | None, most: int | None, seconds: float | None) -> Bound:
    return Bound(calls, None if most is None or seconds is None else (most, seconds))
