"""Commands that flood, hang, fork, kill and ask, in one run each: they end, nothing is left, and the run goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.hostile.world import Ended, gonogo, workflow

SLOTS = """
ok: {type: command, exec: "mkdir lock && sleep 0.05 && rmdir lock"}
fails: {type: command, exec: "mkdir lock && rmdir lock; exit 1", continue_on_failure: true}
late:
  type: command
  timeout: 300ms
  exec: "trap 'rmdir lock; exit 1' TERM; mkdir lock; sleep 30 & wait"
  continue_on_failure: true
odd: {type: noop, if: "outputs.nowhere.x", continue_on_failure: true}
out: {type: noop, if: "false"}
again:
  type: command
  exec: "mkdir lock && rmdir lock; exit 75"
  on_fail: {retry: {max: 2, backoff: {mode: fixed, delay_ms: 1}}}
  continue_on_failure: true
killed: {type: command, exec: "mkdir lock && rmdir lock; kill -9 $$", continue_on_failure: true}
last: {type: command, exec: "mkdir lock && rmdir lock"}
"""
NESTED = """
list: {type: script, forEach: true, content: "return [1, 2, 3]"}
each: {type: command, depends_on: list, fanout: map, exec: "mkdir lock && sleep 0.02 && rmdir lock"}
child: {type: workflow, config: child.yaml}
flaky: {type: command, exec: "test -e fixed", on_fail: {run: [fix], retry: {max: 1}}}
fix: {type: command, exec: "touch fixed", if: "event.name == 'never'"}
"""


def outcomes(how: Ended) -> dict[str, Any]:
    """Each step's outcome."""
    return {name: step["outcome"] for name, step in json.loads(how.out)["steps"].items()}


def test_SUB_1_a_timeout_ends_all_that_was_started(tmp_path: Path) -> None:
    """With background processes, with a session of their own, with fork after fork; and one that leaves one behind."""
    workflow(
        tmp_path,
        """
a: {type: command, timeout: 500ms, exec: "sleep 30 & wait"}
b: {type: command, timeout: 500ms, exec: "echo so far; (setsid sleep 30 &) ; sleep 20"}
c: {type: command, timeout: 500ms, exec: "while :; do (setsid sh -c 'sleep 1' &); sleep 0.05; done"}
d: {type: command, exec: "sleep 30 &"}
e: {type: command, timeout: 500ms, exec: "kill -STOP $$"}
f: {type: command, exec: "kill -9 0"}
""",
        top="max_parallelism: 6\n",
    )
    how = gonogo("run", "--format", "json", cwd=tmp_path)
    assert how.left == ()
    assert outcomes(how) == {**dict.fromkeys("abcef", "failed"), "d": "passed"}
    steps = json.loads(how.out)["steps"]
    assert [steps[name]["fault"]["kind"] for name in "abce"] == ["command.timeout"] * 4
    assert steps["b"]["output"]["text"].strip() == "so far"
    assert steps["d"]["duration_ms"] < 20_000


def test_SUB_2_floods_and_endless_lines_are_cut_with_their_true_size(tmp_path: Path) -> None:
    """5 MB a stream without a line end, and `yes` until its time is up."""
    workflow(
        tmp_path,
        r"""
a: {type: command, exec: "head -c 5000000 /dev/zero | tr '\\0' x; head -c 5000000 /dev/zero | tr '\\0' y >&2; exit 7"}
b: {type: command, timeout: 500ms, exec: "yes >&2 & yes"}
c: {type: command, exec: "head -c 100000 /dev/urandom"}
""",
    )
    how = gonogo("run", "--format", "json", cwd=tmp_path)
    steps = json.loads(how.out)["steps"]
    assert outcomes(how) == {"a": "failed", "b": "failed", "c": "passed"}
    assert "exit code 7" in json.dumps(steps["a"])
    assert len(how.out) < 1_000_000
    assert gonogo("show", "last", cwd=tmp_path).code == 0


def test_SUB_3_a_command_that_asks_gets_the_end_of_input_and_the_person_the_question(tmp_path: Path) -> None:
    """Standard input stays gonogo's own."""
    workflow(
        tmp_path,
        """
a: {type: command, exec: "read x; echo got:$x"}
b: {type: command, exec: "cat"}
c: {type: human-input, depends_on: [a, b], prompt: "?"}
""",
    )
    mine, theirs = os.pipe()
    os.write(theirs, b"hello\n")  # and it stays open
    how = gonogo("run", "--format", "json", cwd=tmp_path, stdin=mine)
    steps = json.loads(how.out)["steps"]
    assert (steps["a"]["output"], steps["b"]["output"], steps["c"]["output"]["text"]) == ("got:", "", "hello")


def test_CON_1_slots_are_given_back_however_a_step_ends(tmp_path: Path) -> None:
    """One slot, eight endings; each command fails at `mkdir` if another one is at it."""
    workflow(tmp_path, SLOTS, top="max_parallelism: 1\n")
    how = gonogo("run", "--format", "json", cwd=tmp_path)
    tolerated = dict.fromkeys(("fails", "late", "again", "killed"), "tolerated")
    assert outcomes(how) == {
        "ok": "passed",
        **tolerated,
        "odd": "skipped",
        "out": "skipped",
        "last": "passed",
    }
    assert json.loads(how.out)["steps"]["again"]["attempts"] == 3
    assert "File exists" not in how.said


def test_CON_2_what_only_waits_takes_no_slot(tmp_path: Path) -> None:
    """A fan-out, workflows three deep and a remediation with one slot: all finish, never two at once."""
    top = "max_parallelism: 1\n"
    workflow(tmp_path, NESTED.replace(", if: \"event.name == 'never'\"", ""), top=top)
    for name, step in (
        ("child", "{type: workflow, config: grandchild.yaml}"),
        ("grandchild", '{type: command, exec: "mkdir lock && sleep 0.02 && rmdir lock"}'),
    ):
        (tmp_path / f"{name}.yaml").write_text(f'version: "1.0"\n{top}steps:\n  s: {step}\n')
    how = gonogo("run", "--format", "json", cwd=tmp_path)
    assert "File exists" not in how.said
    assert outcomes(how) == dict.fromkeys(("list", "each", "child", "flaky", "fix"), "passed")


def test_terminal_codes_of_a_command_reach_no_terminal(tmp_path: Path) -> None:
    """Law 6: shown as escapes."""
    workflow(tmp_path, r"""a: {type: command, exec: "printf '\\033]0;pwn\\007\\033[31mred' >&2; exit 1"}""")
    how = gonogo("run", cwd=tmp_path)
    assert "\x1b" not in how.said
    assert r"\x1b[31mred" in how.out
