"""G21: in safe mode nothing outside is changed, and the run tells what it would have done."""

from __future__ import annotations

from collections.abc import Callable

from tests.cases.conftest import Ended, gonogo
from tests.guide.conftest import Play, play

__all__ = ["gonogo", "play"]

STEPS = """
steps:
  read: {type: github, op: issues.list}
  post:
    type: github
    op: comment.create
    value: "{{ outputs.read.text }}!"
    criticality: external
    depends_on: read
    assume: outputs.read.text === 'hello'
    guarantee: typeof output.number === 'number'
    fail_if: output.number > 5
    schema: {type: object, required: [number]}
  after: {type: noop, depends_on: post}
"""
ANSWERS = {"read": {"text": "hello"}, "post": {"number": 3}}


def test_G_21_a_mutating_call_is_shown_and_not_made(play: Play) -> None:
    """G21: no call; a stub with the rendered inputs is its output; what follows goes on."""
    ran = play(STEPS, ANSWERS, safe_mode=True)
    assert (len(ran.stage.called("read")), ran.stage.called("post")) == (1, [])
    stub = ran.output("post")
    assert stub["safe_mode"] is True
    assert (stub["type"], stub["inputs"]["value"]) == ("github", "hello!")
    assert (ran["post"].outcome, ran["after"].outcome, ran.verdict) == ("passed", "passed", "GO")


def test_G_21_contracts_about_a_result_that_isnt_there_do_not_apply(play: Play) -> None:
    """G21: recorded as not_applicable, each; what is judged before the call is judged as ever."""
    ran = play(STEPS, ANSWERS, safe_mode=True)
    assert [one.result for one in ran.judged("guarantee", "post")] == ["not_applicable"]
    assert [one.result for one in ran.judged("assume", "post")] == [True]
    assert ran.rules("post") == []


def test_G_21_without_safe_mode_all_is_as_ever(play: Play) -> None:
    """The same workflow, for real."""
    ran = play(STEPS, ANSWERS)
    assert (ran.output("post"), ran.verdict, len(ran.stage.called("post"))) == ({"number": 3}, "GO", 1)


def test_G_21_a_gate_stays_a_gate(play: Play) -> None:
    """A false assumption skips in safe mode, too: nothing would have been done."""
    ran = play(STEPS, {**ANSWERS, "read": {"text": "other"}}, safe_mode=True)
    assert (ran.why("post"), ran.stage.called("post")) == (("skipped", "assume"), [])


def test_G_21_what_declares_that_it_mutates_is_held_back(play: Play) -> None:
    """C.8: `mutates: true` and criticality external hold for commands as well; repeatable ones run."""
    text = """
steps:
  a: {type: command, exec: "echo a >> ran", mutates: true}
  b: {type: command, exec: "echo b >> ran", criticality: external, if: 'true', guarantee: 'true'}
  c: {type: command, exec: "echo c >> ran"}
"""
    assert play(text, safe_mode=True).lines("ran") == ["c"]


def test_G_21_children_are_safe_too(play: Play) -> None:
    """In a workflow within the workflow."""
    child = 'version: "1.0"\nid: child\nsteps:\n  a: {type: command, exec: "echo a >> ran", mutates: true}\n'
    text = "imports: [child.yaml]\nsteps: {nested: {type: workflow, workflow: child}}\n"
    ran = play(text, files={"child.yaml": child}, safe_mode=True)
    assert (ran.lines("ran"), ran.verdict) == ([], "GO")


def test_G_21_items_are_held_back_one_by_one(play: Play) -> None:
    """Each item's call is shown with its own inputs."""
    text = """
steps:
  list: {type: noop, forEach: true}
  post: {type: github, op: comment.create, value: "{{ item }}", fanout: map, depends_on: list}
"""
    ran = play(text, {"list": ["a", "b"]}, safe_mode=True)
    assert [stub["inputs"]["value"] for stub in ran.output("post")] == ["a", "b"]
    assert ran.stage.called("post") == []


SHELL = """
version: "1.0"
steps:
  post: {type: command, exec: "echo posted >> ran", mutates: true, criticality: external, if: 'true', guarantee: 'true'}
"""


def test_G_21_the_report_lists_what_was_held_back(gonogo: Callable[..., Ended]) -> None:
    """G21: `--safe-mode`; step and inputs of each call that was not made."""
    ended = gonogo(SHELL, "run", "--safe-mode", "--no-color")
    assert ended.code == 0
    assert "post" in ended.out.decode()
    assert "echo posted >> ran" in ended.out.decode()
    told = gonogo(SHELL, "run", "--safe-mode", "--format", "json").json
    assert told["steps"]["post"]["output"]["safe_mode"] is True


def test_G_21_a_resumed_run_stays_safe(play: Play) -> None:
    """It is a fact of the run, in its first record."""
    text = """
steps:
  ask: {type: human-input, prompt: "go?"}
  post: {type: command, exec: "echo posted >> ran", mutates: true, depends_on: ask}
"""
    ran = play(text, safe_mode=True).answered("ask", "yes")
    assert (ran.verdict, ran.lines("ran")) == ("GO", [])
    assert (ran["post"].outcome, ran.output("post")["safe_mode"]) == ("passed", True)
