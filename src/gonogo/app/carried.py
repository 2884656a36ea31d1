"""Going on with a run that an engine carries: its workers do that, whoever asks, and who asked follows.

To go on with it in the asking process would take it from the workers, and secrets, files and step types are theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from gonogo.app.engines import Carrier, carrier_of, follow, hand_on, has_started, start_of
from gonogo.app.options import Options, opened
from gonogo.errors import RunLocked, UsageError
from gonogo.journal.restoring import state_of

if TYPE_CHECKING:
    from gonogo.hosts.base import RunResult
    from gonogo.journal.store import Runs

LET_GO_LOOKS = 50
LOOK_S = 0.1
"""A worker lets go of a run soon after its last record."""


class Carried(Struct, frozen=True):
    """A run that an engine carries, with those beneath it: `run_id` is the outermost, which has workers go on."""

    run_id: str
    carrier: Carrier


def carried_in(runs: Runs, run_id: str) -> Carried | None:
    """What carries a run, or the outermost one around it; None when whoever opens it goes on with it.

    Raises JournalError.
    """
    outermost = outermost_of(runs, run_id)
    carrier = carrier_of(start_of(runs, outermost))
    return None if carrier is None else Carried(outermost, carrier)


def outermost_of(runs: Runs, run_id: str) -> str:
    """The run that has no parent: going on with it goes on with its children. A forged journal may name itself."""
    seen = {run_id}
    while True:
        first = start_of(runs, run_id)
        parent = first.parent.get("run_id") if first.parent else None
        if not isinstance(parent, str) or parent in seen:
            return run_id
        seen.add(parent)
        run_id = parent


def refuse_own(carried: Carried, env: Mapping[str, str], message: str | None = None) -> None:
    """Raises UsageError for what only a run in this process would heed."""
    if env:
        raise UsageError(
            f"-e {next(iter(env))} doesn't reach the workers that go on with run {carried.run_id}",
            advice="set it in the environment of the workers, and go on without -e",
        )
    if message is not None:
        raise UsageError(
            f"--message is for a run in this process, and workers go on with run {carried.run_id}",
            advice=f"answer when the run asks: gonogo answer {carried.run_id} STEP TEXT",
        )


def is_over(runs: Runs, run_id: str) -> bool:
    """Whether nothing is left to go on with. Raises JournalError."""
    from gonogo.hosts.local import is_over as ended

    return has_started(runs, run_id) and ended(state_of(runs.records(run_id)))


async def gone_on_by_workers(
    carried: Carried, options: Options, hand_over: Callable[[], object] | None = None
) -> RunResult:
    """Have workers go on with a run (`hand_over`, or as it is), and follow it until it is over or waits. One that is
    over stays as it is, unless it is handed over for something.

    Raises JournalError, EngineError when the engine can't be reached or the run is set aside.
    """
    from gonogo.hosts.local import result_of

    run_id = carried.run_id
    with opened(options) as (runs, options):
        if hand_over is not None or not is_over(runs, run_id):
            known = known_of(runs, run_id)
            await asyncio.to_thread(
                hand_over or partial(hand_on, run_id, carried.carrier, options, reopens=True)
            )
            state = await follow(run_id, options, known)
            if state.finished is None or state.finished.parked:
                return result_of(state)
        return await _as_it_ended(run_id, runs, options)


async def _as_it_ended(run_id: str, runs: Runs, options: Options) -> RunResult:
    """With the outputs that it declares, which are in no record."""
    from gonogo.app.running import go_on_async
    from gonogo.hosts.local import result_of

    for _ in range(LET_GO_LOOKS):
        with suppress(RunLocked):
            result = await go_on_async(run_id, options, lambda: is_over(runs, run_id), reopens=False)
            return result or result_of(state_of(runs.records(run_id)))
        await asyncio.sleep(LOOK_S)
    return result_of(state_of(runs.records(run_id)))


def known_of(runs: Runs, run_id: str) -> int:
    """The last record of a run; -1 before its first. Raises JournalError."""
    if not has_started(runs, run_id):
        return -1
    return max((record.seq for record in runs.records(run_id)), default=-1)
