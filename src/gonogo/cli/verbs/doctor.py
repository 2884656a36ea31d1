"""`gonogo doctor`: looks at what a run needs, and says for each thing that is wrong what to do."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from msgspec import Struct

from gonogo.cli import options
from gonogo.cli.session import Place, Session
from gonogo.errors import GonogoError
from gonogo.journal.postgres.address import Address

DISK_BYTES_WANTED = 200 * 1024 * 1024
TIMEOUT_S = 10.0
_GITHUB_STEP = re.compile(r"\btype:\s*[\"']?github\b")
_SYMBOLS = {"ok": "passed", "warning": "tolerated", "error": "failed", "note": "excluded"}


class Finding(Struct, frozen=True):
    """One line. `status`: ok, warning, error, or note for what nobody has to have. `advice`: what to do."""

    name: str
    status: str
    text: str
    advice: str | None = None


@click.command("doctor")
@options.runs_dir
@options.no_color
@options.format_option("table", "json")
@click.pass_obj
def COMMAND(session: Session, runs_dir: Place, format_name: str) -> int:  # noqa: N802 - what the group looks for
    """Check that everything a run needs is there."""
    found = list(examine(runs_dir))
    healthy = all(one.status != "error" for one in found)
    if format_name == "json":
        from gonogo.report.formats import json_text

        rows = [
            {"name": one.name, "status": one.status, "text": one.text, "advice": one.advice} for one in found
        ]
        session.output.result(json_text({"healthy": healthy, "checks": rows}))
    else:
        session.output.result(_table(session, found))
    return 0 if healthy else 2


def examine(runs_dir: Place) -> Iterator[Finding]:
    """Everything, in the order it is shown. A check that breaks is a finding of its own."""
    checks: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("python", _python),
        ("platform", _platform),
        ("sandbox", _sandbox),
        ("processes", _processes),
        ("git", _git),
        *_of_place(runs_dir),
        ("workflow file", _config),
        ("github token", _github_token),
    )
    for name, check in checks:
        try:
            yield check()
        except Exception as error:  # noqa: BLE001 - a doctor survives every illness
            yield Finding(
                name, "error", f"the check itself failed: {type(error).__name__}", "please report it"
            )


def _of_place(place: Place) -> tuple[tuple[str, Callable[[], Finding]], ...]:
    if isinstance(place, Path):
        return ("runs folder", lambda: _runs_folder(place)), ("disk", lambda: _disk(place))
    return ("store", lambda: _store(place)), ("seal key", _seal_key)


def _python() -> Finding:
    version = platform.python_version()
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Finding("python", "ok", version)
    return Finding("python", "error", version, "use Python 3.11, 3.12 or 3.13")


def _platform() -> Finding:
    told = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} CPUs"
    if os.name != "posix":
        return Finding("platform", "error", told, "use Linux or macOS (or WSL)")
    return Finding("platform", "ok", told)


def _sandbox() -> Finding:
    from gonogo.app.catalogue import evaluate_once

    try:
        answer = evaluate_once("[1, 2, 3].map(n => n * 2).reduce((a, b) => a + b)")
    except GonogoError as error:
        return Finding("sandbox", "error", error.message, error.advice or "install gonogo again")
    if answer == 12:
        return Finding("sandbox", "ok", "expressions are evaluated in a child process")
    return Finding("sandbox", "error", f"it gave {answer!r} in place of 12", "install quickjs-ng again")


def _processes() -> Finding:
    """A step's command is ended with everything it started, which needs a process group of its own."""
    script = "import os; print(os.getpgrp() == os.getpid())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        start_new_session=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.stdout.strip() == b"True":
        return Finding("processes", "ok", "commands run in process groups of their own")
    advice = "commands that time out may leave processes behind; allow setsid in this container"
    return Finding("processes", "error", "no process groups here", advice)


def _git() -> Finding:
    path = shutil.which("git")
    if path is None:
        return Finding("git", "warning", "not found", "install git, or runs know nothing of changed files")
    done = subprocess.run([path, "--version"], capture_output=True, timeout=TIMEOUT_S, check=False)
    version = done.stdout.decode("utf-8", "replace").removeprefix("git version").strip()
    inside = subprocess.run(
        [path, "rev-parse", "--show-toplevel"], capture_output=True, timeout=TIMEOUT_S, check=False
    )
    if inside.returncode == 0:
        return Finding("git", "ok", version)
    reason = inside.stderr.decode("utf-8", "replace").strip().splitlines()
    told = reason[0].removeprefix("fatal: ") if reason else "no repository"
    advice = "start gonogo in a repository, or `files` and `pr` stay empty"
    return Finding("git", "note", f"{version}; {told}", advice)


def _store(address: Address) -> Finding:
    """It answers, its tables are ours to use, and it keeps what it says it keeps."""
    from gonogo.app import Options
    from gonogo.app.looking import about_store

    try:
        told, doubts = about_store(Options(runs=address))
    except GonogoError as error:
        return Finding("store", "error", error.message, error.advice)
    if doubts:
        return Finding("store", "warning", f"{told}; {doubts[0][0]}", doubts[0][1])
    return Finding("store", "ok", told)


def _seal_key() -> Finding:
    """Whether a store that others can read could keep secret outputs."""
    from gonogo.journal.postgres.seals import SEAL_KEY, SealKeys

    written = os.environ.get(SEAL_KEY, "")
    if not written:
        return Finding("seal key", "note", f"{SEAL_KEY} isn't set; only steps with secret_outputs need it")
    trouble, _, advice = SealKeys(written).trouble().partition(": ")
    return (
        Finding("seal key", "error", trouble, advice)
        if trouble
        else Finding("seal key", "ok", f"{SEAL_KEY} is set")
    )


def _runs_folder(runs_dir: Path) -> Finding:
    """Writable, made when it isn't there (in the nearest folder that is)."""
    folder = _existing(runs_dir)
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        told = f"{runs_dir}: {folder} can't be written: {error.strerror or error}"
        return Finding(
            "runs folder", "error", told, "name another with --runs-dir, or change its owner or mode"
        )
    return Finding(
        "runs folder", "ok", f"{runs_dir}" + ("" if runs_dir.exists() else " (made at the first run)")
    )


def _disk(runs_dir: Path) -> Finding:
    free = shutil.disk_usage(_existing(runs_dir)).free
    told = f"{free / 1024**3:,.1f} GiB free for journals"
    if free < DISK_BYTES_WANTED:
        return Finding("disk", "warning", told, "make room, or name another place with --runs-dir")
    return Finding("disk", "ok", told)


def _existing(path: Path) -> Path:
    """The folder itself or the nearest one above it that is there."""
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def _config() -> Finding:
    from gonogo.config import find_config

    try:
        found = find_config(Path.cwd())
    except GonogoError as error:
        return Finding("workflow file", "note", error.message, error.advice)
    return Finding("workflow file", "ok", str(found.path), found.note)


def _github_token() -> Finding:
    """Whether steps that act at GitHub have a token. It isn't tried out: a doctor calls nobody."""
    token, api = (
        os.environ.get("GITHUB_TOKEN", ""),
        os.environ.get("GITHUB_API_URL", "https://api.github.com"),
    )
    name = "github token"
    if token and (not token.isascii() or not token.isprintable() or " " in token):
        return Finding(name, "error", "GITHUB_TOKEN holds blanks or line ends", "set it to the token alone")
    if token:
        return Finding(name, "ok", f"GITHUB_TOKEN is set, for {api}")
    if not _uses_github():
        return Finding(name, "note", "GITHUB_TOKEN isn't set; only steps of type github need it")
    advice = (
        "set it (in GitHub Actions: env: GITHUB_TOKEN: ${{ github.token }}), or name another with `token`"
    )
    return Finding(
        name, "warning", "the workflow file has steps of type github, and GITHUB_TOKEN isn't set", advice
    )


def _uses_github() -> bool:
    from gonogo.config import find_config

    try:
        text = find_config(Path.cwd()).path.read_text(encoding="utf-8", errors="replace")
    except (GonogoError, OSError):
        return False
    return _GITHUB_STEP.search(text) is not None


def _table(session: Session, found: list[Finding]) -> str:
    from gonogo.report.layout import padded, plain
    from gonogo.report.text import beside

    style = session.output.style()
    width = max(len(one.name) for one in found)
    lines: list[str] = []
    for one in found:
        start = f"{style.symbol(_SYMBOLS[one.status])} {style.paint(padded(one.name, width), 'bold')}"
        colour = {"error": "red", "warning": "yellow"}.get(one.status, "dim")
        lines += beside(start, width + 2, plain(one.text), colour, style)
        if one.advice:
            lines += beside(" " * (width + 2), width + 2, plain(one.advice), "cyan", style)
    return "\n".join(lines) + "\n"
