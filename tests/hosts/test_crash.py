"""A run whose process ends at any record goes on to the same end (case RES-1, architecture.md law 3)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gonogo import app
from gonogo.hosts.base import RunResult

WORKFLOW = """
version: "1.0"
max_parallelism: 1
steps:
  list: {type: script, forEach: true, content: "return [1, 2]"}
  each:
    type: command
    exec: echo "each $N" >> effects.txt
    env: {N: "{{ item }}"}
    depends_on: list
    fanout: map
    guarantee: "attempt >= 1"
  flaky:
    type: command
    exec: echo flaky >> effects.txt; test $(grep -c flaky effects.txt) -ge 2
    depends_on: each
    fanout: reduce
    on_fail: {retry: {max: 9, backoff: {delay: 1ms}, retry_on: [transient, logical]}}
  remember: {type: memory, operation: increment, key: n, depends_on: flaky}
  last:
    type: script
    content: return [memory.get('n'), outputs.list.length]
    depends_on: remember
    if: outputs.list
"""

# Ends its process, without any cleaning up, in a sink: after record N is in the journal, before its commands are
# performed.
CRASHING = """
import os, sys
from gonogo import app
last = int(sys.argv[1])
def crash(record):
    if record.seq == last:
        os._exit(9)
options = app.Options(runs="runs", sinks=(crash,))
if len(sys.argv) > 2:
    app.resume_run("r", options)
else:
    app.start_run(app.load("gonogo.yaml"), app.Start(run_id="r"), options)
"""


def crash_at(folder: Path, record: int, *, resume: bool = False) -> int:
    """Run in a child process until a record; its exit code."""
    arguments = [sys.executable, "-c", CRASHING, str(record), *(["resume"] if resume else [])]
    return subprocess.run(arguments, cwd=folder, check=False, timeout=60).returncode


def report(result: RunResult) -> dict[str, object]:
    """What must be the same, crash or not."""
    steps = {
        name: (nodes[""].outcome, result.output(name))
        for name, nodes in result.state.nodes.items()
        if "" in nodes
    }
    return {"verdict": result.verdict, "steps": steps, "memory": result.state.memory}


def records_in(folder: Path) -> int:
    """How many records the journal has."""
    return len(app.open_run("r", app.Options(runs=folder / "runs")))


@pytest.mark.slow
def test_res_1_a_crash_at_any_record_changes_nothing_that_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RES-1, I.1 row 17, I.2 property crash-resume: after a crash at each record in turn, the resumed run ends
    with the same report, and a step with a complete record isn't done again.
    """
    whole = tmp_path / "whole"
    whole.mkdir()
    monkeypatch.chdir(whole)
    expected = report(app.start_run(app.loads(WORKFLOW), app.Start(run_id="r")))
    count = len(app.open_run("r"))
    assert count >= 12
    for record in range(count):
        folder = tmp_path / f"at{record}"
        folder.mkdir()
        (folder / "gonogo.yaml").write_text(WORKFLOW)
        assert crash_at(folder, record) == 9, record
        monkeypatch.chdir(folder)
        result = app.resume_run("r", app.Options(runs="runs"))
        assert report(result) == expected, record
        effects = (folder / "effects.txt").read_text().splitlines()
        assert {f"each {n}" for n in (1, 2)} <= set(effects)
        # At most the one call in flight is done twice.
        assert len(effects) <= 5, (record, effects)


@pytest.mark.slow
def test_a_run_that_crashes_again_and_again_still_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each life of the run gets three records further."""
    (tmp_path / "gonogo.yaml").write_text(WORKFLOW)
    assert crash_at(tmp_path, 2) == 9
    for _ in range(30):
        last = records_in(tmp_path) + 3
        if crash_at(tmp_path, last, resume=True) == 0:
            break
    monkeypatch.chdir(tmp_path)
    assert app.resume_run("r", app.Options(runs="runs")).verdict == "GO"


MUTATING = """
version: "1.0"
steps:
  post: {type: command, exec: "echo posted >> posted.txt", mutates: true}
  after: {type: noop, depends_on: post}
"""


@pytest.mark.slow
def test_a_mutating_call_is_never_done_twice_by_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 3, semantics 16: lost after its intent was recorded it is in doubt, and a person says what became of it."""
    ends = []
    for record in range(3):
        folder = tmp_path / str(record)
        folder.mkdir()
        (folder / "gonogo.yaml").write_text(MUTATING)
        crash_at(folder, record)
        monkeypatch.chdir(folder)
        options = app.Options(runs="runs")
        result = app.resume_run("r", options)
        if result.verdict == "HOLD":
            assert result.waiting == ("post",)
            word = "done" if Path("posted.txt").exists() else "again"
            answered = app.answer_run("r", "post", word, options=options)
            assert answered is not None
            result = answered
        ends.append(result.verdict)
        assert Path("posted.txt").read_text() == "posted\n"
    assert ends == ["GO", "GO", "GO"]


UNDONE = """
version: "1.0"
compensate_on: [cancelled]
steps:
  book: {type: command, exec: "echo book >> done.txt", mutates: true, compensate: unbook}
  pay: {type: command, exec: "echo pay >> done.txt", mutates: true, compensate: refund, depends_on: book}
  ask: {type: human-input, prompt: "well?", depends_on: pay}
  refund: {type: command, exec: "echo refund >> done.txt", mutates: true}
  unbook: {type: command, exec: "echo unbook >> done.txt", mutates: true}
"""

# Cancels the run `r`, and ends its process when the start of `refund` is in the journal: before the call, or after it.
CANCELLING = """
import os, sys
from gonogo import app
acts = sys.argv[1] == "acts"
def crash(record):
    if any(type(each).__name__ == "Started" and each.step == "refund" for each in record.decisions):
        if acts:
            open("done.txt", "a").write("refund\\n")
        os._exit(9)
app.cancel_run("r", by="me", options=app.Options(runs="runs", sinks=(crash,)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "acts"])
def test_an_undoing_lost_in_a_crash_is_asked_about_before_the_cancelled_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Law 3, semantics 16 and 20: a person says what became of it, and the rest is undone; then it can begin again."""
    monkeypatch.chdir(tmp_path)
    options = app.Options(runs="runs")
    assert app.start_run(app.loads(UNDONE), app.Start(run_id="r"), options).verdict == "HOLD"
    crashed = subprocess.run([sys.executable, "-c", CANCELLING, moment], check=False, timeout=60)
    assert crashed.returncode == 9
    resumed = app.resume_run("r", options)
    assert (resumed.verdict, resumed.waiting) == ("HOLD", ("refund",))
    word = "done" if moment == "acts" else "again"
    answered = app.answer_run("r", "refund", word, options=options)
    assert answered is not None
    assert answered.verdict == "NO-GO"
    assert Path("done.txt").read_text().split() == ["book", "pay", "refund", "unbook"]
    assert app.resume_run("r", options).waiting == ("ask",)
    assert Path("done.txt").read_text().split()[4:] == ["book", "pay"]


def test_a_torn_last_line_is_set_aside_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RES-1: what a crash cut is left out, nothing before it is lost, and the person is told."""
    (tmp_path / "gonogo.yaml").write_text(WORKFLOW)
    crash_at(tmp_path, 6)
    journal = tmp_path / "runs" / "r" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    monkeypatch.chdir(tmp_path)
    result = app.resume_run("r", app.Options(runs="runs"))
    assert result.verdict == "GO"
    assert "cut by a crash" in result.notes[0]


@pytest.mark.slow
def test_a_crashed_run_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 7: nobody runs it, so it is ended here; nothing new is started."""
    (tmp_path / "gonogo.yaml").write_text(
        'version: "1.0"\nsteps:\n  one: {type: command, exec: "echo x >> one.txt"}\n'
        '  two: {type: command, exec: "touch two.txt", depends_on: one}\n'
    )
    assert crash_at(tmp_path, 0) == 9
    monkeypatch.chdir(tmp_path)
    result = app.cancel_run("r", by="me", options=app.Options(runs="runs"))
    assert result is not None
    assert (result.verdict, result.state.stopping) == ("NO-GO", "cancelled")
    assert not Path("one.txt").exists()
    assert not Path("two.txt").exists()
