"""What a start loads, which is most of what a short command costs: slow libraries only where they are used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Prints the modules that are loaded when a command ends; the command's own output goes elsewhere.
WATCHED = """
import os, sys
end = os._exit
def told(code):
    os.write(9, (str(code) + " " + " ".join(sys.modules)).encode())
    end(code)
os._exit = told
from gonogo.cli.main import main
main()
"""
OPTIONAL = (
    "pydantic httpx2 jsonschema_rs rich babel pytz dateutil sqlite3 unittest importlib.metadata".split()
)
SHORT_RUN = """\
version: "1.0"
steps:
  first: {type: noop, guarantee: "output === null"}
  second: {type: script, content: "return {n: 3}", depends_on: first, if: "1 < 2"}
  third: {type: log, message: "{{ outputs.second.n }} counted", depends_on: second}
"""


def loaded(folder: Path, *arguments: str, code: int = 0) -> set[str]:
    """The modules that a command has loaded at its end, which must come with this exit code."""
    reader, writer = os.pipe()
    script = f"import os; os.dup2({writer}, 9)\n{WATCHED}"
    child = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=folder, pass_fds=(writer,), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writer)
    with os.fdopen(reader) as told:
        ended, *modules = told.read().split()
    assert (child.wait(), ended) == (code, str(code))
    return set(modules)


def unwanted(modules: set[str], *names: str) -> list[str]:
    """Which of these were loaded."""
    return [name for name in names if name in modules]


def test_help_loads_nothing_but_its_text(tmp_path: Path) -> None:
    """Three modules of gonogo, and not one library."""
    modules = loaded(tmp_path, "--help")
    assert {name for name in modules if name.startswith("gonogo")} == {
        "gonogo", "gonogo.cli", "gonogo.cli.main", "gonogo.cli.process", "gonogo.cli.verbs",
    }  # fmt: skip
    assert not unwanted(modules, *OPTIONAL, "click", "msgspec", "yaml", "asyncio", "pathlib", "json")


def test_a_short_run_loads_only_what_it_uses(tmp_path: Path) -> None:
    """Expressions, a script and a template that names a value: no Liquid, no anyio, no HTTP, no schemas."""
    (tmp_path / "gonogo.yaml").write_text(SHORT_RUN)
    modules = loaded(tmp_path, "run")
    assert not unwanted(modules, *OPTIONAL, "liquid", "anyio", "quickjs", "zipfile", "email")
    assert not unwanted(
        modules, "gonogo.providers.command", "gonogo.providers.http_client", "gonogo.cli.crash"
    )


def test_validating_needs_no_event_loop(tmp_path: Path) -> None:
    """A file is read without what runs it."""
    (tmp_path / "gonogo.yaml").write_text(SHORT_RUN)
    modules = loaded(tmp_path, "validate")
    assert not unwanted(
        modules, *OPTIONAL, "liquid", "anyio", "asyncio", "gonogo.hosts", "gonogo.core.machine"
    )


def test_showing_a_run_needs_no_config_and_no_event_loop(tmp_path: Path) -> None:
    """A journal is read without what reads workflow files and what runs them."""
    (tmp_path / "gonogo.yaml").write_text(SHORT_RUN)
    loaded(tmp_path, "run")
    modules = loaded(tmp_path, "show", "last")
    assert not unwanted(modules, *OPTIONAL, "liquid", "anyio", "asyncio", "yaml", "tree_sitter")
