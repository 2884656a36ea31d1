"""The other verbs: init, validate, plan, runs, show, resume, answer, cancel, schema, providers, doctor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo, write

from gonogo.cli.verbs.init import TEMPLATES, template


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_template_is_valid_and_runs(gonogo: Gonogo, tmp_path: Path, name: str) -> None:
    """Without warnings; with a person's yes it is GO."""
    assert gonogo("init", name).code == 0
    validated = gonogo("validate", "--format", "json", "--safety", "strict")
    assert validated.code == 0, validated.err
    assert [problem for problem in validated.json["problems"] if problem["severity"] != "info"] == []
    ended = gonogo("run", "--message", "yes", "--format", "json")
    assert ended.json["verdict"] == "GO", ended.out


def test_init_overwrites_nothing(gonogo: Gonogo, tmp_path: Path) -> None:
    """Nor does it follow a link."""
    (tmp_path / "gonogo.yaml").write_text("mine")
    ended = gonogo("init")
    assert ended.code == 2
    assert "there is a gonogo.yaml already" in ended.err
    assert (tmp_path / "gonogo.yaml").read_text() == "mine"
    assert gonogo("init", "nope").code == 2
    assert template("checks").startswith("# Checks")


def test_validate_tells_all_problems_with_their_places(gonogo: Gonogo, tmp_path: Path) -> None:
    """CLI-1: file, line, column, the line, a caret, a suggestion; exit code 2."""
    write(tmp_path, "a: {type: noop, fail_iff: x}\nb: {type: nope}\nc: {type: noop, depends_on: d}")
    ended = gonogo("validate")
    assert ended.code == 2
    assert ended.out == ""
    for said in (
        "gonogo.yaml:3:19: error: ",
        "did you mean fail_if?",
        "gonogo.yaml:4:",
        "gonogo.yaml:5:",
        "3 errors",
    ):
        assert said in ended.err
    assert "\x1b[31m" in gonogo("validate", terminal=True, TERM="xterm").err


def test_validate_shows_what_a_file_comes_to(gonogo: Gonogo, tmp_path: Path) -> None:
    """What it extends merged in, expressions as text; strict turns warnings into errors."""
    write(tmp_path, "a: {type: noop, if: 'filesCount > 0'}", name="base.yaml")
    step = "a: {type: noop, assume: 'true', on_init: {run_js: '[]'}}"
    write(tmp_path, step, top="extends: base.yaml\n")
    shown = gonogo("validate", "--show")
    assert json.loads(shown.out)["steps"]["a"]["on_init_js"] == "[]"
    assert json.loads(shown.out)["steps"]["a"]["if_condition"] == "filesCount > 0"
    assert json.loads(shown.out)["steps"]["a"]["assume"] == ["true"]
    assert gonogo("validate", "--show", "--format", "json").json["effective"]["steps"]["a"]["assume"] == [
        "true"
    ]


def test_validate_strict_refuses_what_is_only_a_warning(gonogo: Gonogo, tmp_path: Path) -> None:
    """By option, and when the file says so."""
    write(tmp_path, "a: {type: noop, if: 'outputs.b'}\nb: {type: noop}")
    usual = gonogo("validate")
    assert usual.code == 0
    assert "1 warning" in usual.out
    assert gonogo("validate", "--safety", "strict").code == 2


def test_G_4_the_safety_of_the_command_line_wins(gonogo: Gonogo, tmp_path: Path) -> None:
    """G4: off lifts the cap of retries, in validate and run; strict refuses what is only a warning."""
    write(tmp_path, "a: {type: noop, criticality: policy, fail_if: 'false', on_fail: {retry: {max: 5}}}")
    assert "retry.max 5 is cut to 2" in gonogo("validate").err
    assert gonogo("validate", "--safety", "off").err == ""
    assert gonogo("run", "--safety", "strict").code == 2
    write(
        tmp_path, "a: {type: noop, criticality: policy, on_fail: {retry: {max: 5}}}", top="safety: strict\n"
    )
    shown = gonogo("validate", "--safety", "off", "--show").out
    assert json.loads(shown)["steps"]["a"]["on_fail"]["retry"]["max"] == 5


def test_A_5_plan_tells_where_the_criticality_comes_from(gonogo: Gonogo, tmp_path: Path) -> None:
    """A.5, G6, G12: written, by tag or inferred; and what undoes a step."""
    write(
        tmp_path,
        """
a: {type: noop, criticality: policy, compensate: back}
b: {type: noop, tags: [internal], assume: 'true'}
c: {type: noop, forEach: true}
back: {type: noop}
""",
    )
    said = " ".join(gonogo("plan").out.split())
    assert "noop, policy, undone by back" in said
    assert "internal (tag)" in said
    assert "internal (inferred)" in said
    found = gonogo("plan", "--format", "json").json["steps"]
    assert [found[name]["criticality_source"] for name in "abc"] == ["explicit", "tag", "inferred"]


def test_E_10_an_input_that_is_not_declared_is_refused(gonogo: Gonogo, tmp_path: Path) -> None:
    """E.10 R1: with the one that was probably meant; nothing ran."""
    write(tmp_path, "a: {type: noop}", top="inputs: [{name: label, required: false}]\n")
    ended = gonogo("run", "-i", "lable=1")
    assert (ended.code, "did you mean label?" in ended.err) == (2, True)
    assert gonogo("run", "-i", "label=1").code == 0


def test_without_a_file_the_verbs_say_how_to_begin(gonogo: Gonogo) -> None:
    """Exit code 2 and `gonogo init`."""
    for verb in ("validate", "run", "plan"):
        ended = gonogo(verb)
        assert ended.code == 2
        assert "gonogo init" in ended.err


def test_plan_shows_levels_and_what_is_left_out(gonogo: Gonogo, tmp_path: Path) -> None:
    """For this event; nothing runs."""
    steps = """
a: {type: command, exec: "touch ran"}
b: {type: noop, depends_on: a, if: "outputs.a"}
c: {type: noop, on: [pr_opened]}
d: {type: noop, depends_on: c}
fix: {type: noop}
e: {type: noop, on_fail: {run: [fix]}}
"""
    write(tmp_path, steps)
    ended = gonogo("plan", "--event", "manual", "--format", "json")
    assert ended.code == 0
    assert ended.json["levels"] == [["a", "e"], ["b"]]
    assert ended.json["held_back"] == ["fix"]
    assert {name: why["reason"] for name, why in ended.json["left_out"].items()} == {
        "c": "event_filter",
        "d": "dependency_excluded",
    }
    assert ended.json["steps"]["b"]["if"] == "outputs.a"
    text = gonogo("plan", "--event", "manual").out
    assert "not for manual (on: pr_opened)" in text
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / ".gonogo").exists()
    assert gonogo("plan", "-s", "b", "--format", "json").json["levels"] == [["a"], ["b"]]


def test_runs_are_listed_newest_first(gonogo: Gonogo, tmp_path: Path) -> None:
    """With verdicts; a damaged one says so and hides no other."""
    write(tmp_path, "a: {type: noop}")
    assert gonogo("runs").out == ""
    assert "no runs" in gonogo("runs").err
    gonogo("run")
    gonogo("run", "--event", "manual")
    listed = gonogo("runs", "--format", "json").json
    assert [run["verdict"] for run in listed] == ["GO", "GO"]
    assert listed[0]["run_id"] > listed[1]["run_id"] or listed[0]["started_at"] == listed[1]["started_at"]
    assert {run["event"]["name"] if run["event"] else None for run in listed} == {"manual", None}
    journal = tmp_path / ".gonogo" / "runs" / listed[1]["run_id"] / "journal.jsonl"
    journal.write_bytes(b"damage\n" + journal.read_bytes())
    text = gonogo("runs").out
    assert "can't be read" in text
    assert listed[0]["run_id"] in text
    assert len(gonogo("runs", "--limit", "1", "--format", "json").json) == 1


def test_runs_are_listed_from_the_ends_of_their_journals(gonogo: Gonogo, tmp_path: Path) -> None:
    """What lies between is left to show; where an end is damaged the whole is read, and its line is named."""
    write(tmp_path, "a: {type: noop}\nb: {type: noop, depends_on: a}")
    gonogo("run", "--event", "manual")
    whole = gonogo("runs", "--format", "json").json
    journal = next((tmp_path / ".gonogo" / "runs").glob("*/journal.jsonl"))
    first, *between, last = journal.read_bytes().splitlines(keepends=True)
    assert between
    assert whole[0]["records"] == len(between) + 2
    journal.write_bytes(first + b"".join(b"x" + line[1:] for line in between) + last)
    assert gonogo("runs", "--format", "json").json == whole
    assert gonogo("show", "last").code != 0
    journal.write_bytes(first + b"".join(between) + b"x" + last[1:])
    (listed,) = gonogo("runs", "--format", "json").json
    assert f"line {len(between) + 2} is damaged" in listed["problem"]


def test_show_takes_an_id_a_beginning_or_last(gonogo: Gonogo, tmp_path: Path) -> None:
    """In every format, and the decisions with their values."""
    write(tmp_path, "a: {type: noop, if: 'filesCount > 5'}")
    run_id = gonogo("run", "--format", "json").json["run_id"]
    for name in (run_id, run_id[:-2], "last"):
        assert gonogo("show", name, "--format", "json").json["run_id"] == run_id
    assert "<testsuite" in gonogo("show", "last", "--format", "junit").out
    told = gonogo("show", "last", "--records").out
    assert "filesCount > 5" in told
    assert "filesCount = 0" in told
    assert gonogo("show", "nope").code == 2
    assert gonogo("show", "../etc", "--format", "json").json["error"]["code"] == "usage"


def test_the_last_of_no_runs_is_told_as_that(gonogo: Gonogo) -> None:
    """`last` is no name that was mistyped."""
    ended = gonogo("show", "last")
    assert (ended.code, "there are no runs yet" in ended.err, "'last'" in ended.err) == (2, True, False)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no folder that takes no folders")
def test_a_place_that_takes_no_folders_is_told_as_that(gonogo: Gonogo, tmp_path: Path) -> None:
    """There are no runs to see."""
    write(tmp_path, "a: {type: noop}")
    ended = gonogo("run", "--runs-dir", "/proc/foo")
    assert "/proc takes no folders: choose another place with --runs-dir" in ended.err
    assert "'gonogo runs'" not in ended.err


@pytest.mark.parametrize("other", [("--records",), ("--metrics",), ("--explain", "all")])
def test_all_items_of_what_has_no_rows_of_items_is_refused(
    gonogo: Gonogo, tmp_path: Path, other: tuple[str, ...]
) -> None:
    """It would say nothing about it."""
    write(tmp_path, "a: {type: noop}")
    gonogo("run")
    ended = gonogo("show", "last", "--all-items", *other)
    assert (ended.code, f"not about {other[0]}" in ended.err) == (2, True)


def test_show_reads_a_journal_that_a_crash_cut(gonogo: Gonogo, tmp_path: Path) -> None:
    """A torn last line, and no verdict."""
    write(tmp_path, "a: {type: noop}\nb: {type: noop, depends_on: a}")
    gonogo("run", "-j", "1")
    journal = next((tmp_path / ".gonogo" / "runs").glob("*/journal.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])
    ended = gonogo("show", "last")
    assert ended.code == 0
    assert "INTERRUPTED" in ended.out
    assert "2 steps: 1 passed, 1 cut off" in ended.out
    assert "gonogo resume" in ended.out
    resumed = gonogo("resume", "last")
    assert resumed.code == 0
    assert "GO" in resumed.out


def test_answer_reaches_items_and_says_what_waits(gonogo: Gonogo, tmp_path: Path) -> None:
    """`step@scope`; a step that waits for nothing is a usage error."""
    steps = """
list: {type: script, forEach: true, content: "return ['x', 'y']"}
ask: {type: human-input, depends_on: list, fanout: map, prompt: "{{ outputs.list }}?"}
"""
    write(tmp_path, steps)
    held = gonogo("run")
    assert held.code == 3
    assert gonogo("answer", "last", "nope", "yes").code == 2
    first = gonogo("answer", "last", "ask@list#1[0]", "one")
    assert first.code == 3
    ended = gonogo("answer", "last", "ask@list#1[1]", "two", "--format", "json")
    assert ended.code == 0, ended.err
    assert [item["output"]["text"] for item in ended.json["steps"]["ask"]["items"]] == ["one", "two"]


def test_cancel_ends_a_run_that_waits(gonogo: Gonogo, tmp_path: Path) -> None:
    """It says so afterwards."""
    write(tmp_path, "ask: {type: human-input, prompt: 'Go?'}")
    gonogo("run")
    ended = gonogo("cancel", "last")
    assert ended.code == 0
    assert "NO-GO because ask was cancelled" in ended.out
    assert "also cancelled" not in ended.out
    assert gonogo("runs", "--format", "json").json[0]["verdict"] == "NO-GO"


def test_schema_is_a_json_schema(gonogo: Gonogo) -> None:
    """One document on stdout."""
    assert gonogo("schema").json["$schema"].startswith("https://json-schema.org/")


def test_providers_lists_types_with_keys_and_effects(gonogo: Gonogo) -> None:
    """All, or one; both ways."""
    found = {one["name"]: one for one in gonogo("providers", "--format", "json").json}
    assert {"command", "noop", "log", "http"} <= found.keys()
    assert found["log"]["effects"] == "reads"
    assert "exec" in {key["name"] for key in found["command"]["keys"]}
    assert "The shell command" in gonogo("providers", "command").out
    assert gonogo("providers", "nope").code == 2


def test_doctor_finds_a_healthy_place(gonogo: Gonogo) -> None:
    """Every check that has to hold does; each that doesn't says what to do."""
    ended = gonogo("doctor", "--format", "json")
    assert ended.code == 0, ended.out
    checks = {check["name"]: check for check in ended.json["checks"]}
    assert checks["sandbox"]["status"] == "ok"
    assert checks["workflow file"]["status"] == "note"
    assert all(check["advice"] for check in checks.values() if check["status"] in ("error", "warning"))
    assert not any("pip install" in (check["advice"] or "") for check in checks.values()), (
        "there are no extras"
    )


def test_doctor_finds_what_is_wrong(gonogo: Gonogo, tmp_path: Path) -> None:
    """A place for runs that can't be one: exit code 2 and advice."""
    (tmp_path / "file").write_text("")
    ended = gonogo("doctor", "--runs-dir", "/proc/runs")
    assert ended.code == 2
    assert "--runs-dir" in ended.out


@pytest.mark.parametrize(
    ("token", "text", "status"),
    [
        ("", "a: {type: noop}", "note"),
        ("", "a: {type: github, op: pr.get}", "warning"),
        ("abc", "a: {type: github, op: pr.get}", "ok"),
        ("a b", "a: {type: noop}", "error"),
    ],
)
def test_doctor_looks_for_githubs_token(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str, text: str, status: str
) -> None:
    """Where a step needs one; never shown, and never tried out."""
    monkeypatch.setenv("GITHUB_TOKEN", token)
    write(tmp_path, text)
    ended = gonogo("doctor", "--format", "json")
    found = {check["name"]: check for check in ended.json["checks"]}["github token"]
    assert (found["status"], bool(found["advice"])) == (status, status in ("warning", "error"))
    assert "abc" not in ended.out


def test_a_verb_that_is_not_there_gets_a_hint(gonogo: Gonogo) -> None:
    """Exit code 2."""
    ended = gonogo("valdate")
    assert ended.code == 2
    assert "Did you mean validate?" in ended.err
