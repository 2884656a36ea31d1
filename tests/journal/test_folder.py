"""Large values in a folder that workers share, beside a store in Postgres."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres import Server

from gonogo.app.options import Options, runs_in
from gonogo.core.events import CallDone, RunStarted
from gonogo.core.plan import Plan
from gonogo.errors import JournalError, UsageError
from gonogo.journal.blobs import FileBlobs
from gonogo.journal.export import export
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.postgres.runs import PostgresRuns
from gonogo.journal.records import Record

BIG = "x" * 300_000
OTHER = "y" * 300_000
START = Record(0, 1.0, RunStarted(run_id="r", plan=Plan("w", {}), started_at_ms=1))
Runs = Callable[[Path | None], PostgresRuns]


def returned(seq: int, output: object) -> Record:
    """A call that returned it."""
    return Record(seq, 1.0, CallDone(call=seq, output=output))


def written(runs: PostgresRuns, *records: Record) -> None:
    """A run with these records."""
    journal = runs.create("r")
    journal.append([START, *records], sync=True)
    journal.close()


def runs_of(url: str, folder: Path | None) -> PostgresRuns:
    """Those of a worker, with or without the folder."""
    return PostgresRuns(url, folder=folder)


def test_a_large_value_is_a_file_of_the_run_and_no_row(
    postgres: Server, database: str, tmp_path: Path
) -> None:
    """Named by its content as that of a local run; another worker with the folder reads it."""
    with runs_of(database, tmp_path) as runs:
        written(runs, returned(1, BIG))
        [digest] = runs.blobs("r").digests()
    assert FileBlobs(tmp_path / "r").digests() == [digest]
    assert postgres.execute("select count(*) from gonogo_blobs", database) == [(0,)]
    with runs_of(database, tmp_path) as other:
        assert other.read("r").records == [START, returned(1, BIG)]


def test_rows_of_before_are_read_with_a_folder_too_and_a_copy_has_both(database: str, tmp_path: Path) -> None:
    """A run may get one when it is under way."""
    (tmp_path / "shared").mkdir()
    with runs_of(database, None) as before, runs_of(database, tmp_path / "shared") as now:
        written(before, returned(1, BIG))
        journal = now.reopen("r")
        journal.append([returned(2, OTHER)], sync=True)
        journal.close()
        found = now.read("r").records
        assert found == [START, returned(1, BIG), returned(2, OTHER)]
        export(now, "r", tmp_path / "copy")
    assert JsonlRuns(tmp_path / "copy").read("r").records == found


def test_a_worker_without_the_folder_is_told_to_set_it(database: str, tmp_path: Path) -> None:
    """It has no part of the value."""
    with runs_of(database, tmp_path) as runs, runs_of(database, None) as without:
        written(runs, returned(1, BIG))
        with pytest.raises(JournalError, match="is missing") as raised:
            without.reopen("r")
    assert "set GONOGO_BLOBS to the folder" in str(raised.value.advice)


def test_a_folder_that_is_not_there_is_not_made(database: str, tmp_path: Path) -> None:
    """It would be where a share should be."""
    with runs_of(database, tmp_path / "share") as runs:
        journal = runs.create("r")
        journal.append([START], sync=True)
        with pytest.raises(JournalError, match=r"no folder .*share for large values \(GONOGO_BLOBS\)"):
            journal.append([returned(1, BIG)], sync=True)
        journal.close()


def test_a_file_that_was_changed_is_refused(database: str, tmp_path: Path) -> None:
    """By its name."""
    with runs_of(database, tmp_path) as runs:
        written(runs, returned(1, BIG))
        [file] = (tmp_path / "r").iterdir()
        file.write_text('"other"')
        with pytest.raises(JournalError, match="was changed after it was written"):
            runs.reopen("r")


def test_the_environment_names_the_folder(database: str, tmp_path: Path, monkeypatch: Any) -> None:
    """By an absolute path, which is the same wherever a worker was started."""
    monkeypatch.setenv("GONOGO_BLOBS", str(tmp_path))
    runs = runs_in(Options(runs=database))
    assert isinstance(runs, PostgresRuns)
    with runs:
        written(runs, returned(1, BIG))
    assert (tmp_path / "r").is_dir()
    monkeypatch.setenv("GONOGO_BLOBS", "shared")
    with pytest.raises(UsageError, match="GONOGO_BLOBS isn't an absolute path"):
        runs_in(Options(runs=database))
