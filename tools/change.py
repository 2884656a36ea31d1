"""What gonogo.yaml asks about a change of this repository: which files it touches, and what the tools say of them.

    change.py sort              changed names as JSON on stdin; which of them need what, as JSON
    change.py lint|format|diff  file names as JSON on stdin; ruff's findings, or what formatting would change
    change.py types             mypy's findings in everything
    change.py tests PATH…       pytest's results

The tools are those beside this Python, else those on PATH. Ends with 0 when a tool gave an answer, findings or
not: what they mean is decided in gonogo.yaml. Ends with 2 when a tool is missing or broke.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
TEST_FILES_MAX = 30
"""A change that needs more test files than this has all tests run, in one go."""
MESSAGE_CHARACTERS_MAX = 500

# Changed file → tests, besides the mirror of src/; the first that fits wins.
TESTS_OF = (
    (re.compile(r"^examples/"), ("tests/test_examples.py",)),
    (
        re.compile(r"^(docs/.*|[^/]+)\.(md|svg)$|^gonogo\.yaml$"),
        ("tests/test_docs.py", "tests/test_pages.py"),
    ),
    (
        re.compile(r"^(tools|requirements|changes|\.ci)/|^(Makefile|pyproject\.toml)$"),
        ("tests/test_house.py", "tests/test_change.py"),
    ),
)


class Broken(Exception):  # noqa: N818 - the name says what happened
    """A tool is missing, or ended without an answer; the message is for a person."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a tool printed, and the code it ended with."""

    code: int
    text: str


def run(tool: str, *arguments: str, codes: Sequence[int] = (0, 1)) -> Said:
    """Run it. Raises Broken when it isn't there or ends with another code than these."""
    found = shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool)
    if found is None:
        raise Broken(f"{tool} isn't installed; `make check` installs it into .venv")
    done = subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise Broken(f"{tool} ended with {done.returncode}: {said}")
    return Said(done.returncode, done.stdout)


def issue(rule: str, message: str, file: str, line: int = 0) -> dict[str, Any]:
    """One finding, in the shape that a command step takes as an issue."""
    return {
        "ruleId": rule,
        "message": message[:MESSAGE_CHARACTERS_MAX],
        "severity": "error",
        "file": file,
        "line": line,
    }


def answer(said: Said, issues: list[dict[str, Any]], **facts: Any) -> dict[str, Any]:
    """A tool's answer: how many findings, the findings, and what else is known.

    Raises Broken when its code and its findings don't agree: then its answer isn't understood.
    """
    if bool(said.code) is not bool(issues):
        raise Broken(
            f"{len(issues)} findings understood, but the tool ended with {said.code}: {said.text[-500:]}"
        )
    return {"findings": len(issues), **facts, "issues": issues}


def inside(path: str) -> str:
    """The path from the repository's root."""
    return str(Path(path).relative_to(ROOT)) if Path(path).is_absolute() else path


def findings(*arguments: str) -> tuple[Said, list[dict[str, Any]]]:
    """What a verb of ruff finds, as ruff tells it."""
    said = run("ruff", *arguments)
    found: list[dict[str, Any]] = json.loads(said.text or "[]")
    return said, found


def lint(files: Sequence[str]) -> dict[str, Any]:
    """ruff's findings; `fixable` is how many it can mend by itself."""
    said, found = findings("check", "--output-format", "json", "--", *files)
    issues = [
        issue(one["code"] or "syntax", one["message"], inside(one["filename"]), one["location"]["row"])
        for one in found
    ]
    return answer(said, issues, fixable=sum(one["fix"] is not None for one in found))


def format_(files: Sequence[str]) -> dict[str, Any]:
    """The files that ruff would write in another way."""
    said, found = findings("format", "--check", "--output-format", "json", "--", *files)
    message = "is not formatted; `make format` does it"
    return answer(
        said, [issue("format", message, inside(one["filename"]), one["location"]["row"]) for one in found]
    )


def diff(files: Sequence[str]) -> dict[str, Any]:
    """What formatting would change."""
    return {"diff": run("ruff", "format", "--diff", "--", *files).text}


def types() -> dict[str, Any]:
    """mypy's errors in all that it is set to look at: a change may break what it doesn't touch."""
    said = run("mypy", "--output", "json")
    found = [json.loads(line) for line in said.text.splitlines() if line.startswith("{")]
    issues = [
        issue(one["code"] or "types", one["message"], inside(one["file"]), one["line"])
        for one in found
        if one["severity"] == "error"
    ]
    return answer(said, issues)


def tests(paths: Sequence[str]) -> dict[str, Any]:
    """pytest's results: how many ran, and those that failed."""
    workers = ("-n", "auto", "--maxprocesses", "4", "--dist", "loadfile") if "tests" in paths else ()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ("-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}")
        # 2 is what pytest ends with when a test file can't even be loaded; the report names it.
        said = run("pytest", *options, *workers, "--", *paths, codes=(0, 1, 2))
        if not report.exists():
            raise Broken("pytest wrote no report")
        # Written by pytest a moment ago, so it is no hostile XML.
        return results(said, ElementTree.parse(report))  # noqa: S314


def results(said: Said, report: ElementTree.ElementTree[Any]) -> dict[str, Any]:
    """The numbers and failures of a JUnit report."""
    cases = list(report.iter("testcase"))
    broken = [(case, what) for case in cases for what in (*case.findall("failure"), *case.findall("error"))]
    issues = [
        issue(
            "test",
            f"{case.get('name')}: {(what.get('message') or what.tag).strip()}",
            case.get("file") or (case.get("classname") or case.get("name") or "").replace(".", "/") + ".py",
            int(case.get("line") or 0) + 1,
        )
        for case, what in broken
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return answer(said, issues, ran=len(cases) - skipped, skipped=skipped)


def mirrors(name: str) -> list[str]:
    """Where the tests of src/gonogo/<room>/…/<module>.py may be: by folder, or in the room's with a long name."""
    room, *rest = Path(name).relative_to("src/gonogo").with_suffix("").parts
    if not rest:
        return [f"tests/test_{room}.py"]
    *folders, module = rest
    return [
        "/".join(("tests", room, *folders, f"test_{module}.py")),
        f"tests/{room}/test_{'_'.join(rest)}.py",
    ]


def tests_of(name: str) -> tuple[str, ...]:
    """The test files, or folders, that a change of this file asks for; none when there are none."""
    if name.startswith("src/gonogo/"):
        found = mirrors(name) if name.endswith(".py") else []
    elif name.startswith("tests/"):
        # A helper is used by the tests beside it.
        found = [name if re.search(r"/test_[^/]*\.py$", name) else str(Path(name).parent)]
    else:
        found = [test for pattern, tests in TESTS_OF if pattern.search(name) for test in tests]
    return tuple(test for test in dict.fromkeys(found) if (ROOT / test).exists())


def work(names: Sequence[str]) -> list[dict[str, Any]]:
    """The test files to run, each with the changed files that ask for it; all of tests/ when they are many."""
    asked: dict[str, list[str]] = {}
    for name in names:
        for test in tests_of(name):
            asked.setdefault(test, []).append(name)
    if "tests" in asked or len(asked) > TEST_FILES_MAX:
        return [{"test": "tests", "files": list(names)}]
    return [{"test": test, "files": files} for test, files in asked.items()]


def is_known() -> bool:
    """Whether git can tell what the last commit changed: not where history is cut off right behind it."""
    shallow = git("rev-parse", "--is-shallow-repository")
    return shallow == "false" or (shallow == "true" and git("rev-parse", "--verify", "HEAD~1") is not None)


def git(*arguments: str) -> str | None:
    """What git says; None when it says no."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def any_of(names: Iterable[str], pattern: str) -> bool:
    """Whether the pattern fits the beginning of some name."""
    return any(re.match(pattern, name) for name in names)


def sort(names: Sequence[str]) -> dict[str, Any]:
    """Which kinds of files changed, and which tests that asks for. A name that is no file was removed."""
    python = [name for name in names if name.endswith(".py") and (ROOT / name).is_file()]
    modules = [name for name in python if name.startswith("src/") and not name.endswith("__init__.py")]
    return {
        "known": is_known(),
        "files": len(names),
        "python": python,
        "code": any_of(names, r".*\.py$|pyproject\.toml$|requirements/"),
        "product": any_of(names, "src/"),
        "told": any_of(names, r"changes/|CHANGELOG\.md$"),
        "tests": work(names),
        "untested": [name for name in modules if not tests_of(name)],
    }


def main(arguments: Sequence[str]) -> int:
    """Read the command line, print the answer."""
    verbs = {"sort": sort, "lint": lint, "format": format_, "diff": diff}
    try:
        if arguments[:1] == ["tests"] and arguments[1:]:
            told = tests(arguments[1:])
        elif arguments == ["types"]:
            told = types()
        elif len(arguments) == 1 and arguments[0] in verbs:
            told = verbs[arguments[0]](json.load(sys.stdin))
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except Broken as problem:
        print(problem, file=sys.stderr)
        return 2
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
