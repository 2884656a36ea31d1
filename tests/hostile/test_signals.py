"""Signals to a real run: a clean end, nothing left running, and a run that can be shown and resumed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest
from tests.hostile.campaign import attack_of, attacked
from tests.hostile.world import adopting, ended, environment, gonogo, pause, start, workflow

ASKING = """
a: {type: human-input, prompt: "PIN?", secret: true}
"""
LADDER = """
a: {type: command, exec: "trap 'echo cleaned > cleaned; exit' TERM; touch ready; while :; do sleep 0.05; done"}
b: {type: command, exec: "sh -c 'trap \\"\\" TERM; sleep 300' & sleep 300"}
"""
RETRYING = """
a:
  type: command
  exec: "echo x >> tries; exit 75"
  on_fail: {retry: {max: 5, backoff: {mode: fixed, delay_ms: 10000}}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_RES_1_an_attack_at_a_random_moment_loses_nothing(tmp_path: Path, seed: int) -> None:
    """No traceback, no orphan, the right exit code; what was done isn't done again. More: campaign.py."""
    assert attacked(attack_of(seed), tmp_path) == []


def until(path: Path, running: subprocess.Popen[bytes]) -> None:
    """Wait for a file."""
    while not path.exists():
        assert running.poll() is None
        pause(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_CAN_2_no_descendant_survives_and_the_well_behaved_clean_up(tmp_path: Path, number: int) -> None:
    """However the host ends: killed, it can't see to it itself, and its second process does."""
    workflow(tmp_path, LADDER)
    with adopting() as orphans:
        running = start("run", cwd=tmp_path)
        until(tmp_path / "ready", running)
        running.send_signal(number)
        how = ended(running, orphans)
    assert how.code == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    assert how.left == ()
    assert (tmp_path / "cleaned").read_text() == "cleaned\n"


def test_CAN_1_an_interrupt_while_waiting_starts_no_further_attempt(tmp_path: Path) -> None:
    """The step is cancelled, not failed; nothing is tried again."""
    workflow(tmp_path, RETRYING)
    with adopting() as orphans:
        running = start("run", "--format", "json", cwd=tmp_path)
        until(tmp_path / "tries", running)
        [journal] = tmp_path.glob(".gonogo/runs/*/journal.jsonl")
        while b'"call_failed"' not in journal.read_bytes():
            pause(0.01)
        running.send_signal(signal.SIGINT)
        how = ended(running, orphans, limit_s=8)
    assert how.code == 130
    assert json.loads(how.out)["steps"]["a"]["outcome"] == "cancelled"
    assert (tmp_path / "tries").read_text() == "x\n"


def test_CAN_3_a_cancel_is_not_lost_when_a_step_just_ends(tmp_path: Path) -> None:
    """Of a chain of short steps at most the one in flight goes on; the journal and the effects agree."""
    before = ["", *(f"s{n}" for n in range(49))]
    chain = [
        f"s{n}: {{type: command, depends_on: [{one}], exec: 'echo >> steps'}}" for n, one in enumerate(before)
    ]
    workflow(tmp_path, "\n".join(chain))
    with adopting() as orphans:
        running = start("run", "--format", "json", cwd=tmp_path)
        until(tmp_path / "steps", running)
        pause(0.1)
        running.send_signal(signal.SIGINT)
        how = ended(running, orphans)
    assert how.code == 130
    outcomes = [step["outcome"] for step in json.loads(how.out)["steps"].values()]
    passed = outcomes.count("passed")
    assert passed < 50
    assert len((tmp_path / "steps").read_text().splitlines()) in (passed, passed + 1)


def test_signals_that_were_ignored_stay_ignored(tmp_path: Path) -> None:
    """`nohup gonogo run`: the terminal may go."""
    workflow(tmp_path, "a: {type: command, exec: 'kill -HUP $PPID; sleep 0.2; echo done'}")
    how = gonogo("run", cwd=tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert how.code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_a_question_for_a_secret_leaves_the_terminal_as_it_was(tmp_path: Path, number: int) -> None:
    """Its echo comes back, however the question ends; the run waits for an answer."""
    termios = pytest.importorskip("termios")
    workflow(tmp_path, ASKING)
    main, side = pty.openpty()
    with adopting() as orphans:
        running = start(
            "run", cwd=tmp_path, stdin=side, stdout=side, stderr=side, env=environment(TERM="xterm"),
            start_new_session=True, preexec_fn=_takes_the_terminal,
        )  # fmt: skip
        said = b""
        while b"> " not in said:
            said += os.read(main, 65536)
        pause(0.1)
        running.send_signal(number)
        how = ended(running, orphans)
    assert how.code == 130
    assert termios.tcgetattr(side)[3] & termios.ECHO
    os.close(side)
    os.close(main)
    assert gonogo("resume", "last", cwd=tmp_path).code == 3


def _takes_the_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
