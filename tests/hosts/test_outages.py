"""A run whose process was gone for a while: timers, clocks, breakers, and what its journal is met with afterwards."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.servers import faulty

from gonogo import app
from gonogo.core.events import CallLost, Resumed, TimerFired
from gonogo.hosts import clock
from gonogo.hosts.base import RunResult
from gonogo.journal.codec import decode_line, encode_line
from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.records import Record
from gonogo.journal.store import Runs

ASKING = """
steps:
  ask: {type: human-input, prompt: "ship?", timeout: 1h, default: "no"}
  then: {type: log, depends_on: ask, message: "{{ outputs.ask.text }}"}
"""
HOUR_S = 3600.0

# Ends its process, without any cleaning up, once a record holds a decision of this kind.
DYING = """
import os, sys
from gonogo import app
def die(record):
    if any(type(decision).__name__ == sys.argv[1] for decision in record.decisions):
        os._exit(9)
app.start_run(app.load("gonogo.yaml"), app.Start(run_id="r"), app.Options(runs="runs", sinks=(die,)))
"""


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The wall clock, when a run is taken up again, says so many seconds more."""
    moved = SimpleNamespace(monotonic=time.monotonic, time=lambda: time.time() + seconds)
    monkeypatch.setattr(clock, "time", moved)


def dies_at(folder: Path, workflow: str, decision: str) -> None:
    """A run whose process ends at the first decision of a kind."""
    (folder / "gonogo.yaml").write_text(f'version: "1.0"\n{workflow}')
    done = subprocess.run([sys.executable, "-c", DYING, decision], cwd=folder, check=False, timeout=60)
    assert done.returncode == 9


def fired(records: list[Record]) -> int:
    """How many timers fired."""
    return sum(isinstance(record.event, TimerFired) for record in records)


def test_a_timer_that_fell_due_during_an_outage_fires_once(
    go: Callable[..., RunResult], runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time nobody was there has passed for the run, too; a second resume finds nothing due."""
    waiting = go(ASKING, run_id="r")
    assert waiting.verdict == "HOLD"
    later(monkeypatch, 2 * HOUR_S)
    result = app.resume_run("r", app.Options(runs=runs))
    assert (result.verdict, result.output("ask")["text"]) == ("GO", "no")
    app.resume_run("r", app.Options(runs=runs))
    assert fired(runs.read("r").records) == 1


def test_a_timer_that_is_not_due_keeps_the_rest_of_its_time(
    go: Callable[..., RunResult], runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither fires early nor begins anew."""
    go(ASKING, run_id="r")
    later(monkeypatch, HOUR_S / 2)
    result = app.resume_run("r", app.Options(runs=runs))
    assert (result.verdict, fired(runs.read("r").records)) == ("HOLD", 0)
    [(due_s, _)] = result.state.timers.values()
    assert due_s == pytest.approx(HOUR_S, abs=5)
    assert result.state.at == pytest.approx(HOUR_S / 2, abs=5)


@pytest.mark.parametrize("seconds", [-HOUR_S, -30 * 365 * 24 * HOUR_S])
def test_TIM_2_a_wall_clock_that_was_set_back_is_no_time(
    go: Callable[..., RunResult], runs: Runs, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """TIM-2: records keep their order, and no wait grows longer."""
    go(ASKING, run_id="r")
    later(monkeypatch, seconds)
    result = app.resume_run("r", app.Options(runs=runs))
    times = [record.event.at for record in runs.read("r").records]
    assert times == sorted(times)
    assert result.state.at < 60


def test_TIM_2_a_clock_of_a_run_follows_no_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """TIM-2: an hour forth, an hour back, while ten seconds pass."""
    passed = SimpleNamespace(s=100.0, wall=1e9)
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: passed.s, time=lambda: passed.wall))
    running = clock.RunClock()
    for passed.s, passed.wall in ((105.0, 1e9 + 3600), (110.0, 1e9 - 3600)):
        assert running.now() == passed.s - 100.0


@pytest.mark.slow
def test_a_wait_between_attempts_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RES-1: killed while it backed off, due meanwhile: one further attempt, at once."""
    workflow = """
steps:
  flaky:
    type: command
    exec: "echo x >> tries; test $(wc -l < tries) -ge 2"
    on_fail: {retry: {max: 2, backoff: {delay: 1m}, retry_on: [transient, logical]}}
"""
    dies_at(tmp_path, workflow, "Retrying")
    monkeypatch.chdir(tmp_path)
    later(monkeypatch, 2 * HOUR_S)
    result = app.resume_run("r", app.Options(runs="runs"))
    assert result.verdict == "GO"
    assert Path("tries").read_text() == "x\nx\n"
    assert fired(app.open_run("r", app.Options(runs="runs"))) == 1


@pytest.mark.slow
def test_a_breaker_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLM-3: a target that was taken out before the kill isn't asked after it."""
    policy = "{bounds: {attempts_per_target: 1, deadline_s: 5}, breaker: {failures: 1}}"
    with faulty.FaultyServer(faulty.answer(503, b"busy")) as far:
        keys = f"type: http_client, url: '{far.url}', allow_private: true, reliability: {policy}"
        both = f"steps:\n  a: {{{keys}, continue_on_failure: true}}\n  b: {{{keys}, depends_on: a}}\n"
        dies_at(tmp_path, both, "Ended")
        monkeypatch.chdir(tmp_path)
        result = app.resume_run("r", app.Options(runs="runs"))
        assert far.connections == 1
    fault = result.state.nodes["b"][""].fault
    assert fault is not None
    assert fault.kind == "gate.circuit-open"


@pytest.mark.slow
def test_RES_1_a_call_that_was_in_flight_is_marked_as_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RES-1: in the journal, after the resume and the loss."""
    dies_at(tmp_path, "steps: {a: {type: command, exec: 'echo a >> effects'}}\n", "Started")
    monkeypatch.chdir(tmp_path)
    assert app.resume_run("r", app.Options(runs="runs")).verdict == "GO"
    records = app.open_run("r", app.Options(runs="runs"))
    assert [type(record.event) for record in records[1:3]] == [Resumed, CallLost]
    [again] = records[2].decisions
    assert again.sentence() == "started again, the earlier call was lost"


@pytest.mark.slow
def test_RES_1_a_kill_within_a_write_costs_that_line_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RES-1: set aside with one note; what was done before isn't done again."""
    steps = "steps:\n  a: {type: command, exec: 'echo a >> effects'}\n  b: {type: noop, depends_on: a}\n"
    dies_at(tmp_path, steps, "Ended")
    monkeypatch.chdir(tmp_path)
    path = Path("runs/r/journal.jsonl")
    lines = path.read_bytes()
    with path.open("ab") as file:
        file.write(lines.splitlines(keepends=True)[-1][:-20])
    result = app.resume_run("r", app.Options(runs="runs"))
    assert (result.verdict, Path("effects").read_text()) == ("GO", "a\n")
    assert [note for note in result.notes if "was cut by a crash" in note] == list(result.notes)
    assert path.read_bytes().startswith(lines)


def test_a_journal_of_a_newer_gonogo_is_not_gone_on_with(
    go: Callable[..., RunResult], runs: Runs, tmp_path: Path
) -> None:
    """What it can't understand it doesn't touch; the way is said."""
    if not isinstance(runs, JsonlRuns):
        pytest.skip("a file is forged")
    go(ASKING, run_id="r")
    path = runs.folder / "r" / "journal.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    record = decode_line(first)
    newer = encode_line(
        Record(
            record.seq, record.at, app_event(record, format_version=2, core_version="9.1"), record.decisions
        )
    )
    path.write_bytes(newer + b"".join(others))
    with pytest.raises(Exception, match="a newer gonogo wrote this: format 2 by gonogo 9.1") as raised:
        app.resume_run("r", app.Options(runs=runs))
    assert "update gonogo" in str(getattr(raised.value, "advice", ""))
    assert path.read_bytes() == newer + b"".join(others)


def app_event(record: Record, **changes: object) -> object:
    """The event of a record with other fields."""
    from msgspec.structs import replace

    return replace(record.event, **changes)


@pytest.mark.slow
def test_a_run_on_a_disk_that_is_read_only_can_be_read_and_says_why_it_stays(
    tmp_path: Path, go: Callable[..., RunResult], runs: Runs
) -> None:
    """show works; resume names the file and the reason, and ends with 2."""
    if not isinstance(runs, JsonlRuns) or shutil.which("unshare") is None:
        pytest.skip("needs a disk, and a mount of its own")
    go(ASKING, run_id="r")
    home = runs.folder
    script = f"mount --bind {home} {home} && mount -o remount,bind,ro {home} || exit 99; "
    command = f"{sys.executable} -m gonogo"
    script += f"{command} show r --runs-dir {home} && {command} resume r --runs-dir {home}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode in (1, 99):
        pytest.skip("no right to mount")
    assert done.returncode == 2, done.stderr
    assert "HOLD" in done.stdout
    assert "Read-only file system" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_is_over_still_gives_its_outputs(go: Callable[..., RunResult], runs: Runs) -> None:
    """They are in no record, so they are computed anew; a parent that was killed before it noted them needs them."""
    workflow = (
        "outputs: [{name: said, value_js: outputs.a.n}]\n"
        "steps:\n  a: {type: script, content: 'return {n: 7}'}\n"
    )
    first = go(workflow, run_id="r")
    again = app.resume_run("r", app.Options(runs=runs))
    assert first.outputs == again.outputs == {"said": 7}
