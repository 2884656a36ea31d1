"""Runs the command line: in this process with streams of our own, or as a real process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gonogo.cli.entry import run
from gonogo.cli.output import Output
from gonogo.cli.session import Session

COMMAND = str(Path(sys.executable).parent / "gonogo")
QUIET_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GIT_", "NO_COLOR"))
} | {"GIT_CEILING_DIRECTORIES": "/", "PYTHONIOENCODING": ""}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be exactly one JSON document."""
        return json.loads(self.out)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Pipe(io.StringIO):
    """A stream that isn't one."""

    encoding = "utf-8"


Gonogo = Callable[..., Ended]


@pytest.fixture
def gonogo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gonogo]:
    """`gonogo("run", "x.yaml")` in this process, in an empty folder. `terminal`: the streams are terminals."""
    monkeypatch.chdir(tmp_path)
    nothing = open(os.devnull)  # noqa: SIM115 - closed below
    monkeypatch.setattr(sys, "stdin", nothing)
    for name in [*os.environ]:
        if name.startswith(("GITHUB_", "NO_COLOR")):
            monkeypatch.delenv(name)

    def call(*arguments: str, terminal: bool = False, **environment: str) -> Ended:
        out, err = (Terminal(), Terminal()) if terminal else (Pipe(), Pipe())
        env = {**QUIET_ENVIRONMENT, **environment}
        code = run(arguments, Session(Output(env, out, err), env, arguments))
        return Ended(code, out.getvalue(), err.getvalue())

    yield call
    nothing.close()


def process(*arguments: str, cwd: Path, **more: Any) -> Ended:
    """The installed command as a process of its own; bytes are read as they come."""
    env = {**QUIET_ENVIRONMENT, **more.pop("env", {})}
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=cwd,
        env=env,
        stdin=more.pop("stdin", subprocess.DEVNULL),
        capture_output=True,
        check=False,
        timeout=60,
        **more,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def write(folder: Path, steps: str, name: str = "gonogo.yaml", top: str = "") -> Path:
    """A workflow file with these steps, each line indented by two."""
    body = "\n".join(f"  {line}" for line in steps.strip("\n").splitlines())
    path = folder / name
    path.write_text(f'version: "1.0"\n{top}steps:\n{body}\n')
    return path
