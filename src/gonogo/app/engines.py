"""Engines that carry runs over several machines: which one has a run, handing runs to it, and working for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Literal, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from gonogo.app.options import CARRIED, Options, Start, opened, runs_in
from gonogo.core.events import RunStarted
from gonogo.engines.base import Limits
from gonogo.errors import EngineError, Interrupted, JournalError, SetAside, UsageError
from gonogo.journal.postgres.address import Address
from gonogo.journal.sharing import is_shared

if TYPE_CHECKING:
    from gonogo.core.plan import Plan
    from gonogo.core.state import State
    from gonogo.engines.base import Engine, EngineWorker
    from gonogo.engines.dbos.engine import DbosEngine
    from gonogo.journal.sharing import SharedRuns
    from gonogo.journal.store import Runs

__all__ = [
    "CARRIED", "ENGINES", "Carrier", "Limits", "address_of", "carrier_of", "engine_for", "follow", "followed",
    "hand_on", "has_started", "in_own_queue", "serve", "shared", "start_of", "submit_run",
]  # fmt: skip

Name = Literal["dbos", "temporal"]
ENGINES: tuple[str, ...] = get_args(Name)
LOOK_S = 0.2
"""How often a run that is carried elsewhere is looked at by who follows it."""
ASIDE_LOOKS = 25
"""After so many looks it is asked whether anybody still goes on with the run."""

log = logging.getLogger("gonogo.worker")


class Carrier(Struct, frozen=True):
    """An engine and where it is: DBOS in the store's own database, Temporal at an `address` (host:port), in a queue;
    without a name, in one of the store's own.
    """

    name: Name
    address: str = ""
    queue: str = ""


def carrier_of(first: RunStarted) -> Carrier | None:
    """What carries this run; None when whoever opens it goes on with it."""
    said = first.context.get(CARRIED)
    if not isinstance(said, Mapping) or said.get("name") not in ENGINES:
        return None
    return Carrier(cast("Name", said["name"]), str(said.get("address", "")), str(said.get("queue", "gonogo")))


def submit_run(plan: Plan, start: Start, options: Options, carrier: Carrier) -> str:
    """Have a run started by a worker; its id.

    Raises:
        UsageError: inputs or other values don't fit, or a secret was given that workers couldn't know.
        JournalError, EngineError: the store or the engine can't be used.
    """
    import os

    from gonogo.app.wiring import first_record_of, redactor_for
    from gonogo.journal.redact import secrets_in

    environment = {**os.environ, **options.env}
    for name in sorted(options.env.keys() & secrets_in(environment).keys()):
        raise UsageError(
            f"-e {name} is a secret, which isn't kept with a run",
            advice="set it in the environment of the workers",
        )
    carrier = in_own_queue(carrier, options)
    kept = {
        **start.context,
        CARRIED: {"name": carrier.name, "address": carrier.address, "queue": carrier.queue},
    }
    told = replace(start, context=kept)
    event = first_record_of(plan, told, options, environment, redactor_for(environment, plan))
    engine = engine_for(carrier, options)
    try:
        with opened(options) as (_, options):
            shared(options).submit(event)
        _handed(engine, event.run_id)
    finally:
        engine.close()
    return event.run_id


def _handed(engine: Engine, run_id: str) -> None:
    """The store has the run by now, so it can be handed over later."""
    try:
        engine.submit(run_id)
    except EngineError as problem:
        again = f"run {run_id} is kept: 'gonogo resume {run_id}' hands it over again"
        raise EngineError(problem.message, advice=f"{problem.advice}; {again}") from None


def hand_on(run_id: str, carrier: Carrier, options: Options, *, reopens: bool = False) -> None:
    """Have a worker go on with a run, set aside or not. Raises EngineError, JournalError."""
    engine = engine_for(carrier, options)
    try:
        with opened(options) as (_, options):
            shared(options).set_aside(run_id, None)
        engine.submit(run_id, reopens=reopens)
    finally:
        engine.close()


async def follow(run_id: str, options: Options, known: int = -1) -> State:
    """Tell the sinks of each record behind record `known`, until one leaves the run over or waiting.

    Raises JournalError, SetAside.
    """
    from gonogo.journal.restoring import Follower

    with opened(options) as (_, options):
        runs, follower, looks = shared(options), None, count(1)
        while True:
            if next(looks) % ASIDE_LOOKS == 0:
                refuse_aside(runs, run_id)
            for record in runs.records_after(run_id, -1 if follower is None else follower.seq):
                if follower is None:
                    follower = Follower(record)
                else:
                    follower.follow([record])
                for sink in options.sinks if record.seq > known else ():
                    sink(record)
            if follower is not None and follower.seq > known and follower.state.finished is not None:
                return follower.state
            await asyncio.sleep(LOOK_S)


def refuse_aside(runs: Runs, run_id: str) -> None:
    """Raises SetAside for a run that no worker goes on with: nothing more would come of it."""
    from gonogo.journal.store import Sums

    why = runs.summaries([run_id])[0].aside if isinstance(runs, Sums) else None
    if why is not None:
        raise SetAside(f"run {run_id} is set aside: {why}", advice=f"'gonogo resume {run_id}' tries again")


def followed(run_id: str, options: Options, known: int = -1) -> State:
    """As `follow`, blocking; the log of `options` hears when no worker takes it. Raises Interrupted on Ctrl-C, which
    leaves the run to its workers.
    """
    from gonogo.app.present import Attended

    async def attended() -> State:
        watching = asyncio.create_task(Attended(run_id, options).watch())
        try:
            return await follow(run_id, options, known)
        finally:
            watching.cancel()

    try:
        return asyncio.run(attended())
    except KeyboardInterrupt:
        raise Interrupted(
            f"run {run_id} goes on with its workers",
            advice=f"'gonogo show {run_id}' shows how it stands, 'gonogo cancel {run_id}' stops it",
        ) from None


def shared(options: Options) -> SharedRuns:
    """The store that all workers reach. Raises UsageError when there is none."""
    runs = runs_in(options)
    if not is_shared(runs):
        raise UsageError(
            "an engine's workers need a store that all of them reach",
            advice="give --store postgresql://user@host/database, or set GONOGO_STORE",
        )
    return runs


def in_own_queue(carrier: Carrier, options: Options) -> Carrier:
    """The same with its queue. By itself each store has one: workers of another would take what they don't know.

    Raises JournalError.
    """
    if carrier.name != "temporal" or carrier.queue:
        return carrier
    try:
        from gonogo.engines.temporal.engine import TemporalEngine as _  # noqa: F401 - before the store is asked
    except ImportError as problem:
        raise _missing(carrier.name, problem) from problem
    from gonogo.journal.postgres.identity import identity_of

    return Carrier(carrier.name, carrier.address, f"gonogo-{identity_of(address_of(options))}")


def engine_for(carrier: Carrier, options: Options) -> Engine:
    """The side of an engine that hands work over. Raises EngineError, UsageError."""
    try:
        if carrier.name == "temporal":
            from gonogo.engines.temporal.engine import TemporalEngine

            return TemporalEngine(_address(carrier), carrier.queue)
        from gonogo.engines.dbos.engine import DbosEngine

        return _prepared(DbosEngine(address_of(options)))
    except ImportError as problem:
        raise _missing(carrier.name, problem) from problem


def _prepared(engine: DbosEngine) -> DbosEngine:
    try:
        engine.check_prepared()
    except EngineError:
        engine.close()
        raise
    return engine


def serve(
    carrier: Carrier,
    options: Options,
    limits: Limits,
    *,
    ready: Callable[[str], None] = lambda name: None,
    fenced: Callable[[], object] | None = None,
) -> None:
    """Work for an engine until SIGTERM or SIGINT. `ready` hears the worker's name. `fenced` is called, from any thread,
    when others may have this worker's work: it ends the process (with code 75, when it isn't given).

    Raises EngineError, JournalError, UsageError.
    """
    from gonogo.hosts.warden import watched

    with watched():  # commands of a worker that is killed end with it, before another performs them again
        asyncio.run(_serve(carrier, options, limits, ready, fenced))


async def _serve(
    carrier: Carrier,
    options: Options,
    limits: Limits,
    ready: Callable[[str], None],
    fenced: Callable[[], object] | None,
) -> None:
    from gonogo.app.ending import Ending
    from gonogo.app.present import Presence, looking_for_stranded
    from gonogo.app.sweeping import sweeping
    from gonogo.app.unheard import Unheard
    from gonogo.app.worker import Worker
    from gonogo.journal.postgres.health import check_sessions

    stopping = Ending()
    stopping.heed()
    await asyncio.to_thread(check_sessions, address_of(options))
    carrier = await asyncio.to_thread(in_own_queue, carrier, options)
    name, side, url = _worker_side(carrier, options, fenced)
    runs = shared(replace(options, runs=url))
    async with Worker(name, runs, side.engine, options, limits.calls) as worker:
        unheard = Unheard(carrier.name, runs, replace(options, runs=runs))
        presence = Presence(name, carrier, limits, replace(options, runs=url))
        stranded = looking_for_stranded(name, runs.pool, replace(options, runs=url))

        def is_ready() -> None:
            presence.start()
            ready(name)

        telling = stopping.tell(worker.under_way, limits.drain_s)
        beside = [
            asyncio.create_task(each)
            for each in (
                telling,
                worker.leave_when(stopping),
                unheard.watch(),
                stranded.watch(),
                sweeping(url),
            )
        ]
        try:
            await side.serve(worker, limits, stopping, is_ready)
        finally:
            presence.stop()
            for task in beside:
                task.cancel()
    stopping.over()


def _worker_side(
    carrier: Carrier, options: Options, fenced: Callable[[], object] | None
) -> tuple[str, EngineWorker, Address]:
    """The worker's name, its side of the engine, and the store's address with that name in it."""
    from gonogo.engines.urls import named

    try:
        if carrier.name == "dbos":
            from gonogo.engines.dbos.takeover import end_at_once
            from gonogo.engines.dbos.worker import DbosWorker

            _make_ready(options)
            dbos = DbosWorker(address_of(options), fenced=fenced or end_at_once)
            return dbos.worker, dbos, dbos.address
        from gonogo.engines.base import new_worker_id
        from gonogo.engines.temporal.worker import TemporalWorker

        _make_ready(options)
        name = new_worker_id()
        return name, TemporalWorker(_address(carrier), carrier.queue), named(address_of(options), name)
    except ImportError as problem:
        raise _missing(carrier.name, problem) from problem


def _make_ready(options: Options) -> None:
    """What can't keep runs, or is a newer gonogo's, is refused before an engine makes anything there. Raises
    JournalError.
    """
    with opened(options) as (_, looked):
        shared(looked).pool.open("")


def address_of(options: Options) -> Address:
    """Where the store is. Raises UsageError."""
    address = getattr(shared(options), "address", None)
    if not isinstance(address, Address):
        raise UsageError("an engine needs the address of its store", advice="give --store postgresql://…")
    return address


def _address(carrier: Carrier) -> str:
    if not carrier.address:
        raise UsageError("Temporal needs the address of its server", advice="give --url host:port")
    return carrier.address


def _missing(name: str, problem: ImportError) -> EngineError:
    extra = "temporal" if name == "temporal" else "durable"
    return EngineError(
        f"the engine {name} needs packages that aren't installed: {problem.name or problem}",
        advice=f"pip install 'gonogo[{extra}]'",
    )


def has_started(runs: Runs, run_id: str) -> bool:
    """Whether somebody has begun with the run."""
    return not is_shared(runs) or runs.submitted(run_id) is None


def start_of(runs: Runs, run_id: str) -> RunStarted:
    """The event that started a run, or will. Raises JournalError."""
    submitted = runs.submitted(run_id) if is_shared(runs) else None
    if submitted is not None:
        return submitted
    first = next(iter(runs.records(run_id)), None)
    if first is None or not isinstance(first.event, RunStarted):
        raise JournalError(
            f"run {run_id} holds no record of its start", advice="restore its journal from a backup"
        )
    return first.event
