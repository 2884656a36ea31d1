"""What is told of stores and engines that can't be used, and of runs that nobody has begun with."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from types import SimpleNamespace

import psycopg
import pytest
from sqlalchemy.exc import TimeoutError as PoolTimeout
from tests.engines.world import World
from tests.servers.postgres import Server

from gonogo import app
from gonogo.app import engines
from gonogo.app.engines import Carrier, engine_for, submit_run
from gonogo.app.options import Options, Start
from gonogo.engines.base import Errand, Limits
from gonogo.engines.dbos import names
from gonogo.engines.dbos.engine import DbosEngine
from gonogo.engines.dbos.telling import told
from gonogo.engines.dbos.worker import DbosWorker
from gonogo.engines.urls import named
from gonogo.errors import EngineError, JournalError, SetAside
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.bell import channel_of
from gonogo.journal.view import exit_code

NOWHERE = "postgresql://somebody:hidden-word@127.0.0.1:1/runs"
PLAN = app.loads('version: "1.0"\nsteps:\n  one: {type: noop}\n').plan


def test_a_run_for_a_store_without_workers_is_refused_and_leaves_nothing(on_dbos: World) -> None:
    """There are no queues before the first worker."""
    with pytest.raises(EngineError, match="no worker has ever been started") as refused:
        submit_run(PLAN, Start(), on_dbos.options, Carrier("dbos"))
    assert on_dbos.runs.ids() == []
    assert on_dbos.store.split(":")[2].split("@")[0] not in f"{refused.value} {refused.value.advice}"


def test_an_engine_that_waited_for_a_connection_in_vain_cannot_be_had() -> None:
    """Whoever hands work over keeps it then, and tries again; any other error would lose it."""
    address = Address(NOWHERE)
    with (
        pytest.raises(EngineError, match="the queues can't be asked: QueuePool limit reached"),
        told("the queues can't be asked", address, "wait"),
    ):
        raise PoolTimeout("QueuePool limit reached")


def test_a_run_that_nobody_has_begun_with_is_queued(on_dbos: World) -> None:
    """A list says so, and so does who wants to read it."""
    from gonogo.app.wiring import first_record_of, redactor_for

    event = first_record_of(PLAN, Start(), on_dbos.options, {}, redactor_for({}, PLAN))
    on_dbos.runs.submit(event)
    (one,) = app.list_runs(on_dbos.options, [event.run_id])
    assert (one.queued, one.verdict, one.problem) == (True, None, None)
    with pytest.raises(JournalError, match="is queued: no worker has begun with it"):
        on_dbos.runs.read(event.run_id)


def test_who_follows_a_run_that_is_set_aside_is_told_so(
    on_dbos: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more would come of it, so nobody waits."""
    from gonogo.app.wiring import first_record_of, redactor_for

    monkeypatch.setattr(engines, "ASIDE_LOOKS", 1)
    event = first_record_of(PLAN, Start(), on_dbos.options, {}, redactor_for({}, PLAN))
    on_dbos.runs.submit(event)
    on_dbos.runs.set_aside(event.run_id, "it lost 6 workers")
    with pytest.raises(SetAside, match="is set aside: it lost 6 workers") as caught:
        engines.followed(event.run_id, on_dbos.options)
    assert caught.value.exit_code == exit_code("HOLD")  # 2 would say that nothing ran
    assert caught.value.advice == f"'gonogo resume {event.run_id}' tries again"


def test_a_store_that_isnt_there_is_told_without_its_password() -> None:
    """To a worker, and to who hands a run over."""
    for use in (
        lambda: DbosWorker(Address(NOWHERE)),
        lambda: engine_for(Carrier("dbos"), Options(runs=NOWHERE)),
    ):
        with pytest.raises(EngineError, match="Connection refused|connection failed") as refused:
            use()
        assert "hidden-word" not in f"{refused.value} {refused.value.advice}"


def test_a_temporal_server_that_isnt_there_is_told_in_plain_words() -> None:
    """Not in the words of its library."""
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:1 can't be used: Connection refused"):
        engine_for(Carrier("temporal", "127.0.0.1:1"), Options())


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://somebody:se@cr/et@127.0.0.1:1/runs",
        "postgresql://somebody:pa?se#cret@127.0.0.1:1/runs",
        "postgresql://somebody:secret@127.0.0.1:noport/runs",
        "postgresql://somebody@127.0.0.1:1/runs?sslmode=require&password=secret",
    ],
)
def test_what_a_driver_repeats_of_an_address_shows_no_part_of_a_password(url: str) -> None:
    """Neither of one that somebody forgot to escape, which drivers read as a host or a port."""
    for use in (lambda: DbosWorker(Address(url)), lambda: engine_for(Carrier("dbos"), Options(runs=url))):
        with pytest.raises(EngineError) as caught:
            use()
        assert not any(part in caught.value.message for part in ("secret", "cret", "cr/et", "se@"))


@pytest.mark.slow
def test_calls_that_their_own_worker_begins_are_in_no_queue(on_dbos: World) -> None:
    """To wake all the others for a few calls costs more than these."""
    on_dbos.worker()
    began: list[tuple[str, list[int]]] = []

    def begin(run_id: str, calls: Sequence[int], label: str) -> bool:
        began.append((label, list(calls)))
        return len(calls) < 3

    engine = DbosEngine(Address(on_dbos.store), begin)
    assert engine.begin(
        [Errand("r", 1), Errand("r", 2), *(Errand("r", call, "far") for call in (3, 4, 5))]
    ) == [Errand("r", call, "far") for call in (3, 4, 5)]
    assert began == [("", [1, 2]), ("far", [3, 4, 5])]
    engine.close()


@pytest.mark.slow
def test_work_is_handed_over_though_every_connection_was_lost_meanwhile(
    on_dbos: World, postgres: Server
) -> None:
    """That shows at the next use only."""
    on_dbos.worker()
    engine = DbosEngine(named(Address(on_dbos.store), "lost"))
    channel = channel_of(names.CALLS)
    with psycopg.connect(on_dbos.store, autocommit=True) as listening:
        listening.execute(f'listen "{channel}"')
        engine.perform([Errand("r", 1)])
        postgres.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'lost'"
        )
        engine.perform([Errand("r", 2)])
        assert len(list(listening.notifies(timeout=30, stop_after=2))) == 2
    engine.close()


def test_a_temporal_that_says_nothing_is_told_of_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections, as a machine that hangs does."""
    from gonogo.engines.temporal import engine

    monkeypatch.setattr(engine, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(
            EngineError, match=f"the Temporal server at {address} can't be used: it doesn't answer"
        ):
            engine.TemporalEngine(address, "q")


def test_a_worker_that_temporal_does_not_let_work_says_why(temporal: str) -> None:
    """It is no bug of ours that there is no such namespace, or that the server has gone since. All its task queues hear
    of it at about the same time.
    """
    from gonogo.engines.temporal.worker import TemporalWorker

    async def serve() -> None:
        worker, limits = TemporalWorker(temporal, "q", "nowhere"), Limits(labels=tuple("abcdef"))
        async with asyncio.timeout(60):
            await worker.serve(SimpleNamespace(), limits, asyncio.Event(), lambda: None)  # type: ignore[arg-type]

    with pytest.raises(EngineError, match="can't be used: .*nowhere"):
        asyncio.run(serve())


@pytest.mark.parametrize(
    "url", ["postgresql://ann@127.0.0.1/x", "postgresql://ann:hidden-word@h/x?sslmode=require"]
)
def test_the_name_of_a_worker_is_no_part_of_what_is_shown(url: str) -> None:
    """Who reads a message wrote the address without it."""
    shown = named(Address(url), "gonogo-vm-1")
    assert shown.url.endswith("application_name=gonogo-vm-1")
    assert str(shown) == str(Address(url))
