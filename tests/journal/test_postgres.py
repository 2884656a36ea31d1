"""Runs in a real Postgres that restarts, crashes, goes silent and forgets, and writers that die, freeze and compete."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import psycopg
import pytest
from tests.servers.cut import wire_to
from tests.servers.postgres import Server, freeze, thaw

from gonogo.core.events import CancelAsked
from gonogo.errors import JournalError, RunLocked
from gonogo.journal.postgres import link
from gonogo.journal.postgres import writer as writer_module
from gonogo.journal.postgres.lease import key_of
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.postgres.writer import UNSYNCED_BYTES_MAX, PostgresJournal
from gonogo.journal.store import StoreAway

LOCKED = "select count(*) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()"


@pytest.fixture
def ask(postgres: Server, database: str) -> Callable[[str], list[tuple[Any, ...]]]:
    """Does a statement behind everybody's back."""
    return lambda statement: postgres.execute(statement, database)


@pytest.fixture
def journal(tables: PostgresRuns, record) -> PostgresJournal:
    """A run under way: record 0 is there."""
    journal = tables.create("r")
    journal.append([record(0)], sync=True)
    return journal


def cut_sessions(ask: Callable[[str], Any]) -> None:
    """End every other session, and wait until they are gone."""
    others = "pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
    ask(f"select pg_terminate_backend(pid, 10000) from {others}")


def seqs(runs: PostgresRuns, run_id: str = "r") -> list[int]:
    """The numbers of the records that are there."""
    return [one.seq for one in runs.read(run_id).records]


# --- a server that is away


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_run_goes_on_over_a_restart(journal, tables, record, postgres: Server, mode: str) -> None:
    """Stopped in good order, or by a crash: nothing is lost, nothing is there twice."""
    journal.append([record(1)])
    journal.append([record(2)], sync=True)
    journal.append([record(3)])
    postgres.restart(mode)
    journal.append([record(4)])
    postgres.restart(mode)
    assert tables.inbox("r").take() == []
    journal.close()
    assert tables.read("r").records == [record(seq) for seq in range(5)]


def test_what_a_crash_of_the_server_lost_is_written_again(
    journal, tables, record, postgres: Server, ask
) -> None:
    """Commits that weren't waited for may be gone though their host lives on; its journal still has them."""
    ask("alter system set wal_writer_delay = '10s'")
    ask("select pg_reload_conf()")
    try:
        for seq in range(1, 50):
            journal.append([record(seq)])
        postgres.restart("immediate")
        left = ask("select count(*) from gonogo_records")[0][0]
        journal.append([record(50)])
    finally:
        ask("alter system reset wal_writer_delay")
    assert left <= 50
    assert tables.read("r").records == [record(seq) for seq in range(51)]
    journal.close()


def test_records_that_the_server_forgot_are_written_again(journal, tables, record, ask) -> None:
    """The same, whatever the server's luck: its rows are as they were some commits ago."""
    journal.append([record(1)], sync=True)
    for seq in range(2, 6):
        journal.append([record(seq)])
    ask("delete from gonogo_records where seq > 3")
    ask("update gonogo_runs set next_seq = 4")
    cut_sessions(ask)
    journal.append([record(6)])
    assert tables.read("r").records == [record(seq) for seq in range(7)]
    journal.close()


def test_records_that_were_promised_and_are_gone_stop_the_run(journal, tables, record, ask) -> None:
    """A restored backup: others have built on what it lacks, so nothing is written on top."""
    for seq in range(1, 5):
        journal.append([record(seq)], sync=True)
    ask("delete from gonogo_records where seq > 2")
    ask("update gonogo_runs set next_seq = 3")
    cut_sessions(ask)
    with pytest.raises(JournalError, match="isn't as this process wrote it: record 5 came where 3 is due"):
        journal.append([record(5)], sync=True)
    assert seqs(tables) == [0, 1, 2]


def test_no_more_than_a_little_waits_for_the_disk(journal, record) -> None:
    """What is kept for the case of a crash has a limit (law 2)."""
    for seq in range(1, 40):
        journal.append([record(seq, "x" * 10_000)])
        assert journal._unsynced_bytes <= UNSYNCED_BYTES_MAX
    journal.close()


class Clock:
    """Time that passes only in pauses; `at` does something after so many."""

    def __init__(self, at: dict[int, Callable[[], None]]) -> None:
        self.now_s = 0.0
        self._at = at
        self._pauses = 0

    def now(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds
        self._pauses += 1
        self._at.get(self._pauses, lambda: None)()


def on(clock: Clock, url: str, told: list[str]) -> PostgresRuns:
    """Runs on this clock."""
    runs = PostgresRuns(url, tell=told.append)
    runs._link._now, runs._link._pause = clock.now, clock.pause
    return runs


def test_a_run_waits_half_a_minute_for_its_server(database: str, record, postgres: Server) -> None:
    """It is told, and goes on where it was."""
    told: list[str] = []
    clock = Clock({33: postgres.start})
    runs = on(clock, database, told)
    journal = runs.create("r")
    journal.append([record(0)])
    postgres.stop()
    journal.append([record(1)])
    assert 30 <= clock.now_s < link.PATIENCE_S
    assert [text.replace(str(runs.address), "URL") for text in told[1:]] == ["URL answers again after 30 s"]
    assert f"{runs.address} doesn't answer, waiting up to 60 s: " in told[0]
    assert postgres.password not in "".join(told)
    journal.close()
    assert seqs(runs) == [0, 1]
    runs.close()


def test_a_run_stops_when_its_server_stays_away(database: str, tables, record, postgres: Server) -> None:
    """After a minute, with what to do; then it can be resumed."""
    runs = on(Clock({}), database, [])
    journal = runs.create("r")
    journal.append([record(0)], sync=True)
    postgres.stop()
    try:
        with pytest.raises(JournalError, match="didn't answer for 60 s") as caught:
            journal.append([record(1)], sync=True)
    finally:
        postgres.start()
    assert caught.value.advice == "see that it is up and can be reached, then go on with 'gonogo resume'"
    again = tables.reopen("r")
    again.append([record(1)])
    again.close()
    runs.close()


def test_a_commit_whose_answer_was_lost_is_done_once(database: str, record, postgres: Server) -> None:
    """The connection breaks right after the server has committed."""
    with wire_to(postgres.port) as wire:
        runs = PostgresRuns(wire.through(database))
        journal = runs.create("r")
        for seq in range(8):
            wire.swallow_answer()
            journal.append([record(seq)], sync=seq % 2 == 0)
        inbox = runs.inbox("r")
        wire.swallow_answer()
        name = inbox.put(CancelAsked(by="ann"))
        assert [one.request for one in inbox.take()] == [name]
        journal.close()
        assert runs.read("r").records == [record(seq) for seq in range(8)]
        runs.close()


def test_a_commit_whose_answer_was_lost_is_done_once_though_the_run_is_asked_for_before_it_comes_again(
    database: str, record, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a host that doesn't wait, and takes an answer to a call in between: the session is new by then."""
    with wire_to(postgres.port) as wire, PostgresRuns(wire.through(database)) as runs:
        journal = runs.create("r")
        journal.append([record(0)], sync=True)
        wire.swallow_answer()
        with pytest.raises(StoreAway) as away:
            journal.at_once(lambda: journal.append([record(1)], sync=True))
        back(away.value)
        monkeypatch.setattr(writer_module, "SURE_S", -1.0)
        journal.at_once(journal.confirm)
        journal.at_once(lambda: journal.append([record(1)], sync=True))
        journal.append([record(2)], sync=True)
        journal.close()
        assert runs.read("r").records == [record(seq) for seq in range(3)]


def back(away: StoreAway) -> JournalError | None:
    """Wait until the store answers again; why it isn't waited for any longer, if that is so."""
    told: SimpleQueue[JournalError | None] = SimpleQueue()
    away.when_back(told.put)
    return told.get(timeout=20)


def test_a_server_that_goes_while_the_first_connection_is_made_ready_is_waited_for(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that goes later."""

    def goes(connection: Any, place: str) -> None:
        monkeypatch.undo()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(link, "make_ready", goes)
    with PostgresRuns(database) as runs:
        with pytest.raises(StoreAway) as away:
            runs.at_once(runs.ids)
        assert back(away.value) is None
        assert runs.at_once(runs.ids) == []


def test_who_waits_for_a_store_hears_of_a_fault_that_nobody_foresaw(
    tables: PostgresRuns, ask: Callable[[str], Any]
) -> None:
    """Else it would wait for ever."""

    def breaks(connection: Any) -> None:
        raise ValueError("by no means")

    assert tables.ids() == []
    tables._link.renewals["r"] = breaks
    cut_sessions(ask)
    with pytest.raises(StoreAway) as away:
        tables.at_once(tables.ids)
    problem = back(away.value)
    assert problem is not None
    assert "by no means" in problem.message
    assert not tables.is_away


def test_nothing_is_left_connected_by_who_waited_for_a_store_that_was_closed_meanwhile(
    tables: PostgresRuns, ask: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was just making a connection."""
    assert tables.ids() == []
    connected, closed = link.connected, threading.Event()
    made: SimpleQueue[Any] = SimpleQueue()

    def slowly(address: Any) -> Any:
        made.put(connection := connected(address))
        closed.wait(20)
        return connection

    cut_sessions(ask)
    monkeypatch.setattr(link, "connected", slowly)
    with pytest.raises(StoreAway):
        tables.at_once(tables.ids)
    connection = made.get(timeout=20)
    tables.close()
    closed.set()
    while tables.is_away:
        link.pause(0.01)
    assert connection.closed


def test_a_create_or_submit_whose_answer_was_lost_is_done_once(
    database: str, record, postgres: Server
) -> None:
    """Neither is taken for another process's."""
    with wire_to(postgres.port) as wire:
        runs = PostgresRuns(wire.through(database))
        assert runs.ids() == []
        wire.swallow_answer()
        runs.submit(record(0).event)
        assert runs.submitted("r") == record(0).event
        wire.swallow_answer()
        journal = runs.create("r")
        journal.append([record(0)])
        journal.close()
        runs.close()


def test_a_server_that_says_nothing_is_given_up(
    database: str, record, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stands, nobody answers: a new one is made."""
    monkeypatch.setattr(link, "SILENCE_S", 0.3)
    with wire_to(postgres.port) as wire:
        runs = PostgresRuns(wire.through(database))
        journal = runs.create("r")
        journal.append([record(0)])
        wire.go_silent()
        journal.append([record(1)])
        journal.close()
        assert seqs(runs) == [0, 1]
        runs.close()


# --- writers


def test_another_process_is_told_who_writes(journal, database: str) -> None:
    """Host, process and since when."""
    with PostgresRuns(database) as other:
        for attempt in (other.create, other.reopen):
            with pytest.raises(
                RunLocked, match=rf"process {os.getpid()} on {os.uname().nodename}, since 20\d\d-"
            ):
                attempt("r")
    journal.close()


def test_a_session_that_was_cut_is_replaced(journal, tables, record, ask, database: str) -> None:
    """Nobody came meanwhile, so the run goes on, and has its lock again before anybody else has the connection."""
    cut_sessions(ask)
    assert tables.ids() == ["r"]
    with PostgresRuns(database) as other, pytest.raises(RunLocked):
        other.reopen("r")
    journal.append([record(1)])
    journal.close()
    assert seqs(tables) == [0, 1]


def test_who_lost_a_run_writes_no_more_of_it(journal, tables, record, ask, database: str) -> None:
    """The other's name is told; other runs of the same process go on."""
    second = tables.create("s")
    second.append([record(0, run_id="s")])
    with PostgresRuns(database) as other:
        assert other.cut_off("r")
        taken = _reopened(other, "r")
        taken.append([record(1)])
        with pytest.raises(JournalError, match=f"run r was taken over by process {os.getpid()} on "):
            journal.append([record(1, "late")])
        with pytest.raises(RunLocked):
            tables.reopen("r")
        second.append([record(1)])
        second.close()
        taken.append([record(2)])
        taken.close()
    assert tables.read("r").records == [record(0), record(1), record(2)]
    assert seqs(tables, "s") == [0, 1]


def test_who_was_cut_off_and_lives_has_no_lock_again(journal, tables, record, database: str) -> None:
    """Its process has a new session at once. Whoever is to have the run would find it locked, and leave it to one that
    can't write it any more.
    """
    before = tables._link.generation
    with PostgresRuns(database) as other:
        assert other.cut_off("r")
        while tables._link.generation == before:
            assert tables.ids() == ["r"]
        other.reopen("r").close()
    with pytest.raises(JournalError, match="another process, which has let go of it since"):
        journal.append([record(1)])


def test_who_stood_still_hears_that_the_run_is_anothers_before_it_writes(
    journal, record, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a record and what it has done outside. A moment after a record nobody asks again."""
    with PostgresRuns(database) as other:
        journal.append([record(1)])
        other.cut_off("r")
        journal.confirm()
        monkeypatch.setattr(writer_module, "SURE_S", -1.0)
        with pytest.raises(JournalError, match="run r was taken over by another process"):
            journal.confirm()
        again = other.reopen("r")
        again.confirm()
        again.close()


def _reopened(runs: PostgresRuns, run_id: str) -> PostgresJournal:
    """As soon as the session that was cut off is over."""
    while True:
        try:
            return runs.reopen(run_id)
        except RunLocked:
            continue


WRITER = """
import sys
from msgspec.structs import replace
from gonogo.errors import GonogoError
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.records import Record
runs = PostgresRuns(sys.argv[1])
first, *batch = runs.read("template").records
first = replace(first, event=replace(first.event, run_id=sys.argv[2]))
journal = runs.create(sys.argv[2])
journal.append([first])
seq = 1
try:
    while True:
        journal.append([Record(seq + n, one.at, one.event) for n, one in enumerate(batch)], sync=True)
        seq += len(batch)
        print(seq, flush=True)
except GonogoError as error:
    print(error.message, flush=True)
"""


@pytest.fixture
def template(tables: PostgresRuns, record) -> None:
    """What writers in other processes write."""
    journal = tables.create("template")
    journal.append([record(0, run_id="template"), *(record(seq, "x" * 2000) for seq in range(1, 8))])
    journal.close()


def writer(database: str, run_id: str) -> subprocess.Popen[bytes]:
    """A process that writes as fast as it can, and says what it was promised."""
    command = [sys.executable, "-c", WRITER, database, run_id]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@pytest.mark.slow
@pytest.mark.usefixtures("template")
def test_RES_1_a_killed_writer_loses_nothing_it_was_promised(tables, database: str) -> None:
    """SIGKILL at ten moments: every acknowledged record is there, batches are whole, and the lock is gone."""
    for number in range(10):
        with writer(database, f"k{number}") as child:
            assert child.stdout is not None
            said = [child.stdout.readline() for _ in range(1 + number * 7 % 23)]
            child.send_signal(signal.SIGKILL)
            said += child.stdout.read().splitlines(keepends=True)
        acknowledged = int([line for line in said if line.endswith(b"\n")][-1])
        again = _reopened(tables, f"k{number}")
        assert len(again.records) >= acknowledged
        assert len(again.records) % 7 == 1
        again.close()


@pytest.mark.usefixtures("template")
def test_a_frozen_writer_that_wakes_up_writes_no_more(tables, database: str, record) -> None:
    """Its session was cut while it stood still, and its run taken over."""
    with writer(database, "f") as child:
        assert child.stdout is not None
        child.stdout.readline()
        freeze(child.pid)
        assert tables.cut_off("f")
        taken = _reopened(tables, "f")
        there = len(taken.records)
        taken.append([record(there)])
        thaw(child.pid)
        *_, last = child.stdout.read().decode().splitlines()
    assert f"run f was taken over by process {os.getpid()} on " in last
    assert seqs(tables, "f") == list(range(there + 1))
    taken.close()


def test_of_many_that_resume_a_run_one_does(journal, database: str, record) -> None:
    """The others are told by whom it is written."""
    journal.close()
    ready = threading.Barrier(6)
    places = [PostgresRuns(database) for _ in range(6)]
    told: list[str] = []

    def resume(runs: PostgresRuns, number: int) -> None:
        runs.ids()
        ready.wait()
        try:
            runs.reopen("r").append([record(1, number)])
            told.append("done")
        except RunLocked as locked:
            told.append(locked.message)

    threads = [threading.Thread(target=resume, args=(runs, number)) for number, runs in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told.count("done") == 1
    assert sum("run r is being written by" in text for text in told) == 5
    for runs in places:
        runs.close()


def test_locks_are_told_apart_by_a_wide_hash() -> None:
    """No two of many runs share one, and the same run in another schema has another."""
    keys = {key_of(f"20261201-{number}", schema) for number in range(20_000) for schema in ("1", "2")}
    assert len(keys) == 40_000
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_many_processes_make_the_tables_once(database: str) -> None:
    """Whoever comes first; the others wait."""
    found: list[list[str]] = []

    def look() -> None:
        with PostgresRuns(database) as runs:
            found.append(runs.ids())

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[]] * 8


def test_one_connection_serves_all_runs_of_a_process(tables, record, ask) -> None:
    """A hundred children at once are no hundred connections."""
    journals = [tables.create(f"r.{number}") for number in range(100)]
    for journal in journals:
        journal.append([record(0)])
    assert ask(LOCKED) == [(100,)]
    assert ask("select count(distinct pid) from pg_locks where locktype = 'advisory'") == [(1,)]
    for journal in journals:
        journal.close()
    assert ask(LOCKED) == [(0,)]
