"""Who opens a store closes it: no connection is left to wait for the garbage collector."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.servers.postgres import Server

from gonogo import app
from gonogo.app.again import Wish, foresee, run_again_from
from gonogo.app.looking import find_run, find_runs, has_ended, is_queued, list_runs, open_run, run_ids
from gonogo.app.options import Options, Start, opened
from gonogo.app.requests import answer_run, cancel_run
from gonogo.app.running import blocking, resume_run
from gonogo.app.waiting import resume_due_async, waiting_runs
from gonogo.errors import UsageError
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.wanted import Wanted

ASKS = """
version: "1.0"
steps:
  one: {type: human-input, prompt: "Which?"}
  other: {type: human-input, prompt: "And?", depends_on: one}
"""
TIMES = 3


@pytest.fixture
def left(postgres: Server, database: str) -> Iterator[Callable[..., int]]:
    """How many connections of ours there are, once those that were closed are gone from the server, too; nothing is
    collected meanwhile.
    """
    name = f"closed-{os.getpid()}"
    query = f"select count(*) from pg_stat_activity where application_name = '{name}'"

    def counted(most: int = 0) -> int:
        end_s = time.monotonic() + 10
        while (found := int(postgres.execute(query, database)[0][0])) > most and time.monotonic() < end_s:
            pass  # each look is a connection of its own, and takes long enough
        return found

    gc.disable()
    try:
        yield counted
    finally:
        gc.enable()


def named(database: str) -> str:
    """The store, with connections that are known by their name."""
    return f"{database}{'&' if '?' in database else '?'}application_name=closed-{os.getpid()}"


def parked(store: str) -> str:
    """A run that waits for an answer."""
    return app.start_run(app.loads(ASKS).plan, Start(), Options(runs=store)).run_id


def wished(run_id: str, options: Options) -> Any:
    """Have a step run again, after a look at what that would be."""
    foresee(run_id, Wish(steps=("one",)), options)
    return run_again_from(run_id, Wish(steps=("one",)), options)


def listed(run_id: str, options: Options) -> Any:
    """Everything that lists or reads."""
    assert list_runs(options)
    assert waiting_runs(options)
    assert run_ids(options) == [find_run("last", options)]
    assert not has_ended(run_id, options)
    assert not is_queued(run_id, options)
    assert find_runs(Wanted(), 5, options)
    return open_run(run_id, options)


def cancelled(run_id: str, options: Options) -> Any:
    """Cancel it."""
    return cancel_run(run_id, options=options)


def due(_: str, options: Options) -> Any:
    """Go on with what is due, which is nothing."""
    return blocking(lambda: resume_due_async(options))


@pytest.mark.slow
@pytest.mark.parametrize("done", [listed, resume_run, wished, cancelled, due])
def test_no_connection_is_left(
    database: str, left: Callable[..., int], done: Callable[[str, Options], Any]
) -> None:
    """However often it is done."""
    store = named(database)
    run_id = parked(store)
    for _ in range(TIMES):
        done(run_id, Options(runs=store))
    assert left() == 0


@pytest.mark.slow
def test_threads_that_answer_leave_no_connection(database: str, left: Callable[..., int]) -> None:
    """Nor does one whose answer is refused."""
    store = named(database)
    runs = [parked(store) for _ in range(8)]

    def answer(run_id: str) -> None:
        answer_run(run_id, "one", "this", options=Options(runs=store))
        with pytest.raises(UsageError):
            answer_run(run_id, "one", "that", options=Options(runs=store))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(answer, runs))
    assert left() == 0


@pytest.mark.slow
def test_a_store_that_was_opened_before_stays_open(database: str, left: Callable[..., int]) -> None:
    """It belongs to whoever opened it."""
    with PostgresRuns(named(database)) as runs:
        run_id = app.start_run(app.loads(ASKS).plan, Start(), Options(runs=runs)).run_id
        link = runs._link.generation
        answer_run(run_id, "one", "this", options=Options(runs=runs))
        assert (left(1), runs._link.generation) == (1, link)
    assert left() == 0


def test_options_keep_a_folder_and_a_place_that_was_given() -> None:
    """What lies beside the runs is found by the folder's path."""
    given = MemoryRuns()
    for place in ("somewhere", given):
        with opened(Options(runs=place)) as (_, options):
            assert options.runs is place
