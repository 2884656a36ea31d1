"""resume, answer and cancel on a run that is over change nothing and say how it ended; who asks within a child."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo, write

from gonogo import app

CHILD = "approve: {type: human-input, prompt: 'Ship it to production?'}"
ENDS = [("a: {type: noop}", "GO", 0), ("a: {type: command, exec: 'exit 4'}", "NO-GO", 1)]


def kept(folder: Path) -> dict[str, bytes]:
    """Every file of every run, locks aside."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("verb", ["resume", "cancel"])
@pytest.mark.parametrize(("steps", "verdict", "code"), ENDS)
def test_a_run_that_is_over_stays_as_it_is(
    gonogo: Gonogo, tmp_path: Path, verb: str, steps: str, verdict: str, code: int
) -> None:
    """Said on stderr with its verdict, reported, and its exit code is the command's; no request is left with it."""
    write(tmp_path, steps)
    assert gonogo("run").code == code
    before = kept(tmp_path / ".gonogo")
    ended = gonogo(verb, "last", "--format", "json")
    assert (ended.code, ended.json["verdict"]) == (code, verdict)
    assert f"is over already ({verdict}); nothing was changed" in ended.err
    assert kept(tmp_path / ".gonogo") == before


@pytest.mark.parametrize(("steps", "verdict", "code"), ENDS)
def test_an_answer_to_a_run_that_is_over_is_refused(
    gonogo: Gonogo, tmp_path: Path, steps: str, verdict: str, code: int
) -> None:
    """cli.md: 2, for what was said wasn't taken; with the end of the run and what shows it."""
    write(tmp_path, steps)
    assert gonogo("run").code == code
    before = kept(tmp_path / ".gonogo")
    ended = gonogo("answer", "last", "a", "yes")
    assert ended.code == 2
    assert f"is over: {verdict}; nothing of it waits for an answer" in ended.err
    assert "gonogo show" in ended.err
    assert kept(tmp_path / ".gonogo") == before


def test_a_cancelled_run_is_not_cancelled_again_but_can_be_resumed(gonogo: Gonogo, tmp_path: Path) -> None:
    """The wish is fulfilled, which is no failure; resume goes on as ever."""
    write(tmp_path, CHILD)
    gonogo("run")
    assert gonogo("cancel", "last").code == 0
    before = kept(tmp_path / ".gonogo")
    again = gonogo("cancel", "last")
    assert again.code == 0
    assert "was cancelled already (NO-GO); nothing was changed" in again.err
    assert kept(tmp_path / ".gonogo") == before
    assert gonogo("resume", "last").code == 3


def test_a_step_that_is_done_waits_for_nothing_in_a_run_that_goes_on(gonogo: Gonogo, tmp_path: Path) -> None:
    """The answer is refused, and those that wait are named, items with their place."""
    write(tmp_path, f"done: {{type: noop}}\n{CHILD}")
    assert gonogo("run").code == 3
    ended = gonogo("answer", "last", "done", "yes")
    assert ended.code == 2
    assert "step 'done' waits for nothing" in ended.err
    assert "these wait: approve" in ended.err


def test_who_waits_within_a_child_is_named_as_an_answer_names_it(gonogo: Gonogo, tmp_path: Path) -> None:
    """With the step that the child is of: its name alone is that of no question."""
    (tmp_path / "child.yaml").write_text(f'version: "1.0"\nid: child\nsteps:\n  {CHILD}\n')
    (tmp_path / "gonogo.yaml").write_text(
        'version: "1.0"\nimports: [child.yaml]\nsteps: {release: {type: workflow, workflow: child}}\n'
    )
    assert gonogo("run").code == 3
    ended = gonogo("answer", "last", "aprove", "yes")
    assert ended.code == 2
    assert "these wait: release.approve\n" in ended.err


def test_an_answer_to_a_run_that_was_cut_off_says_how_to_go_on(gonogo: Gonogo, tmp_path: Path) -> None:
    """Nobody has it, and its step asks only once somebody goes on with it."""
    write(tmp_path, "a: {type: noop}\nb: {type: noop, depends_on: a}")
    gonogo("run")
    journal = next((tmp_path / ".gonogo" / "runs").glob("*/journal.jsonl"))
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    ended = gonogo("answer", "last", "b", "again")
    assert ended.code == 2
    assert "says how it stands and how to go on" in ended.err
    assert "go on with: gonogo resume" in gonogo("show", "last").out


def test_programs_that_cancel_a_run_that_is_over_get_its_end(tmp_path: Path) -> None:
    """`app.cancel_run` as the command: the result as it was, nothing left in the inbox."""
    options = app.Options(runs=tmp_path)
    ended = app.start_run(app.loads('version: "1.0"\nsteps: {a: {type: noop}}\n'), None, options)
    before = kept(tmp_path)
    again = app.cancel_run(ended.run_id, options=options)
    assert again is not None
    assert (again.verdict, again.run_id) == ("GO", ended.run_id)
    assert kept(tmp_path) == before


def test_the_question_of_a_child_is_shown_with_the_command_that_answers_it(
    gonogo: Gonogo, tmp_path: Path
) -> None:
    """In the report of the run around it, when it ends and afterwards; the command does what it says."""
    write(tmp_path, "inner: {type: workflow, config: child.yaml}")
    write(tmp_path, "middle: {type: workflow, config: grandchild.yaml}", name="child.yaml")
    write(tmp_path, CHILD, name="grandchild.yaml")
    for held in (gonogo("run"), gonogo("show", "last")):
        assert "waiting for a person at inner.middle.approve: Ship it to production?" in held.out
    (command,) = [line for line in held.out.splitlines() if line.startswith("  gonogo answer ")]
    assert command.endswith(" inner.middle.approve TEXT")
    assert gonogo(*command.split()[1:-1], "yes").code == 0


def test_each_question_of_a_child_has_its_place(gonogo: Gonogo, tmp_path: Path) -> None:
    """Several wait: the first with its command, the others by name; an item within the child in the child's own run."""
    inner = """
list: {type: script, forEach: true, content: "return ['x', 'y']"}
ask: {type: human-input, depends_on: list, fanout: map, prompt: "{{ outputs.list }}?"}
"""
    write(tmp_path, "inner: {type: workflow, config: child.yaml}")
    write(tmp_path, inner, name="child.yaml")
    for question, code in (("x?", 3), ("y?", 0)):
        held = gonogo("show", "last") if code == 0 else gonogo("run")
        assert f": {question}" in held.out
        (command,) = [line for line in held.out.splitlines() if line.startswith("  gonogo answer ")]
        assert ".inner." in command.split()[2]
        assert gonogo(*command.replace("'", "").split()[1:-1], "yes").code == code
