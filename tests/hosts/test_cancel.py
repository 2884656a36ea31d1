"""Cancelling: signals, requests of other processes, cancelled callers (cases CAN-1 to CAN-3, law 7)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gonogo import app
from gonogo.core.events import CancelAsked
from gonogo.hosts.base import RunResult

STARTING = """
import sys
from gonogo import app
result = app.start_run(app.load("gonogo.yaml"), app.Start(run_id="r"), app.Options(runs="runs", signals=True))
print(result.verdict, result.exit_code)
sys.exit(result.exit_code)
"""


def started(folder: Path, workflow: str) -> subprocess.Popen[str]:
    """A run in a process of its own."""
    (folder / "gonogo.yaml").write_text(f'version: "1.0"\n{workflow}')
    return subprocess.Popen(
        [sys.executable, "-c", STARTING],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def until(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait for a file that the run makes."""
    deadline = time.monotonic() + 30
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)  # noqa: TID251 - a file of another process


def outcome(result: RunResult, step: str) -> str | None:
    """How a step ended."""
    return result.state.nodes[step][""].outcome


def started_by(path: Path) -> bool:
    """Whether a command has written its process id."""
    return path.exists() and path.read_text() != ""


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


STUBBORN = """
steps:
  work:
    type: command
    exec: |
      sh -c 'trap "" TERM; echo $$ > stubborn.pid; sleep 300 & wait; sleep 300' &
      trap 'echo cleaned > cleaned; exit 0' TERM
      echo $$ > polite.pid
      sleep 300 & wait
    on_fail: {retry: {max: 5, retry_on: [transient, logical]}}
  after: {type: command, exec: "touch after", depends_on: work}
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_can_2_a_signal_ends_every_process_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """CAN-1, CAN-2: nothing lives on, nothing new starts, the polite one could clean up; exit 130 without a
    traceback, and the run can be resumed.
    """
    process = started(tmp_path, STUBBORN)
    until(tmp_path / "stubborn.pid", process)
    until(tmp_path / "polite.pid", process)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "NO-GO 130\n", "")
    pids = [int((tmp_path / name).read_text()) for name in ("stubborn.pid", "polite.pid")]
    assert [pid for pid in pids if alive(pid)] == []
    assert (tmp_path / "cleaned").exists()
    assert not (tmp_path / "after").exists()
    (tmp_path / "gonogo.yaml").unlink()
    records = app.open_run("r", app.Options(runs=tmp_path / "runs"))
    asked = [record.event for record in records if isinstance(record.event, CancelAsked)]
    assert [(event.by, event.interrupted) for event in asked] == [(number.name, True)]


@pytest.mark.slow
def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was cancelled runs again on resume; what was done stays done."""
    process = started(
        tmp_path,
        """
steps:
  first: {type: command, exec: "echo x >> first.txt"}
  second: {type: command, exec: "touch second; test -e go_on || sleep 300", depends_on: first}
""",
    )
    until(tmp_path / "second", process)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.communicate()
    (tmp_path / "go_on").touch()
    monkeypatch.chdir(tmp_path)
    result = app.resume_run("r", app.Options(runs="runs"))
    assert result.verdict == "GO"
    assert Path("first.txt").read_text() == "x\n"


@pytest.mark.slow
def test_a_second_signal_stops_cleanup_too(tmp_path: Path) -> None:
    """Semantics 5: always() steps run within the cleanup grace; a second cancel stops all."""
    process = started(
        tmp_path,
        """
steps:
  work: {type: command, exec: "touch working; sleep 300"}
  cleanup: {type: command, exec: "touch cleaning; sleep 300", depends_on: work, if: "always()"}
""",
    )
    until(tmp_path / "working", process)
    process.send_signal(signal.SIGINT)
    until(tmp_path / "cleaning", process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130


@pytest.mark.slow
def test_another_process_can_cancel_a_running_run(tmp_path: Path) -> None:
    """The request is taken in by the process that runs it."""
    process = started(tmp_path, 'steps:\n  work: {type: command, exec: "touch working; sleep 300"}\n')
    until(tmp_path / "working", process)
    assert app.cancel_run("r", by="me", options=app.Options(runs=tmp_path / "runs")) is None
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (1, "NO-GO 1\n", "")


@pytest.mark.slow
def test_another_process_can_answer_a_running_run(tmp_path: Path) -> None:
    """An answer reaches a step that waits while others run."""
    process = started(
        tmp_path,
        """
max_parallelism: 2
steps:
  ask: {type: human-input, prompt: "go on?"}
  busy: {type: command, exec: "touch busy; while ! test -e stop; do sleep 0.05; done"}
  after: {type: command, exec: "touch stop", depends_on: ask}
""",
    )
    until(tmp_path / "busy", process)
    app.answer_run("r", "ask", "yes", options=app.Options(runs=tmp_path / "runs"))
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "GO 0\n", "")


def test_can_3_a_cancel_is_never_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAN-3: a chain cancelled at any record ends cancelled; what was done is what the journal says."""
    steps = "".join(
        f"  s{n}: {{type: command, exec: 'echo {n} >> steps.txt'{f', depends_on: s{n - 1}' if n else ''}}}\n"
        for n in range(8)
    )
    plan = app.loads(f'version: "1.0"\nsteps:\n{steps}').plan
    for last in range(8):
        folder = tmp_path / str(last)
        folder.mkdir()
        monkeypatch.chdir(folder)
        result = asyncio.run(cancelled_at(plan, last))
        assert result.state.stopping == "cancelled"
        done = Path("steps.txt").read_text().splitlines() if Path("steps.txt").exists() else []
        passed = [
            name for name, nodes in result.state.nodes.items() if nodes and nodes[""].outcome == "passed"
        ]
        assert len(passed) <= len(done) <= len(passed) + 1


async def cancelled_at(plan: object, last: int) -> RunResult:
    """Run, and leave a cancel in the run's inbox at a record; a poll takes it in."""
    from gonogo.core.apply import fold
    from gonogo.hosts.local import result_of

    task: asyncio.Task[RunResult] | None = None

    def cancel(record: object) -> None:
        if getattr(record, "seq", None) == last and task is not None:
            task.cancel()

    options = app.Options(runs="runs", sinks=(cancel,))
    task = asyncio.create_task(app.start_run_async(plan, app.Start(run_id="r"), options))  # type: ignore[arg-type]
    with pytest.raises(asyncio.CancelledError):
        await task
    return result_of(fold(app.open_run("r", app.Options(runs="runs"))))


def test_a_cancelled_caller_cancels_the_run_and_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAN-1: cancelling the task around a run ends the run in short time, as cancelled, and goes on."""
    monkeypatch.chdir(tmp_path)
    plan = app.loads(
        'version: "1.0"\nsteps:\n  slow: {type: command, exec: "echo $$ > pid; sleep 300"}\n'
        "  after: {type: noop, depends_on: slow}\n"
    ).plan

    async def main() -> None:
        task = asyncio.create_task(app.start_run_async(plan, app.Start(run_id="r"), app.Options(runs="runs")))
        while not started_by(Path("pid")):  # noqa: ASYNC110 - a file of another process
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not alive(int(Path("pid").read_text()))
    result = app.list_runs(app.Options(runs="runs"))[0]
    assert result.verdict == "NO-GO"


def test_an_anyio_scope_around_a_run_cancels_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout of the caller's ends the run gently, once: cleanup is not stopped by it."""
    import anyio

    monkeypatch.chdir(tmp_path)
    plan = app.loads(
        'version: "1.0"\nsteps:\n  slow: {type: command, exec: "sleep 300"}\n'
        '  clean: {type: command, exec: "touch cleaned", depends_on: slow, if: "always()"}\n'
    ).plan

    async def main() -> None:
        with anyio.move_on_after(0.3) as scope:
            await app.start_run_async(plan, app.Start(run_id="r"), app.Options(runs="runs"))
        assert scope.cancelled_caught

    asyncio.run(main())
    assert Path("cleaned").exists()


def test_ctrl_c_without_handlers_leaves_a_run_that_resumes(tmp_path: Path) -> None:
    """A program that embeds gonogo gets its KeyboardInterrupt, and the journal is whole."""
    script = STARTING.replace(", signals=True", "")
    (tmp_path / "gonogo.yaml").write_text(
        'version: "1.0"\nsteps:\n  work: {type: command, exec: "touch working; test -e go_on || sleep 300"}\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(tmp_path / "working", process)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in err
    (tmp_path / "go_on").touch()
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        assert app.resume_run("r", app.Options(runs="runs")).verdict == "GO"
    finally:
        os.chdir(before)
