"""The way in: help without imports, the table of verbs, the end of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.cli.conftest import COMMAND, process

from gonogo import app
from gonogo.cli import process as process_start
from gonogo.cli.group import Verbs
from gonogo.cli.session import DEFAULT_RUNS_DIR
from gonogo.cli.verbs import VERBS, help_text
from gonogo.hosts import local


def test_every_verb_in_the_table_has_a_command() -> None:
    """Loaded by name, with the verb's name and help."""
    verbs = Verbs()
    context = click.Context(verbs)
    assert verbs.list_commands(context) == list(VERBS)
    for name in VERBS:
        command = verbs.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.help


def test_help_names_every_verb(tmp_path: Path) -> None:
    """The quick way and click's way print the same."""
    quick = process("--help", cwd=tmp_path)
    assert quick.out == help_text()
    assert quick.code == 0
    assert process(cwd=tmp_path).out == quick.out
    assert Verbs().get_help(click.Context(Verbs())) == help_text().rstrip()


def test_help_imports_nothing_slow() -> None:
    """Neither click nor anything that takes longer."""
    script = (
        "import sys, gonogo.cli.main as main\n"
        "main._run(['--help'])\n"
        "print(sorted(name for name in sys.modules if name.partition('.')[0] in "
        "{'click', 'rich', 'pydantic', 'httpx2', 'anyio', 'asyncio', 'yaml', 'msgspec'}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_usual_run_needs_neither_rich_nor_an_http_client(tmp_path: Path) -> None:
    """Start-up budget: what a step doesn't use isn't imported."""
    (tmp_path / "gonogo.yaml").write_text('version: "1.0"\nsteps:\n  a: {type: noop}\n')
    script = (
        "import sys\nfrom gonogo.cli.entry import run\ncode = run(['run', '-q'])\n"
        "print(code, sorted({'rich', 'httpx2', 'jsonschema_rs'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.stderr.strip() == "0 []"


def test_the_module_is_the_command(tmp_path: Path) -> None:
    """`python -m gonogo`."""
    done = subprocess.run(
        [sys.executable, "-m", "gonogo", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("gonogo ")


@pytest.mark.parametrize("arguments", [["--help"], ["schema"]])
def test_a_closed_pipe_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    """CLI-2: `| head -1` gives no traceback, and the exit code stays what it is."""
    script = f"set -o pipefail; {COMMAND} {' '.join(arguments)} | head -c 1; echo $?"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("0\n")
    assert done.stderr == ""


def test_closed_streams_are_no_error(tmp_path: Path) -> None:
    """`>&- 2>&-`: nothing to print to, and still the right exit code."""
    (tmp_path / "gonogo.yaml").write_text('version: "1.0"\nsteps:\n  a: {type: noop}\n')
    done = subprocess.run(["bash", "-c", f"{COMMAND} run >&- 2>&- <&-"], cwd=tmp_path, check=False)
    assert done.returncode == 0


def test_the_command_and_the_host_hear_the_same_signals() -> None:
    """Written twice, because `--help` must not load a host; as is the folder of the runs."""
    assert process_start.ENDING == local.SIGNALS
    assert Path(app.RUNS_DIR) == DEFAULT_RUNS_DIR
