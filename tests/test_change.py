"""What gonogo.yaml is told about a change: which tests it asks for, and what the tools found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools import change

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("src/gonogo/core/routing.py", ("tests/core/test_routing.py",)),
        ("src/gonogo/providers/_http.py", ("tests/providers/test__http.py",)),
        ("src/gonogo/cli/triggers/git.py", ("tests/cli/test_triggers_git.py",)),
        ("src/gonogo/core/no_such_module.py", ()),
        ("tests/core/test_routing.py", ("tests/core/test_routing.py",)),
        ("tests/core/script.py", ("tests/core",)),
        ("tests/conftest.py", ("tests",)),
        ("docs/start/first-workflow.md", ("tests/test_docs.py", "tests/test_pages.py")),
        ("examples/runbook.yaml", ("tests/test_examples.py",)),
        ("tools/change.py", ("tests/test_house.py", "tests/test_change.py")),
        ("notes.txt", ()),
    ],
)
def test_a_changed_file_asks_for_the_tests_that_belong_to_it(name: str, tests: tuple[str, ...]) -> None:
    """The mirror of src/, a test itself, the folder of a test's helper, or the table's pages and tools."""
    assert change.tests_of(name) == tests


def test_a_test_file_runs_once_for_all_that_ask_for_it() -> None:
    """Each item of the fan-out is one test file with the changed files that lead to it."""
    names = ["src/gonogo/core/routing.py", "tests/core/test_routing.py"]
    assert change.work(names) == [{"test": "tests/core/test_routing.py", "files": names}]


def test_a_change_that_asks_for_many_tests_runs_all_of_them() -> None:
    """Starting pytest a hundred times costs more than running everything."""
    names = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    assert [item["test"] for item in change.work(names)] == ["tests"]


def test_pages_ask_for_no_linter() -> None:
    """A change of docs alone is no code, no product, and has nothing to lint."""
    sorted_ = change.sort(["docs/README.md", "README.md"])
    assert (sorted_["python"], sorted_["code"], sorted_["product"]) == ([], False, False)


def test_a_removed_module_is_not_linted_but_users_are_told() -> None:
    """The name is no file any more; it still changes the product."""
    sorted_ = change.sort(["src/gonogo/gone.py"])
    assert (sorted_["python"], sorted_["product"], sorted_["told"]) == ([], True, False)


def test_findings_of_the_linter_name_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ruff's own answer, in the shape of issues, with paths from the root."""
    monkeypatch.setattr(change, "ROOT", tmp_path)
    (tmp_path / "odd.py").write_text("x = 1\nimport os\n")
    told = change.lint(["odd.py"])
    assert {(one["ruleId"], one["file"], one["line"]) for one in told["issues"]} >= {("F401", "odd.py", 2)}
    assert told["findings"] == len(told["issues"])


def test_findings_of_the_formatter_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each file; `diff` shows what would change."""
    monkeypatch.setattr(change, "ROOT", tmp_path)
    (tmp_path / "odd.py").write_text("x=1\n")
    assert [one["file"] for one in change.format_(["odd.py"])["issues"]] == ["odd.py"]
    assert "+x = 1" in change.diff(["odd.py"])["diff"]


def test_a_tool_that_is_not_there_is_no_clean_result() -> None:
    """Deny when unknown: without the tool nobody can say that there are no findings."""
    with pytest.raises(change.Broken, match="no-such-tool isn't installed"):
        change.run("no-such-tool")


@pytest.mark.parametrize(("code", "issues"), [(1, []), (0, [{"ruleId": "x"}])])
def test_an_answer_that_is_not_understood_is_no_clean_result(code: int, issues: list[dict[str, str]]) -> None:
    """A tool that says no and names nothing, or the other way round, speaks another language than it did."""
    with pytest.raises(change.Broken, match="understood"):
        change.answer(change.Said(code, ""), issues)


def test_results_count_what_ran_and_name_what_failed() -> None:
    """Skipped tests didn't run; failures and errors are findings with their place."""
    report = ElementTree.fromstring(
        '<testsuites><testsuite><testcase name="test_a" file="tests/test_x.py" line="4"/>'
        '<testcase name="test_b" file="tests/test_x.py" line="9"><failure message="assert 1 == 2"/></testcase>'
        '<testcase name="test_c"><skipped/></testcase>'
        '<testcase name="tests.test_y"><error message="collection failure"/></testcase></testsuite></testsuites>'
    )
    told = change.results(change.Said(1, ""), ElementTree.ElementTree(report))
    assert (told["ran"], told["skipped"], told["findings"]) == (3, 1, 2)
    assert [(one["file"], one["line"]) for one in told["issues"]] == [
        ("tests/test_x.py", 10),
        ("tests/test_y.py", 1),
    ]


def test_nothing_is_known_where_history_ends_at_the_last_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone of depth 1 can't tell; a repository's first commit can: all of it is new."""
    monkeypatch.setattr(change, "ROOT", tmp_path / "clone")
    person = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid")
    origin = tmp_path / "origin"
    subprocess.run(["git", "init", "--quiet", str(origin)], check=True)
    for name in ("one", "two"):
        (origin / name).write_text(name)
        subprocess.run(["git", "add", "."], cwd=origin, check=True)
        subprocess.run(["git", *person, "commit", "--quiet", "-m", name], cwd=origin, check=True)
    clone = ["git", "clone", "--quiet", origin.as_uri(), str(tmp_path / "clone")]
    subprocess.run([*clone, "--depth", "1"], check=True)
    assert not change.is_known()
    monkeypatch.setattr(change, "ROOT", origin)
    assert change.is_known()


def test_the_answer_is_json_on_stdout() -> None:
    """What a command step reads; a verb that isn't there ends with 2."""
    command = [sys.executable, "tools/change.py"]
    told = subprocess.run(
        [*command, "sort"], cwd=ROOT, input='["notes.txt"]', capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout)["files"] == 1
    assert subprocess.run([*command, "nothing"], cwd=ROOT, capture_output=True, check=False).returncode == 2
