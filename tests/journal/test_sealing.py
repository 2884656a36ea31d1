"""What every sealed store promises, and what the file and the encrypted rows promise beyond that."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from gonogo.errors import JournalError, UsageError
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.memory import MemoryRuns
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.sealing import FileSeals, Seals, Unsealable, Unsealed
from gonogo.journal.store import Runs

A, B = b'["login.token","swordfish"]', b'["login.token","salmon-pink"]'
KEY, OTHER = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@pytest.fixture
def encrypted(database: str) -> Iterator[PostgresRuns]:
    """An empty database of runs, with a key."""
    with PostgresRuns(database, seal_key=KEY) as runs:
        yield runs


@pytest.fixture(params=["memory", "disk", "encrypted"])
def seals(request: pytest.FixtureRequest, record: Callable[[int], object]) -> Seals:
    """The sealed store of a new run, in each place."""
    runs: Runs = MemoryRuns() if request.param == "memory" else request.getfixturevalue(request.param)
    journal = runs.create("r")
    journal.append([record(0)])  # type: ignore[list-item]
    journal.close()
    return runs.seals("r")


def test_what_was_sealed_can_be_opened(seals: Seals) -> None:
    """By the tag that sealing gave; the same value has the same tag, whenever it is sealed."""
    tag = seals.seal(A)
    assert seals.open(tag) == A
    assert seals.seal(A) == tag
    assert seals.seal(B) != tag
    assert sorted(seals.all()) == sorted([A, B])


def test_what_was_never_sealed_cant_be_opened(seals: Seals) -> None:
    """However much it looks like a tag."""
    seals.seal(A)
    with pytest.raises(Unsealed):
        seals.open("0" * 32)


def test_nobody_outside_can_make_a_tag(tmp_path: Path) -> None:
    """The same value has other tags in other runs, so that a tag tells nothing and can't be tried out."""
    assert FileSeals(tmp_path / "a").seal(A) != FileSeals(tmp_path / "b").seal(A)


# --- the file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store would be."""
    return tmp_path / "sealed"


def test_another_process_opens_the_file(path: Path) -> None:
    """After a crash of the first, for example."""
    tag = FileSeals(path).seal(A)
    later = FileSeals(path)
    assert later.open(tag) == A
    assert later.seal(A) == tag


def test_the_file_is_private_even_if_it_wasnt(path: Path) -> None:
    """Mode 0600; what was there with another one is closed before anything is written."""
    path.touch(mode=0o644)
    FileSeals(path).seal(A)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_a_crash_cut_is_taken_off(path: Path) -> None:
    """No record can name its value; what comes after it must be readable."""
    first = FileSeals(path).seal(A)
    with path.open("ab") as file:
        file.write(b'{"tag":"12')
    second = FileSeals(path).seal(B)
    later = FileSeals(path)
    assert (later.open(first), later.open(second)) == (A, B)


def test_a_crash_in_the_first_line_leaves_a_store_that_can_be_used(path: Path) -> None:
    """The secret that makes tags is cut then."""
    path.write_bytes(b'{"secr')
    tag = FileSeals(path).seal(A)
    assert FileSeals(path).open(tag) == A


def test_a_changed_value_is_not_believed(path: Path) -> None:
    """Its tag says what it was."""
    tag = FileSeals(path).seal(A)
    path.write_bytes(path.read_bytes().replace(b"swordfish", b"sordidist"))
    with pytest.raises(Unsealed, match="is damaged"):
        FileSeals(path).open(tag)


def test_a_file_that_is_gone_says_so_and_can_be_put_back(path: Path) -> None:
    """While the run waits."""
    tag = FileSeals(path).seal(A)
    kept = path.read_bytes()
    path.unlink()
    later = FileSeals(path)
    with pytest.raises(Unsealed, match="sealed is gone; restore that file"):
        later.open(tag)
    path.write_bytes(kept)
    assert later.open(tag) == A


def test_a_file_that_goes_while_the_run_does_is_written_anew(path: Path) -> None:
    """With all that its process knows."""
    seals = FileSeals(path)
    first = seals.seal(A)
    path.unlink()
    second = seals.seal(B)
    later = FileSeals(path)
    assert (later.open(first), later.open(second)) == (A, B)


def test_a_link_in_its_place_is_refused(path: Path, tmp_path: Path) -> None:
    """It might lead anywhere."""
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match="symbolic link|Too many levels"):
        FileSeals(path).seal(A)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cant_be_read_is_never_written_over(path: Path) -> None:
    """What is in it may be all there is."""
    FileSeals(path).seal(A)
    before = path.read_bytes()
    path.chmod(0o200)
    with pytest.raises(JournalError):
        FileSeals(path).seal(B)
    path.chmod(0o600)
    assert path.read_bytes() == before


# --- the encrypted rows


@pytest.fixture
def rows(encrypted: PostgresRuns, record: Callable[[int], object]) -> Callable[[str], Seals]:
    """The store of run r, as a process with this key sees it."""
    for run_id in ("r", "s"):
        journal = encrypted.create(run_id)
        journal.append([record(0)])  # type: ignore[list-item]
        journal.close()

    def with_key(key: str) -> Seals:
        return PostgresRuns(encrypted.address, seal_key=key).seals("r")

    return with_key


def test_a_row_shows_nothing(rows: Callable[[str], Seals], database: str) -> None:
    """All tables of the database hold neither the value nor the key."""
    rows(KEY).seal(A)
    with psycopg.connect(database) as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "select tablename from pg_tables where schemaname = current_schema()"
            )
        ]
        told = repr([connection.execute(f"select * from {name}").fetchall() for name in tables])
    assert "gonogo_seals" in tables
    assert "swordfish" not in told
    assert KEY not in told


def test_another_worker_with_the_key_opens_it(rows: Callable[[str], Seals]) -> None:
    """And comes to the same tag for the same value."""
    tag = rows(KEY).seal(A)
    assert rows(KEY).open(tag) == A
    assert rows(KEY).seal(A) == tag


def test_without_the_key_nothing_can_be_sealed(rows: Callable[[str], Seals]) -> None:
    """The refusal says how to get one."""
    with pytest.raises(Unsealable, match=r"GONOGO_SEAL_KEY isn't set.*openssl rand -base64 32"):
        rows("").check()


@pytest.mark.parametrize("key", ["secret", "x" * 44, base64.b64encode(b"short").decode(), f"{KEY},"])
def test_what_is_no_key_is_refused(rows: Callable[[str], Seals], key: str) -> None:
    """A password isn't one; the message doesn't show it."""
    with pytest.raises(Unsealable, match="holds no key of 32 bytes") as refused:
        rows(key).check()
    assert key not in str(refused.value)


def test_another_key_doesnt_open_it(rows: Callable[[str], Seals]) -> None:
    """The message says which variable is wrong."""
    tag = rows(KEY).seal(A)
    with pytest.raises(Unsealed, match="GONOGO_SEAL_KEY isn't the key"):
        rows(OTHER).open(tag)
    assert rows(OTHER).all() == []


def test_an_older_key_behind_the_new_one_still_opens(rows: Callable[[str], Seals]) -> None:
    """So a key can be changed while runs wait."""
    tag = rows(KEY).seal(A)
    assert rows(f"{OTHER}, {KEY}").open(tag) == A


def test_a_row_cant_stand_in_for_another(rows: Callable[[str], Seals], database: str) -> None:
    """Not for another tag, and not in another run, though the key fits."""
    first, second = rows(KEY).seal(A), rows(KEY).seal(B)
    with psycopg.connect(database) as connection:
        connection.execute(
            "update gonogo_seals set sealed = (select sealed from gonogo_seals where tag = %s) where tag = %s",
            [second, first],
        )
        connection.execute("update gonogo_seals set run_id = 's' where tag = %s", [second])
    for run, tag in (("r", first), ("s", second)):
        with pytest.raises(Unsealed, match="its row was changed"):
            PostgresRuns(database, seal_key=KEY).seals(run).open(tag)


def test_sealed_rows_go_with_their_run(rows: Callable[[str], Seals], database: str) -> None:
    """Whoever deletes a run deletes its secrets."""
    rows(KEY).seal(A)
    with psycopg.connect(database) as connection:
        connection.execute("delete from gonogo_runs where run_id = 'r'")
        assert connection.execute("select count(*) from gonogo_seals").fetchone() == (0,)


def test_a_run_id_of_a_sealed_store_is_looked_at(encrypted: PostgresRuns, disk: JsonlRuns) -> None:
    """It becomes part of a path."""
    for runs in (encrypted, disk):
        with pytest.raises(UsageError):
            runs.seals("../r")
