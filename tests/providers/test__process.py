"""Child processes: real ones, because their ways are the point."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonogo.providers import _process
from gonogo.providers._process import Command, Ended, Kept, StartProblem

Run = Callable[..., Ended]


def alive(marker: str) -> list[str]:
    """Processes, zombies aside, whose command line holds the marker."""
    listed = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True)
    own = f"{os.getpid()}"
    return [
        line for line in listed.stdout.splitlines() if marker in line and own not in line and line[0] != "Z"
    ]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a shell text in an empty folder."""

    def call(text: str, **changes: object) -> Ended:
        environment = {**os.environ, **changes.pop("environment", {})}  # type: ignore[dict-item]
        command = Command(("/bin/sh", "-c", text), environment, str(tmp_path), **changes)  # type: ignore[arg-type]
        return anyio.run(_process.run, command)

    return call


def test_an_exit_code_and_both_streams_come_back(run: Run) -> None:
    """What it printed and how it ended."""
    ended = run("echo out; echo err >&2; exit 3")
    assert (ended.exit_code, ended.signal) == (3, None)
    assert (ended.stdout.text(), ended.stderr.text()) == ("out\n", "err\n")


def test_an_end_by_signal_is_told(run: Run) -> None:
    """128 + signal, as shells say, and the signal's name."""
    ended = run("kill -9 $$")
    assert (ended.exit_code, ended.signal) == (137, "SIGKILL")


@pytest.mark.parametrize(
    "text",
    [
        "echo so far; sleep 31.41 & wait",
        "echo so far; (sleep 31.42 &) ; sleep 20",
        "echo so far; (setsid sleep 31.43 &) ; sleep 20",
    ],
)
def test_SUB_1_a_timeout_ends_grandchildren_and_keeps_the_output(run: Run, text: str) -> None:
    """SUB-1: nobody waits for a background process; it is ended, also in a session of its own."""
    ended = run(text, timeout_s=0.3)
    assert ended.timed_out
    assert ended.stdout.text() == "so far\n"
    assert alive("sleep 31.4") == []


@pytest.mark.parametrize(
    "text", ["echo done; sleep 32.41 &", "echo done; setsid sleep 32.42 >/dev/null 2>&1 &"]
)
def test_SUB_1_what_a_finished_command_left_behind_is_ended_and_told(run: Run, text: str) -> None:
    """SUB-1, fourth: success at once, with word of the process left behind."""
    ended = run(text)
    assert (ended.exit_code, ended.timed_out) == (0, False)
    assert len(ended.left_behind) == 1
    assert ended.stdout.text() == "done\n"
    assert alive("sleep 32.4") == []


def test_a_process_that_ends_by_itself_in_time_is_not_left_behind(run: Run) -> None:
    """The tail of a pipeline in the background may take a moment."""
    ended = run("(sleep 0.02; echo late) & echo early")
    assert ended.left_behind == ()
    assert ended.stdout.text() == "early\nlate\n"


def test_who_wipes_its_mark_and_leaves_the_session_may_stay(run: Run, tmp_path: Path) -> None:
    """The documented way to leave a server running on purpose."""
    ended = run("env -u GONOGO_CALL setsid sh -c 'echo $$ > pid; exec sleep 30' >/dev/null 2>&1 & sleep 0.3")
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, 9)
    assert ended.left_behind == ()


def test_SUB_2_megabytes_without_a_newline_come_through(run: Run) -> None:
    """SUB-2: no line limit, no deadlock, the exit status is told."""
    program = (
        "import sys; [f.write(c * 5_000_000) for f, c in ((sys.stdout, 'x'), (sys.stderr, 'y'))]; sys.exit(7)"
    )
    ended = run(f'{sys.executable} -c "{program}"')
    assert ended.exit_code == 7
    assert ended.stdout.text() == "x" * 5_000_000
    assert ended.stderr.text() == "y" * 5_000_000


def test_SUB_2_the_last_line_is_shown_while_it_runs(tmp_path: Path) -> None:
    """SUB-2: the same through the live view, cut to what fits there."""
    shown: list[str] = []
    command = Command(
        ("/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo bye"), os.environ, str(tmp_path)
    )
    anyio.run(_process.run, command, shown.append)
    assert shown[-1] == "bye"
    assert max(map(len, shown)) <= 400


def test_SUB_3_a_command_sees_the_end_of_its_input_at_once(run: Run) -> None:
    """SUB-3: nobody waits for the operator's keyboard, even when it is an open pipe."""
    ended = run(f"read x; echo got:$x; cat; {sys.executable} -c 'input()'", timeout_s=20)
    assert ended.stdout.text() == "got:\n"
    assert "EOFError" in ended.stderr.text()
    assert not ended.timed_out


def test_SUB_3_text_given_on_purpose_arrives_whole(run: Run) -> None:
    """More than a pipe holds, both ways at once, without a deadlock."""
    text = os.urandom(1_500_000).hex().encode()
    assert run("cat", stdin=text).stdout.head == text


def test_a_command_need_not_read_its_input(run: Run) -> None:
    """A closed pipe on the other side is no failure."""
    assert run("exec true", stdin=b"x" * 3_000_000).exit_code == 0


def test_CAN_2_a_child_has_time_to_clean_up(run: Run, tmp_path: Path) -> None:
    """CAN-2, second variant: TERM first, and what is printed in the grace is kept."""
    ended = run("trap 'echo bye; touch cleaned; exit 0' TERM; while :; do sleep 0.05; done", timeout_s=0.3)
    assert (tmp_path / "cleaned").exists()
    assert ended.timed_out
    assert ended.stdout.text() == "bye\n"
    assert ended.killed == ()


def test_CAN_2_a_stubborn_child_is_killed(run: Run) -> None:
    """CAN-2: who ignores TERM gets KILL, its siblings too."""
    ended = run("sh -c 'trap \"\" TERM; sleep 33.41' & sleep 33.42", timeout_s=0.2, grace_s=0.2)
    assert ended.killed
    assert alive("sleep 33.4") == []


def test_CAN_2_a_stopped_child_is_ended_by_term(run: Run) -> None:
    """A suspended process gets TERM only when it goes on, so it is made to."""
    ended = run("kill -STOP $$; sleep 34.41", timeout_s=0.2)
    assert ended.killed == ()
    assert ended.signal == "SIGTERM"


@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.01, 0.1])
def test_a_cancel_at_any_moment_leaves_nothing(tmp_path: Path, after_s: float) -> None:
    """Law 7: the ladder runs although the caller is cancelled."""

    async def cancelled() -> None:
        text = "(setsid sleep 35.41 &); sleep 35.42 & sleep 35.43"
        command = Command(("/bin/sh", "-c", text), os.environ, str(tmp_path))
        with anyio.move_on_after(after_s) as scope:
            await _process.run(command)
        assert scope.cancelled_caught

    anyio.run(cancelled)
    assert alive("sleep 35.4") == []


@pytest.mark.parametrize("cancels", [1, 2])
def test_asyncios_own_cancel_leaves_nothing(tmp_path: Path, cancels: int) -> None:
    """Law 7: a host may cancel the task itself; the second time there is no more grace."""
    text = "trap '' TERM; sleep 35.51 & echo ready; while :; do sleep 0.05; done"
    command = Command(("/bin/sh", "-c", text), os.environ, str(tmp_path), grace_s=1.0 if cancels > 1 else 0.1)

    async def host() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(_process.run(command, lambda line: ready.set()))
        await ready.wait()
        for _ in range(cancels):
            task.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(host())
    assert alive("sleep 35.5") == []


def test_a_fork_bomb_of_short_lived_children_is_ended(run: Run) -> None:
    """Ending is a bounded loop, not one look."""
    ended = run("f() { while :; do sleep 36.41 & sleep 0.01; done; }; f & f & wait", timeout_s=0.3)
    assert ended.timed_out
    assert alive("sleep 36.41") == []


def test_a_command_does_not_see_the_marks_of_its_siblings(run: Run) -> None:
    """Each call has a mark of its own."""
    first, second = (run("echo $GONOGO_CALL").stdout.text() for _ in range(2))
    assert first != second
    assert len(first.strip()) == 16


def test_a_command_within_a_command_carries_both_marks(run: Run) -> None:
    """So the outer call finds what an inner gonogo started."""
    inner = run("echo $GONOGO_CALL", environment={"GONOGO_CALL": "outer"}).stdout.text().strip()
    assert inner.startswith("outer:")


def test_commands_side_by_side_do_not_end_each_other(tmp_path: Path) -> None:
    """One call's timeout is nobody else's."""
    ends: list[Ended] = []

    async def one(text: str, timeout_s: float | None) -> None:
        command = Command(("/bin/sh", "-c", text), os.environ, str(tmp_path), timeout_s=timeout_s)
        ends.append(await _process.run(command))

    async def both() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(one, "sleep 20", 0.2)
            group.start_soon(one, "sleep 0.6; echo fine", None)

    anyio.run(both)
    assert [ended.timed_out for ended in ends] == [True, False]
    assert ends[1].stdout.text() == "fine\n"


def test_a_missing_folder_is_told_before_anything_starts(run: Run, tmp_path: Path) -> None:
    """The message names it."""
    command = Command(("/bin/sh", "-c", "true"), os.environ, str(tmp_path / "none"))
    with pytest.raises(StartProblem, match="there is no folder"):
        anyio.run(_process.run, command)


@pytest.mark.parametrize("text", ["echo \0", "echo \ud800"])
def test_text_that_no_system_takes_is_told(run: Run, text: str) -> None:
    """NUL and half characters: a problem at the start, no crash."""
    with pytest.raises(StartProblem):
        run(text)


def test_no_descriptor_is_left_open(run: Run) -> None:
    """Pipes and watches are closed whatever happened."""
    run("true")
    before = len(os.listdir("/proc/self/fd"))
    run("echo x; exit 1", stdin=b"x")
    run("sleep 5", timeout_s=0.05)
    assert len(os.listdir("/proc/self/fd")) == before


@given(st.lists(st.binary(max_size=300), max_size=30), st.integers(2, 200))
def test_a_stream_keeps_its_head_and_its_tail(chunks: list[bytes], bytes_max: int) -> None:
    """However it comes in pieces; the true size is told."""
    kept = Kept(bytes_max)
    for chunk in chunks:
        kept.add(chunk)
    stream, whole = kept.stream(), b"".join(chunks)
    assert stream.size_bytes == len(whole)
    assert whole.startswith(stream.head)
    assert whole.endswith(stream.tail)
    assert len(stream.head) + len(stream.tail) <= bytes_max
    assert stream.dropped_bytes == 0 or len(stream.head) + len(stream.tail) >= bytes_max - 1


WHOLE_CHARACTERS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"), max_size=80)


@given(WHOLE_CHARACTERS, st.integers(2, 60))
def test_a_cut_falls_between_characters(text: str, bytes_max: int) -> None:
    """UNI-2's rule for our own cuts: no replacement character that wasn't there."""
    kept = Kept(bytes_max)
    kept.add(text.encode())
    assert "\ufffd" not in kept.stream().text()


def test_a_cut_stream_tells_its_true_size() -> None:
    """SUB-2: a marker stands where something is missing."""
    kept = Kept(10)
    kept.add(b"0123456789abcdef")
    assert kept.stream().text() == "01234\n[... 6 of 16 bytes left out ...]\nbcdef"


def test_UNI_1_bytes_that_are_no_utf8_are_replaced(run: Run) -> None:
    """UNI-1: one rule, U+FFFD; what follows is not lost, whatever the locale."""
    ended = run(r"printf 'caf\351\n\377\376 mid\nlast line\n'", environment={"LANG": "C", "LC_ALL": "C"})
    assert ended.stdout.text() == "caf\ufffd\n\ufffd\ufffd mid\nlast line\n"
    assert not ended.stdout.is_utf8


def test_a_character_between_head_and_tail_is_whole() -> None:
    """Nothing is dropped here, so nothing is replaced."""
    kept = Kept(8)
    kept.add("aa🙂b".encode())
    assert kept.stream().text() == "aa🙂b"
    assert kept.stream().is_utf8
