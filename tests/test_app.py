"""The embedding face, and the failures that a person meets before a run starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gonogo
from gonogo import app
from gonogo.errors import ConfigError, JournalError, RunLocked, UsageError
from gonogo.journal.memory import MemoryRuns

TEXT = 'version: "1.0"\nsteps:\n  a: {type: script, content: "return inputs.n * 2"}\n'


def test_a_workflow_is_loaded_and_run_in_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gonogo.load(...)`, `workflow.run(...)`, then verdict and outputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gonogo.yaml").write_text(TEXT)
    workflow = gonogo.load()
    result = workflow.run(inputs={"n": 21})
    assert (result.verdict, result.output("a")) == ("GO", 42)
    assert (tmp_path / ".gonogo" / "runs" / result.run_id / "journal.jsonl").exists()
    assert gonogo.run(inputs={"n": 1}).output("a") == 2


def test_a_run_kept_in_memory_can_be_resumed(tmp_path: Path) -> None:
    """Programs that embed gonogo need no folder."""
    runs = MemoryRuns()
    parked = gonogo.loads('version: "1.0"\nsteps:\n  a: {type: human-input, prompt: "?"}\n').run(runs=runs)
    assert parked.verdict == "HOLD"
    assert gonogo.resume(parked.run_id, runs=runs).verdict == "HOLD"
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_raises_with_every_problem() -> None:
    """ConfigError carries them all."""
    with pytest.raises(ConfigError) as wrong:
        gonogo.loads("steps:\n  a: {type: nop}\n  b: {type: noop, depends_on: c}\n")
    assert len(wrong.value.problems) >= 3


def test_an_unknown_step_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """Usage errors leave no run."""
    runs = MemoryRuns()
    with pytest.raises(UsageError, match="'b'"):
        gonogo.loads(TEXT).run(steps=("b",), runs=runs)
    assert runs.ids() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_runs_folder_that_cant_be_written_is_told_at_once(tmp_path: Path) -> None:
    """Fail early: nothing has run."""
    (tmp_path / "runs").mkdir(mode=0o500)
    with pytest.raises(JournalError, match="can't create"):
        gonogo.loads(TEXT).run(runs=tmp_path / "runs")


def test_a_file_in_the_way_of_the_runs_folder_is_told_at_once(tmp_path: Path) -> None:
    """Fail early: the message names the path."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(JournalError, match="runs"):
        gonogo.loads(TEXT).run(runs=tmp_path / "runs")


def test_a_run_that_another_one_writes_is_locked() -> None:
    """Two hosts never write one run."""
    runs = MemoryRuns()
    parked = gonogo.loads('version: "1.0"\nsteps:\n  a: {type: human-input, prompt: "?"}\n').run(runs=runs)
    journal = runs.reopen(parked.run_id)
    with pytest.raises(RunLocked):
        gonogo.resume(parked.run_id, runs=runs)
    assert app.answer_run(parked.run_id, "a", "yes", options=app.Options(runs=runs)) is None
    journal.close()
    assert gonogo.resume(parked.run_id, runs=runs).verdict == "GO"


def test_a_disk_that_fills_up_stops_the_run_where_it_was(tmp_path: Path) -> None:
    """The run stops with the journal's error, and can be resumed when there is room."""
    script = (
        "import resource, sys\nfrom gonogo import app\nfrom gonogo.errors import JournalError\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "try:\n    app.start_run(app.load('gonogo.yaml'), app.Start(run_id='r'), app.Options(runs='runs'))\n"
        "except JournalError as error:\n    print(error.message); sys.exit(2)\n"
    )
    steps = "".join(f"  s{n}: {{type: script, content: \"return 'x'.repeat(900)\"}}\n" for n in range(40))
    (tmp_path / "gonogo.yaml").write_text(f'version: "1.0"\nmax_parallelism: 1\nsteps:\n{steps}')
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert "File too large" in done.stdout
    assert app.resume_run("r", app.Options(runs=tmp_path / "runs")).verdict == "GO"


def test_importing_gonogo_is_cheap() -> None:
    """`import gonogo` brings in nothing else."""
    program = (
        "import sys; before = set(sys.modules); import gonogo; print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [name for name in loaded if name.startswith("gonogo")] == ["gonogo"]


def test_a_config_error_tells_every_problem_by_itself() -> None:
    """Who embeds gonogo sees a traceback and nothing else: place, what is wrong and what to write."""
    with pytest.raises(ConfigError) as refused:
        gonogo.loads('version: "1.0"\nsteps:\n  a: {type: comand}\n  b: {type: noop, dependson: a}\n')
    told = str(refused.value).splitlines()
    assert told[0] == "2 problems in the configuration"
    assert told[1].endswith(":3:13: unknown step type 'comand' (did you mean command?)")
    assert "depends_on" in told[2]
