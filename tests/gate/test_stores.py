"""Where breakers' records are kept: versions, damage, other processes, other boots, clocks that jump (B35, B36)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gonogo.gate import BreakerPolicy, FileStore, MemoryStore
from gonogo.gate import breaker as b
from gonogo.gate.breakers import Breakers
from gonogo.gate.signals import Classification
from gonogo.gate.stores import KeptStore, Store, StoreTrouble
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.sheets import PostgresSheets

BROKEN = Classification("server-5xx", "test")


class Clocks:
    """Both clocks of a machine, set by hand."""

    def __init__(self, monotonic: float = 1000.0, wall: float = 1_800_000_000.0) -> None:
        self.monotonic, self.wall = monotonic, wall

    def store(self, folder: Path, boot: str = "boot 1") -> FileStore:
        """A store on this machine."""
        return FileStore(folder, monotonic=lambda: self.monotonic, wall=lambda: self.wall, boot=boot)


@pytest.fixture(params=["memory", "file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store."""
    if request.param == "postgres":
        keeper = PostgresSheets(Address(request.getfixturevalue("database")))
        yield KeptStore(keeper)
        keeper.close()
    else:
        yield MemoryStore() if request.param == "memory" else FileStore(tmp_path / "breakers")


def test_only_who_saw_the_last_version_may_replace_it(store: Store) -> None:
    """B36: compare and set."""
    assert store.load("k") == store.load("unheard of")
    assert store.compare_and_set("k", 0, b.BreakerRecord(failures=1))
    assert not store.compare_and_set("k", 0, b.BreakerRecord(failures=2))
    assert store.load("k").record.failures == 1
    assert store.compare_and_set("k", store.load("k").version, b.BreakerRecord(failures=3))
    assert store.keys() == ["k"]


def test_many_threads_lose_no_failure(store: Store) -> None:
    """Every one is counted, whoever is faster."""
    breakers = Breakers(BreakerPolicy(failures=1000, calls_min=1000), store, lambda: 0.0)

    def fail() -> None:
        for _ in range(10):
            breakers.report("k", "x", BROKEN, 0.1)

    threads = [threading.Thread(target=fail) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.load("k").record.failures + breakers._local.load("k").record.failures == 40


def test_what_one_process_opens_another_finds_open(tmp_path: Path) -> None:
    """Short CI runs share it; the file outlives the process."""
    program = """
import sys, time
from gonogo.gate import BreakerPolicy, FileStore
from gonogo.gate.breakers import Breakers
from gonogo.gate.signals import Classification
breakers = Breakers(BreakerPolicy(failures=1), FileStore(sys.argv[1]), time.monotonic)
breakers.report("k", "x", Classification("server-5xx", "test"), 0.1)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    import time

    here = Breakers(BreakerPolicy(failures=1), FileStore(tmp_path), time.monotonic)
    admission, _ = here.admit("k", "y", 10)
    assert (admission.admitted, admission.reason.partition(" by ")[0]) == (False, "open")
    assert (tmp_path.stat().st_mode & 0o077) == 0 or tmp_path.exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300) | st.integers(0, 400))
def test_a_torn_or_damaged_file_counts_as_none_and_is_replaced(tmp_path: Path, damage: bytes | int) -> None:
    """A reader survives anything; the next writer repairs it."""
    store = FileStore(tmp_path / "s")
    store.compare_and_set("k", store.load("k").version, b.BreakerRecord(failures=1))
    path = next((tmp_path / "s").glob("*.json"))
    whole = path.read_bytes()
    path.write_bytes(damage if isinstance(damage, bytes) else whole[:damage])
    found = store.load("k")
    assert found.record in (b.CLOSED, b.BreakerRecord(failures=1))
    assert store.compare_and_set("k", found.version, b.BreakerRecord(failures=7))
    assert store.load("k").record.failures == 7


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    """Nobody gets another file read or written through the store."""
    store = FileStore(tmp_path / "s")
    store.compare_and_set("k", 0, b.CLOSED)
    path = next((tmp_path / "s").glob("*.json"))
    path.unlink()
    (tmp_path / "elsewhere").write_text("{}")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreTrouble):
        store.load("k")


def test_TIM_2_a_wall_clock_that_jumps_changes_nothing_on_the_same_boot(tmp_path: Path) -> None:
    """TIM-2: a cooldown of 30 s ends after 30 monotonic seconds, whatever is set."""
    clocks = Clocks()
    breakers = Breakers(BreakerPolicy(failures=1, jitter=0), clocks.store(tmp_path), lambda: clocks.monotonic)
    breakers.report("k", "x", BROKEN, 0.1)
    for jump_s in (3600, -7200):
        clocks.wall += jump_s
        other = Breakers(breakers.policy, clocks.store(tmp_path), lambda: clocks.monotonic)
        assert other.admit("k", "y", 10)[0].until_s == 1030.0
    clocks.monotonic += 30
    assert breakers.admit("k", "y", 10)[0].admitted


@pytest.mark.parametrize(("gone_s", "left_s"), [(10, 20), (3600, 0), (-3600, 30)])
def test_TIM_2_another_boot_goes_by_the_wall_clock_and_never_waits_longer(
    tmp_path: Path, gone_s: float, left_s: float
) -> None:
    """TIM-2: a record written "in the future" is clamped to its full length."""
    before = Clocks()
    Breakers(BreakerPolicy(failures=1, jitter=0), before.store(tmp_path), lambda: before.monotonic).report(
        "k", "x", BROKEN, 0.1
    )
    after = Clocks(monotonic=5.0, wall=before.wall + gone_s)
    here = Breakers(BreakerPolicy(failures=1), after.store(tmp_path, "boot 2"), lambda: after.monotonic)
    admission, _ = here.admit("k", "y", 10)
    assert admission.admitted == (left_s == 0)
    if left_s:
        assert admission.until_s == pytest.approx(5.0 + left_s)
        after.wall += 10_000  # settled when it was seen first
        assert here.admit("k", "y", 10)[0].until_s == pytest.approx(5.0 + left_s)


def test_a_store_in_trouble_costs_no_call(tmp_path: Path) -> None:
    """B36: this process's own records go on, and the trouble is told once."""

    class Broken(MemoryStore):
        def load(self, key: str) -> Any:
            raise StoreTrouble("the disk is gone")

    told: list[str] = []
    breakers = Breakers(BreakerPolicy(failures=2), Broken(), lambda: 0.0, told.append)
    assert breakers.admit("k", "x", 10)[0].admitted
    breakers.report("k", "x", BROKEN, 0.1)
    breakers.report("k", "x", BROKEN, 0.1)
    assert not breakers.admit("k", "x", 10)[0].admitted
    assert told == ["the disk is gone"]


def test_a_locked_file_is_not_waited_for_long(tmp_path: Path) -> None:
    """A writer that was stopped while it held the lock stops nobody else."""
    import fcntl

    store = FileStore(tmp_path)
    store.compare_and_set("k", 0, b.CLOSED)
    descriptor = os.open(next(tmp_path.glob("*.lock")), os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(StoreTrouble, match="keeps it locked"):
            store.compare_and_set("k", 1, b.BreakerRecord(failures=1))
    finally:
        os.close(descriptor)
    assert store.compare_and_set("k", 1, b.BreakerRecord(failures=1))


def test_a_target_can_be_isolated_reset_and_listed() -> None:
    """B38: with who and why."""
    breakers = Breakers(BreakerPolicy(), MemoryStore(), lambda: 100.0)
    change = breakers.isolate("k", "maintenance", by="maria", for_s=50)
    assert change is not None
    assert change.reason == "maintenance, by maria"
    [listed] = breakers.listed()
    assert (listed.state, listed.until_s, listed.reason) == ("isolated", 50.0, "maintenance, by maria")
    breakers.reset("k")
    assert breakers.admit("k", "x", 10)[0].admitted


def kept(database: str, monotonic_s: float, wall_s: float, boot: str) -> KeptStore:
    """A store on a machine with these clocks."""
    keeper = PostgresSheets(Address(database))
    return KeptStore(keeper, monotonic=lambda: monotonic_s, wall=lambda: wall_s, boot=boot)


def test_what_one_machine_opens_another_finds_open_for_as_long(database: str) -> None:
    """Their monotonic clocks have nothing in common; the wall clocks' difference is what has gone by."""
    here = kept(database, 1000.0, 1_800_000_000.0, "boot 1")
    assert here.compare_and_set(
        "k", 0, b.BreakerRecord(state="open", opened_s=1000.0, open_until_s=1030.0, failures=5)
    )
    there = kept(database, 5.0, 1_800_000_010.0, "boot 2").load("k")
    assert there.version == 1
    assert there.record.open_until_s == pytest.approx(25.0)


def test_a_damaged_row_counts_as_none_and_is_replaced(database: str, postgres) -> None:
    """Nobody is kept from calling by bytes that make no sense."""
    store = kept(database, 1.0, 1.0, "boot 1")
    store.compare_and_set("k", 0, b.BreakerRecord(failures=5))
    postgres.execute("update gonogo_breakers set sheet = 'x'", database)
    found = store.load("k")
    assert found.record == b.CLOSED
    assert store.keys() == []
    assert store.compare_and_set("k", found.version, b.BreakerRecord(failures=1))
    assert store.load("k").record.failures == 1


def test_a_postgres_that_refuses_is_trouble_and_no_failure_of_a_call(database: str, postgres) -> None:
    """Breakers go on by themselves meanwhile; what is told holds no password."""
    store = kept(database, 1.0, 1.0, "boot 1")
    store.keys()
    postgres.execute("drop table gonogo_breakers", database)
    for ask in (store.keys, lambda: store.load("k"), lambda: store.compare_and_set("k", 0, b.CLOSED)):
        with pytest.raises(StoreTrouble, match='relation "gonogo_breakers" does not exist') as caught:
            ask()
        assert postgres.password not in str(caught.value)
