"""The change as git tells it, from real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import Gonogo, write

from gonogo.cli.triggers.filters import without_filters
from gonogo.cli.triggers.git import Change, change_in
from gonogo.errors import UsageError

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Repository:
    """A scratch repository."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self("init", "-q", "-b", "main")

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=ENVIRONMENT, capture_output=True, check=True
        )
        return done.stdout.decode()

    def commit(self, files: dict[str | bytes, str | bytes], message: str = "change") -> str:
        for name, content in files.items():
            path = os.path.join(os.fsencode(self.path), os.fsencode(name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        self("add", "-A")
        self("commit", "-q", "-m", message)
        return self("rev-parse", "HEAD").strip()

    def change(self, base: str | None = None, **more: object) -> Change:
        found = change_in(self.path, base=base, environment=ENVIRONMENT, **more)  # type: ignore[arg-type]
        assert found is not None
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty one."""
    return Repository(tmp_path / "repository")


def names(change: Change) -> list[str]:
    """The changed files' names."""
    return [file.filename for file in change.files]


def test_on_the_main_branch_the_last_commit_is_the_change(repository: Repository) -> None:
    """Compared with its parent."""
    repository.commit({"a.txt": "one\n"})
    repository.commit({"b.txt": "one\ntwo\n"}, "add b\n\nwith a reason")
    change = repository.change()
    assert [(file.filename, file.status, file.additions) for file in change.files] == [("b.txt", "added", 2)]
    assert change.branch == "main"
    assert change.base == "HEAD~1"
    assert change.commit is not None
    assert (change.commit.subject, change.commit.body) == ("add b", "with a reason")


def test_the_first_commit_is_compared_with_nothing(repository: Repository) -> None:
    """All its files are added."""
    repository.commit({"a.txt": "one\n"})
    assert [(file.filename, file.status) for file in repository.change().files] == [("a.txt", "added")]


def test_a_repository_without_commits_lists_its_new_files(repository: Repository) -> None:
    """Staged and unknown ones."""
    (repository.path / "a.txt").write_text("one\ntwo")
    change = repository.change()
    assert [(file.filename, file.additions) for file in change.files] == [("a.txt", 2)]
    assert change.commit is None


def test_a_branch_is_compared_with_where_it_left_main(repository: Repository) -> None:
    """What main did since then is no part of the change."""
    repository.commit({"a.txt": "one\n"})
    repository("checkout", "-q", "-b", "feature")
    repository.commit({"b.txt": "b\n"})
    repository.commit({"c.txt": "c\n"})
    repository("checkout", "-q", "main")
    repository.commit({"d.txt": "d\n"})
    repository("checkout", "-q", "feature")
    change = repository.change()
    assert names(change) == ["b.txt", "c.txt"]
    assert (change.branch, change.base) == ("feature", "main")


def test_uncommitted_and_untracked_work_counts(repository: Repository) -> None:
    """Ignored files and gonogo's own folder don't."""
    repository.commit({"a.txt": "one\n", ".gitignore": "*.log\n"})
    repository.commit({"b.txt": "b\n"})
    (repository.path / "a.txt").write_text("two\n")
    (repository.path / "new.txt").write_text("n\n")
    (repository.path / "x.log").write_text("n\n")
    (repository.path / ".gonogo").mkdir()
    (repository.path / ".gonogo" / "journal").write_text("n\n")
    assert names(repository.change()) == ["a.txt", "b.txt", "new.txt"]


def test_a_base_that_is_asked_for_wins(repository: Repository) -> None:
    """A commit, branch or tag."""
    first = repository.commit({"a.txt": "one\n"})
    repository.commit({"b.txt": "b\n"})
    repository.commit({"c.txt": "c\n"})
    assert names(repository.change(base=first)) == ["b.txt", "c.txt"]


@pytest.mark.parametrize("base", ["nowhere", "--output=x", "-x"])
def test_a_base_that_is_not_there_is_a_usage_error(repository: Repository, base: str) -> None:
    """It says so, and an option in its place isn't one for git."""
    repository.commit({"a.txt": "one\n"})
    with pytest.raises(UsageError, match="no commit"):
        repository.change(base=base)
    assert not (repository.path / "x").exists()


def test_hints_come_before_guesses(repository: Repository) -> None:
    """The base that an event names."""
    first = repository.commit({"a.txt": "one\n"})
    repository.commit({"b.txt": "b\n"})
    repository("checkout", "-q", "-b", "feature")
    repository.commit({"c.txt": "c\n"})
    assert names(repository.change(hints=("missing", first))) == ["b.txt", "c.txt"]


def test_a_detached_head_has_no_branch(repository: Repository) -> None:
    """On a checkout of main itself, as CI makes it, the last commit is the change."""
    repository.commit({"a.txt": "one\n"})
    repository.commit({"b.txt": "b\n"})
    repository("checkout", "-q", "--detach")
    change = repository.change()
    assert change.branch is None
    assert names(change) == ["b.txt"]


def test_a_shallow_clone_says_that_history_is_missing(repository: Repository, tmp_path: Path) -> None:
    """Listing every file as added would be a lie."""
    repository.commit({"a.txt": "one\n"})
    repository.commit({"b.txt": "b\n"})
    shallow = tmp_path / "shallow"
    repository("clone", "-q", "--depth", "1", f"file://{repository.path}", str(shallow))
    change = change_in(shallow, base=None, environment=ENVIRONMENT)
    assert change is not None
    assert (change.files, change.unknown) == ((), True)
    assert any("shallow" in note for note in change.notes)


def test_odd_names_are_read_whole(repository: Repository) -> None:
    """UNI-1: spaces, quotes, newlines; bytes that aren't UTF-8 are shown by one rule."""
    repository.commit({"a.txt": "one\n"})
    odd: dict[str | bytes, str | bytes] = {
        "with space.txt": "x\n",
        'quo"te.txt': "x\n",
        "new\nline.txt": "x\n",
        "tab\there": "x\n",
        "日本.txt": "x\n",
        b"caf\xe9.txt": "x\n",
        ":colon": "x\n",
    }
    repository.commit(odd)
    change = repository.change()
    expected = {
        "with space.txt",
        'quo"te.txt',
        "new\nline.txt",
        "tab\there",
        "日本.txt",
        "caf\\xe9.txt",
        ":colon",
    }
    assert set(names(change)) == expected
    assert all(file.patch == "@@ -0,0 +1 @@\n+x" for file in change.files[:-1])


def test_renames_binaries_and_modes_have_their_status(repository: Repository) -> None:
    """A rename names both; binary content has no patch and no lines."""
    repository.commit({"old.txt": "1\n2\n3\n4\n5\n", "gone.txt": "x\n", "run.sh": "x\n"})
    repository("mv", "old.txt", "new.txt")
    (repository.path / "gone.txt").unlink()
    (repository.path / "run.sh").chmod(0o755)
    repository.commit({"image.bin": b"\0\1\2"})
    found = {file.filename: file for file in repository.change().files}
    assert {name: file.status for name, file in found.items()} == {
        "new.txt": "renamed",
        "gone.txt": "removed",
        "image.bin": "added",
        "run.sh": "modified",
    }
    assert found["new.txt"].previous_filename == "old.txt"
    assert found["image.bin"].patch is None
    assert found["gone.txt"].patch == "@@ -1 +0,0 @@\n-x"


def test_a_patch_may_talk_about_patches(repository: Repository) -> None:
    """Lines in a file that look like git's own don't split it."""
    repository.commit({"a.txt": "x\n", "b.txt": "x\n"})
    repository.commit({"a.txt": "diff --git a/x b/x\n@@ -1 +1 @@\n", "b.txt": "y\n"})
    first, second = repository.change().files
    assert first.patch is not None
    assert "+diff --git a/x b/x\n" in first.patch
    assert second.patch == "@@ -1 +1 @@\n-x\n+y\n"


def test_from_a_folder_below_the_whole_repository_counts(repository: Repository) -> None:
    """Names start at the repository's root."""
    repository.commit({"a.txt": "x\n"})
    repository.commit({"sub/b.txt": "x\n", "a.txt": "y\n"})
    change = change_in(repository.path / "sub", base=None, environment=ENVIRONMENT)
    assert change is not None
    assert names(change) == ["a.txt", "sub/b.txt"]


def test_a_submodule_is_one_file(repository: Repository, tmp_path: Path) -> None:
    """Its commit is what changed."""
    other = Repository(tmp_path / "other")
    other.commit({"x": "x\n"})
    repository.commit({"a.txt": "x\n"})
    repository("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.path), "lib")
    repository.commit({})
    assert names(repository.change()) == [".gitmodules", "lib"]


def test_the_repository_starts_no_program_of_its_own(repository: Repository) -> None:
    """Neither an external diff nor a file system monitor nor text conversion."""
    repository.commit({"a.txt": "x\n", ".gitattributes": "*.txt diff=evil\n"})
    repository.commit({"a.txt": "y\n"})
    ran = repository.path.parent / "ran"
    for setting in (
        "diff.external",
        "core.fsmonitor",
        "diff.evil.textconv",
        "diff.evil.command",
        "core.pager",
    ):
        repository("config", setting, f"touch {ran};true")
    assert names(repository.change()) == ["a.txt"]
    assert not ran.exists()


@pytest.mark.parametrize("name", ["evil", "a=b", "lfs"])
@pytest.mark.parametrize("kind", ["clean", "process"])
def test_no_filter_of_the_repository_is_started(repository: Repository, name: str, kind: str) -> None:
    """Settings may come with a folder, and a changed file would be run through the filter they name."""
    repository.commit({"a.txt": "x\n", ".gitattributes": f"*.txt filter={name}\n"})
    (repository.path / "a.txt").write_text("y\n")
    ran = repository.path.parent / "ran"
    repository("config", f"filter.{name}.{kind}", f"touch {ran};cat")
    repository("config", f"filter.{name}.required", "true")
    assert "a.txt" in names(repository.change())
    assert not ran.exists()


def test_the_filter_of_large_files_stays_unless_it_is_extended() -> None:
    """As its installer writes it; without it every file of Git LFS would count as changed."""
    usual = b"filter.lfs.clean\ngit-lfs clean -- %f\0filter.lfs.required\ntrue\0"
    assert without_filters(usual, {}) == {}
    extended = without_filters(usual + b"lfs.extension.x.clean\ntouch ran\0", {"GIT_CONFIG_COUNT": "1"})
    assert extended["GIT_CONFIG_KEY_1"] == "filter.lfs.clean"
    assert extended["GIT_CONFIG_VALUE_1"] == ""
    assert extended["GIT_CONFIG_COUNT"] == "5"


@pytest.mark.parametrize("url", ["ext::sh -c touch% {ran}", "ssh://nowhere/x", "{folder}"])
def test_what_a_partial_clone_lacks_is_not_fetched_by_a_program(repository: Repository, url: str) -> None:
    """The settings name the program; the change is unknown then, with a note."""
    first = repository.commit({"a.txt": "x\n"})
    repository.commit({"a.txt": "y\n"})
    ran = repository.path.parent / "ran"
    blob = repository("rev-parse", f"{first}:a.txt").strip()
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "remote.o.url": url.format(ran=ran, folder=repository.path),
        "remote.o.promisor": "true",
        "extensions.partialClone": "o",
        "core.sshCommand": f"touch {ran};",
        "remote.o.uploadpack": f"touch {ran};",
    }.items():
        repository("config", key, value)
    change = repository.change()
    assert change is not None
    assert "unknown" in change.notes[0]
    assert not ran.exists()


def test_a_pipe_among_the_new_files_is_not_opened(repository: Repository) -> None:
    """Reading it would never end."""
    repository.commit({"a.txt": "x\n"})
    os.mkfifo(repository.path / "pipe")
    assert change_in(repository.path, base=None, environment=ENVIRONMENT) is not None


def test_outside_of_a_repository_there_is_no_change(tmp_path: Path) -> None:
    """And a base can't be used."""
    assert change_in(tmp_path, base=None, environment=ENVIRONMENT) is None
    with pytest.raises(UsageError, match="--base can't be used"):
        change_in(tmp_path, base="main", environment=ENVIRONMENT)


def test_without_git_there_is_no_change(repository: Repository) -> None:
    """Not installed: a note, because the repository is there."""
    change = change_in(repository.path, base=None, environment={"PATH": "/nonexistent"})
    assert change is not None
    assert any("can't be started" in note for note in change.notes)


def test_a_merge_in_progress_is_listed(repository: Repository) -> None:
    """Files in conflict are changed files."""
    repository.commit({"a.txt": "x\n"})
    repository("checkout", "-q", "-b", "feature")
    repository.commit({"a.txt": "y\n"})
    repository("checkout", "-q", "main")
    repository.commit({"a.txt": "z\n"})
    subprocess.run(
        ["git", "merge", "feature"], cwd=repository.path, env=ENVIRONMENT, capture_output=True, check=False
    )
    assert "a.txt" in names(repository.change())


def test_a_change_that_nobody_knows_is_null_and_told_in_every_report(gonogo: Gonogo, tmp_path: Path) -> None:
    """A count of files that is no answer must not pass for one."""
    full, shallow = Repository(tmp_path / "full"), tmp_path / "shallow"
    for number in (1, 2):
        full.commit({f"{number}.txt": "x\n"})
    full("clone", "-q", "--depth", "1", f"file://{full.path}", str(shallow))
    path = write(shallow, "size:\n  type: noop\n  assume: filesCount !== null")
    os.chdir(shallow)
    for form, start in (("json", "{"), ("markdown", "##"), ("github", "::warning")):
        ended = gonogo("run", str(path), "-q", "--format", form)
        assert ended.out.startswith(start)
        assert "shallow" in ended.out
    assert gonogo("run", str(path), "-q", "--format", "json").json["steps"]["size"]["reason"] == "assume"
