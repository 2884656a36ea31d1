"""What a list shows of runs in Postgres: from one row a run, without reading journals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import structs

from gonogo.journal.codec import LineDamaged, NewerFormat, decode_line
from gonogo.journal.postgres.lease import held_keys, key_of

if TYPE_CHECKING:
    from gonogo.journal.postgres.link import Connection
    from gonogo.journal.summary import Summary
    from gonogo.journal.wanted import Wanted

__all__ = ["found", "summaries"]

_BATCH = 500
_SUMMARIES = """
    select run_id, verdict, workflow, event, started_at_ms, last_at, first_seq, next_seq, parent, submitted, aside
    from gonogo_runs where run_id = any(%s)
"""
_CANCELS = """
    select run.run_id, cancel.line from gonogo_runs run
    join gonogo_records last on last.run_id = run.run_id and last.seq = run.next_seq - 1
    cross join lateral (
        select line from gonogo_records
        where run_id = run.run_id and position(%(mark)b in line) > 0 order by seq desc limit 1
    ) cancel
    where run.run_id = any(%(ids)s) and run.verdict = 'NO-GO' and position('"cancelled"'::bytea in last.line) > 0
"""
_FOUND = """
    select run_id from gonogo_runs
    where run_id < %(before)s and (%(children)s or position('.' in run_id) = 0)
        and (next_seq is null or (
            (%(workflow)s = '' or workflow = %(workflow)s) and started_at_ms >= %(since_ms)s
            and (%(verdicts)s::text[] is null or verdict = any(%(verdicts)s) or aside is not null
                or (%(open)s and verdict is null))
        ))
    order by run_id desc limit %(rows)s
"""
_AFTER_ALL = "~"
"""Behind every id, as "C" sorts them."""


def summaries(connection: Connection, ids: Iterable[str], schema: str) -> list[Summary]:
    """These runs, in this order; unknown ones say so in `note`. Raises psycopg.Error."""
    ids = list(ids)
    rows = {row[0]: row for row in connection.execute(_SUMMARIES, [ids]).fetchall()}
    held = held_keys(connection)
    stopped = _stopped_by_signal(connection, [run_id for run_id, row in rows.items() if row[1] == "NO-GO"])
    missing = (None, "", None, 0, 0.0, None, None, None, None, None)
    told = [
        _summary(*rows.get(run_id, (run_id, *missing)), held=key_of(run_id, schema) in held) for run_id in ids
    ]
    return [structs.replace(one, interrupted=True) if one.run_id in stopped else one for one in told]


def found(connection: Connection, wanted: Wanted, limit: int, schema: str) -> list[Summary]:
    """The newest runs that are wanted. Raises psycopg.Error."""
    return list(islice(_found(connection, wanted, limit, schema), limit))


def _found(connection: Connection, wanted: Wanted, limit: int, schema: str) -> Iterator[Summary]:
    """Postgres leaves out what can't be wanted; what a row doesn't tell (who has a run) is looked at here."""
    given: dict[str, Any] = {
        "before": _AFTER_ALL,
        "children": wanted.children,
        "workflow": wanted.workflow,
        "since_ms": 0 if wanted.since_s is None else int(wanted.since_s * 1000),
        "verdicts": _verdicts(wanted),
        "open": bool({"RUNNING", "INTERRUPTED"} & set(wanted.standings)),
        "rows": min(limit, _BATCH),
    }
    while ids := [run_id for (run_id,) in connection.execute(_FOUND, given).fetchall()]:
        yield from (
            one
            for one in summaries(connection, ids, schema)
            if wanted.fits(one.standing, one.workflow, one.started_at_ms)
        )
        given |= {"before": ids[-1], "rows": _BATCH}


def _verdicts(wanted: Wanted) -> list[str] | None:
    """Verdicts that a row may have; None for any. A run that a signal stopped has NO-GO."""
    if not wanted.standings:
        return None
    own = {"GO", "NO-GO", "HOLD"} & set(wanted.standings)
    return sorted(own | ({"NO-GO"} if "INTERRUPTED" in wanted.standings else set()))


def _stopped_by_signal(connection: Connection, ids: list[str]) -> set[str]:
    """Those of these runs that a signal stopped: what a row tells as NO-GO."""
    from gonogo.journal.summary import CANCEL_MARK, by_signal

    if not ids:
        return set()
    rows = connection.execute(_CANCELS, {"ids": ids, "mark": CANCEL_MARK}, binary=True).fetchall()
    stopped = set()
    for run_id, line in rows:
        try:
            if by_signal([decode_line(line)]):
                stopped.add(run_id)
        except (LineDamaged, NewerFormat):
            continue  # who reads the run is told
    return stopped


def _summary(
    run_id: str,
    verdict: str | None,
    workflow: str,
    event: str | None,
    started_at_ms: int,
    last_at: float,
    first: int | None,
    due: int | None,
    parent: str | None,
    submitted: bytes | None,
    aside: str | None,
    *,
    held: bool,
) -> Summary:
    from gonogo.journal.summary import Summary, in_ms, queued

    records = due - first if first is not None and due is not None else 0
    if not records and submitted is not None:
        return structs.replace(queued(run_id, submitted), aside=aside)
    if not records:
        return Summary(run_id, "unreadable", note=f"run {run_id} holds no record: it ended before it began")
    status = verdict or ("running" if held else "interrupted")
    return Summary(
        run_id, status, workflow, event, started_at_ms, in_ms(last_at), records, parent, aside=aside
    )
