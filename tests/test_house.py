"""The repository's own order: what may not be in it, what must be, whether a release could be made."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import changelog, demo, licences, lock

ROOT = Path(__file__).resolve().parent.parent

# Written in pieces, so that this file passes its own test.
INDEX_HOST = re.compile(
    r"pypi\.org|pythonhosted\.org|--(?:extra-)?index-" + "url|--find-" + "links|/simp" + "le/"
)
MACHINE_PATH = re.compile(
    r"(?<![\w.~])/(?:root|home/(?!user\b|you\b)\w+|Users/(?!you\b)\w+|work|workspace)/\w"
)
SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:\s|\\n)+[A-Za-z0-9+/=]{40}"
    r"|\bgh[pousr]_[A-Za-z0-9]{36}\b"
    r"|\bgithub_pat_[A-Za-z0-9_]{60,}"
    r"|\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bxox[abpr]-[0-9A-Za-z-]{20,}"
)


@lru_cache(maxsize=1)
def tracked() -> tuple[Path, ...]:
    """Every tracked file; in an unpacked sdist, where git knows nothing, the files in the usual folders."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0") if listed.returncode == 0 else []
    paths = [ROOT / name for name in names if name] or [
        path for folder in ("src", "tests", "docs", "tools") for path in (ROOT / folder).rglob("*")
    ]
    return tuple(path for path in paths if path.is_file())


def texts() -> Iterator[tuple[str, str]]:
    """Name and text of every tracked file that is UTF-8 text."""
    for path in tracked():
        try:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def found(pattern: re.Pattern[str]) -> list[str]:
    """`file:line text` of each match in a tracked file."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1} {match.group()[:20]}"
        for name, text in texts()
        for match in pattern.finditer(text)
    ]


def project() -> dict[str, object]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_no_file_names_a_package_index() -> None:
    """Locked installs work from any mirror: the hashes are trusted, not the place."""
    assert found(INDEX_HOST) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    """What works here works anywhere."""
    assert found(MACHINE_PATH) == []


def test_no_file_holds_what_looks_like_a_secret() -> None:
    """Not even a test's: scanners can't tell, and neither can people."""
    assert found(SECRETS) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (INDEX_HOST, "https://py" + "pi.org/sim" + "ple"),
        (MACHINE_PATH, "cd /ro" + "ot/gonogo"),
        (MACHINE_PATH, "/ho" + "me/maria/gonogo"),
        (SECRETS, "AK" + "IA" + "A" * 16),
        (SECRETS, "-----BEGIN RSA PRIVATE KEY-----\n" + "A" * 64),
        (SECRETS, "gh" + "p_" + "a" * 36),
    ],
)
def test_the_patterns_see_what_they_are_for(pattern: re.Pattern[str], text: str) -> None:
    """A pattern that matches nothing would pass every file."""
    assert pattern.search(text)


def test_the_licence_is_there_in_full() -> None:
    """Apache-2.0, as pyproject.toml says."""
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_package_is_marked_as_typed() -> None:
    """PEP 561: without the marker users' type checkers see nothing."""
    assert (ROOT / "src" / "gonogo" / "py.typed").exists()


def test_changelog_fragments_are_well_formed() -> None:
    """A release can join what is in changes/."""
    assert changelog.problems(ROOT / "changes") == []
    assert changelog.MARKER in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", lock.LOCKS)
def test_a_lock_holds_pins_and_hashes_alone(name: str) -> None:
    """Every package is pinned and has the hash of at least one file; no option, comment or address."""
    text = (ROOT / "requirements" / name).read_text()
    pins = [part for part in re.split(r"(?m)^(?=\S)", text) if part]
    assert lock.strange_lines(text) == []
    assert [part.split()[0] for part in pins if "--hash=sha256:" not in part] == []


def locked_versions(name: str) -> dict[str, str]:
    """Version by package of a lock file."""
    text = (ROOT / "requirements" / name).read_text()
    return dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", text, flags=re.MULTILINE))


def wanted() -> dict[str, list[str]]:
    """Requirements of pyproject.toml by the lock file that must meet them."""
    data = project()
    run = data["project"]["dependencies"]  # type: ignore[index]
    by_choice = [text for texts in data["project"]["optional-dependencies"].values() for text in texts]  # type: ignore[index]
    groups = data["dependency-groups"]
    return {
        "run.txt": run,
        "build.txt": groups["build"],  # type: ignore[index]
        "dev.txt": [*run, *by_choice, *groups["dev"], *groups["build"]],  # type: ignore[index]
        "model.txt": groups["model"],  # type: ignore[index]
        "lock.txt": groups["lock"],  # type: ignore[index]
    }


@pytest.mark.parametrize("name", lock.LOCKS)
def test_a_lock_meets_what_the_project_asks_for(name: str) -> None:
    """A dependency added to pyproject.toml comes with `make lock`."""
    versions = locked_versions(name)
    unmet = [
        text
        for text in wanted()[name]
        for asked in [Requirement(text)]
        if not asked.specifier.contains(versions.get(canonicalize_name(asked.name), "0"))
    ]
    assert unmet == []


def test_the_locks_agree() -> None:
    """Development runs on the versions that users get."""
    development = locked_versions("dev.txt")
    assert locked_versions("run.txt").items() <= development.items()
    assert locked_versions("build.txt").items() <= development.items()


def test_every_locked_package_has_a_licence_we_may_ship_with() -> None:
    """Permissive licences only; MPL-2.0 where it stays in development, LGPL-3.0 for what comes by choice."""
    verdicts = licences.judge_lock(ROOT / "requirements")
    assert len(verdicts) > 20
    assert [verdict for verdict in verdicts if not verdict.allowed] == []


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-2-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR ISC) AND BSD-3-Clause", True),
        ("GPL-3.0-only", False),
        ("unknown", False),
        ("MPL-2.0", False),
    ],
)
def test_licence_expressions_are_read_strictly(expression: str, allowed: bool) -> None:
    """Every AND part and one of each OR must be allowed; what isn't known is refused."""
    assert licences.permits(expression, licences.PERMISSIVE) is allowed


def test_fragments_make_an_entry(tmp_path: Path) -> None:
    """Kinds in their order, fragments by name, lines after the first indented."""
    (tmp_path / "b-two.fixed.md").write_text("A mend.\nIn two lines.\n")
    (tmp_path / "a-one.added.md").write_text("A gift.\n")
    entry = changelog.entry(changelog.read_fragments(tmp_path), "1.0.0")
    assert entry == "## 1.0.0\n\n### Added\n\n- A gift.\n\n### Fixed\n\n- A mend.\n  In two lines.\n"


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("good-one.added.md", "Fine.", False),
        ("README.md", "# Read me", False),
        ("no-kind.md", "Text.", True),
        ("Loud.added.md", "Text.", True),
        ("empty.fixed.md", " \n", True),
        ("heading.fixed.md", "# Big", True),
        ("long.changed.md", "x" * 601, True),
    ],
)
def test_a_fragment_that_would_spoil_the_entry_is_refused(
    tmp_path: Path, name: str, text: str, wrong: bool
) -> None:
    """The name tells the kind; the text is short and has no heading."""
    (tmp_path / name).write_text(text)
    assert bool(changelog.problems(tmp_path)) is wrong


@pytest.mark.parametrize(
    ("files", "lacks"),
    [
        (["src/gonogo/app.py"], True),
        (["src/gonogo/app.py", "changes/x.added.md"], False),
        (["docs/start.md"], False),
        ([], False),
    ],
)
def test_a_change_of_the_product_brings_a_fragment(files: list[str], lacks: bool) -> None:
    """Only src/ asks for one."""
    assert changelog.lacks_fragment(files) is lacks


def test_ci_runs_what_contributors_run() -> None:
    """`.ci/run` is `make check`, can be executed, and waits for nobody."""
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "exec make check </dev/null" in script.read_text()


def test_every_make_target_is_listed_by_help() -> None:
    """`make help` shows each target that is for people."""
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", text, flags=re.MULTILINE)
    assert phony
    assert set(phony.group(1).split()) == set(re.findall(r"^([a-z]+):.* ## ", text, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("result", "exit_code", "fine"),
    [
        ({"verdict": "GO", "steps": {"a": {"fault": None}}}, 0, True),
        ({"verdict": "NO-GO", "steps": {"a": {"fault": {"class": "logical"}}}}, 1, True),
        ({"verdict": "NO-GO", "steps": {"a": {"fault": {"class": "bug"}}}}, 1, False),
        ({"verdict": "GO", "steps": {"a": {"fault": None}}}, 1, False),
        ({"verdict": "GO", "steps": {}}, 0, False),
        ({}, 2, False),
    ],
)
def test_the_demo_takes_a_verdict_and_no_accident(
    result: dict[str, object], exit_code: int, fine: bool
) -> None:
    """Any verdict will do, if the exit code says the same and it came about by judging."""
    assert (demo.complaint(result, exit_code) is None) is fine


def test_the_demo_shows_this_repositorys_verdict(tmp_path: Path) -> None:
    """`make demo`, but for the installing: in a clone, on a last change that asks for no tests.

    One that does could ask for this very test, which would then run itself again and again.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("an unpacked sdist has no last change")
    clone = tmp_path / "clone"
    command = ["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(clone)]
    subprocess.run(command, check=True, capture_output=True)
    (clone / "notes.txt").write_text("nothing to test here\n")
    subprocess.run(["git", "add", "notes.txt"], cwd=clone, check=True)
    person = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid")
    commit = ["git", *person, "commit", "--quiet", "-m", "Add notes"]
    subprocess.run(commit, cwd=clone, check=True, capture_output=True)
    shown = subprocess.run(
        [sys.executable, "tools/demo.py"], cwd=clone, capture_output=True, text=True, check=False
    )
    assert re.search(r"^verdict: GO$", shown.stdout, flags=re.MULTILINE), shown.stdout + shown.stderr
    assert shown.returncode == 0


def test_the_package_tells_its_version() -> None:
    """`gonogo.__version__` is the project's."""
    import gonogo

    assert gonogo.__version__ == project()["project"]["version"]  # type: ignore[index]
