"""Runs that wait for days: who may answer, what is told of them, and waking those that are due."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import COMMAND, QUIET_ENVIRONMENT, Gonogo, process, write

from gonogo.cli.session import who

Later = Callable[[float], None]
HOUR = 3600.0
APPROVAL = """
approve: {type: human-input, prompt: "Ship it?", approvers: [ana, ben, "team-*"], quorum: 2}
ship: {type: log, message: shipped, depends_on: approve, assume: "outputs.approve.text === 'yes'"}
"""
REMINDED = """
approve:
  type: human-input
  prompt: "Ship it?"
  timeout: 3d
  default: "no"
  remind: {every: 4h, run: tell}
tell: {type: log, message: "{{ args.prompt }} {{ args.reminder }}"}
"""


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Have so many seconds pass while no process is there."""
    real = time.time

    def pass_time(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: real() + seconds)

    return pass_time


def shown(gonogo: Gonogo, run: str = "last") -> dict[str, Any]:
    """A run as data."""
    told: dict[str, Any] = gonogo("show", run, "--format", "json").json
    return told


# --- approvals


def test_an_approval_goes_on_when_enough_have_said_yes(gonogo: Gonogo, tmp_path: Path) -> None:
    """After the first of two it is still on HOLD, and says so."""
    write(tmp_path, APPROVAL)
    assert gonogo("run").code == 3
    first = gonogo("answer", "last", "approve", "yes", "--by", "ana")
    assert (first.code, "approved 1 of 2 (ana)" in first.out) == (3, True)
    assert gonogo("answer", "last", "approve", "yes", "--by", "team-lead").code == 0
    assert [one["by"] for one in shown(gonogo)["steps"]["approve"]["output"]["answers"]] == [
        "ana",
        "team-lead",
    ]


def test_the_table_says_who_approved_and_who_did_not(gonogo: Gonogo, tmp_path: Path) -> None:
    """Whoever looks afterwards wants to know on whose word it was done."""
    write(tmp_path, APPROVAL)
    gonogo("run")
    gonogo("answer", "last", "approve", "yes", "--by", "ana")
    gonogo("answer", "last", "approve", "No", "--by", "team-lead")
    assert "ana said yes, team-lead said no" in gonogo("show", "last").out


def test_the_table_says_what_was_answered_with_secrets_masked(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the words of who answered, as they are kept."""
    monkeypatch.setenv("API_KEY", "k3yk3yk3yk3y")
    write(tmp_path, 'ask: {type: human-input, prompt: "Which?", allow_empty: true}')
    gonogo("run")
    gonogo("answer", "last", "ask", "the blue one, k3yk3yk3yk3y", "--by", "ana")
    told = gonogo("show", "last").out
    assert "ana said the blue one, " in told
    assert "k3yk3yk3yk3y" not in told


def test_the_table_says_that_no_answer_came(gonogo: Gonogo, tmp_path: Path, later: Later) -> None:
    """Nobody said what the default says."""
    write(tmp_path, 'ask: {type: human-input, prompt: "?", timeout: 1h, default: "no"}')
    gonogo("run")
    later(2 * HOUR)
    gonogo("resume", "--due")
    assert "no answer came in time, so no" in gonogo("show", "last").out


def test_each_of_several_questions_has_its_prompt(gonogo: Gonogo, tmp_path: Path) -> None:
    """The verdict's line has that of the first alone."""
    write(
        tmp_path,
        """
a: {type: human-input, prompt: "Ship it?"}
b: {type: human-input, prompt: "In which colour?"}
""",
    )
    told = gonogo("run").out
    assert "a: Ship it? · since" in told
    assert "b: In which colour? · since" in told


def test_items_say_who_answered_them(gonogo: Gonogo, tmp_path: Path) -> None:
    """Each its own."""
    write(
        tmp_path,
        """
files: {type: script, content: "return ['a', 'b']", forEach: true}
ask: {type: human-input, depends_on: files, fanout: map, prompt: "{{ outputs.files }}?"}
""",
    )
    gonogo("run")
    gonogo("answer", "last", "ask", "fine", "--all", "--by", "ana")
    assert gonogo("show", "last", "--all-items").out.count("passed, ana said fine") == 2


def test_a_no_of_one_skips_what_waits_for_a_yes(gonogo: Gonogo, tmp_path: Path) -> None:
    """The run is GO without it."""
    write(tmp_path, APPROVAL)
    gonogo("run")
    assert gonogo("answer", "last", "approve", "no", "--by", "ben").code == 0
    assert shown(gonogo)["steps"]["ship"]["outcome"] == "skipped"


@pytest.mark.parametrize(
    ("by", "text", "told"),
    [
        ("mallory", "yes", "its giver is not among the approvers"),
        ("", "yes", "it needs the name of who answers"),
        ("ana", "sure", "it takes yes or no"),
    ],
)
def test_an_answer_that_does_not_count_says_why(
    gonogo: Gonogo, tmp_path: Path, by: str, text: str, told: str
) -> None:
    """With 2, and what to do; the run waits on."""
    write(tmp_path, APPROVAL)
    gonogo("run")
    refused = gonogo("answer", "last", "approve", text, "--by", by)
    assert (refused.code, told in refused.err) == (2, True)
    assert shown(gonogo)["verdict"] == "HOLD"


def test_the_same_approver_is_told_that_others_have_to_answer(gonogo: Gonogo, tmp_path: Path) -> None:
    """With how far it is."""
    write(tmp_path, APPROVAL)
    gonogo("run")
    gonogo("answer", "last", "approve", "yes", "--by", "ana")
    again = gonogo("answer", "last", "approve", "yes", "--by", "Ana")
    assert (again.code, "approved 1 of 2" in again.err) == (2, True)


def test_whoever_is_at_hand_is_not_asked_where_it_matters_who_answers(gonogo: Gonogo, tmp_path: Path) -> None:
    """A message in advance is nobody's either."""
    write(tmp_path, APPROVAL)
    assert gonogo("run", "--message", "yes").code == 3


def test_an_answer_has_the_name_of_the_user_unless_another_is_given(gonogo: Gonogo, tmp_path: Path) -> None:
    """In the journal, with the text."""
    write(tmp_path, 'ask: {type: human-input, prompt: "?"}')
    gonogo("run")
    gonogo("answer", "last", "ask", "fine")
    journal = next((tmp_path / ".gonogo" / "runs").glob("*/journal.jsonl")).read_text()
    answer = next(
        json.loads(line)["event"] for line in journal.splitlines() if '"type":"answer_given"' in line
    )
    assert (answer["text"], answer["by"]) == ("fine", who())


def test_in_github_actions_an_answer_has_the_name_of_the_actor() -> None:
    """Elsewhere a variable of that name means nothing."""
    assert who({"GITHUB_ACTIONS": "true", "GITHUB_ACTOR": "octocat"}) == "octocat"
    assert who({"GITHUB_ACTOR": "octocat"}) == who()


# --- second and late answers


def test_a_second_answer_is_told_whose_was_taken(gonogo: Gonogo, tmp_path: Path) -> None:
    """The run has gone on to its next question meanwhile."""
    write(
        tmp_path,
        """
        ask: {type: human-input, prompt: "?"}
        more: {type: human-input, prompt: "and?", depends_on: ask}
        """,
    )
    gonogo("run")
    gonogo("answer", "last", "ask", "one", "--by", "ana")
    second = gonogo("answer", "last", "ask", "two", "--by", "ben")
    assert (second.code, "it was answered already, by ana" in second.err) == (2, True)


def test_of_answers_at_the_same_moment_one_is_taken_and_each_is_told(tmp_path: Path) -> None:
    """Real processes, begun together: one goes on with the run, the others end with 2 and the reason."""
    write(
        tmp_path,
        'ask: {type: human-input, prompt: "?"}\nmore: {type: human-input, prompt: "?", depends_on: ask}',
    )
    assert process("run", cwd=tmp_path).code == 3
    begun = [
        subprocess.Popen(
            [COMMAND, "answer", "last", "ask", name, "--by", name, "--format", "json", "-q"],
            cwd=tmp_path,
            env=QUIET_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("ana", "ben", "cem")
    ]
    ended = [(each.communicate(timeout=60), each.returncode) for each in begun]
    output = json.loads(process("show", "last", "--format", "json", cwd=tmp_path).out)["steps"]["ask"][
        "output"
    ]
    by_name = dict(zip(("ana", "ben", "cem"), ended, strict=True))
    for name, ((_, err), code) in by_name.items():
        assert (code, name) == (3 if name == output["by"] else 2, name), err
        assert name == output["by"] or "answered already" in err


def test_an_answer_after_the_end_of_the_wait_is_told_that_it_is_late(
    gonogo: Gonogo, tmp_path: Path, later: Later
) -> None:
    """Although no process was there to notice the end."""
    write(tmp_path, 'ask: {type: human-input, prompt: "?", timeout: 1h, default: "no"}')
    gonogo("run")
    later(2 * HOUR)
    late = gonogo("answer", "last", "ask", "yes")
    assert (late.code, "its time for an answer was over" in late.err) == (2, True)
    assert shown(gonogo)["steps"]["ask"]["output"]["text"] == "no"


def test_an_answer_to_a_run_that_is_over_is_told_so(gonogo: Gonogo, tmp_path: Path) -> None:
    """With how it ended."""
    write(tmp_path, 'ask: {type: human-input, prompt: "?"}')
    gonogo("run")
    gonogo("answer", "last", "ask", "one")
    second = gonogo("answer", "last", "ask", "two")
    assert (second.code, "is over: GO" in second.err) == (2, True)


# --- what waits


def test_the_report_says_since_when_and_until_when_a_question_waits(gonogo: Gonogo, tmp_path: Path) -> None:
    """And what comes then, in every format for people and as data."""
    write(tmp_path, REMINDED)
    gonogo("run")
    text = gonogo("show", "last").out
    assert all(word in text for word in ("waits for people", "since ", "until ", "(then: no)"))
    (question,) = shown(gonogo)["waiting"]
    assert round(question["until"] - question["since"]) == 3 * 86400
    assert (question["step"], question["default"], question["quorum"]) == ("approve", "no", None)


def test_runs_that_wait_are_listed_with_their_questions(gonogo: Gonogo, tmp_path: Path) -> None:
    """Those that are over aren't."""
    write(tmp_path, APPROVAL)
    write(tmp_path, "a: {type: noop}", name="other.yaml")
    gonogo("run", "other.yaml")
    gonogo("run")
    gonogo("answer", "last", "approve", "yes", "--by", "ana")
    lines = gonogo("runs", "--waiting").out.splitlines()
    assert (len(lines), "approved 1 of 2" in lines[1], "Ship it?" in lines[1]) == (2, True, True)
    (told,) = gonogo("runs", "--waiting", "--format", "json").json
    assert told["waiting"][0] | {"since": None} == {
        "place": "approve",
        "prompt": "Ship it?",
        "since": None,
        "until": None,
        "approved": 1,
        "quorum": 2,
    }
    assert (told["due"], told["wake_at"]) == (False, None)


CHILDREN = """
check: {type: workflow, workflow: child}
own: {type: human-input, prompt: "Own?"}
"""
CHILD = """
files: {type: script, content: "return ['a']", forEach: true}
ask: {type: human-input, prompt: "Which?", approvers: [ana], quorum: 1, timeout: 1h}
each: {type: human-input, prompt: "And?", depends_on: files, fanout: map}
"""


def test_questions_of_children_are_listed_by_the_names_that_answer_takes(
    gonogo: Gonogo, tmp_path: Path
) -> None:
    """With their prompts, and their times by the child's clock."""
    write(tmp_path, CHILD, name="child.yaml", top="id: child\n")
    write(tmp_path, CHILDREN, top="imports: [child.yaml]\n")
    shown = gonogo("run", "--format", "json").json
    (told,) = gonogo("runs", "--waiting", "--format", "json").json
    found = {one["place"]: (one["prompt"], one["quorum"]) for one in told["waiting"]}
    assert found == {
        "check.ask": ("Which?", 1),
        "check.each@files#1[0]": ("And?", None),
        "own": ("Own?", None),
    }
    (since,) = {one["since"] for one in shown["waiting"] if one["step"] == "check.ask"}
    at = {one["place"]: one["since"] for one in told["waiting"]}["check.ask"]
    assert abs(datetime.fromisoformat(at).timestamp() - since) <= 1.0
    assert "check.ask  " in gonogo("runs", "--waiting").out
    for place in found:
        assert gonogo("answer", "last", place, "yes", "--by", "ana").code in (0, 3)
    assert gonogo("show", "last", "--format", "json").json["verdict"] == "GO"


def test_nothing_that_waits_is_said_in_a_line(gonogo: Gonogo, tmp_path: Path) -> None:
    """On the side, so that the list stays empty."""
    ended = gonogo("runs", "--waiting")
    assert (ended.code, ended.out, ended.err.strip()) == (0, "", "no run waits")


# --- waking


def test_a_run_whose_timer_fell_due_is_shown_as_due_and_woken(
    gonogo: Gonogo, tmp_path: Path, later: Later
) -> None:
    """Of reminders that fell due while nobody was there one is sent, and the next is counted from it."""
    write(tmp_path, REMINDED)
    gonogo("run")
    assert "due" not in gonogo("runs", "--waiting").out
    later(9 * HOUR)
    listed = gonogo("runs", "--waiting")
    assert ("due" in listed.out, "gonogo resume --due" in listed.err) == (True, True)
    woken = gonogo("resume", "--due")
    assert (woken.code, "Ship it? 1" in woken.err, "HOLD" in woken.out) == (0, True, True)
    assert gonogo("resume", "--due").err.strip() == "no run is due"
    later(13.5 * HOUR)
    assert "Ship it? 2" in gonogo("resume", "--due").err


def test_a_wait_whose_time_is_over_ends_when_the_run_is_woken(
    gonogo: Gonogo, tmp_path: Path, later: Later
) -> None:
    """By its default."""
    write(tmp_path, REMINDED)
    gonogo("run")
    later(80 * HOUR)
    assert "GO" in gonogo("resume", "--due").out
    assert shown(gonogo)["steps"]["approve"]["output"] == {"text": "no", "by": "default"}


def test_only_runs_that_are_due_are_woken(gonogo: Gonogo, tmp_path: Path, later: Later) -> None:
    """What a run comes to is no matter of the code."""
    write(tmp_path, 'ask: {type: human-input, prompt: "?", timeout: 1h}', name="fails.yaml")
    write(tmp_path, 'ask: {type: human-input, prompt: "?", timeout: 30d}', name="waits.yaml")
    gonogo("run", "fails.yaml")
    gonogo("run", "waits.yaml")
    later(2 * HOUR)
    woken = gonogo("resume", "--due")
    assert (woken.code, woken.out.count("NO-GO"), woken.out.count("HOLD")) == (0, 1, 0)


def test_a_question_within_a_child_wakes_the_run_around_it(
    gonogo: Gonogo, tmp_path: Path, later: Later
) -> None:
    """The child's timer is the parent's business."""
    write(
        tmp_path,
        'ask: {type: human-input, prompt: "?", timeout: 1h, default: "no"}',
        name="child.yaml",
        top="id: child\n",
    )
    write(tmp_path, "check: {type: workflow, workflow: child}", top="imports: [child.yaml]\n")
    assert gonogo("run").code == 3
    later(2 * HOUR)
    assert "due" in gonogo("runs", "--waiting").out
    assert "GO" in gonogo("resume", "--due").out


def test_a_journal_that_cannot_be_read_keeps_no_other_run_from_being_woken(
    gonogo: Gonogo, tmp_path: Path, later: Later
) -> None:
    """The others go on; the code says that one couldn't."""
    write(tmp_path, 'ask: {type: human-input, prompt: "?", timeout: 1h, default: "no"}')
    for _ in range(2):
        gonogo("run")
    first, second = sorted((tmp_path / ".gonogo" / "runs").glob("*/journal.jsonl"))
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(lines[0] + b"broken\n" + b"".join(lines[1:]))
    later(2 * HOUR)
    woken = gonogo("resume", "--due")
    assert (woken.code, "can't go on" in woken.err) == (2, True)
    assert (woken.out.count("GO"), second.parent.name in woken.out) == (1, True)


@pytest.mark.parametrize("arguments", [(), ("last", "--due"), ("--due", "--from", "a"), ("--due", "--yes")])
def test_resume_takes_one_run_or_all_that_are_due(gonogo: Gonogo, arguments: tuple[str, ...]) -> None:
    """Never neither or both; what is due goes on as it is."""
    assert gonogo("resume", *arguments).code == 2
