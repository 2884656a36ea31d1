"""What comes twice, too late, too early, too large, or can't be read: each has one clear outcome on each engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from tests.engines.world import HEAD, World
from tests.servers import faulty
from tests.servers.faulty import FaultyServer
from tests.servers.postgres import Server

from gonogo import app
from gonogo.app.engines import Carrier, engine_for
from gonogo.core.events import AnswerGiven
from gonogo.engines.base import Errand
from gonogo.errors import UsageError

FAR = """
steps:
  far: {type: command, runs_on: far, exec: "echo x >> done", mutates: true}
  last: {type: noop, depends_on: [far]}
"""
FAR_LIST = """
max_parallelism: 6
steps:
  list: {type: script, forEach: true, forEach_concurrency: 6, content: "return [1, 2, 3, 4, 5, 6]"}
  far: {type: command, depends_on: [list], runs_on: far, exec: "echo {{ item | shell_escape }} >> done"}
"""
RETRIES = """
max_parallelism: 6
budget: {retries: 5}
steps:
  list: {type: script, forEach: true, forEach_concurrency: 6, content: "return [1, 2, 3, 4, 5, 6]"}
  each:
    type: http_client
    depends_on: [list]
    url: URL
    criticality: info
    reliability: {backoff: {base_s: 0.01}, breaker: null}
"""
ASK = "steps:\n  ask: {type: human-input, prompt: well}\n"
LARGE_BYTES = 3 * 1024 * 1024
"""More than Temporal takes in one message."""

pytestmark = pytest.mark.slow


def verdict(here: World, run_id: str) -> str:
    """Once the run is over or waits."""
    state = here.ended(run_id)
    assert state.finished is not None
    return state.finished.verdict


def test_of_two_answers_one_is_taken_and_the_other_told_whose(here: World) -> None:
    """Both are there before anybody looks; and so for one that comes after the end of the wait."""
    here.worker()
    run_id = here.submit(ASK + "  more: {type: human-input, prompt: more, depends_on: [ask]}\n")
    assert verdict(here, run_id) == "HOLD"
    assert app.answer_run(run_id, "ask", "yes", by="ann", options=here.options) is None
    with pytest.raises(UsageError, match="ask took no answer: it was answered already, by ann"):
        app.answer_run(run_id, "ask", "no", by="ben", options=here.options)
    state = here.state(run_id)
    assert state is not None
    assert state.nodes["ask"][""].output == {"text": "yes", "by": "ann"}


def test_of_two_answers_at_the_same_moment_the_first_is_taken(here: World) -> None:
    """Nobody has seen the other's; the second changes nothing, and is told in the journal."""
    here.worker()
    run_id = here.submit(ASK)
    assert verdict(here, run_id) == "HOLD"
    inbox = here.runs.inbox(run_id)
    inbox.put(AnswerGiven(step="ask", text="yes", by="ann"))
    inbox.put(AnswerGiven(step="ask", text="no", by="ben"))
    engine = engine_for(here.carrier, here.options)
    engine.submit(run_id)
    engine.close()
    here.wait(lambda: verdict(here, run_id) == "GO", "the end")
    state = here.state(run_id)
    assert state is not None
    assert state.nodes["ask"][""].output == {"text": "yes", "by": "ann"}


def test_an_answer_after_the_timeout_is_told_so(here: World) -> None:
    """The default stands."""
    here.worker()
    text = "steps:\n  ask: {type: human-input, prompt: well, timeout: 200, default: 'no'}\n"
    run_id = here.submit(text + "  more: {type: human-input, prompt: more, depends_on: [ask]}\n")

    def waits_for_more() -> bool:
        state = here.state(run_id)
        return state is not None and "" in state.nodes["more"] and state.nodes["more"][""].hold is not None

    here.wait(waits_for_more, "the timeout")
    with pytest.raises(UsageError, match="ask took no answer: its time for an answer was over"):
        app.answer_run(run_id, "ask", "yes", by="ben", options=here.options)


def test_a_call_that_is_handed_over_again_and_again_is_performed_once(here: World) -> None:
    """Before it is taken, and after it has ended; and so is a run that is woken without a cause."""
    engine = None
    here.worker()
    run_id = here.submit(FAR)
    try:
        engine = engine_for(here.carrier, here.options)
        here.wait(lambda: bool(here.runs.pool.open(run_id)), "the ticket")
        (call,) = here.runs.pool.open(run_id)
        for _ in range(3):
            engine.perform([Errand(run_id, call, "far")])
            engine.submit(run_id)
        here.worker("--label", "far")
        here.worker("--label", "far")
        assert verdict(here, run_id) == "GO"
        engine.perform([Errand(run_id, call, "far")])
        engine.submit(run_id)
        other = here.submit(FAR)
        assert verdict(here, other) == "GO"
    finally:
        if engine is not None:
            engine.close()
    assert here.lines("done") == ["x", "x"]
    records = [record.seq for record in here.runs.records_after(run_id, -1)]
    assert records == list(range(len(records)))


def test_a_run_that_is_woken_before_its_time_waits_on(here: World) -> None:
    """A timer goes by the run's clock, whoever wakes it when."""
    here.worker()
    run_id = here.submit("steps:\n  ask: {type: human-input, prompt: well, timeout: 3000, default: 'no'}\n")
    assert verdict(here, run_id) == "HOLD"
    engine = engine_for(here.carrier, here.options)
    try:
        for _ in range(3):
            engine.submit(run_id)
        here.wait(lambda: verdict(here, run_id) == "GO", "the timeout")
    finally:
        engine.close()
    state = here.state(run_id)
    assert state is not None
    assert state.at >= 3.0
    assert state.nodes["ask"][""].output["text"] == "no"


def test_a_ticket_that_cannot_be_read_fails_its_call(here: World) -> None:
    """Somebody changed its row; the run goes on to its end instead of waiting for ever."""
    here.worker()
    run_id = here.submit(FAR)
    here.wait(lambda: bool(here.runs.pool.open(run_id)), "the ticket")
    with psycopg.connect(here.store, autocommit=True) as other:
        other.execute("update gonogo_tickets set command = 'x' where run_id = %s", [run_id])
    here.worker("--label", "far")
    assert verdict(here, run_id) == "NO-GO"
    state = here.state(run_id)
    assert state is not None
    fault = state.nodes["far"][""].fault
    assert fault is not None
    assert (fault.kind, here.lines("done")) == ("call.unreadable", [])


@pytest.mark.parametrize("damage", ["command = 'x'", "seq = 100000"])
def test_of_calls_that_come_together_only_the_damaged_one_fails(here: World, damage: str) -> None:
    """Its row was changed; the others are performed as if nothing were."""
    here.worker()
    run_id = here.submit(FAR_LIST)
    here.wait(lambda: len(here.runs.pool.open(run_id)) == 6, "the tickets")
    calls = sorted(here.runs.pool.open(run_id))
    with psycopg.connect(here.store, autocommit=True) as other:
        other.execute(f"update gonogo_tickets set {damage} where call = %s", [calls[2]])
    here.worker("--label", "far")
    assert verdict(here, run_id) == "NO-GO"
    state = here.state(run_id)
    assert state is not None
    faults = {scope: node.fault.kind for scope, node in state.nodes["far"].items() if node.fault is not None}
    kind = "call.unreadable" if "command" in damage else "call.unperformed"
    assert list(faults.values()) == [kind]
    assert sorted(here.lines("done")) == ["1", "2", "4", "5", "6"]


def test_values_larger_than_an_engine_takes_go_by_the_store(here: World) -> None:
    """Three megabytes each way, as an input of the run and as the output of a call elsewhere."""
    here.worker("--label", "far")
    text = f"""
inputs: [{{name: given}}]
steps:
  far: {{type: command, runs_on: far, exec: "head -c {LARGE_BYTES} /dev/zero | tr '\\\\0' x"}}
  sum: {{type: script, depends_on: [far], content: "return outputs.far.length + inputs.given.length"}}
"""
    run_id = here.submit(text, inputs={"given": "y" * LARGE_BYTES})
    assert verdict(here, run_id) == "GO"
    state = here.state(run_id)
    assert state is not None
    assert state.nodes["sum"][""].output == 2 * LARGE_BYTES


def test_a_run_that_the_store_doesnt_have_is_told_of_at_once_and_isnt_set_aside(here: World) -> None:
    """It was deleted, or somebody has two stores' workers share a queue."""
    here.worker()
    engine = engine_for(here.carrier, here.options)
    engine.submit("20260101-000000-abcdef")
    engine.close()
    here.wait(
        lambda: any("there is no run 20260101-000000-abcdef" in line for line in here.said), "the reason"
    )
    assert any("is another store's" in line for line in here.said)
    assert not any("aside" in line or "tried again" in line for line in here.said)


def test_a_run_of_a_newer_gonogo_is_left_to_a_newer_worker(here: World) -> None:
    """It is neither begun nor set aside; who can read it goes on with it."""
    from gonogo.core.events import RunStarted
    from gonogo.journal.records import FORMAT_VERSION

    here.worker()
    text = app.loads(HEAD + "steps: {one: {type: noop}}\n").plan
    newer = RunStarted(
        run_id="r", plan=text, started_at_ms=1, format_version=FORMAT_VERSION + 1, core_version="9"
    )
    here.runs.submit(newer)
    engine = engine_for(here.carrier, here.options)
    try:
        engine.submit("r")
        told = f"run r is left to a newer worker: .*format {FORMAT_VERSION + 1} by gonogo 9"
        here.wait(lambda: any(re.search(told, line) for line in here.said), "the message")
    finally:
        engine.close()
    assert here.state("r") is None
    (one,) = app.list_runs(here.options, ["r"])
    assert (one.queued, one.aside) == (True, None)


def test_a_call_of_a_newer_gonogo_is_left_to_a_newer_worker(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is begun, so it isn't in doubt though it mutates; once it can be read it is performed."""
    here.worker()
    run_id = here.submit(FAR)
    here.wait(lambda: bool(here.runs.pool.open(run_id)), "the ticket")
    (call,) = here.runs.pool.open(run_id)
    with psycopg.connect(here.store, autocommit=True) as other:
        [(command,)] = other.execute("select command from gonogo_tickets").fetchall()
        newer = command.replace(b'"mutates"', b'"wonders"')
        other.execute("update gonogo_tickets set command = %s", [newer])
        here.worker("--label", "far")
        here.wait(lambda: bool(here.runs.pool.passed_over(run_id, call)), "the older worker")
        other.execute("update gonogo_tickets set command = %s", [command])
    assert any(f"call {call} of run {run_id} is left to a newer worker" in line for line in here.said)
    assert verdict(here, run_id) == "GO"
    assert here.lines("done") == ["x"]


def test_workers_of_a_store_that_a_newer_gonogo_made_leave_its_runs(here: World) -> None:
    """They learn of it when their connections are made anew. Nothing is set aside or begun."""
    here.worker("--label", "far")
    run_id = here.submit(ASK)
    assert verdict(here, run_id) == "HOLD"
    with psycopg.connect(here.store, autocommit=True) as other:
        other.execute("update gonogo_schema set version = version + 1")
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
            " and application_name like 'gonogo-%'"
        )
        inbox_of = "insert into gonogo_inbox (run_id, token, request) values (%s, 'x', %s)"
        answer = b'{"type":"answer_given","step":"ask","text":"yes","by":"ann"}'
        other.execute(inbox_of, [run_id, answer])
        engine = engine_for(here.carrier, here.options)
        engine.submit(run_id)
        told = "a newer gonogo made the tables"
        here.wait(lambda: any(told in line for line in here.said), "the message")
        other.execute("update gonogo_schema set version = version - 1")
        engine.close()
        (one,) = app.list_runs(here.options, [run_id])
        assert one.aside is None
    here.wait(lambda: verdict(here, run_id) == "GO", "the end")


def test_no_worker_begins_in_a_store_that_a_newer_gonogo_made(on_dbos: World) -> None:
    """It would take work that it can't do."""
    on_dbos.worker().kill()
    with psycopg.connect(on_dbos.store, autocommit=True) as other:
        other.execute("update gonogo_schema set version = version + 1")
    worker = on_dbos.starting()
    assert worker.wait(60) == 2
    on_dbos.wait(lambda: any("a newer gonogo made the tables" in line for line in on_dbos.said), "the reason")
    assert any("update gonogo on this machine" in line for line in on_dbos.said)


def test_no_worker_begins_in_a_database_that_cannot_hold_every_text(postgres: Server, tmp_path: Path) -> None:
    """Nor does its engine make anything there. The message says how to make one that can."""
    postgres.execute("create database plain encoding 'SQL_ASCII' template template0")
    plain = World(postgres.url("plain"), tmp_path, Carrier("dbos"))
    try:
        assert plain.starting().wait(60) == 2
        plain.wait(lambda: any("createdb --encoding UTF8" in line for line in plain.said), "the advice")
        with psycopg.connect(plain.store) as other:
            assert (
                other.execute("select nspname from pg_namespace where nspname like 'dbos%'").fetchall() == []
            )
    finally:
        plain.close()
        postgres.drop(plain.store)


def test_a_list_on_several_workers_spends_no_more_than_its_budget(here: World) -> None:
    """Each attempt of a call asks the run's core first, over the store."""
    with FaultyServer(*(faulty.answer(503, b"busy") for _ in range(60))) as far:
        here.worker("--calls", "2")
        here.worker("--calls", "2")
        state = here.ended(here.submit(RETRIES.replace("URL", far.url)))
        assert state.spent.retries == 5
        assert len(far.requests) <= 6 + 5
    by = {line.partition(" ")[0] for line in here.said if "takes work" in line}
    assert len(by) == 2


@pytest.mark.parametrize(
    ("engine", "package", "extra"), [("dbos", "dbos", "durable"), ("temporal", "temporalio", "temporal")]
)
def test_without_the_package_of_an_engine_its_extra_is_named(
    tmp_path: Path, engine: str, package: str, extra: str
) -> None:
    """To a worker, and to who hands a run over."""
    (tmp_path / "gonogo.yaml").write_text(HEAD + "steps: {one: {type: noop}}\n")
    script = f"""
import sys
sys.modules[{package!r}] = None
from gonogo.cli.main import main
main()
"""
    where = ["--engine", engine, "--store", "postgresql://ann@127.0.0.1:1/x"]
    where += ["--url", "127.0.0.1:1"] if engine == "temporal" else []
    for verb in ("worker", "run"):
        done = subprocess.run(
            [sys.executable, "-c", script, verb, *where],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert f"the engine {engine} needs packages that aren't installed" in done.stderr
        assert f"pip install 'gonogo[{extra}]'" in done.stderr
