"""How runs stand, in the list and where one is shown; and finding runs among many."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo, process, write

from gonogo import app
from gonogo.app.options import Options, Start
from gonogo.app.wiring import first_record_of, redactor_for
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.listing import summary
from gonogo.journal.postgres.runs import PostgresRuns

CUT_OFF = "a: {type: command, exec: 'kill -9 $PPID'}\nb: {type: noop, depends_on: a}"
STOPPED = "a: {type: command, exec: 'kill -INT $PPID; sleep 30'}"
ASKS = "a: {type: human-input, prompt: 'Ship it?'}"


def words_of(gonogo: Gonogo, **env: str) -> tuple[str, str]:
    """How the last run stands: in the list, where it is shown, and the same twice as data."""
    listed = gonogo("runs", "--format", "json", **env).json[0]["standing"]
    shown = gonogo("show", "last", "--format", "json", **env).json["standing"]
    assert f" {listed} " in gonogo("runs", **env).out
    assert f"\n{shown}" in gonogo("show", "last", **env).out
    return listed, shown


@pytest.mark.parametrize("in_store", [False, True])
@pytest.mark.parametrize(
    ("steps", "word"),
    [(CUT_OFF, "INTERRUPTED"), (STOPPED, "INTERRUPTED"), (ASKS, "HOLD"), ("a: {type: noop}", "GO")],
)
def test_a_run_stands_alike_in_the_list_and_where_it_is_shown(
    gonogo: Gonogo, tmp_path: Path, database: str, steps: str, word: str, in_store: bool
) -> None:
    """Killed, stopped by a signal, waiting and over; in a folder and in a store."""
    write(tmp_path, steps)
    env = {"GONOGO_STORE": database} if in_store else {}
    process("run", cwd=tmp_path, env=env)
    if in_store and steps == CUT_OFF:  # Postgres has to notice first that the session is gone
        assert any("INTERRUPTED" in gonogo("runs", **env).out for _ in range(200))
    assert words_of(gonogo, **env) == (word, word)


def test_a_step_of_a_run_that_was_killed_is_cut_off_and_not_waiting(gonogo: Gonogo, tmp_path: Path) -> None:
    """Nobody is asked anything, and nothing works on it."""
    write(tmp_path, CUT_OFF)
    assert process("run", cwd=tmp_path).code == -signal.SIGKILL
    shown = gonogo("show", "last").out
    assert "was under way when the run was cut off" in shown
    assert "2 steps: 1 cut off, 1 not started" in shown
    assert "go on with: gonogo resume " in shown


def test_a_run_that_is_set_aside_does_not_run(gonogo: Gonogo, tmp_path: Path, database: str) -> None:
    """Whatever it was at."""
    write(tmp_path, CUT_OFF)
    process("run", cwd=tmp_path, env={"GONOGO_STORE": database})
    with PostgresRuns(database) as runs:
        runs.set_aside(runs.ids()[0], "it lost 6 workers")
    assert words_of(gonogo, GONOGO_STORE=database) == ("SET ASIDE", "SET ASIDE")
    assert "it lost 6 workers; 'gonogo resume" in gonogo("show", "last", GONOGO_STORE=database).out


def test_a_queued_run_is_shown_with_how_it_gets_going(gonogo: Gonogo, database: str) -> None:
    """Its steps, which haven't started; it has no records."""
    plan = app.loads('version: "1.0"\nsteps:\n  one: {type: noop}\n').plan
    event = first_record_of(plan, Start(), Options(runs=database), {}, redactor_for({}, plan))
    with PostgresRuns(database) as runs:
        runs.submit(event)
    assert words_of(gonogo, GONOGO_STORE=database) == ("QUEUED", "QUEUED")
    ended = gonogo("show", "last", GONOGO_STORE=database)
    assert (ended.code, "1 step: 1 not started" in ended.out) == (0, True)
    assert f"'gonogo resume {event.run_id}' hands it over again" in ended.out
    assert "'gonogo resume RUN' hands it over again" in gonogo("runs", GONOGO_STORE=database).err
    records = gonogo("show", "last", "--records", GONOGO_STORE=database)
    assert (records.code, f"run {event.run_id} has no records yet" in records.err) == (0, True)


@pytest.fixture(params=["folder", "store"])
def listed(
    request: pytest.FixtureRequest, gonogo: Gonogo, tmp_path: Path, database: str
) -> Callable[..., list[str]]:
    """The names of the workflows that `gonogo runs` lists with some options, of five runs."""
    env = {"GONOGO_STORE": database} if request.param == "store" else {}
    for name, steps in (
        ("good", "a: {type: noop}"),
        ("bad", "a: {type: script, content: throw 1}"),
        ("asks", ASKS),
        ("stopped", STOPPED),
        ("good", "a: {type: noop}"),
    ):
        write(tmp_path, steps, top=f"name: {name}\n")
        process("run", cwd=tmp_path, env=env)

    def find(*options: str) -> list[str]:
        told = gonogo("runs", *options, "--format", "json", **env)
        return [one["name"] for one in told.json]

    return find


def test_runs_are_found_by_how_they_stand_by_workflow_and_by_time(listed: Callable[..., list[str]]) -> None:
    """Newest first; what a signal stopped isn't NO-GO; several verdicts are any of them."""
    assert listed("--verdict", "no-go") == ["bad"]
    assert listed("--verdict", "interrupted") == ["stopped"]
    assert listed("--verdict", "hold", "--verdict", "no-go") == ["asks", "bad"]
    assert listed("--verdict", "queued") == []
    assert listed("--workflow", "good") == ["good", "good"]
    assert listed("--workflow", "good", "--limit", "1") == ["good"]
    assert listed("--workflow", "good", "--verdict", "hold") == []
    assert listed("--waiting", "--workflow", "asks") == ["asks"]
    assert len(listed("--since", "1h")) == 5
    assert listed("--since", "2999-01-01") == []
    assert len(listed("--since", "2020-01-01T00:00Z")) == 5


def test_a_list_that_is_cut_says_so(gonogo: Gonogo, tmp_path: Path) -> None:
    """And a time that is none is refused."""
    write(tmp_path, "a: {type: noop}")
    for _ in range(2):
        gonogo("run")
    assert "there are more: --limit 2" in gonogo("runs", "--limit", "1").err
    assert "there are more" not in gonogo("runs", "--limit", "2").err
    refused = gonogo("runs", "--since", "soon")
    assert (refused.code, "--since 'soon' is no time" in refused.err) == (2, True)


def test_runs_that_are_too_old_are_not_read(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their ids tell when they were made; an id that says nothing has its journal read."""
    write(tmp_path, "a: {type: noop}")
    gonogo("run")
    folder = tmp_path / ".gonogo" / "runs"
    (made,) = os.listdir(folder)
    for name in ("20200101-000000-000abc", "by-hand"):
        (folder / made).rename(folder / name)
        made = name
        read: list[str] = []

        def counted(runs: JsonlRuns, run_id: str, read: list[str] = read) -> object:
            read.append(run_id)
            return summary(runs, run_id)

        monkeypatch.setattr("gonogo.journal.listing.summary", counted)
        gonogo("runs", "--since", "1h")
        assert read == ([] if name[0] == "2" else ["by-hand"])


def test_items_are_counted_of_all_that_are_to_come_and_shown_on_demand(
    gonogo: Gonogo, tmp_path: Path
) -> None:
    """As the run is killed while the third of six items runs, after eight that failed."""
    write(
        tmp_path,
        """
numbers: {type: script, content: "return [...Array(20).keys()]", forEach: true}
each:
  type: command
  depends_on: numbers
  exec: test "$N" -ne 9 || kill -9 $PPID; test "$N" -gt 7
  env: {N: "{{ item }}"}
""",
    )
    process("run", "-j", "1", cwd=tmp_path)
    shown = gonogo("show", "last").out
    assert "1 of 20 items passed" in shown
    assert f"3 more: gonogo show {os.listdir(tmp_path / '.gonogo' / 'runs')[0]} --all-items" in shown
    whole = gonogo("show", "last", "--all-items").out
    assert whole.count("the command failed: exit code 1") >= 8
    assert "✓ #8 8" in whole
    assert "10 more items not started" in whole
    assert gonogo("show", "last", "--format", "json").json["steps"]["each"]["items_total"] == 20


def test_an_output_that_a_person_gave_is_no_run(gonogo: Gonogo, tmp_path: Path) -> None:
    """Run, set, and run again: twice."""
    write(tmp_path, "a: {type: noop}")
    gonogo("run")
    gonogo("resume", "last", "--set", "a.output=1", "--yes")
    gonogo("resume", "last", "--from", "a", "--yes")
    assert "ran 2 times" in gonogo("show", "last").out


def test_a_call_in_doubt_says_who_had_it(gonogo: Gonogo, tmp_path: Path) -> None:
    """Somebody must go to that machine and look."""
    write(tmp_path, "a: {type: command, criticality: external, exec: 'echo $PPID > pid; kill -9 $PPID'}")
    process("run", cwd=tmp_path)
    gonogo("resume", "last")
    who = f"process {(tmp_path / 'pid').read_text().strip()} on {os.uname().nodename}"
    shown = gonogo("show", "last")
    assert f"was with {who}" in shown.out
    assert gonogo("show", "last", "--format", "json").json["waiting"][0]["by"] == who
    told = gonogo("show", "last", "--records").out
    assert f"run  with {who}" in told
    assert f"run  with process {os.getpid()} on " in told


def test_a_plan_says_which_workers_a_step_asks_for(gonogo: Gonogo, tmp_path: Path) -> None:
    """To people and as data."""
    write(tmp_path, "a: {type: noop, runs_on: gpu}")
    assert "on a worker with --label gpu" in gonogo("plan").out
    assert gonogo("plan", "--format", "json").json["steps"]["a"]["runs_on"] == "gpu"
