"""Runs in a Postgres instead of a folder, over the command line: the same verbs, nothing of the password anywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, QUIET_ENVIRONMENT, process, write

from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.postgres.runs import PostgresRuns

TWO = """
one: {type: command, exec: "echo $GONOGO_STORE; echo hello"}
ask: {type: human-input, prompt: "Ship it?", depends_on: [one]}
"""


def test_a_run_goes_through_its_life_in_a_store(gonogo, tmp_path: Path, database: str) -> None:
    """Started, listed, shown, answered; no folder of runs is made."""
    write(tmp_path, TWO)
    assert gonogo("run", "--store", database).code == 3
    (run,) = gonogo("runs", "--format", "json", "--store", database).json
    assert (run["verdict"], run["name"]) == ("HOLD", "gonogo")
    assert [one["place"] for one in run["waiting"]] == ["ask"]
    assert "Ship it?" in gonogo("show", "last", GONOGO_STORE=database).out
    assert gonogo("answer", "last", "ask", "yes", GONOGO_STORE=database).code == 0
    assert "is over already" in gonogo("resume", "last", "--store", database).err
    assert not (tmp_path / ".gonogo").exists()


def test_a_list_of_a_store_tells_what_runs_wait_for_and_until_when(
    gonogo, tmp_path: Path, database: str
) -> None:
    """With `--waiting` and without; that it is set aside stays with it."""
    write(tmp_path, 'ask: {type: human-input, prompt: "Ship it?", timeout: 1h}')
    gonogo("run", "--store", database)
    with PostgresRuns(database) as runs:
        runs.set_aside(runs.ids()[0], "it lost 6 workers")
    for more in ((), ("--waiting",)):
        (run,) = gonogo("runs", "--format", "json", "--store", database, *more).json
        assert [(one["place"], one["since"] is None) for one in run["waiting"]] == [("ask", False)]
        assert (run["wake_at"] is None, run["due"], run["aside"]) == (False, False, "it lost 6 workers")


def test_a_run_that_is_set_aside_is_shown_with_what_takes_it_up_again(
    gonogo, tmp_path: Path, database: str
) -> None:
    """In the list, as data, and where the run is shown; not any more once somebody goes on with it."""
    write(tmp_path, TWO)
    gonogo("run", "--store", database)
    with PostgresRuns(database) as runs:
        (run_id,) = runs.ids()
        runs.set_aside(run_id, "it lost 6 workers")
    told = f"it lost 6 workers; 'gonogo resume {run_id}' tries again"
    assert told in gonogo("runs", "--store", database).out
    assert gonogo("runs", "--format", "json", "--store", database).json[0]["aside"] == "it lost 6 workers"
    assert told in gonogo("show", "last", "--store", database).out
    gonogo("answer", "last", "ask", "yes", "--store", database)
    assert (
        "6 workers"
        not in gonogo("runs", "--store", database).out + gonogo("show", "last", "--store", database).out
    )


@pytest.mark.parametrize("in_store", [True, False])
def test_a_list_tells_a_run_that_is_running_from_one_that_nobody_has(
    tmp_path: Path, database: str, in_store: bool
) -> None:
    """The first is listed by its own step; then it is killed."""
    listing = f"{sys.executable} -m gonogo runs"
    given = ", env: {GONOGO_STORE: '${{ env.GONOGO_STORE }}'}" if in_store else ""  # else no command gets it
    write(tmp_path, f"a: {{type: command, exec: '{listing} > seen; kill -9 $PPID'{given}}}")
    env = {"GONOGO_STORE": database} if in_store else {}
    assert process("run", cwd=tmp_path, env=env).code == -signal.SIGKILL
    assert " RUNNING  " in (tmp_path / "seen").read_text()
    # Postgres has to notice first that the session is gone.
    assert any(" INTERRUPTED  " in process("runs", cwd=tmp_path, env=env).out for _ in range(20))
    [told] = process("runs", "--format", "json", cwd=tmp_path, env=env).json
    assert (told["verdict"], told["running"]) == (None, False)


def test_a_run_that_waits_is_cancelled_in_a_store(gonogo, tmp_path: Path, database: str) -> None:
    """As in a folder."""
    write(tmp_path, TWO)
    gonogo("run", "--store", database)
    assert gonogo("cancel", "last", "--store", database).code == 0
    assert gonogo("runs", "--format", "json", "--store", database).json[0]["verdict"] == "NO-GO"


def test_the_password_is_in_no_text_and_no_record(gonogo, tmp_path: Path, database: str, postgres) -> None:
    """Not even when a step prints the variable that holds it."""
    write(tmp_path, TWO + 'two: {type: command, exec: "echo $PW"}\n')
    process("run", cwd=tmp_path, env={"GONOGO_STORE": database, "PW": postgres.password})
    with PostgresRuns(database) as runs:
        (run_id,) = runs.ids()
        lines = b"".join(runs.lines(run_id))
    said = [gonogo(*words, "--store", database) for words in (
        ("show", "last"), ("show", "last", "--records"), ("runs",), ("breakers",), ("doctor",), ("show", "none"),
        ("resume", "none"), ("run", "nothing.yaml"))]  # fmt: skip
    assert b'"***' in lines or b"***" in lines
    assert postgres.password.encode() not in lines
    assert [one for one in said if postgres.password in one.out + one.err] == []


def test_a_store_that_cannot_be_reached_is_told_without_its_password(
    gonogo, tmp_path: Path, postgres
) -> None:
    """At once, with what to look at."""
    write(tmp_path, TWO)
    wrong = f"postgresql://postgres:not-the-one@127.0.0.1:{postgres.port}/postgres"
    for url in (wrong, "postgresql://u:not-the-one@127.0.0.1:1/x", "postgresql://u:not-the-one@[::1/x"):
        ended = gonogo("run", "--store", url)
        assert ended.code == 2
        assert "no connection to postgresql://" in ended.err
        assert "user, password and database in --store" in ended.err
        assert "not-the-one" not in ended.out + ended.err


@pytest.mark.parametrize("verb", ["runs", "show r", "answer r ask yes", "cancel r", "resume r", "breakers"])
def test_each_verb_says_that_the_store_cannot_be_reached(gonogo, verb: str) -> None:
    """None takes it for an empty one."""
    ended = gonogo(*verb.split(), "--store", "postgresql://u@127.0.0.1:1/x")
    assert (ended.code, ended.out) == (2, "")
    assert "no connection to postgresql://u@127.0.0.1:1/x" in ended.err


def test_a_store_is_no_file_and_no_other_database(gonogo) -> None:
    """What it is to look like is said; what was given isn't repeated."""
    for url in ("mysql://u:pw123456@h/x", "runs", "postgresql://a b"):
        ended = gonogo("runs", "--store", url)
        assert ended.code == 2
        assert "write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE" in ended.err
        assert "pw123456" not in ended.err


def test_a_folder_and_a_store_exclude_each_other(gonogo, database: str) -> None:
    """Unless the store is only in the environment."""
    ended = gonogo("runs", "--runs-dir", "here", "--store", database)
    assert ended.code == 2
    assert "--runs-dir and --store exclude each other" in ended.err
    assert gonogo("runs", "--runs-dir", "here", GONOGO_STORE=database).err.startswith("no runs in here")


def test_without_the_library_the_extra_is_named(tmp_path: Path, database: str) -> None:
    """An optional dependency."""
    hidden = tmp_path / "hidden" / "psycopg"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('no psycopg', name='psycopg')")
    ended = process("runs", "--store", database, cwd=tmp_path, env={"PYTHONPATH": str(hidden.parent)})
    assert ended.code == 2
    assert "pip install 'gonogo[durable]'" in ended.err


def test_the_doctor_asks_the_store(gonogo, database: str) -> None:
    """Instead of the folder and its disk."""
    checks = {
        one["name"]: one for one in gonogo("doctor", "--store", database, "--format", "json").json["checks"]
    }
    assert checks["store"]["status"] == "ok"
    assert ": Postgres 1" in checks["store"]["text"]
    assert "runs folder" not in checks


def test_breakers_are_shared_in_a_store(gonogo, database: str) -> None:
    """Isolated on one machine, isolated on all."""
    key = "name=shop/endpoint=shop.example"
    assert gonogo("breakers", "isolate", key, "--store", database).code == 0
    assert "shop at shop.example" in gonogo("breakers", GONOGO_STORE=database).out
    assert gonogo("breakers", "reset", "shop", "--store", database).code == 0


@pytest.mark.parametrize("kept", ["store", "folder"])
def test_an_exported_run_is_the_same_run(gonogo, tmp_path: Path, database: str, kept: str) -> None:
    """Byte for byte, large values and child runs included; `show` reads it."""
    place = ["--store", database] if kept == "store" else ["--runs-dir", "kept"]
    large = "large: {type: command, exec: \"python3 -c 'print(300000 * chr(120))'\"}"
    write(tmp_path, f"{large}\nsub: {{type: workflow, workflow: inner}}", top="imports: [inner.yaml]\n")
    write(tmp_path, 'one: {type: command, exec: "echo inner"}', "inner.yaml", top="id: inner\n")
    assert gonogo("run", *place).code == 0
    ended = gonogo("runs", "export", "last", "--out", "copy", *place)
    assert ended.code == 0
    copies = JsonlRuns(tmp_path / "copy")
    outer, inner = copies.ids()
    assert inner.startswith(f"{outer}.")
    before, after = gonogo("show", "last", *place), gonogo("show", "last", "--runs-dir", "copy")
    assert before.out == after.out
    runs = PostgresRuns(database) if kept == "store" else JsonlRuns(tmp_path / "kept")
    for run_id in (outer, inner):
        assert list(copies.lines(run_id)) == list(runs.lines(run_id))
        assert copies.read(run_id).records == runs.read(run_id).records
    assert len(copies.blobs(outer).digests()) == 2, "the output, and the text beside it"
    again = gonogo("runs", "export", "last", "--out", "copy", *place)
    assert (again.code, "is there already" in again.err) == (2, True)


def test_a_run_that_crashed_is_resumed_by_another_process(tmp_path: Path, database: str) -> None:
    """SIGKILL in mid-call; what was done stays done, what nobody knows is asked."""
    two = f"echo two >> {tmp_path}/ran; test -e went && exit; touch went; read x < {tmp_path}/gate"
    write(tmp_path, f"""
one: {{type: command, exec: "echo one >> {tmp_path}/ran"}}
two: {{type: command, exec: "{two}", depends_on: [one], criticality: info}}
""")  # fmt: skip
    os.mkfifo(tmp_path / "gate")
    crashed = subprocess.Popen(
        [COMMAND, "run", "--store", database], cwd=tmp_path, env=QUIET_ENVIRONMENT,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    gate = os.open(tmp_path / "gate", os.O_WRONLY)  # returns once the second step reads
    crashed.send_signal(signal.SIGKILL)
    crashed.wait()
    os.close(gate)
    shown = json.loads(process("show", "last", "--format", "json", "--store", database, cwd=tmp_path).out)
    assert shown["verdict"] is None
    resumed = process("resume", "last", "--store", database, cwd=tmp_path)
    assert (resumed.code, "started again, the earlier call was lost" in resumed.err) == (0, True)
    assert (tmp_path / "ran").read_text().split() == ["one", "two", "two"]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_run_lives_through_a_restart_of_its_store(
    tmp_path: Path, database: str, postgres, mode: str
) -> None:
    """In the middle of a call, and once more before the run ends."""
    write(tmp_path, f"""
one: {{type: command, exec: "echo one >> {tmp_path}/ran"}}
two: {{type: command, exec: "read x < {tmp_path}/gate; echo two >> {tmp_path}/ran", depends_on: [one]}}
three: {{type: command, exec: "echo three >> {tmp_path}/ran", depends_on: [two]}}
""")  # fmt: skip
    os.mkfifo(tmp_path / "gate")
    with subprocess.Popen(
        [COMMAND, "run", "--store", database], cwd=tmp_path, env=QUIET_ENVIRONMENT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as run:  # fmt: skip
        gate = os.open(tmp_path / "gate", os.O_WRONLY)  # returns once the second step reads
        postgres.restart(mode)
        os.write(gate, b"go\n")
        os.close(gate)
        told = run.communicate()[0].decode()
    assert (run.returncode, "GO" in told) == (0, True), told
    assert (tmp_path / "ran").read_text().split() == ["one", "two", "three"]
    with PostgresRuns(database) as runs:
        (run_id,) = runs.ids()
        records = runs.read(run_id).records
    assert [one.seq for one in records] == list(range(len(records)))


def test_a_second_process_is_told_who_has_the_run(tmp_path: Path, database: str, gonogo) -> None:
    """Host, process and since when."""
    program = f"""
import sys
from gonogo.journal.postgres.runs import PostgresRuns
journal = PostgresRuns({database!r}).reopen(sys.argv[1])
print(flush=True)
sys.stdin.read()
"""
    write(tmp_path, TWO)
    gonogo("run", "--store", database)
    (run,) = gonogo("runs", "--format", "json", "--store", database).json
    with subprocess.Popen(
        [sys.executable, "-c", program, run["run_id"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        ended = gonogo("resume", "last", "--store", database)
        other.communicate(b"")
    assert ended.code == 2
    assert f"is being written by process {other.pid} on {os.uname().nodename}, since 20" in ended.err


@pytest.mark.parametrize(
    ("key", "status", "told"),
    [("", "note", "isn't set"), ("a password", "error", "holds no key"), ("a2" * 21 + "a=", "ok", "is set")],
)
def test_the_doctor_looks_at_the_key_of_secret_outputs(
    gonogo, database: str, monkeypatch: pytest.MonkeyPatch, key: str, status: str, told: str
) -> None:
    """Before a step is refused for want of it; the key itself isn't shown."""
    monkeypatch.setenv("GONOGO_SEAL_KEY", key)
    ended = gonogo("doctor", "--store", database, "--format", "json")
    found = {one["name"]: one for one in ended.json["checks"]}["seal key"]
    assert (found["status"], told in found["text"]) == (status, True)
    assert not key or key not in ended.out
