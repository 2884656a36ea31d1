"""G15, G37, H26, H27 and what the peer hid (I.1 16, 21): what a run leaves for people and programs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cases.conftest import Ended, gonogo
from tests.whole import Ran, RunYaml

from gonogo.journal.jsonl import JsonlRuns
from gonogo.journal.view import run_view

__all__ = ["gonogo"]

LOUD = """
version: "1.0"
routing: {max_loops: 0}
failure_conditions: {odd: {condition: step.id === 'a', severity: warning, message: it is odd}}
steps:
  a: {type: script, content: "return 1", guarantee: output > 1, schema: {type: string}}
  b: {type: noop, fail_if: "true"}
  c: {type: noop, on_success: {goto: c}}
"""
SAID = ("output>1doesnothold", "1isnotoftype", "fail_ifistrue", "itisodd", "stepcmaynotroute")
ESCAPED = re.compile(r"\\(?=\W|_)|&gt;|\s")


@pytest.mark.parametrize("name", ["table", "markdown", "sarif", "junit", "json", "github"])
def test_I_1_21_every_format_shows_what_gonogo_itself_says(gonogo: Callable[..., Ended], name: str) -> None:
    """I.1 21: what contracts, detectors, conditions and budgets said is in every format."""
    ended = gonogo(LOUD, "run", "--format", name, "--no-color", "-q")
    text = ESCAPED.sub(lambda found: ">" if found[0] == "&gt;" else "", ended.out.decode())
    assert ended.code == 1
    assert [words for words in SAID if words not in text] == []


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ('guarantee: "false"', 1),
        ('fail_if: "true"', 1),
        ('failure_conditions: {bad: "true"}', 1),
        ('fail_if: "true", continue_on_failure: true', 0),
        ("group: g", 0),
    ],
)
def test_H_27_the_exit_code_says_whether_something_that_matters_failed(
    run_yaml: RunYaml, step: str, code: int
) -> None:
    """H27, I.1 16: not only issues called critical; a tolerated failure is no failure."""
    assert run_yaml(f"steps: {{a: {{type: noop, {step}}}}}").view.exit_code == code


def test_H_26_json_is_one_object_by_step(gonogo: Callable[..., Ended]) -> None:
    """H26: verdict, steps by name and statistics, not groups of issues."""
    told = gonogo(LOUD, "run", "--format", "json").json
    assert (told["verdict"], set(told["steps"])) == ("NO-GO", {"a", "b", "c"})
    assert {"statistics", "faults", "budgets", "event"} <= set(told)


LOGGED = """
version: "1.0"
steps:
  a: {type: log, message: quietly, level: debug}
  b: {type: log, message: aloud, level: info, depends_on: a}
"""


def test_G_37_lines_of_the_log_have_their_time_and_debug_is_asked_for(gonogo: Callable[..., Ended]) -> None:
    """G37, I.2 acceptance: seconds of the run before every decision; debug lines only with -v."""
    usual, everything = gonogo(LOGGED, "run").err, gonogo(LOGGED, "run", "-v").err
    told = [line for line in usual.splitlines() if re.search(r"\b[ab]: ", line) and "aloud" not in line]
    assert told
    assert [line for line in told if not re.match(r"^\s*\d+\.\d{3}  [ab]: ", line)] == []
    assert ("aloud" in usual, "quietly" in usual, "quietly" in everything) == (True, False, True)


def test_I_2_acceptance_validators_warn_of_unsafe_steps(gonogo: Callable[..., Ended]) -> None:
    """I.2 acceptance, G18: with the place and what to write; a warning refuses nothing, strict does."""
    text = 'version: "1.0"\nsteps:\n  a: {type: command, exec: "true", criticality: external}\n'
    warned, refused = gonogo(text, "validate"), gonogo(text, "validate", "--strict")
    assert (warned.code, refused.code) == (0, 2)
    told = warned.out.decode() + warned.err
    assert "gonogo.yaml:3:" in told
    assert ("assume" in told, "guarantee" in told) == (True, True)


PAUSED = """
steps:
  done: {type: command, exec: echo done >> done}
  ask: {type: human-input, prompt: "go?", depends_on: done}
  after: {type: script, depends_on: ask, content: "return outputs.ask.text"}
"""


def test_G_15_a_runs_folder_is_its_snapshot(run_yaml: RunYaml, tmp_path: Path) -> None:
    """G15, I.1 17, H36: copied elsewhere it reads the same and goes on; what was done isn't done again."""
    ran = run_yaml(PAUSED)
    shutil.copytree(tmp_path / "runs", tmp_path / "elsewhere")
    copied = JsonlRuns(tmp_path / "elsewhere", durability="none")
    assert run_view(copied.read(ran.result.run_id).records).as_json() == ran.view.as_json()
    there = Ran(ran.result, copied, ran.folder, []).answered("ask", "yes")
    assert (there.verdict, there.output("after"), ran.lines("done")) == ("GO", "yes", ["done"])


def test_G_15_the_snapshot_is_plain_json(run_yaml: RunYaml, tmp_path: Path) -> None:
    """G15: one record a line, which any program can read."""
    run_yaml(PAUSED)
    lines = next((tmp_path / "runs").rglob("*.jsonl")).read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == len(lines) > 2
