"""Cases about child processes, odd bytes and much data: SUB, UNI, BIG, CAN, CON."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.cases.conftest import ENVIRONMENT, Ended
from tests.whole import RunYaml

from gonogo.report.formats import render
from gonogo.report.layout import Style
from gonogo.report.report import report_of

Gonogo = Callable[..., Ended]
HEAD = 'version: "1.0"\n'
DOCS = Path(__file__).parents[2] / "docs"


def alive(mark: str) -> list[str]:
    """Processes whose command line holds a mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if mark in line:
            found.append(line)
    return found


# --- SUB


@pytest.mark.slow
def test_SUB_1_nobody_waits_for_a_grandchild(run_yaml: RunYaml) -> None:
    """SUB-1: three time out with their output kept and nobody left; the fourth ends at once, with a warning."""
    ran = run_yaml("""
max_parallelism: 4
checks:
  one: { type: command, timeout: 300ms, exec: "echo kept; sleep 31.7 & wait" }
  two: { type: command, timeout: 300ms, exec: "echo kept; (sleep 31.7 &) ; sleep 31.7" }
  three: { type: command, timeout: 300ms, exec: "echo kept; (setsid sleep 31.7 &) ; sleep 31.7" }
  four: { type: command, exec: "sleep 31.7 & echo left" }
""")
    for name in ("one", "two", "three"):
        assert ran.rules(name) == [f"{name}/command/timeout"]
        assert "kept" in json.dumps(ran.output(name))
    assert (ran["four"].outcome, ran.output("four")) == ("passed", "left")
    assert [line.step for line in ran.logged if line.level == "warn"] == ["four"]
    assert alive("sleep 31.7") == []
    assert ran.view.steps["one"].duration_ms < 10_000
    assert "setsid" in "".join(path.read_text() for path in DOCS.rglob("*.md"))


@pytest.mark.slow
def test_SUB_2_long_lines_come_through(run_yaml: RunYaml) -> None:
    """SUB-2: 5 MB without a newline on both streams, interleaved, then exit 7: told as 7, complete, no deadlock."""
    ran = run_yaml("""
checks:
  loud:
    type: command
    exec: |
      i=0; while [ $i -lt 5 ]; do
        head -c 1048576 /dev/zero | tr '\\0' o; head -c 1048576 /dev/zero | tr '\\0' e >&2; i=$((i+1)); done
      exit 7
""")
    output = ran.output("loud")
    output = (
        ran.runs.blobs(ran.result.run_id).get(output)
        if isinstance(output, dict) and "$blob" in output
        else output
    )
    assert output["exit_code"] == 7
    assert len(output["stdout"]) == 5 * 1048576 or "5242880" in json.dumps(output)
    assert ran["loud"].fault is not None
    assert ran["loud"].fault.kind == "command.exit"


ASKERS = """
max_parallelism: 3
checks:
  shell: { type: command, timeout: 10s, exec: "read x; echo got:$x" }
  cat: { type: command, timeout: 10s, exec: "cat; echo end" }
  python: { type: command, timeout: 10s, exec: "python3 -c 'input()' 2>/dev/null || echo eof" }
  given: { type: command, stdin: "on purpose", exec: "cat" }
"""


def test_SUB_3_no_command_reads_the_keyboard(gonogo: Gonogo) -> None:
    """SUB-3: with an input that never ends each sees the end at once; the engine's own input is untouched."""
    reader, writer = os.pipe()
    os.write(writer, b"typed by the operator\n")
    try:
        ended = gonogo(HEAD + ASKERS, "run", "--format", "json", stdin=reader)
        assert os.read(reader, 100) == b"typed by the operator\n"
    finally:
        os.close(writer)
        os.close(reader)
    steps = ended.json["steps"]
    assert ended.code == 0
    assert {name: step["output"] for name, step in steps.items()} == {
        "shell": "got:",
        "cat": "end",
        "python": "eof",
        "given": "on purpose",
    }


# --- UNI

ODD = """
checks:
  odd:
    type: command
    exec: "printf 'caf\\\\351\\\\n\\\\377\\\\376 mid\\\\nlast line\\\\n'; printf 'err\\\\351\\\\n' >&2"
  names: { type: command, exec: "touch \\"$(printf 'n\\\\351.txt')\\"; ls" }
  fails: { type: command, continue_on_failure: true, exec: "printf 'caf\\\\351 last\\\\n' >&2; exit 1" }
  after: { type: script, depends_on: [odd], content: "return outputs.odd.split('\\\\n').length" }
"""


@pytest.mark.parametrize("env", [{}, {"LANG": "C", "LC_ALL": "C"}])
def test_UNI_1_one_odd_byte_stops_nothing(gonogo: Gonogo, tmp_path: Path, env: dict[str, str]) -> None:
    """UNI-1: it passes, `last line` is there, one rule for odd bytes, the journal is strict UTF-8 JSON; LANG=C too."""
    ended = gonogo(HEAD + ODD, "run", "--format", "json", env=env)
    steps = ended.json["steps"]
    assert ended.code == 0
    assert steps["odd"]["output"] == "caf\ufffd\n\ufffd\ufffd mid\nlast line"
    assert "n\ufffd.txt" in steps["names"]["output"]
    assert "caf\ufffd last" in steps["fails"]["fault"]["message"]
    assert steps["after"]["output"] == 3
    for journal in (tmp_path / "process" / ".gonogo" / "runs").rglob("*.jsonl"):
        for line in journal.read_bytes().decode("utf-8", "strict").splitlines():
            json.loads(line, parse_constant=pytest.fail)


def test_UNI_1_the_raw_bytes_can_be_had(run_yaml: RunYaml) -> None:
    """UNI-1: the bytes are beside the text, for who needs them, and the documentation says how."""
    ran = run_yaml("checks:\n  odd: { type: command, exec: \"printf 'a\\\\351'\" }\n")
    meta = ran.result.state.nodes["odd"][""].meta
    raw = [value for value in meta.values() if isinstance(value, str) and value]
    assert base64.b64encode(b"a\xe9").decode() in raw or b"a\xe9".hex() in raw


TEXT = "naïve 日本 🙂 e\u0301 👩‍👩‍👧"


class OneByteAtATime(BaseHTTPRequestHandler):
    """Sends a JSON text whose pieces end inside characters, and an escaped pair cut in two."""

    def do_GET(self) -> None:
        body = json.dumps({"text": TEXT}, ensure_ascii=False).encode()[:-1] + b', "pair": "\\ud83d\\ude42"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        for index in range(len(body)):
            self.wfile.write(body[index : index + 1])
            self.wfile.flush()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nobody reads it."""


def test_UNI_2_a_body_in_pieces_is_the_text(run_yaml: RunYaml) -> None:
    """UNI-2 (its general fault, for HTTP bodies): characters cut between pieces arrive whole, no U+FFFD."""
    server = HTTPServer(("127.0.0.1", 0), OneByteAtATime)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        ran = run_yaml(
            f"checks:\n  a: {{ type: http_client, url: 'http://127.0.0.1:{server.server_port}/' }}\n"
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert ran.output("a") == {"text": TEXT, "pair": "🙂"}


def test_UNI_2_output_in_pieces_is_the_text(run_yaml: RunYaml) -> None:
    """UNI-2 (its general fault, for commands): written byte by byte, on both streams, the text is the original."""
    octal = "".join(f"\\\\{byte:03o} " for byte in TEXT.encode()).split()
    prints = "; ".join(f"printf '{byte}'" for byte in octal)
    ran = run_yaml(
        "checks:\n  a: {type: command, exec: "
        + json.dumps(f"{{ {prints}; }} | tee /dev/stderr".replace("\\\\", "\\"))
        + "}\n"
    )
    assert ran.output("a") == TEXT


# --- BIG

BIG = """
checks:
  a: { type: command, exec: "head -c 300000 /dev/zero | tr '\\\\0' x" }
  by_text: { type: command, depends_on: [a], exec: "printf %s {{ outputs.a | shell_escape }}" }
  by_env: { type: command, depends_on: [a], env: { DATA: "{{ outputs.a }}" }, exec: "printf %s $DATA | wc -c" }
  by_stdin: { type: command, depends_on: [a], stdin: "{{ outputs.a }}", exec: "wc -c" }
"""


def test_BIG_1_a_large_output_reaches_the_next_command(run_yaml: RunYaml) -> None:
    """BIG-1: by stdin every byte; by text or env it works, or fails before the start with the way out."""
    ran = run_yaml(BIG)
    assert ran.output("by_stdin") == 300000
    for name in ("by_text", "by_env"):
        fault = ran[name].fault
        assert fault is not None
        assert fault.fault_class == "logical"
        assert ran.calls[name] == 1
        assert "stdin" in fault.message
        assert "Argument list too long" not in fault.message
        assert any(character.isdigit() for character in fault.message)


def test_BIG_2_our_reports_drop_nothing_silently(run_yaml: RunYaml) -> None:
    """BIG-2 (what exists now): 137 findings are in every format, or it says how many it left out."""
    issues = json.dumps(
        {"issues": [{"message": f"finding-{n:03}", "file": "a.py", "line": n + 1} for n in range(137)]}
    )
    ran = run_yaml(f"checks:\n  many: {{ type: command, stdin: {json.dumps(issues)}, exec: cat }}\n")
    for name in ("json", "markdown", "sarif", "junit"):
        out = render(report_of(ran.view), name, Style())
        missing = [n for n in range(137) if f"finding-{n:03}" not in out]
        assert not missing or f"{len(missing)} more" in out, (name, len(missing))


# --- CAN, CON


@pytest.mark.slow
def test_CAN_2_a_cancelled_process_leaves_nobody(tmp_path: Path) -> None:
    """CAN-1, CAN-2: SIGTERM to the engine: exit 130, no descendant lives, the polite one could clean up, no retry."""
    (tmp_path / "gonogo.yaml").write_text(
        HEAD
        + """
checks:
  stubborn:
    type: command
    exec: "sh -c 'trap \\"\\" TERM; sleep 32.9' & echo x >> tries; touch ready; sleep 32.9"
    on_fail: { retry: { max: 5 } }
  polite: { type: command, exec: "trap 'echo cleaned > cleaned; exit 0' TERM; while :; do sleep 0.05; done" }
"""
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "gonogo", "run", "--format", "json"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    waited = threading.Event()
    for _ in range(400):
        if (tmp_path / "ready").exists():
            break
        waited.wait(0.05)
    waited.wait(0.3)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=15)
    steps = json.loads(out)["steps"]
    assert process.returncode == 130
    assert {step["outcome"] for step in steps.values()} == {"cancelled"}
    assert (tmp_path / "cleaned").read_text() == "cleaned\n"
    assert (tmp_path / "tries").read_text() == "x\n"
    assert alive("sleep 32.9") == []
    assert b"Traceback" not in err


def test_CON_1_slots_are_given_back(run_yaml: RunYaml) -> None:
    """CON-1: eight kinds of end under one slot; all final, never more than one at once, none held at the end."""
    once = "touch on.$$; ls | grep -c '^on' >> seen; rm on.$$"
    ran = run_yaml(f"""
max_parallelism: 1
checks:
  ok: {{ type: command, exec: "{once}" }}
  fails: {{ type: command, exec: "{once}; exit 1" }}
  slow: {{ type: command, timeout: 200ms, exec: "{once}; sleep 20" }}
  if_error: {{ type: command, if: "null.x", exec: "{once}" }}
  skipped: {{ type: command, if: "false", exec: "{once}" }}
  again: {{ type: command, exec: "{once}; exit 1", on_fail: {{ retry: {{ max: 2 }} }} }}
  killed: {{ type: command, exec: "{once}; kill -9 $$" }}
  last: {{ type: command, exec: "{once}" }}
""")
    assert set(ran.lines("seen")) == {"1"}
    assert len(ran.lines("seen")) == 8
    assert ran.result.state.slots == 0
    assert set(ran.outcomes.values()) == {"passed", "failed", "skipped"}


def test_CON_2_a_waiting_parent_holds_no_slot(run_yaml: RunYaml) -> None:
    """CON-2: one slot, a fan-out, a workflow in a workflow and a remediation all finish."""
    child = HEAD + "id: {id}\nchecks:\n  inner: {step}\n"
    ran = run_yaml(
        """
max_parallelism: 1
imports: [one.yaml, two.yaml]
checks:
  list: { type: script, forEach: true, content: "return [1, 2, 3]" }
  each: { type: command, fanout: map, depends_on: [list], exec: "echo each >> ran" }
  nested: { type: workflow, workflow: one }
  bad: { type: command, exec: "test -e fixed", on_fail: { run: [fix], retry: { max: 1 } } }
  fix: { type: command, exec: "touch fixed" }
""",
        files={
            "one.yaml": child.format(id="one", step="{ type: workflow, workflow: two }").replace(
                "id: one", "id: one\nimports: [two.yaml]"
            ),
            "two.yaml": child.format(id="two", step="{ type: command, exec: echo deep >> ran }"),
        },
    )
    assert ran.verdict == "GO"
    assert sorted(ran.lines("ran")) == ["deep", "each", "each", "each"]
