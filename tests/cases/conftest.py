"""Whole runs, each in a folder of its own; and the installed command as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.whole import run_yaml

__all__ = ["run_yaml"]

ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GIT_", "NO_COLOR"))
} | {"GIT_CEILING_DIRECTORIES": "/"}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)


@pytest.fixture
def gonogo(tmp_path: Path) -> Callable[..., Ended]:
    """`gonogo(text, "run", …)` writes `gonogo.yaml` and runs the command there, at most 30 s."""
    folder = tmp_path / "process"
    folder.mkdir()

    def call(text: str, *arguments: str, **more: Any) -> Ended:
        (folder / "gonogo.yaml").write_text(text)
        env = {**ENVIRONMENT, **more.pop("env", {})}
        done = subprocess.run(
            [sys.executable, "-m", "gonogo", *arguments],
            cwd=folder,
            env=env,
            stdin=more.pop("stdin", subprocess.DEVNULL),
            capture_output=True,
            check=False,
            timeout=30,
            **more,
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))

    return call
