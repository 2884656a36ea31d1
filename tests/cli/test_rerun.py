"""`gonogo resume RUN --from, --set, --config`: steps run again, outputs are given, the workflow is changed."""

from __future__ import annotations

import asyncio
import getpass
import socket
from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo, write

import gonogo as package
from gonogo import app
from gonogo.core import events as e
from gonogo.errors import ConfigError, UsageError
from gonogo.journal.replay import replay

STEPS = """
a: {type: command, exec: "echo a >> effects"}
b:
  type: command
  depends_on: a
  exec: "echo b >> effects; exit 4"
c: {type: command, depends_on: b, exec: "echo c >> effects"}
"""
MENDED = STEPS.replace("; exit 4", "")
MAIL = """
a: {type: command, exec: "echo a >> effects"}
mail: {type: command, depends_on: a, exec: "echo mail >> effects", criticality: external}
"""


def effects(folder: Path) -> list[str]:
    """What was done, in order."""
    return (folder / "effects").read_text().split()


def records(folder: Path) -> list[object]:
    """The events of the only run."""
    return [record.event for record in app.open_run(app.find_run("last", options(folder)), options(folder))]


def options(folder: Path) -> app.Options:
    """The runs of a folder."""
    return app.Options(runs=folder / ".gonogo" / "runs")


def test_a_failed_step_runs_again_under_a_mended_workflow(gonogo: Gonogo, tmp_path: Path) -> None:
    """What ran before it is reused; the journal has who, what and the workflow as it is now."""
    write(tmp_path, STEPS)
    assert gonogo("run").code == 1
    write(tmp_path, MENDED)
    ended = gonogo("resume", "last", "--from", "b", "--config", "gonogo.yaml", "--format", "json")
    assert (ended.code, effects(tmp_path)) == (0, ["a", "b", "b", "c"])
    assert ended.json["steps"]["b"]["runs"] == 2
    [asked] = [event for event in records(tmp_path) if isinstance(event, e.RerunAsked)]
    assert asked.plan is not None
    assert asked.plan.digest == app.load(tmp_path / "gonogo.yaml").plan.digest
    assert asked.by == f"{getpass.getuser()}@{socket.gethostname()}"
    assert (
        "has b run again, and with that c; the workflow is now sha256:"
        in gonogo("show", "last", "--records").out
    )


def test_a_run_that_was_go_runs_again_from_a_step(gonogo: Gonogo, tmp_path: Path) -> None:
    """Any number of times; the rest is paid for."""
    write(tmp_path, MENDED)
    gonogo("run")
    assert gonogo("resume", "last", "--from", "c").code == 0
    assert gonogo("resume", "last", "--from", "b").code == 0
    assert effects(tmp_path) == ["a", "b", "c", "c", "b", "c"]


def test_a_given_output_shows_who_gave_it(gonogo: Gonogo, tmp_path: Path) -> None:
    """In the table, as data, and in the records."""
    write(tmp_path, STEPS)
    gonogo("run")
    ended = gonogo("resume", "last", "--set", 'b.output={"n": 7}', "--by", "ann")
    assert (ended.code, effects(tmp_path)) == (0, ["a", "b", "c"])
    assert "output set by ann" in ended.out
    step = gonogo("show", "last", "--format", "json").json["steps"]["b"]
    assert (step["outcome"], step["output"], step["set_by"]) == ("passed", {"n": 7}, "ann")
    assert "ann gives the output of b, and with that c" in gonogo("show", "last", "--records").out


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        (("--set", "b.output=1", "--set", "b.output=2"), "--set gives b two outputs"),
        (("--from", "b", "--set", "b.output=1"), "b can't both run again and be given its output"),
        (("--from", "b@list#1[0]", "--set", "b.output=1"), "b@list#1[0] can't both run again and be given"),
    ],
)
@pytest.mark.parametrize("how", [(), ("--plan",)])
def test_wishes_that_contradict_each_other_are_refused(
    gonogo: Gonogo, tmp_path: Path, wishes: tuple[str, ...], told: str, how: tuple[str, ...]
) -> None:
    """None of them is taken in silence; the journal is as it was."""
    write(tmp_path, STEPS)
    gonogo("run")
    before = records(tmp_path)
    refused = gonogo("resume", "last", *wishes, *how)
    assert (refused.code, told in refused.err) == (2, True)
    assert (records(tmp_path), effects(tmp_path)) == (before, ["a", "b"])


def test_a_step_runs_again_while_another_is_given(gonogo: Gonogo, tmp_path: Path) -> None:
    """Which step it is makes the difference."""
    write(tmp_path, STEPS)
    gonogo("run")
    assert gonogo("resume", "last", "--from", "c", "--set", "b.output=1").code == 0
    assert effects(tmp_path) == ["a", "b", "c"]


def test_on_github_it_is_the_actor_who_asks(gonogo: Gonogo, tmp_path: Path) -> None:
    """The user of the runner is nobody's name."""
    write(tmp_path, MENDED)
    gonogo("run")
    gonogo("resume", "last", "--from", "c", GITHUB_ACTIONS="true", GITHUB_ACTOR="octocat")
    [asked] = [event for event in records(tmp_path) if isinstance(event, e.RerunAsked)]
    assert asked.by == "octocat"


def test_the_plan_shows_the_set_and_runs_nothing(gonogo: Gonogo, tmp_path: Path) -> None:
    """With why, for people and as data."""
    write(tmp_path, MAIL)
    gonogo("run")
    shown = gonogo("resume", "last", "--from", "a", "--plan")
    assert shown.code == 0
    assert "a     asked for" in shown.out
    assert (
        "mail  depends on what runs again; has changed something outside, and would again (--yes)"
        in shown.out
    )
    told = gonogo("resume", "last", "--from", "mail", "--plan", "--format", "json").json
    assert told["runs_again"] == [{"step": "mail", "scope": "", "why": "asked", "acts_again": False}]
    assert told["stays"] == ["a"]
    assert effects(tmp_path) == ["a", "mail"]
    assert gonogo("resume", "last", "--plan").code == 2


def test_a_step_behind_acts_again_only_with_leave(gonogo: Gonogo, tmp_path: Path) -> None:
    """It is named before anything runs; naming it is leave, and so is --yes."""
    write(tmp_path, MAIL)
    gonogo("run")
    refused = gonogo("resume", "last", "--from", "a")
    assert (refused.code, effects(tmp_path)) == (2, ["a", "mail"])
    assert "these have changed something outside, and would again: mail" in refused.err
    assert gonogo("resume", "last", "--from", "a", "--yes").code == 0
    assert gonogo("resume", "last", "--from", "a", "--set", "mail.output=null").code == 0
    assert gonogo("resume", "last", "--from", "mail").code == 0
    assert effects(tmp_path) == ["a", "mail", "a", "mail", "a", "mail"]


def test_a_change_of_what_stays_is_refused_with_its_line(gonogo: Gonogo, tmp_path: Path) -> None:
    """file:line, the key and the way; the journal is as it was."""
    write(tmp_path, MENDED)
    gonogo("run")
    write(tmp_path, MENDED.replace("echo a >> effects", "echo other >> effects"))
    before = records(tmp_path)
    refused = gonogo("resume", "last", "--from", "b", "--config", "gonogo.yaml")
    assert refused.code == 2
    assert "gonogo.yaml:3:" in refused.err
    assert "step 'a' has run and stays, but its `exec` is changed" in refused.err
    assert "'gonogo resume RUN --config FILE --from STEP --plan' shows" in refused.err
    assert "--from a" in refused.err
    assert records(tmp_path) == before


def test_the_line_of_a_key_below_its_step_is_found(gonogo: Gonogo, tmp_path: Path) -> None:
    """Steps are written over several lines, too."""
    write(tmp_path, MENDED)
    gonogo("run")
    write(tmp_path, MENDED.replace("echo b", "echo other"))
    refused = gonogo("resume", "last", "--from", "c", "--config", "gonogo.yaml")
    assert "gonogo.yaml:7:" in refused.err
    assert "step 'b' has run and stays, but its `exec` is changed" in refused.err


def test_what_holds_for_the_whole_workflow_has_its_line_too(gonogo: Gonogo, tmp_path: Path) -> None:
    """Top-level keys."""
    write(tmp_path, MENDED)
    gonogo("run")
    write(tmp_path, MENDED, top="env: {A: b}\n")
    refused = gonogo("resume", "last", "--from", "a", "--config", "gonogo.yaml")
    assert "gonogo.yaml:2:" in refused.err
    assert "`env` of the workflow is changed" in refused.err


WHO = """inputs:
  - {name: who, default: world}
"""
READS = MENDED.replace("echo b >>", "echo {{ inputs.who | shell_escape }} >>")


def test_a_mended_step_may_have_a_new_input_with_a_default(gonogo: Gonogo, tmp_path: Path) -> None:
    """It has its default in this run; a resume after it, and a replay, know of it."""
    write(tmp_path, STEPS)
    assert gonogo("run").code == 1
    write(tmp_path, READS, top=WHO)
    assert gonogo("resume", "last", "--from", "b", "--config", "gonogo.yaml").code == 0
    assert effects(tmp_path) == ["a", "b", "world", "c"]
    assert gonogo("resume", "last", "--from", "b").code == 0
    assert effects(tmp_path)[4:] == ["world", "c"]
    assert replay(app.open_run(app.find_run("last", options(tmp_path)), options(tmp_path))) == []


def test_an_input_that_a_step_which_stays_reads_can_not_be_added_or_removed(
    gonogo: Gonogo, tmp_path: Path
) -> None:
    """With the line of the step, and the way to have it."""
    write(tmp_path, READS, top=WHO)
    gonogo("run")
    write(tmp_path, READS)
    refused = gonogo("resume", "last", "--from", "c", "--config", "gonogo.yaml")
    assert refused.code == 2
    assert "step 'b' has run and stays, but reads the input 'who'" in refused.err
    assert "--from b" in refused.err
    write(tmp_path, READS, top=WHO.replace("world", "other"))
    refused = gonogo("resume", "last", "--from", "b", "--config", "gonogo.yaml")
    assert "gonogo.yaml:2:" in refused.err
    assert "the input 'who' is changed; a run keeps its own" in refused.err


def test_a_changed_workflow_may_have_steps_more(gonogo: Gonogo, tmp_path: Path) -> None:
    """Nothing need be named for that."""
    write(tmp_path, MENDED)
    gonogo("run")
    write(tmp_path, MENDED + 'd: {type: command, depends_on: c, exec: "echo d >> effects"}')
    assert gonogo("resume", "last", "--config", "gonogo.yaml").code == 0
    assert effects(tmp_path) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "nobody"), "there is no step 'nobody'"),
        (("--set", "b=1"), "--set takes STEP.output=JSON"),
        (("--set", "b.output=text"), "the output of b is no JSON"),
        (("--set", "b.output=NaN"), "the output of b is no JSON"),
        (("--config", "missing.yaml"), "there is no file 'missing.yaml'"),
        (("--from", "b@list#1[0]"), "step 'b' hasn't run in list#1[0]"),
    ],
)
def test_a_wrong_wish_is_refused(
    gonogo: Gonogo, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """2, and nothing is changed."""
    write(tmp_path, STEPS)
    gonogo("run")
    before = records(tmp_path)
    refused = gonogo("resume", "last", *arguments)
    assert refused.code == 2
    assert message in refused.err
    assert records(tmp_path) == before


def test_a_run_that_is_over_says_how_a_step_runs_again(gonogo: Gonogo, tmp_path: Path) -> None:
    """resume alone changes nothing."""
    write(tmp_path, STEPS)
    gonogo("run")
    ended = gonogo("resume", "last")
    assert ended.code == 1
    assert "to run a step of it again: gonogo resume" in ended.err


def test_a_child_is_asked_for_by_its_parent(gonogo: Gonogo, tmp_path: Path) -> None:
    """Its parent wouldn't hear of what it comes to."""
    write(tmp_path, "x: {type: noop}", "child.yaml")
    write(tmp_path, "flow: {type: workflow, config: child.yaml}")
    gonogo("run")
    [child] = [run_id for run_id in app.run_ids(options(tmp_path)) if "." in run_id]
    refused = gonogo("resume", child, "--from", "x")
    assert refused.code == 2
    assert "--from flow" in refused.err
    assert (
        gonogo("resume", "last", "--from", "flow").code == 2
    )  # nobody knows beforehand what a file's steps do
    assert gonogo("resume", "last", "--from", "flow", "--yes").code == 0
    assert len(app.run_ids(options(tmp_path))) == 3  # the second run of the step is a child of its own


def test_replay_holds_over_a_changed_workflow(gonogo: Gonogo, tmp_path: Path) -> None:
    """What was decided is decided again, before and after; expressions keep their numbers."""
    conditions = 'if: "outputs.a == null || true"'
    write(tmp_path, STEPS.replace("c: {", f"c: {{{conditions}, "))
    gonogo("run")
    write(tmp_path, 'n: {type: noop, if: "event == null"}\n' + MENDED.replace("c: {", f"c: {{{conditions}, "))
    assert gonogo("resume", "last", "--from", "b", "--config", "gonogo.yaml").code == 0
    found = app.open_run(app.find_run("last", options(tmp_path)), options(tmp_path))
    assert replay(found) == []
    assert replay(found, plan=app.load(tmp_path / "gonogo.yaml").plan) != []
    assert gonogo("show", "last", "--format", "json").json["verdict"] == "GO"


def test_secrets_in_a_given_output_are_masked(
    gonogo: Gonogo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in any output."""
    monkeypatch.setenv("DEPLOY_TOKEN", "s3cr3t-value")
    write(tmp_path, STEPS)
    gonogo("run")
    gonogo("resume", "last", "--set", 'b.output="s3cr3t-value"')
    [journal] = tmp_path.glob(".gonogo/runs/*/journal.jsonl")
    assert b"s3cr3t" not in journal.read_bytes()


def test_programs_ask_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gonogo.resume` with from_steps, outputs and workflow; blocking, or in an event loop."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, MAIL.replace("echo mail", "false; echo mail"))
    first = package.load().run()
    assert first.verdict == "GO"
    with pytest.raises(UsageError, match="would again: mail"):
        package.resume(first.run_id, from_steps=["a"])
    assert package.resume(first.run_id, from_steps=["a"], may_act_again=True, by="ann").verdict == "GO"
    given = package.resume(first.run_id, outputs={"mail": "sent"})
    assert given.output("mail") == "sent"
    write(tmp_path, MAIL.replace("echo a", "echo other"))
    with pytest.raises(ConfigError, match=r"gonogo\.yaml:3:.*`exec` is changed"):
        package.resume(first.run_id, from_steps=["mail"], workflow="gonogo.yaml")
    with pytest.raises(UsageError, match="`exec` is changed"):
        package.resume(first.run_id, from_steps=["mail"], workflow=package.load())
    with pytest.raises(UsageError, match="a list of steps"):
        package.resume(first.run_id, from_steps="mail")
    again = asyncio.run(package.resume_async(first.run_id, from_steps=["mail"]))
    assert again.state.nodes["mail"][""].execution == 4


def test_a_run_that_another_process_writes_is_left_alone(gonogo: Gonogo, tmp_path: Path) -> None:
    """Its process and host are named."""
    write(tmp_path, STEPS)
    gonogo("run")
    runs = app.Options(runs=tmp_path / ".gonogo" / "runs")
    from gonogo.journal.jsonl import JsonlRuns

    held = JsonlRuns(tmp_path / ".gonogo" / "runs").reopen(app.find_run("last", runs))
    refused = gonogo("resume", "last", "--from", "b")
    held.close()
    assert refused.code == 2
    assert "process" in refused.err
