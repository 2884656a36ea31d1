"""Calls in doubt from the command line: answering many at once, giving them up, telling what they gave."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Ended, Gonogo, process, write

KILLED = "[ -e gone ] || { touch gone; kill -9 $PPID; sleep 5; }"
"""Kills the run that it is a call of; does nothing the next time."""
ONE = f"""
patch:
  type: command
  mutates: true
  guarantee: "output.id > 0"
  exec: '{KILLED}'
after: {{type: script, depends_on: patch, content: "return outputs.patch.id"}}
"""
ITEMS = 3
MANY = f"""
hosts: {{type: script, forEach: true, forEach_concurrency: 3, content: "return ['a', 'b', 'c']"}}
patch:
  type: command
  depends_on: hosts
  mutates: true
  parse: text
  exec: 'echo x >> under_way; [ -e gone ] || {{ while [ $(wc -l < under_way) -lt {ITEMS} ]; do sleep 0.05; done;
    touch gone; kill -9 $PPID; sleep 5; }}'
"""
CHILD = "inner: {type: workflow, config: child.yaml}"


def doubtful(folder: Path, gonogo: Gonogo, steps: str) -> None:
    """A run that was killed during its calls, and resumed."""
    write(folder, steps)
    assert process("run", cwd=folder).code == -signal.SIGKILL
    assert gonogo("resume", "last").code == 3


def shown(gonogo: Gonogo, step: str = "patch") -> Any:
    """A step of the run."""
    return gonogo("show", "last", "--format", "json").json["steps"][step]


def under_way(folder: Path) -> int:
    """Calls made so far."""
    return len((folder / "under_way").read_text().splitlines())


def test_a_bare_name_of_several_doubts_lists_them_and_answers_none(gonogo: Gonogo, tmp_path: Path) -> None:
    """With what answers all of them."""
    doubtful(tmp_path, gonogo, MANY)
    assert " patch 'done|again|failed|unknown' --all" in gonogo("show", "last").out
    refused = gonogo("answer", "last", "patch", "again")
    assert refused.code == 2
    assert "3 of patch wait: patch@hosts#1[0], patch@hosts#1[1], patch@hosts#1[2]" in refused.err
    assert "--all" in refused.err
    wrong = gonogo("answer", "last", "patch@hosts#1[27]", "again")
    assert (wrong.code, "these wait: patch@hosts#1[0]" in wrong.err) == (2, True)
    assert under_way(tmp_path) == ITEMS


@pytest.mark.parametrize("name", ["patch", "patch@*", "*"])
def test_all_doubts_are_answered_with_one_command(gonogo: Gonogo, tmp_path: Path, name: str) -> None:
    """Each is an answer of its own in the journal, by whoever gave it."""
    doubtful(tmp_path, gonogo, MANY)
    ended = gonogo("answer", "last", name, "again", "--all", "--by", "ana")
    assert (ended.code, under_way(tmp_path)) == (0, 2 * ITEMS)
    assert "answered 3: patch@hosts#1[0], patch@hosts#1[1], patch@hosts#1[2]" in ended.err
    journal = next((tmp_path / ".gonogo" / "runs").glob("*/journal.jsonl")).read_text()
    answers = [line for line in journal.splitlines() if '"type":"answer_given"' in line]
    assert [json.loads(line)["event"]["by"] for line in answers] == ["ana"] * ITEMS


def test_a_pattern_answers_some_of_them_and_the_last_one_needs_no_scope(
    gonogo: Gonogo, tmp_path: Path
) -> None:
    """A name that stands for one place is that place."""
    doubtful(tmp_path, gonogo, MANY)
    assert gonogo("answer", "last", "patch@*[0]", "done").code == 3
    assert gonogo("answer", "last", "patch@hosts#1[1]", "done").code == 3
    assert gonogo("answer", "last", "patch", "done").code == 0


def test_a_word_that_one_of_them_does_not_take_answers_none(gonogo: Gonogo, tmp_path: Path) -> None:
    """Half an answer would be worse than none."""
    doubtful(tmp_path, gonogo, MANY)
    refused = gonogo("answer", "last", "patch", "sure", "--all")
    assert (refused.code, "it takes done, again, failed or unknown" in refused.err) == (2, True)
    assert [item["outcome"] for item in shown(gonogo)["items"]] == ["in_doubt"] * ITEMS


def test_doubts_within_a_child_are_answered_from_the_run_around_it(gonogo: Gonogo, tmp_path: Path) -> None:
    """By the step that runs it, or by their own name within."""
    write(tmp_path, MANY, name="child.yaml")
    doubtful(tmp_path, gonogo, CHILD)
    refused = gonogo("answer", "last", "inner", "again")
    assert (refused.code, "3 of inner wait: inner.patch@hosts#1[0]" in refused.err) == (2, True)
    assert gonogo("answer", "last", "inner.patch@hosts#1[1]", "done").code == 3
    assert gonogo("answer", "last", "inner.patch", "again", "--all").code == 0
    assert under_way(tmp_path) == ITEMS + 2


# --- what a call that was done gave


def test_the_output_of_a_call_that_was_done_can_be_told(gonogo: Gonogo, tmp_path: Path) -> None:
    """Its guarantee is judged, and those behind it read it."""
    doubtful(tmp_path, gonogo, ONE)
    ended = gonogo("answer", "last", "patch", "done", "--output", '{"id": 7}')
    assert (ended.code, shown(gonogo, "after")["output"]) == (0, 7)


def test_an_output_that_breaks_the_guarantee_fails_the_step(gonogo: Gonogo, tmp_path: Path) -> None:
    """As if the call had given it."""
    doubtful(tmp_path, gonogo, ONE)
    assert gonogo("answer", "last", "patch", "done", "--output", '{"id": 0}').code == 1
    assert shown(gonogo)["fault"]["kind"] == "contract.guarantee"


@pytest.mark.parametrize(
    ("word", "output", "told"),
    [
        ("done", "{id: 7}", "the output is no JSON"),
        ("done", "\udcff", "the output is no JSON"),
        ("done", '{"id": "seven"}', "doesn't fit the schema of patch"),
        ("done", json.dumps("x" * 300_000), "the output can't be kept"),
        ("failed", '{"id": 7}', "an output is given for a call in doubt that was done"),
    ],
)
def test_an_output_that_the_call_cannot_have_given_is_refused(
    gonogo: Gonogo, tmp_path: Path, word: str, output: str, told: str
) -> None:
    """Nothing is answered then."""
    schema = "  schema: {type: object, properties: {id: {type: integer}}}\n"
    doubtful(tmp_path, gonogo, ONE.replace("  mutates: true\n", f"  mutates: true\n{schema}"))
    refused = gonogo("answer", "last", "patch", word, "--output", output)
    assert (refused.code, told in refused.err) == (2, True), refused.err
    assert shown(gonogo)["outcome"] == "in_doubt"


def test_a_secret_in_an_output_that_is_told_is_kept_from_the_journal(gonogo: Gonogo, tmp_path: Path) -> None:
    """A secret output is sealed as if the call had given it, and other secrets are masked."""
    doubtful(tmp_path, gonogo, ONE.replace("  mutates: true\n", "  mutates: true\n  secret_outputs: [key]\n"))
    given = json.dumps({"id": 7, "key": "sealed-kingfisher", "note": "masked-cormorant"})
    ended = process(
        "answer",
        "last",
        "patch",
        "done",
        "--output",
        given,
        cwd=tmp_path,
        env={"A_TOKEN": "masked-cormorant"},
    )
    assert ended.code == 0, ended.err
    kept = "".join(path.read_text(errors="replace") for path in (tmp_path / ".gonogo").rglob("*.jsonl"))
    assert ("kingfisher" in kept, "cormorant" in kept, "[secret patch.key" in kept) == (False, False, True)
    assert shown(gonogo, "after")["output"] == 7


# --- a cancelled run that only doubts keep


def cancelled(folder: Path, gonogo: Gonogo, steps: str) -> Ended:
    """What a second cancel of a run in doubt says."""
    doubtful(folder, gonogo, steps)
    assert gonogo("cancel", "last").code == 0
    return gonogo("cancel", "last")


def test_a_cancelled_run_in_doubt_says_what_ends_it(gonogo: Gonogo, tmp_path: Path) -> None:
    """Nothing runs it, so nothing is told to stop; 3, for it is still on HOLD."""
    again = cancelled(tmp_path, gonogo, MANY)
    assert again.code == 3
    assert "was cancelled already, and only 3 calls in doubt keep it: patch@hosts#1[0]" in again.err
    assert "'*' 'done|again|failed|unknown' --all" in again.err
    assert "--give-up" in again.err
    assert "told to stop" not in again.err


@pytest.mark.parametrize("first", [True, False], ids=["cancelled before", "at once"])
def test_calls_in_doubt_can_be_given_up(gonogo: Gonogo, tmp_path: Path, first: bool) -> None:
    """They end as failed, and nobody claims that they weren't done; the journal has who gave them up."""
    if first:
        cancelled(tmp_path, gonogo, MANY)
    else:
        doubtful(tmp_path, gonogo, MANY)
    ended = gonogo("cancel", "last", "--give-up", GITHUB_ACTIONS="true", GITHUB_ACTOR="octocat")
    assert (ended.code, "gave up 3 calls in doubt: patch@hosts#1[0]" in ended.err) == (0, True)
    told = gonogo("show", "last", "--format", "json").json
    assert told["verdict"] == "NO-GO"
    faults = [fault for fault in told["faults"] if fault["kind"] == "call.given_up"]
    assert [fault["message"] for fault in faults] == [
        "nobody knows whether this call was done, and octocat gave it up"
    ] * ITEMS
    assert under_way(tmp_path) == ITEMS


def test_a_resume_does_not_make_a_call_again_that_was_given_up(gonogo: Gonogo, tmp_path: Path) -> None:
    """It may have been done; to make it once more somebody has to say so."""
    cancelled(tmp_path, gonogo, MANY)
    gonogo("cancel", "last", "--give-up")
    assert gonogo("resume", "last").code == 1
    assert under_way(tmp_path) == ITEMS


def test_a_cancel_does_not_lose_a_doubt_in_a_run_beneath(gonogo: Gonogo, tmp_path: Path) -> None:
    """The run around it would end without a word about it, and a resume would make the call once more."""
    write(tmp_path, ONE, name="child.yaml")
    again = cancelled(tmp_path, gonogo, CHILD + "\nask: {type: human-input, prompt: '?'}")
    assert (again.code, "keep it: inner.patch" in again.err) == (3, True), again
    assert gonogo("answer", "last", "inner.patch", "unknown").code == 1


def test_a_doubt_in_a_run_beneath_can_be_given_up(gonogo: Gonogo, tmp_path: Path) -> None:
    """With the cancel, as one of the run's own."""
    write(tmp_path, ONE, name="child.yaml")
    doubtful(tmp_path, gonogo, CHILD)
    ended = gonogo("cancel", "last", "--give-up")
    assert (ended.code, "gave up 1 call in doubt: inner.patch" in ended.err) == (0, True)
    assert gonogo("show", "last", "--format", "json").json["verdict"] == "NO-GO"


def test_what_is_asked_of_a_run_beneath_one_that_is_over_is_refused(gonogo: Gonogo, tmp_path: Path) -> None:
    """Nobody would ever take it up, and to say that it is kept would be a lie."""
    write(tmp_path, "ask: {type: human-input, prompt: '?'}", name="child.yaml")
    waits = "until grep -q call_parked .gonogo/runs/*/journal.jsonl; do sleep 0.05; done; exit 1"
    write(tmp_path, f"{CHILD}\nfails: {{type: command, exec: '{waits}'}}", top="fail_fast: true\n")
    assert gonogo("run").code == 1
    (child,) = [path.name for path in (tmp_path / ".gonogo" / "runs").iterdir() if "." in path.name]
    for ask in (("answer", child, "ask", "yes"), ("cancel", child)):
        refused = gonogo(*ask)
        assert (refused.code, f"nobody goes on with run {child}" in refused.err) == (2, True), refused
    assert not list((tmp_path / ".gonogo").rglob("inbox/*.json"))
