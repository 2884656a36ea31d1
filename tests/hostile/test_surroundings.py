"""Odd environments: closed and full streams, missing variables and folders, small limits. A run works or says why."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hostile.world import COMMAND, environment, gonogo, workflow

from gonogo.cli.background import Background

SMALL = """
a: {type: command, exec: "echo '{\\"n\\": 1}'"}
b: {type: command, depends_on: a, if: "outputs.a.n == 1", exec: "echo b >> effects.txt"}
c: {type: log, depends_on: b, message: "n is {{ outputs.a.n }}"}
"""


def closing(*descriptors: int) -> Callable[[], None]:
    """What to do in the new process."""
    return lambda: [os.close(one) for one in descriptors] and None


def limited(what: int, most: int) -> Callable[[], None]:
    """A limit for the new process."""
    return lambda: resource.setrlimit(what, (most, most))


@pytest.mark.parametrize("closed", [(0,), (1, 2), (0, 1, 2)])
def test_closed_streams_change_nothing_but_what_is_seen(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """No file of ours gets their numbers: the journal is whole afterwards."""
    workflow(tmp_path, SMALL)
    assert gonogo("run", cwd=tmp_path, preexec_fn=closing(*closed)).code == 0
    assert gonogo("show", "last", cwd=tmp_path).code == 0
    assert (tmp_path / "effects.txt").read_text() == "b\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("kind", ["full", "broken"])
def test_a_stream_that_takes_nothing_does_not_change_the_verdict(
    tmp_path: Path, stream: str, kind: str
) -> None:
    """A full disk behind `>`, or a reader that went away."""
    workflow(tmp_path, SMALL)
    if kind == "full":
        end = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, end = os.pipe()
        os.close(reader)
    how = gonogo("run", cwd=tmp_path, **{stream: end})
    os.close(end)
    assert how.code == 0
    assert "Traceback" not in how.said


ODD: dict[str, dict[str, Any]] = {
    "nothing set": {"env": {}},
    "no folder for temporary files": {"env": environment(TMPDIR="/nonexistent")},
    "plain ASCII": {"env": environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")},
    "no programs": {"env": environment(PATH="/nonexistent")},
    "odd terminal": {"env": environment(TERM="dumb", COLUMNS="-5", LINES="x")},
    "little stack": {"preexec_fn": limited(resource.RLIMIT_STACK, 256 << 10)},
}


@pytest.mark.parametrize("case", ODD)
def test_odd_surroundings_are_no_obstacle(tmp_path: Path, case: str) -> None:
    """GO all the same."""
    workflow(tmp_path, SMALL)
    how = gonogo("run", cwd=tmp_path, **ODD[case])
    assert (how.code, how.left) == (0, ())


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """Spaces, a line end, shell code, bytes that are no UTF-8."""
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/a b\n$(touch pwned)\xff\xe9")
    os.mkdir(folder)
    workflow(Path(folder), SMALL)
    how = gonogo("run", "--format", "json", cwd=folder)
    assert how.code == 0
    assert not list(Path(folder).rglob("pwned"))


def test_a_folder_that_is_gone_is_a_usage_error(tmp_path: Path) -> None:
    """With what to do."""
    (tmp_path / "gone").mkdir()
    how = gonogo("run", cwd=tmp_path / "gone", preexec_fn=lambda: os.rmdir(tmp_path / "gone"))
    assert how.code == 2
    assert "the working directory is gone" in how.err


@pytest.mark.parametrize(
    ("what", "most"),
    [
        (resource.RLIMIT_NOFILE, 6),
        (resource.RLIMIT_NOFILE, 10),
        (resource.RLIMIT_NOFILE, 14),
        (resource.RLIMIT_AS, 36 << 20),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_FSIZE, 2000),
    ],
)
def test_a_machine_that_gives_too_little_is_told_not_called_a_bug(
    tmp_path: Path, what: int, most: int
) -> None:
    """Files, memory, space: no traceback, an exit code of ours, and no request to report a bug."""
    workflow(tmp_path, SMALL)
    how = gonogo("run", cwd=tmp_path, preexec_fn=limited(what, most))
    assert how.code in (1, 2, 70)
    assert "Traceback" not in how.said
    assert "bug" not in how.said
    assert how.err.startswith("gonogo: ") or "gonogo: " in how.err or "failed: " in how.said


@pytest.mark.parametrize("most", [5000, 6000, 7000])
def test_a_disk_that_fills_up_leaves_a_run_to_go_on_with(tmp_path: Path, most: int) -> None:
    """What was written is whole; completed steps aren't done again."""
    workflow(tmp_path, SMALL)
    first = gonogo("run", cwd=tmp_path, preexec_fn=limited(resource.RLIMIT_FSIZE, most))
    assert first.code in (0, 2)
    assert gonogo("resume", "last", cwd=tmp_path).code == 0
    assert (tmp_path / "effects.txt").read_text() == "b\n"


LIBRARIES = """
msgspec quickjs _quickjs click yaml anyio liquid rich asyncio json brotli orjson termios exceptiongroup uvloop
tree_sitter tree_sitter_javascript typing_extensions markupsafe
""".split()


@pytest.mark.parametrize("way", ["command", "module", "path"])
def test_no_module_of_the_working_directory_is_loaded(tmp_path: Path, way: str) -> None:
    """It may be a stranger's pull request: what shadows a library there is not run, in the sandbox neither."""
    workflow(tmp_path, SMALL)
    for name in LIBRARIES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w')")
    command = [sys.executable, "-m", "gonogo"] if way == "module" else [COMMAND]
    env = environment(PYTHONPATH=f":{tmp_path}/nowhere") if way == "path" else environment()
    assert gonogo("run", cwd=tmp_path, command=command, env=env).code == 0
    assert not (tmp_path / "pwned").exists()


def test_without_threads_the_work_beside_is_done_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of processes counts threads, too."""

    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert Background(lambda: 7).result() == 7
