"""A run whose store goes away while it is under way: the process goes on, and nothing goes out that isn't written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from tests.servers.cut import Wire, wire_to
from tests.servers.postgres import Server

from gonogo import app
from gonogo.core.events import CancelAsked
from gonogo.errors import Interrupted, JournalError, RunLocked
from gonogo.hosts.base import RunResult
from gonogo.journal.postgres import link
from gonogo.journal.postgres.runs import PostgresRuns

HEAD = 'version: "1.0"\nsteps:\n'
WAITS = "touch {0}-began; while [ ! -e {0}-may-end ]; do sleep 0.02; done; echo {0} >> done"
LOOK_S = 0.02
PATIENCE_S = 20.0
"""A host that stood still for the outage would find its store by itself after so long, and fail the test."""


@pytest.fixture
def wire(postgres: Server) -> Iterator[Wire]:
    """By which the run reaches its store, and nobody else does."""
    with wire_to(postgres.port) as made:
        yield made


@pytest.fixture
def told() -> list[str]:
    """What the store's connection says of outages."""
    return []


@pytest.fixture
def away(
    wire: Wire, database: str, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresRuns]:
    """The place of the run, by the wire, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    with PostgresRuns(wire.through(database), tell=told.append, patience_s=PATIENCE_S) as runs:
        yield runs


async def seen(what: Callable[[], object]) -> None:
    """Look, in the loop of the run, until it is there."""
    while not what():  # noqa: ASYNC110 - what is looked for is in files and processes
        await asyncio.sleep(LOOK_S)


def let_end(step: str) -> None:
    """The step's command ends soon."""
    Path(f"{step}-may-end").touch()


def start(runs: PostgresRuns, steps: str) -> asyncio.Task[RunResult]:
    """A run under way in this loop."""
    plan = app.loads(HEAD + steps)
    return asyncio.create_task(app.start_run_async(plan, app.Start(run_id="r"), app.Options(runs=runs)))


@asynccontextmanager
async def stuck(
    runs: PostgresRuns, wire: Wire, told: list[str], steps: str
) -> AsyncIterator[asyncio.Task[RunResult]]:
    """The run when step `a` has ended, its store was cut off before, and somebody was told of that."""
    run = start(runs, steps)
    await seen(Path("a-began").exists)
    wire.cut()
    let_end("a")
    await seen(lambda: told)
    assert "doesn't answer, waiting up to" in told[0]
    yield run


def command(name: str, more: str = "") -> str:
    """A step that begins, and ends when it may."""
    return f'  {name}: {{type: command, exec: "{WAITS.format(name)}"{more}}}\n'


def done() -> list[str]:
    """What steps did, in order."""
    return Path("done").read_text().split() if Path("done").exists() else []


def test_a_host_goes_on_while_its_store_is_away(away: PostgresRuns, wire: Wire, told: list[str]) -> None:
    """It is this loop that mends the wire: were it to stand still, nobody would."""
    steps = command("a", ", mutates: true") + '  b: {type: command, depends_on: a, exec: "echo b >> done"}\n'

    async def story() -> RunResult:
        async with stuck(away, wire, told, steps) as run:
            wire.mend()
            return await run

    assert asyncio.run(story()).verdict == "GO"
    assert done() == ["a", "b"]
    assert any("answers again after" in text for text in told)


@pytest.mark.parametrize("effects", ["true", "false"])
def test_no_call_begins_before_its_record_is_written(
    away: PostgresRuns, wire: Wire, told: list[str], effects: str
) -> None:
    """A reading call would do no harm; but what is known of a run never lags behind what it did."""
    steps = (
        command("a", f", mutates: {effects}")
        + command("c")
        + f'  b: {{type: command, depends_on: a, mutates: {effects}, exec: "echo b >> done"}}\n'
    )

    async def story() -> RunResult:
        async with stuck(away, wire, told, steps) as run:
            let_end("c")  # what is under way goes on
            await seen(lambda: "c" in done())
            assert "b" not in done()
            wire.mend()
            return await run

    assert asyncio.run(story()).verdict == "GO"
    assert sorted(done()) == ["a", "b", "c"]


def test_a_time_limit_holds_while_the_store_is_away(
    away: PostgresRuns, wire: Wire, told: list[str], database: str
) -> None:
    """The command that took too long is ended before the store is back."""
    steps = command("a") + '  c: {type: command, timeout: 1s, exec: "echo $$ > pid; exec sleep 60"}\n'

    async def story() -> RunResult:
        async with stuck(away, wire, told, steps) as run:
            await seen(lambda: not Path(f"/proc/{Path('pid').read_text().strip()}").exists())
            wire.mend()
            return await run

    result = asyncio.run(story())
    assert result.verdict == "NO-GO"
    assert [fault.kind for fault in [result.fault] if fault] == ["command.timeout"]


def test_who_interrupts_a_run_whose_store_is_away_is_heard(
    away: PostgresRuns, wire: Wire, told: list[str], database: str
) -> None:
    """It ends with what to do; once the store is back, the run goes on and asks what nobody could write down."""
    steps = command("a") + command("c", ", mutates: true")

    async def story() -> None:
        async with stuck(away, wire, told, steps) as run:
            run.cancel()
            with pytest.raises(Interrupted, match="was interrupted while its store didn't answer") as caught:
                await run
            assert "gonogo resume r" in str(caught.value.advice)

    asyncio.run(story())
    wire.mend()
    with PostgresRuns(database) as runs:
        result = resumed(runs)
    assert (result.verdict, result.waiting) == ("HOLD", ("c",))
    assert done() == ["a", "a"]  # its end was never written, and it only reads


def resumed(runs: PostgresRuns) -> RunResult:
    """As soon as the session of the first host is over."""
    let_end("c")
    while True:
        try:
            return app.resume_run("r", app.Options(runs=runs))
        except RunLocked:
            continue


def test_a_cancel_that_was_decided_before_the_store_went_ends_the_run(
    away: PostgresRuns, wire: Wire, told: list[str]
) -> None:
    """The end of what it stopped can't be written either."""

    async def story() -> None:
        run = start(away, command("a"))
        await seen(Path("a-began").exists)
        wire.cut()
        run.cancel()
        with pytest.raises(Interrupted):
            await run

    asyncio.run(story())
    assert done() == []


def test_a_store_that_stays_away_ends_the_run(away: PostgresRuns, wire: Wire, told: list[str]) -> None:
    """Once nobody waits for it any longer."""
    clock = SimpleNamespace(now_s=0.0)

    def passes(seconds: float) -> None:
        clock.now_s += seconds

    async def story() -> None:
        run = start(away, command("a"))
        await seen(Path("a-began").exists)
        away._link._now, away._link._pause = lambda: clock.now_s, passes
        wire.cut()
        let_end("a")
        with pytest.raises(JournalError, match=f"didn't answer for {PATIENCE_S:.0f} s"):
            await run

    asyncio.run(story())


def test_requests_are_heard_again_after_an_outage(
    away: PostgresRuns, wire: Wire, told: list[str], database: str
) -> None:
    """Though nothing had to be written meanwhile."""

    async def story() -> RunResult:
        run = start(away, command("a"))
        await seen(Path("a-began").exists)
        wire.cut()
        await seen(lambda: told)
        wire.mend()
        with PostgresRuns(database) as others:
            others.inbox("r").put(CancelAsked(by="ann"))
        return await run

    assert asyncio.run(story()).state.stopping == "cancelled"


def test_a_server_that_stands_still_holds_up_nobody_for_long(
    away: PostgresRuns, wire: Wire, told: list[str], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write may have been done: it is there once."""
    monkeypatch.setattr(link, "AT_ONCE_S", 0.2)

    async def story() -> RunResult:
        run = start(away, command("a", ", mutates: true"))
        await seen(Path("a-began").exists)
        wire.go_silent()
        let_end("a")
        return await run

    assert asyncio.run(story()).verdict == "GO"
    assert done() == ["a"]
    with psycopg.connect(database) as connection:
        rows = connection.execute("select count(*), count(distinct seq) from gonogo_records").fetchone()
    assert rows is not None
    assert rows[0] == rows[1]
