"""The change as git tells it: what differs between a base and the working tree, uncommitted work included.

git runs as a child process that can't ask, page, sign, call hooks, start another program for a diff or to fetch what
a partial clone lacks, and only for a limited time. Names are read with `-z`, so any byte may be in them. Without git,
or outside of a repository, there simply is no change.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from gonogo.cli.triggers import diff, filters
from gonogo.cli.triggers.shape import ChangedFile, readable
from gonogo.errors import UsageError

TIMEOUT_S = 20.0
OUTPUT_BYTES_MAX = 32 * 1024 * 1024
UNTRACKED_MAX = 1000
UNTRACKED_BYTES_MAX = 1024 * 1024
"""An untracked file above this is listed without a count of its lines."""

_SAFE = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false", "core.pager=cat",
    "color.ui=false", "diff.noprefix=false", "diff.mnemonicPrefix=false",
    "diff.submodule=short", "diff.orderFile=/dev/null", "submodule.recurse=false", "log.showSignature=false",
    "credential.helper=",
)  # fmt: skip
_DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--ignore-submodules=dirty",
)  # fmt: skip
_OVERRULED = ("GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_TRACE", "GIT_TRACE2", "GIT_LITERAL_PATHSPECS")
_BRANCH_NAMES = ("main", "master")


class Commit(Struct, frozen=True):
    """The last commit, for a change that no pull request describes."""

    id: str
    author: str
    subject: str
    body: str


class Change(Struct, frozen=True):
    """What differs. `branch` is None on a detached HEAD; `base` is how the other side was named."""

    root: Path
    branch: str | None
    base: str | None
    files: tuple[ChangedFile, ...]
    commit: Commit | None
    notes: tuple[str, ...] = ()
    unknown: bool = False
    """True when nobody can say which files changed; no files is something else."""


class GitError(Exception):
    """git said no, took too long or isn't there; the message is for a note."""


class Git:
    """git in one folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = _safe_environment(environment)

    def tamed(self) -> Git:
        """The same, without the filter programs that the settings name."""
        try:
            listing = self.bytes_of(*filters.ASK)
        except GitError:
            return self  # git says no when there are none
        return Git(self.folder, {**self._environment, **filters.without_filters(listing, self._environment)})

    def bytes_of(self, *arguments: str) -> bytes:
        """What git prints. Raises GitError."""
        settings = [part for setting in _SAFE for part in ("-c", setting)]
        try:
            done = subprocess.run(
                ["git", *settings, *arguments],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GitError(f"git {arguments[0]} took more than {TIMEOUT_S:g} s") from None
        except OSError as error:
            raise GitError(f"git can't be started: {error.strerror or error}") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
            raise GitError(said[-1] if said else f"git {arguments[0]} ended with {done.returncode}")
        if len(done.stdout) > OUTPUT_BYTES_MAX:
            raise GitError(f"git {arguments[0]} gave more than {OUTPUT_BYTES_MAX:,} bytes")
        return done.stdout

    def line(self, *arguments: str) -> str | None:
        """The one line git prints; None when it says no."""
        try:
            return readable(self.bytes_of(*arguments)).rstrip("\n") or None
        except GitError:
            return None

    def commit(self, name: str) -> str | None:
        """The id of a commit; None when there is none of this name."""
        if name.startswith("-"):
            return None
        return self.line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


def change_in(
    folder: Path, *, base: str | None, environment: Mapping[str, str], hints: Sequence[str] = ()
) -> Change | None:
    """The change in the repository around `folder`; None outside of one (then `base` can't be used).

    `base` is what the person asked for; `hints` are bases that an event names, tried before guessing.

    Raises:
        UsageError: `base` isn't in the repository, or there is no repository to look for it.
    """
    try:
        root = readable(Git(folder, environment).bytes_of("rev-parse", "--show-toplevel")).rstrip("\n")
    except GitError as problem:
        if base is not None:
            advice = "leave --base out, or start gonogo in a git repository"
            raise UsageError(f"--base can't be used here: {problem}", advice=advice) from None
        return _unusable(folder, problem)
    git = Git(Path(root), environment).tamed()
    branch = git.line("symbolic-ref", "--quiet", "--short", "HEAD")
    notes: list[str] = []
    since, named = _since(git, base, hints, branch, notes)
    # Without the other side only uncommitted work can be listed: what was committed is unknown.
    unknown = since is None
    try:
        files = tuple(_files(git, since))
    except GitError as problem:
        notes.append(f"the changed files are unknown: {problem}")
        unknown = True
        files = ()
    return Change(git.folder, branch, named, files, _last_commit(git), tuple(notes), unknown)


def _unusable(folder: Path, problem: GitError) -> Change | None:
    """No change; where there is a repository that git refuses, with the reason."""
    if not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return None
    return Change(folder, None, None, (), None, (f"the changed files are unknown: {problem}",), unknown=True)


def _since(
    git: Git, base: str | None, hints: Sequence[str], branch: str | None, notes: list[str]
) -> tuple[str | None, str | None]:
    """The commit (or empty tree) to compare with, and its name; None compares with HEAD: uncommitted work."""
    head = git.commit("HEAD")
    if head is None:
        return _empty_tree(git), None
    if base is not None:
        if git.commit(base) is None:
            advice = "name a commit or branch that is in this clone; `git fetch` may bring it"
            raise UsageError(f"there is no commit {base!r} to compare with (--base)", advice=advice)
        return _fork_point(git, base, notes), base
    for candidate in (*hints, *_guesses(git, branch)):
        if git.commit(candidate) is None:
            continue
        since = _fork_point(git, candidate, notes)
        if since == head and branch is None:
            break  # a checkout of the base itself, as CI does it: its last commit is the change
        return since, candidate
    return _parent(git, notes)


def _guesses(git: Git, branch: str | None) -> Iterator[str]:
    """Where a branch may have come from; nothing on the main branch itself."""
    if branch in _BRANCH_NAMES:
        return
    upstream = git.line("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
    if upstream is not None and upstream.partition("/")[2] != branch:
        yield upstream
    default = git.line("rev-parse", "--abbrev-ref", "origin/HEAD")
    if default is not None and default.partition("/")[2] == branch:
        return
    if default is not None and default != "origin/HEAD":
        yield default
    for name in _BRANCH_NAMES:
        yield f"origin/{name}"
        yield name


def _fork_point(git: Git, base: str, notes: list[str]) -> str | None:
    """Where HEAD left `base`, so that what others did there since doesn't count; else `base` itself."""
    found = git.line("merge-base", base, "HEAD")
    if found is None:
        notes.append(f"HEAD and {base} have no common commit in this clone; comparing with {base} itself")
        return git.commit(base)
    return found


def _parent(git: Git, notes: list[str]) -> tuple[str | None, str | None]:
    parent = git.commit("HEAD~1")
    if parent is not None:
        return parent, "HEAD~1"
    if git.line("rev-parse", "--is-shallow-repository") == "true":
        notes.append(
            "this clone is shallow and ends at HEAD, so only uncommitted changes are known; "
            "fetch more history (actions/checkout: fetch-depth: 0)"
        )
        return None, None
    return _empty_tree(git), None


def _empty_tree(git: Git) -> str | None:
    return git.line("hash-object", "-t", "tree", "/dev/null")


def _files(git: Git, since: str | None) -> Iterator[ChangedFile]:
    """Committed and uncommitted changes, then new files that git doesn't know yet and doesn't ignore."""
    against = since or "HEAD"
    listing = git.bytes_of(*_DIFF, "-z", "--raw", "--numstat", "--abbrev=7", against, "--")
    changed = diff.listed(listing)
    if any(one.patched for one in changed):
        patches = diff.patches(git.bytes_of(*_DIFF, "--unified=3", against, "--"))
    else:
        patches = []
    yield from diff.joined(changed, patches)
    yield from _untracked(git)


def _untracked(git: Git) -> Iterator[ChangedFile]:
    names = git.bytes_of("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
    own = [name for name in names if name and b"/.gonogo/" not in b"/" + name]
    for name in own[:UNTRACKED_MAX]:
        yield ChangedFile(readable(name), "added", _lines_of(git.folder, name))


def _lines_of(root: Path, name: bytes) -> int:
    """Lines of a regular text file; nothing else is opened (a pipe would never end)."""
    path = os.path.join(os.fsencode(root), name)
    try:
        if not os.path.isfile(path) or os.path.islink(path) or os.path.getsize(path) > UNTRACKED_BYTES_MAX:
            return 0
        with open(path, "rb") as file:
            data = file.read(UNTRACKED_BYTES_MAX)
    except OSError:
        return 0  # gone or closed to us: it stays listed
    if b"\0" in data:
        return 0
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _last_commit(git: Git) -> Commit | None:
    said = git.line("log", "-1", "--no-show-signature", "--format=%H%x00%an%x00%s%x00%b")
    if said is None:
        return None
    parts = [*said.split("\0", 3), "", "", ""]
    return Commit(parts[0], parts[1], parts[2], parts[3].strip())


def _safe_environment(environment: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environment.items() if name not in _OVERRULED}
    return kept | {
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GIT_ALLOW_PROTOCOL": "https:http",  # the others start programs that the settings may name
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C.UTF-8",
    }
