"""Who belongs to a command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import anyio
import pytest

from gonogo.providers import _family
from gonogo.providers._family import Family, marked


def test_a_process_knows_its_own_session() -> None:
    """The fields of /proc/PID/stat are read behind a name that may hold anything."""
    member = _family._read_stat(os.getpid())
    assert member is not None
    assert (member.parent, member.session) == (os.getppid(), os.getsid(0))


def test_a_name_with_parentheses_does_not_shift_the_fields(tmp_path: os.PathLike[str]) -> None:
    """A hostile program name: `a) Z 1 1 1 (`."""
    name = os.path.join(tmp_path, "a) Z 1 1")
    os.symlink("/bin/sleep", name)
    with subprocess.Popen([name, "30"]) as process:
        try:
            member = _family._read_stat(process.pid)
        finally:
            process.kill()
    assert member is not None
    assert member.parent == os.getpid()


def test_a_dead_process_is_no_member() -> None:
    """Zombies are dead: waiting for one would wait for ever."""
    process = subprocess.Popen(["true"], start_new_session=True)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Family(process.pid, "none").members() == ()
    process.wait()


def test_a_process_amid_execve_is_found(tmp_path: Path) -> None:
    """Its environment is empty for a moment; here it does nothing but exec, in a session of its own."""
    again = tmp_path / "again"
    again.write_text('#!/bin/sh\nexec "$0"\n')
    again.chmod(0o755)
    leader = subprocess.Popen(
        ["sh", "-c", 'setsid "$0" >/dev/null 2>&1 &', again],
        env={**os.environ, "GONOGO_CALL": "a-mark-of-its-own"},
        start_new_session=True,
    )
    leader.wait()
    family = Family(leader.pid, "a-mark-of-its-own")
    try:
        seen = [len(family.left_behind()) for _ in range(300)]
    finally:
        anyio.run(family.end, leader.poll, 0.2)
    assert set(seen) == {1}
    assert family.members() == ()


def test_without_proc_only_the_group_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """On other systems the group is what can be ended."""
    monkeypatch.setattr(_family, "_has_proc", lambda: False)
    with subprocess.Popen(["sleep", "30"], start_new_session=True) as process:
        family = Family(process.pid, "none")
        assert family.members() == (process.pid,)
        assert family.signal(9) == (process.pid,)
        process.wait()
        assert family.members() == ()


@pytest.mark.parametrize(
    ("pid", "window", "inside"),
    [(5, (3, 9), True), (2, (3, 9), False), (2, (9, 3), True), (11, (9, 3), True), (5, (9, 3), False)],
)
def test_the_newest_ids_may_have_gone_round(pid: int, window: tuple[int, int], inside: bool) -> None:
    """Process ids start again at the bottom."""
    assert _family._within(pid, window) is inside


def test_a_mark_goes_behind_the_outer_one() -> None:
    """Both are found by a search for one."""
    assert marked({}, "b") == "b"
    assert marked({"GONOGO_CALL": "a"}, "b") == "a:b"
