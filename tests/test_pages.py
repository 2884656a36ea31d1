"""Pages that are run as they stand: what they tell a reader to type is typed, what they show is looked for.

Comments that a reader doesn't see mark the blocks: `file: NAME` writes the next block, `run: CODE` runs it and expects
that exit code, `shows` looks for each of its lines, in order, in what the last run printed. A line may leave things out
at its end, or between its words: times and names of runs differ.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"<!-- (file|run|shows)(?:: (\S+))? -->\n```\w+\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A marked block: what to do with it, the file's name or the exit code, and its text."""

    kind: str
    what: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The marked blocks in order."""
    return [Block(kind, what, text) for kind, what, text in BLOCK.findall(page.read_text())]


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if blocks(page)]


def ran(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The commands in a shell that stops at the first failure, with the `gonogo` of this virtualenv."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    unset = {"CI", "GITHUB_ACTIONS", "FORCE_COLOR"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        ["/bin/sh", "-e", "-c", commands],
        cwd=folder,
        env={**environment, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def missing(shown: str, said: str) -> Iterator[str]:
    """Lines that the page shows and the run didn't say, in this order."""
    words_said = " ".join(said.split())
    for line in shown.splitlines():
        words = " ".join(line.split())
        before, found, after = words_said.partition(words)
        if not found:
            yield line
        words_said = after if found else before


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    """In an empty folder, block by block: exit codes and texts are those of the page."""
    said = ""
    for block in blocks(page):
        if block.kind == "file":
            (tmp_path / block.what).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.what).write_text(block.text)
        elif block.kind == "run":
            done = ran(block.text, tmp_path)
            said = done.stdout + done.stderr
            assert done.returncode == int(block.what), said
        else:
            assert list(missing(block.text, said)) == [], said


def test_the_first_page_is_run() -> None:
    """A change of the marks can't make the tests of pages pass by running nothing."""
    kinds = [block.kind for block in blocks(DOCS / "start" / "first-workflow.md")]
    assert (kinds.count("run") >= 6, kinds.count("shows") >= 6) == (True, True)


def test_lines_that_were_not_said_are_found() -> None:
    """Order counts, white space doesn't."""
    assert list(missing("a b\nc", "x a   b 12 ms\nc")) == []
    assert list(missing("c\na b", "a b c")) == ["a b"]
