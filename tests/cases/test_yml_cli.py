"""Cases about workflow files and the command line: YML, CLI, OBS."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cases.conftest import Ended
from tests.whole import RunYaml

from gonogo import app
from gonogo.errors import ConfigError

HEAD = 'version: "1.0"\n'
Gonogo = Callable[..., Ended]

# --- YML


def test_YML_1_words_are_words(run_yaml: RunYaml) -> None:
    """YML-1: `on` is the trigger list, tags are eight texts, the command prints `no off yes`."""
    ran = run_yaml(
        """
tag_filter: { include: ["no"] }
checks:
  greet:
    type: command
    on: [pr_opened]
    tags: [on, off, yes, no, y, n, NO, Off]
    env: { COUNTRY: no, MODE: off, ANSWER: yes }
    exec: "printf '%s %s %s' \\"$COUNTRY\\" \\"$MODE\\" \\"$ANSWER\\""
""",
        event="pr_opened",
    )
    step = ran.view.plan.steps["greet"]
    assert step.on == ("pr_opened",)
    assert step.tags == ("on", "off", "yes", "no", "y", "n", "NO", "Off")
    assert ran.output("greet") == "no off yes"


def test_YML_1_yes_is_no_boolean(run_yaml: RunYaml) -> None:
    """YML-1: `continue_on_failure: yes` is a type error that suggests `true`."""
    with pytest.raises(ConfigError) as refused:
        run_yaml("checks:\n  a: { type: noop, continue_on_failure: yes }\n")
    problem = refused.value.problems[0]
    assert "true" in f"{problem.message} {problem.suggestion}"


TWICE = {
    "a step": """checks:
  deploy: { type: command, exec: "echo a > ran", assume: ["env.OK === 'true'"] }
  deploy: { type: command, exec: "echo b > ran" }
""",
    "a key of a step": "checks:\n  a:\n    type: noop\n    fail_if: 'true'\n    fail_if: 'false'\n",
    "a key at the top": "checks:\n  a: { type: noop }\nchecks:\n  b: { type: noop }\n",
    "on beside on": 'checks:\n  a:\n    type: noop\n    on: [manual]\n    "on": [pr_opened]\n',
}


@pytest.mark.parametrize("what", TWICE)
def test_YML_2_equal_keys_are_refused(gonogo: Gonogo, tmp_path: Path, what: str) -> None:
    """YML-2: loading fails with exit 2, the key and both lines; nothing runs."""
    ended = gonogo(HEAD + TWICE[what], "run", "--no-color")
    lines = [number for number, line in enumerate((HEAD + TWICE[what]).splitlines(), 1)]
    named = [number for number in lines if f"line {number}" in ended.err or f":{number}:" in ended.err]
    assert ended.code == 2
    assert len(named) >= 2
    assert not (tmp_path / "process" / "ran").exists()


def test_YML_2_an_included_file_may_be_overridden_but_not_repeat_itself(run_yaml: RunYaml) -> None:
    """YML-2: a repeated key in an included file is refused; overriding one of its steps is fine and noted."""
    base = HEAD + "checks:\n  a: { type: command, exec: 'echo base >> ran' }\n"
    ran = run_yaml(
        "extends: base.yaml\nchecks:\n  a: { exec: 'echo own >> ran' }\n", files={"base.yaml": base}
    )
    assert ran.lines("ran") == ["own"]
    with pytest.raises(ConfigError):
        run_yaml(
            "extends: base.yaml\nchecks:\n  b: { type: noop }\n",
            files={"base.yaml": base + "  a: { type: noop }\n"},
        )


BOMBS = {
    "aliases": "\n".join(
        ["x-0: &a0 [x, x, x, x, x, x, x, x, x]"]
        + [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    ),
    "merges": "\n".join(
        ["x-0: &m0 {k: v}"] + [f"x-{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}], k{n}: v}}" for n in range(1, 19)]
    ),
    "itself": "x-a: &a [*a]",
    "depth": "x-a: " + "[" * 10_000 + "]" * 10_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_YML_3_what_expands_without_end_is_refused(bomb: str) -> None:
    """YML-3: with a message about expansion or depth. (Time and memory are measured where the reader is tested.)"""
    with pytest.raises(ConfigError) as refused:
        app.loads(HEAD + BOMBS[bomb] + "\nchecks:\n  a: { type: noop }\n")
    words = ("inside", "expan", "deep", "depth", "nest", "itself", "alias", "anchor")
    assert any(word in refused.value.problems[0].message for word in words)


def test_YML_3_ordinary_anchors_keep_working(run_yaml: RunYaml) -> None:
    """YML-3: one base mapping, five users; what a user writes itself wins."""
    steps = "".join(f"  s{n}: {{ <<: *base }}\n" for n in range(4))
    ran = run_yaml(
        f"x-base: &base {{ type: command, exec: echo base >> ran }}\nchecks:\n{steps}"
        "  own: { <<: *base, exec: echo own >> ran }\n"
    )
    assert sorted(ran.lines("ran")) == ["base"] * 4 + ["own"]


# --- CLI

MISSPELT = {
    "a: { type: noop, fail_iff: 'true' }": "fail_if",
    "a: { type: noop, garantee: 'true' }": "guarantee",
    "a: { type: noop, depends-on: b }": "depends_on",
    "a: { type: noop, retries: 3 }": "on_fail",
    "a: { type: noop, max_loops: 3 }": "routing",
    "a: { type: noop, on_fail: { timeout: 5 } }": "step",
    "a: { type: noop, on_fail: { retry: { maximum: 3 } } }": "max",
    "a: { type: comand, exec: x }": "command",
    "a: { type: noop, depends_on: bb }": "b",
    "a: { type: noop, on_success: { goto: bb } }": "b",
}


def test_CLI_1_everything_misspelt_is_listed_at_once(gonogo: Gonogo) -> None:
    """CLI-1: validate and run refuse with exit 2; file, line and advice for each at once; x- keys are free."""
    steps = [key.replace("a:", f"a{number}:", 1) for number, key in enumerate(MISSPELT)]
    text = (
        HEAD
        + "x-mine: 1\nassume: 'true'\nchecks:\n  b: { type: noop, x-own: 1 }\n"
        + "".join(f"  {s}\n" for s in steps)
    )
    for verb in ("validate", "run"):
        ended = gonogo(text, verb, "--no-color")
        told = ended.out.decode() + ended.err
        assert ended.code == 2
        for number, advice in enumerate(MISSPELT.values()):
            assert f"gonogo.yaml:{number + 6}:" in told
            assert advice in told
        assert "gonogo.yaml:3:" in told
        assert "x-mine" not in told


PASSING = "checks:\n  a: { type: command, exec: 'echo from the step; echo noise >&2' }\n"
FAILING = "checks:\n  a: { type: command, exec: 'exit 1' }\n"
INVALID = "checks:\n  a: { type: noop, fail_iff: 'true' }\n"


@pytest.mark.parametrize(("text", "code"), [(PASSING, 0), (FAILING, 1), (INVALID, 2)])
@pytest.mark.parametrize("more", [(), ("-v",)])
def test_CLI_2_stdout_is_one_json_document(
    gonogo: Gonogo, text: str, code: int, more: tuple[str, ...]
) -> None:
    """CLI-2: also for an invalid file; the exit code says the same; no colours in a pipe; all else is on stderr."""
    ended = gonogo(HEAD + text, "run", "--format", "json", *more)
    assert ended.code == code
    assert isinstance(ended.json, dict)
    assert b"\x1b" not in ended.out
    assert "\x1b" not in ended.err


# --- OBS

TEN = """
fail_fast: false
checks:
  fails: { type: command, exec: exit 1 }
  list: { type: script, forEach: true, content: "return []" }
  if_false: { type: noop, if: "1 > 2" }
  if_error: { type: noop, if: "outputs.fails.no.such" }
  assume_false: { type: noop, assume: "env.NOT_SET === 'x'" }
  dependency_failed: { type: noop, depends_on: fails }
  dependency_skipped: { type: noop, depends_on: if_false }
  group_out: { type: noop, depends_on: "fails|if_false" }
  fan_out_empty: { type: noop, fanout: map, depends_on: list }
  event_filter: { type: noop, on: [pr_closed] }
  tag_filter: { type: noop, tags: [x] }
"""
REASONS = {
    "if_false": "if_condition",
    "if_error": "if_condition",
    "assume_false": "assume",
    "dependency_failed": "dependency_failed",
    "dependency_skipped": "dependency_failed",
    "group_out": "dependency_failed",
    "fan_out_empty": "forEach_empty",
}


def test_OBS_1_every_skip_says_why(run_yaml: RunYaml) -> None:
    """OBS-1: a stable reason, the root of it, the expression with what it read; what was left out has a reason too."""
    from gonogo.core import decisions as d

    ran = run_yaml(
        TEN.replace("outputs.fails.no.such", "outputs.list.no.such").replace(
            "if_error: {", "if_error: { depends_on: list,"
        ),
        event="manual",
    )
    assert {name: ran[name].reason for name in REASONS} == REASONS
    assert ran.view.excluded == {"event_filter": "event_filter", "tag_filter": "tag_filter"}
    roots = {skip.step: skip.because for skip in ran.decisions(d.Skipped)}
    assert (roots["dependency_failed"], roots["dependency_skipped"], roots["fan_out_empty"]) == (
        "fails",
        "if_false",
        "list",
    )
    judged = ran.judged("assume", "assume_false")[0]
    assert "env.NOT_SET" in str(judged.evidence)
    assert ran.rules("if_error") == ["expression/error"]
    assert ran.view.statistics["skippedChecks"] == len(REASONS)


def test_OBS_1_fail_fast_is_one_of_the_reasons(gonogo: Gonogo) -> None:
    """OBS-1: the tenth reason, in the JSON that a process prints."""
    text = "checks:\n  a: { type: command, exec: exit 1 }\n  b: { type: noop, depends_on: c }\n  c: { type: noop }\n"
    ended = gonogo(HEAD + "max_parallelism: 1\n" + text, "run", "--fail-fast", "--format", "json")
    assert {name: step["reason"] for name, step in json.loads(ended.out)["steps"].items() if name != "a"} == {
        "b": "fail_fast",
        "c": "fail_fast",
    }
