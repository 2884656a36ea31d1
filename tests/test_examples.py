"""Every workflow in examples/ runs as its header says: verdict, exit code, and the thing it is there to show."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
WORKFLOWS = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.yaml"))
CHILDREN = {"child-workflow/version-check.yaml"}


@dataclass(frozen=True, slots=True)
class Ran:
    """A run's result and its exit code."""

    exit_code: int
    result: dict[str, Any]

    def outcomes(self) -> dict[str, str]:
        """Outcome by step."""
        return {name: step["outcome"] for name, step in self.result["steps"].items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of examples/, so that journals stay out of the repository."""
    return Path(
        shutil.copytree(
            EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns(".gonogo", "live.txt", "paged.txt")
        )
    )


def gonogo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in the folder, with nobody to ask."""
    command = [sys.executable, "-m", "gonogo", *arguments]
    return subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def run(folder: Path, *arguments: str) -> Ran:
    """The result that `gonogo run` (or the verb that the arguments begin with) gives as JSON."""
    verb = () if arguments[:1] == ("answer",) else ("run",)
    done = gonogo(folder, *verb, *arguments, "--format", "json", "--quiet")
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["exit_code"] == done.returncode
    return Ran(done.returncode, result)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_an_example_loads_without_a_warning(name: str) -> None:
    """Nothing to excuse in what people copy; strict is as strict as it gets."""
    done = gonogo(EXAMPLES, "validate", name)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", WORKFLOWS)
def test_an_example_says_what_it_shows_and_how_to_run_it(name: str) -> None:
    """The comment at the top; a child says whose it is."""
    head = (EXAMPLES / name).read_text().split("version:")[0]
    assert head.startswith("# ")
    assert name in CHILDREN or re.search(r"^#   (cd \S+ && )?gonogo run", head, flags=re.MULTILINE)


def test_the_list_names_every_example() -> None:
    """examples/README.md has a row for each workflow that is not another's child."""
    rows = set(
        re.findall(r"^\| \[[^]]+\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text(), flags=re.MULTILINE)
    )
    assert rows == set(WORKFLOWS) - CHILDREN


def test_the_gate_tolerates_a_reminder_and_runs_only_what_the_event_asks_for(folder: Path) -> None:
    """The payload's title and text are judged; a step for another event is left out."""
    ran = run(folder, "pull-request-gate.yaml", "--payload", "pull-request.json")
    assert ran.exit_code == 0
    assert ran.result["event"]["name"] == "pr_opened"
    assert ran.outcomes()["describes-itself"] == "tolerated"
    assert ran.outcomes().get("only-when-closed", "skipped") == "skipped"


def test_the_gate_stops_a_pull_request_with_a_title_that_says_nothing(folder: Path) -> None:
    """`title` is a policy: its failure is NO-GO, and the tests behind it don't run."""
    payload = folder / "pull-request.json"
    payload.write_text(payload.read_text().replace("Say which file is too long", "fix"))
    ran = run(folder, "pull-request-gate.yaml", "--payload", "pull-request.json")
    assert ran.exit_code == 1
    assert (ran.outcomes()["title"], ran.outcomes()["tests"]) == ("failed", "skipped")


def test_a_failed_item_leaves_the_others_alone(folder: Path) -> None:
    """One of three items fails; the reduce step sees all three."""
    ran = run(folder, "fan-out.yaml")
    steps = ran.result["steps"]
    assert ran.exit_code == 0
    assert [item["outcome"] == "passed" for item in steps["check"]["items"]] == [True, False, True]
    assert steps["summary"]["output"] == {"checked": 3, "wrong": ["web"]}


def test_a_remedy_comes_before_the_retry(folder: Path) -> None:
    """The second attempt finds what the routed step made."""
    ran = run(folder, "retry-and-remediate.yaml")
    steps = ran.result["steps"]
    assert ran.exit_code == 0
    assert (steps["build"]["attempts"], steps["build"]["outcome"]) == (2, "passed")
    assert steps["make-folder"]["runs"] == 1


def test_a_release_waits_for_a_person_and_goes_on_with_yes(folder: Path) -> None:
    """HOLD with exit code 3; the answer makes it GO, in another process."""
    held = run(folder, "approval.yaml")
    assert (held.exit_code, held.result["verdict"]) == (3, "HOLD")
    gone_on = run(folder, "answer", "last", "approve", "yes")
    assert (gone_on.exit_code, gone_on.outcomes()["release"]) == (0, "passed")
    assert gone_on.result["run_id"] == held.result["run_id"]


def test_a_release_that_a_person_refuses_is_not_made(folder: Path) -> None:
    """No is an answer: `release` is skipped by its assume, and that is no failure."""
    run(folder, "approval.yaml")
    refused = run(folder, "answer", "last", "approve", "no")
    assert (refused.exit_code, refused.outcomes()["release"]) == (0, "skipped")


def test_a_release_goes_on_when_two_have_approved_it(folder: Path) -> None:
    """One yes is not enough, and nobody was told: nobody waited for four hours."""
    assert run(folder, "approval-by-several.yaml").exit_code == 3
    first = run(folder, "answer", "last", "approve", "yes", "--by", "ana")
    assert (first.exit_code, first.result["waiting"][0]["approved"]) == (3, ["ana"])
    second = run(folder, "answer", "last", "approve", "yes", "--by", "release-bot")
    assert second.exit_code == 0
    assert second.outcomes() == {"approve": "passed", "tell": "skipped", "release": "passed"}


def test_an_ill_deployment_is_undone_and_not_announced(folder: Path) -> None:
    """Semantics 19 and 20: the open edge is closed, the pager goes off, and the old version is back."""
    ran = run(folder, "deployment.yaml")
    steps = ran.result["steps"]
    assert (ran.exit_code, steps["announce"]["reason"]) == (1, "suppressed")
    assert (folder / "live.txt").read_text() == "2.0.9\n"
    assert (folder / "paged.txt").read_text() == "smoke-test\n"
    assert not (folder / "announced.txt").exists()
    assert [event["event"] for event in ran.result["fault_events"]] == [
        "fault.detected",
        "fault.isolated",
        "fault.recovery.failed",
        "fault.escalated",
        "fault.compensated",
    ]


def test_a_deployment_that_works_is_announced(folder: Path) -> None:
    """Nobody is paged, and nothing is undone."""
    ran = run(folder, "deployment.yaml", "-i", "healthy=yes")
    assert (ran.exit_code, ran.outcomes()["announce"], ran.outcomes()["page"]) == (0, "passed", "skipped")
    assert (folder / "live.txt").read_text() == "2.1.0\n"
    assert ran.result["undone"] == []


def test_each_item_is_tried_again_by_itself(folder: Path) -> None:
    """Two of five items need a second attempt; the run's budget of retries allows three."""
    ran = run(folder, "fan-out-with-budget.yaml")
    steps = ran.result["steps"]
    assert (ran.exit_code, [item["attempts"] for item in steps["ask"]["items"]]) == (0, [2, 2, 1, 1, 1])
    assert steps["summary"]["output"] == {"answered": 5, "second_attempts": 2}


def test_a_budget_of_retries_ends_a_bad_day_early(folder: Path) -> None:
    """Five items fail at first, three may be tried again; the summary is made all the same."""
    ran = run(folder, "fan-out-with-budget.yaml", "-i", "silent=5")
    assert (ran.exit_code, ran.result["budgets"]["run"]) == (1, {"retries": {"allowed": 3, "used": 3}})
    assert ran.result["steps"]["summary"]["output"] == {"answered": 3, "second_attempts": 3}


@pytest.mark.parametrize(
    ("free_percent", "exit_code", "clean_up"), [("7", 0, "passed"), ("1", 1, "skipped"), ("40", 0, "skipped")]
)
def test_the_runbook_acts_stops_or_leaves_it(
    folder: Path, free_percent: str, exit_code: int, clean_up: str
) -> None:
    """Little left: cleaned up. Nearly nothing: the run is halted. Enough: nothing to do."""
    ran = run(folder, "runbook.yaml", "-i", f"free_percent={free_percent}")
    assert (ran.exit_code, ran.outcomes()["clean-up"]) == (exit_code, clean_up)
    assert (ran.result["steps"]["clean-up"]["reason"] == "halted") is (free_percent == "1")


def test_a_child_is_a_run_of_its_own(folder: Path) -> None:
    """The parent's step sees the declared output; the child's run is listed beside the parent's."""
    ran = run(folder / "child-workflow")
    assert ran.exit_code == 0
    assert ran.result["steps"]["check"]["output"] == {"major": 2}
    listed = gonogo(folder / "child-workflow", "runs", "--children", "--format", "json")
    assert len(json.loads(listed.stdout)) == 2


def test_a_child_refuses_an_input_that_its_schema_forbids(folder: Path) -> None:
    """What is known when the file is loaded is refused then, with its place."""
    file = folder / "child-workflow" / "gonogo.yaml"
    file.write_text(file.read_text().replace("2.10.3", "latest"))
    refused = gonogo(folder / "child-workflow", "run")
    assert refused.returncode == 2
    assert "the input 'version' doesn't fit its schema" in refused.stderr


def test_a_child_refuses_an_input_that_only_the_run_knows(folder: Path) -> None:
    """The step fails before the child does anything."""
    file = folder / "child-workflow" / "gonogo.yaml"
    file.write_text(file.read_text().replace('"2.10.3"', '"{{ inputs.version }}"'))
    ran = run(folder / "child-workflow", "-i", "version=latest")
    assert (ran.exit_code, ran.outcomes()) == (1, {"check": "failed", "report": "skipped"})


def test_a_loop_ends_when_it_is_good(folder: Path) -> None:
    """Three looks, counted in the run's memory."""
    ran = run(folder, "loop-with-budget.yaml")
    assert (ran.exit_code, ran.result["steps"]["look"]["runs"]) == (0, 3)
    assert ran.result["steps"]["look"]["output"] == {"looks": 3, "good": True}


def test_a_loop_that_never_gets_good_ends_at_its_budget(folder: Path) -> None:
    """Law 2: the first time and five times round, then the budget refuses, and that is NO-GO."""
    ran = run(folder, "loop-with-budget.yaml", "-i", "needed=100")
    rules = [fault["rule_id"] for fault in ran.result["faults"]]
    assert (ran.exit_code, ran.result["steps"]["look"]["runs"]) == (1, 6)
    assert rules == ["look/routing/loop_budget_exceeded"]


def test_a_schema_fails_a_step_or_only_says_so(folder: Path) -> None:
    """`schema_mode: issue` records; without it the step fails, and the message has the place."""
    ran = run(folder, "schema-contracts.yaml")
    assert ran.exit_code == 1
    assert ran.outcomes() == {
        "good": "passed",
        "wrong-shape": "failed",
        "known-trouble": "passed",
        "ship": "skipped",
    }
    assert "price" in ran.result["steps"]["wrong-shape"]["fault"]["message"]
    assert len(ran.result["steps"]["known-trouble"]["issues"]) == 1


def test_a_call_to_a_server_that_is_busy_is_repeated(folder: Path) -> None:
    """503 is transient; the server counts two calls and is stopped at the end."""
    ran = run(folder / "local-server")
    steps = ran.result["steps"]
    assert ran.exit_code == 0
    assert (steps["flaky"]["attempts"], steps["flaky"]["output"]) == (2, {"calls": 2})
    assert steps["stop"]["output"] == {"stopped": True}


def test_hostile_text_does_nothing_in_a_shell(folder: Path) -> None:
    """Law 6: all three ways hand the text over unchanged, and nothing in it runs."""
    ran = run(folder, "safe-templates.yaml")
    assert (ran.exit_code, set(ran.outcomes().values())) == (0, {"passed"})
    assert not (folder / "hacked").exists()


def test_hostile_text_that_is_not_escaped_is_not_even_loaded(folder: Path) -> None:
    """Without the filter the file is refused; nothing runs."""
    file = folder / "safe-templates.yaml"
    file.write_text(file.read_text().replace(" | shell_escape", ""))
    done = gonogo(folder, "run", "safe-templates.yaml")
    assert done.returncode == 2
    assert "shell_escape" in done.stderr


def test_a_model_is_asked_again_elsewhere_and_with_a_tool(folder: Path) -> None:
    """Failover, a repaired schema, a step as a tool, a session; hostile text in the report does nothing."""
    ran = run(folder, "ask-a-model.yaml")
    steps = ran.result["steps"]
    assert ran.exit_code == 0
    assert steps["triage"]["output"] == {"urgent": True, "order": 17}
    assert steps["explain"]["output"] == "Because the order is late."
    assert ran.outcomes()["find-order"] == "skipped"
