"""`gonogo run`: streams, formats, exit codes, what it takes from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, QUIET_ENVIRONMENT, Gonogo, process, write

FAILING = """
lint: {type: command, exec: "echo no >&2; exit 3"}
deploy: {type: noop, depends_on: lint}
"""
ASKING = """
approve: {type: human-input, prompt: "Ship it?"}
ship: {type: log, depends_on: approve, message: "{{ outputs.approve.text }}"}
"""


def test_CLI_2_a_passing_run_is_one_json_document(gonogo: Gonogo, tmp_path: Path) -> None:
    """H26: Progress and what a step prints are elsewhere."""
    write(tmp_path, "a: {type: command, exec: 'echo hello'}\nb: {type: log, depends_on: a, message: hi}")
    ended = gonogo("run", "--format", "json", "-v")
    assert ended.code == 0
    assert ended.json["verdict"] == "GO"
    assert ended.json["exit_code"] == 0
    assert list(ended.json["steps"]) == ["a", "b"]
    assert ended.json["steps"]["a"]["output"] == "hello"
    assert "b: hi" in ended.err


def test_CLI_2_a_failing_run_says_so_in_json_and_exit_code(gonogo: Gonogo, tmp_path: Path) -> None:
    """I.1 row 16: 1, in both."""
    write(tmp_path, FAILING)
    ended = gonogo("run", "--format", "json")
    assert ended.code == ended.json["exit_code"] == 1
    assert ended.json["verdict"] == "NO-GO"
    assert ended.json["steps"]["lint"]["outcome"] == "failed"
    assert ended.json["steps"]["deploy"]["why"]["because"] == ["lint"]


def test_CLI_2_an_invalid_file_is_one_error_object(gonogo: Gonogo, tmp_path: Path) -> None:
    """With every problem, exit code 2, and nothing ran."""
    write(tmp_path, "a: {type: noop, fail_iff: x}\nb: {type: noop, depends-on: a}")
    ended = gonogo("run", "--format", "json")
    assert ended.code == ended.json["exit_code"] == 2
    assert ended.json["error"]["code"] == "config"
    assert [problem["line"] for problem in ended.json["error"]["problems"]] == [3, 4]
    assert "did you mean fail_if?" in ended.err
    assert not (tmp_path / ".gonogo").exists()


@pytest.mark.parametrize(
    "arguments", [["--nope"], ["missing.yaml"], ["--step", "nope"], ["-j", "0"], ["-e", "x"], ["--base", "x"]]
)
def test_CLI_2_a_wrong_command_line_is_one_error_object(
    gonogo: Gonogo, tmp_path: Path, arguments: list[str]
) -> None:
    """Exit code 2 as well, and a message without a traceback."""
    write(tmp_path, "a: {type: noop}")
    ended = gonogo("run", *arguments, "--format", "json")
    assert ended.code == ended.json["exit_code"] == 2
    assert ended.json["error"]["code"] == "usage"
    assert ended.err.startswith("gonogo: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--detach"], "--detach is for a run that an engine carries\n  give --engine"),
        (["--url", "127.0.0.1:7233"], "--url is for a run that an engine carries\n  give --engine temporal"),
        (["--queue", "q"], "--queue is for a run that an engine carries\n  give --engine"),
        (
            ["--engine", "dbos", "--url", "a:1"],
            "--url says where Temporal is, and dbos is in the store\n  leave",
        ),
        (
            ["--engine", "dbos", "--queue", "q"],
            "--queue says where Temporal is, and dbos is in the store\n  leave",
        ),
        (["--engine", "dbos", "--message", "yes"], "--message is for a run in this process\n  answer when"),
    ],
)
def test_what_would_not_be_heeded_is_refused(
    gonogo: Gonogo, tmp_path: Path, arguments: list[str], said: str
) -> None:
    """Who hands a run over gets no run in this process, and no answer is dropped; nothing ran."""
    write(tmp_path, ASKING)
    ended = gonogo("run", *arguments)
    assert ended.code == 2
    assert f"gonogo: {said}" in ended.err
    assert not (tmp_path / ".gonogo").exists()


def test_a_run_that_is_handed_over_is_named_on_stdout(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when quiet: a script has nothing else to find it by."""
    monkeypatch.setattr("gonogo.app.engines.submit_run", lambda *given: "r1")
    write(tmp_path, "a: {type: noop}")
    asked = ("run", "--engine", "dbos", "--store", "postgresql://ann@127.0.0.1:1/x", "--detach", "-q")
    assert gonogo(*asked).out == "run r1 is with dbos\n"
    assert gonogo(*asked, "--format", "json").json == {"run_id": "r1", "engine": "dbos"}


def test_each_format_goes_where_its_out_says(gonogo: Gonogo, tmp_path: Path) -> None:
    """A table on stdout, three others in files, folders made."""
    write(tmp_path, FAILING)
    ended = gonogo(
        "run", "--format", "table", "--format", "json", "-o", "out/r.json", "--format", "junit", "--out", "r.xml",
        "--format", "sarif", "-o", "r.sarif",
    )  # fmt: skip
    assert "NO-GO because lint failed" in ended.out
    assert json.loads((tmp_path / "out" / "r.json").read_text())["verdict"] == "NO-GO"
    assert "<failure" in (tmp_path / "r.xml").read_text()
    assert json.loads((tmp_path / "r.sarif").read_text())["version"] == "2.1.0"


def test_a_file_that_cannot_be_written_is_a_usage_error(gonogo: Gonogo, tmp_path: Path) -> None:
    """The run is over by then and can be shown."""
    write(tmp_path, "a: {type: noop}")
    (tmp_path / "file").write_text("")
    ended = gonogo("run", "-o", "file/below")
    assert ended.code == 2
    assert "can't be written" in ended.err
    assert gonogo("show", "last").out.startswith("✓ a")


def test_nobody_at_hand_is_a_hold_with_the_next_command(gonogo: Gonogo, tmp_path: Path) -> None:
    """Exit code 3; what answers it is spelt out, and works."""
    write(tmp_path, ASKING)
    ended = gonogo("run")
    assert ended.code == 3
    assert "HOLD: waiting for a person at approve: Ship it?" in ended.out
    [move] = [line.strip() for line in ended.out.splitlines() if "gonogo answer" in line]
    answered = gonogo(*move.replace("TEXT", "yes").split()[1:])
    assert answered.code == 0
    assert "GO" in answered.out


def test_a_message_answers_the_first_question(gonogo: Gonogo, tmp_path: Path) -> None:
    """Without anybody being there."""
    write(tmp_path, ASKING)
    ended = gonogo("run", "--message", "go", "--format", "json")
    assert ended.json["steps"]["approve"]["output"]["text"] == "go"


def test_a_pipe_answers_a_question_a_line(tmp_path: Path) -> None:
    """Standard input that is no terminal holds the answers beforehand."""
    write(tmp_path, "a: {type: human-input, prompt: one}\nb: {type: human-input, prompt: two, depends_on: a}")
    done = subprocess.run(
        [COMMAND, "run", "--format", "json"],
        cwd=tmp_path, env=QUIET_ENVIRONMENT, input=b"first\nsecond\n", capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    steps = json.loads(done.stdout)["steps"]
    assert [steps[name]["output"]["text"] for name in "ab"] == ["first", "second"]


def test_options_reach_the_run(gonogo: Gonogo, tmp_path: Path) -> None:
    """Environment, inputs by declared type, seed, event, limits: all in the first record."""
    top = "inputs:\n  - {name: count, schema: {type: integer}}\n"
    write(
        tmp_path, "a: {type: script, content: 'return [inputs.count + 1, env.GREETING, event.name]'}", top=top
    )
    ended = gonogo(
        "run",
        "-i",
        "count=41",
        "-e",
        "GREETING=hi",
        "--event",
        "manual",
        "--seed",
        "s",
        "-j",
        "1",
        "--format",
        "json",
    )
    assert ended.json["steps"]["a"]["output"] == [42, "hi", "manual"]
    assert ended.json["event"] == {"name": "manual"}
    first = next((tmp_path / ".gonogo" / "runs").glob("*/journal.jsonl")).read_text().splitlines()[0]
    assert '"seed":"s"' in first
    assert '"max_parallelism":1' in first


def test_step_and_tags_choose_what_runs(gonogo: Gonogo, tmp_path: Path) -> None:
    """The rest is left out, each with its reason."""
    write(
        tmp_path,
        "a: {type: noop}\nb: {type: noop, depends_on: a}\nc: {type: noop}\nd: {type: noop, tags: [slow]}",
    )
    ended = gonogo("run", "-s", "b", "--format", "json")
    assert list(ended.json["steps"]) == ["a", "b"]
    assert {name: why["reason"] for name, why in ended.json["left_out"].items()} == {
        "c": "not_requested",
        "d": "tag_filter",
    }
    assert list(gonogo("run", "--tags", "slow", "--format", "json").json["steps"]) == ["a", "b", "c", "d"]


def test_a_tag_that_no_step_has_is_refused(gonogo: Gonogo, tmp_path: Path) -> None:
    """A gate that leaves everything out would say GO."""
    write(tmp_path, "a: {type: noop, tags: [slow, nightly]}")
    ended = gonogo("run", "--tags", "slwo")
    assert ended.code == 2
    assert "no step has the tag 'slwo'" in ended.err
    assert "there are: slow, nightly" in ended.err


def test_no_colours_in_a_pipe_nor_where_they_are_not_wanted(gonogo: Gonogo, tmp_path: Path) -> None:
    """CLI-2: NO_COLOR, --no-color, a dumb terminal."""
    write(tmp_path, FAILING)
    assert "\x1b[" in gonogo("run", "-q", terminal=True, TERM="xterm").out
    for ended in (
        gonogo("run"),
        gonogo("run", "-q", terminal=True, TERM="xterm", NO_COLOR="1"),
        gonogo("run", "-q", "--no-color", terminal=True, TERM="xterm"),
        gonogo("run", "-q", terminal=True, TERM="dumb"),
    ):
        assert "\x1b" not in ended.out + ended.err


def test_quiet_says_only_the_result(gonogo: Gonogo, tmp_path: Path) -> None:
    """Nothing on stderr."""
    write(tmp_path, "a: {type: noop}")
    ended = gonogo("run", "-q")
    assert ended.err == ""
    assert ended.out.splitlines()[2] == "GO"


@pytest.mark.parametrize("language", ["C", "C.UTF-8"])
def test_UNI_1_odd_bytes_never_stop_the_output(tmp_path: Path, language: str) -> None:
    """A step's bytes that aren't UTF-8, in any locale, in text and JSON."""
    write(
        tmp_path,
        r"""a: {type: command, parse: text, exec: "printf 'caf\\351\\n\\377\\376 mid\\nlast line\\n'"}""",
    )
    environment = {"LANG": language, "LC_ALL": language, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = process("run", "--format", "json", cwd=tmp_path, env=environment)
    assert ended.code == 0
    assert "last line" in ended.json["steps"]["a"]["output"]
    assert process("show", "last", cwd=tmp_path, env=environment).code == 0


def test_ctrl_c_ends_with_130_and_can_be_resumed(tmp_path: Path) -> None:
    """No traceback; the message names the way on."""
    write(tmp_path, "a: {type: noop}\nb: {type: command, depends_on: a, exec: 'test -e go || sleep 60'}")
    running = subprocess.Popen(
        [COMMAND, "run"], cwd=tmp_path, env=QUIET_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr is not None
    while "b: started" not in running.stderr.readline():
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "INTERRUPTED" in out
    assert "gonogo resume" in out
    assert "Traceback" not in err
    (tmp_path / "go").touch()
    resumed = process("resume", "last", cwd=tmp_path)
    assert resumed.code == 0
    assert "GO" in resumed.out


def test_a_run_in_another_process_can_be_cancelled(tmp_path: Path) -> None:
    """`cancel` tells it, and it ends."""
    write(tmp_path, "a: {type: command, exec: 'sleep 60'}")
    running = subprocess.Popen(
        [COMMAND, "run"], cwd=tmp_path, env=QUIET_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr is not None
    while "a: started" not in running.stderr.readline():
        assert running.poll() is None
    asked = process("cancel", "last", cwd=tmp_path)
    assert asked.code == 0
    assert "told to stop" in asked.err
    out, _ = running.communicate(timeout=30)
    assert running.returncode == 1
    assert "NO-GO because a was cancelled" in out


def test_a_read_only_folder_is_an_error_with_advice(gonogo: Gonogo, tmp_path: Path) -> None:
    """The run doesn't start."""
    write(tmp_path, "a: {type: noop}")
    (tmp_path / "blocked").write_text("")
    ended = gonogo("run", "--runs-dir", "blocked/runs")
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_progress_moves_on_a_terminal(tmp_path: Path) -> None:
    """A real pseudo-terminal: running steps are drawn, and gone at the end; the verdict stays."""
    write(tmp_path, "slow-one: {type: command, exec: 'sleep 2'}")
    said = _on_terminal(["run"], tmp_path)
    assert "slow-one" in said
    assert "of 1 steps done" in said
    assert "GO" in said
    assert "\x1b[?25h" in said, "the cursor is shown again"


def _on_terminal(arguments: list[str], folder: Path) -> str:
    import pty

    main, side = pty.openpty()
    environment = {**QUIET_ENVIRONMENT, "TERM": "xterm-256color"}
    running = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=folder,
        env=environment,
        stdin=side,
        stdout=side,
        stderr=side,
        close_fds=True,
    )
    os.close(side)
    said = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            data = os.read(main, 65536)
        except OSError:
            break  # the other end is closed: the process is gone
        if not data:
            break
        said += data
    running.wait(timeout=10)
    os.close(main)
    return said.decode("utf-8", "replace")


@pytest.mark.parametrize("name", ["table", "json", "markdown", "github"])
def test_safe_mode_tells_every_call_it_withholds(gonogo: Gonogo, tmp_path: Path, name: str) -> None:
    """G21: what mutates isn't called, and each format says what it would have been given."""
    path = write(tmp_path, "a:\n  type: command\n  mutates: true\n  exec: touch hit")
    ended = gonogo("run", str(path), "--safe-mode", "--format", name)
    assert (ended.code, (tmp_path / "hit").exists()) == (0, False)
    assert "touch hit" in ended.out
    assert name not in ("table", "markdown") or "not called: safe mode" in ended.out
