"""The right to write a run: an advisory lock of the session, and the run's epoch, which rises with each new writer.

The lock tells the living from the dead: Postgres drops it with the session, however that ends. The epoch keeps out who
was dead for a while: whatever is written is written only where the epoch is still the writer's own. A session that was
lost is replaced by a new one that gets the lock again, unless another writer came meanwhile.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from hashlib import blake2b

from gonogo.errors import JournalError, RunLocked
from gonogo.journal.files import Holder
from gonogo.journal.lines import NoSuchRun
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.link import Connection, Link, NotYet

__all__ = ["Lease", "cut_off", "held_keys", "holder_of", "key_of", "locked_by", "lost_to", "no_such_run"]

_OWNER = """owner_host = %(host)s, owner_pid = %(pid)s, owner_since_ms = %(since_ms)s,
    owner_backend = pg_backend_pid(), owner_token = %(token)b"""
_CREATE = f"""
    insert into gonogo_runs as run (run_id, owner_host, owner_pid, owner_since_ms, owner_backend, owner_token)
    values (%(run)s, %(host)s, %(pid)s, %(since_ms)s, pg_backend_pid(), %(token)b)
    on conflict (run_id) do update set epoch = run.epoch + 1, {_OWNER} where run.next_seq is null
    returning epoch
"""  # noqa: S608 - nothing but constants is put in
_REOPEN = f"""
    update gonogo_runs set epoch = epoch + 1, {_OWNER} where run_id = %(run)s
    returning epoch, extract(epoch from clock_timestamp() - written)::float8
"""  # noqa: S608 - nothing but constants is put in
_REGAIN = """
    update gonogo_runs set owner_backend = pg_backend_pid() where run_id = %(run)s and epoch = %(epoch)s
    returning next_seq
"""
_RENEW = """
    select pg_try_advisory_lock(%(key)s) from gonogo_runs where run_id = %(run)s and epoch = %(epoch)s
"""
_CUT_OFF = """
    update gonogo_runs
    set epoch = epoch + 1,
        owner_host = null, owner_pid = null, owner_since_ms = null, owner_backend = null, owner_token = null
    where run_id = %s
"""
_RELEASE = """
    update gonogo_runs
    set owner_host = null, owner_pid = null, owner_since_ms = null, owner_backend = null, owner_token = null
    where run_id = %(run)s and epoch = %(epoch)s
"""


_HELD = """
    select pid, classid::bigint << 32 | objid::bigint from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
        and database = (select oid from pg_database where datname = current_database())
"""


class Lease:
    """Who may write the run. `idle_s`: how long nobody had written when it was reopened, by Postgres' clock.
    `epoch` and `generation` (the connection it was taken on) are set once it is taken.
    """

    def __init__(self, run_id: str, link: Link) -> None:
        self.run_id = run_id
        self.epoch = 0
        self.idle_s: float | None = None
        self.generation = 0
        self._link = link
        self._locked_in = 0
        self._token = secrets.token_bytes(12)
        self._me = Holder(pid=os.getpid(), host=os.uname().nodename, since_ms=int(time.time() * 1000))

    def create(self, connection: Connection) -> None:
        """Make the run, or take it from a host that died before its first record. Raises RunLocked, JournalError."""
        self._take(connection, _CREATE, self._there_already)

    def reopen(self, connection: Connection) -> None:
        """Take over a run that nobody writes. Raises RunLocked, JournalError when there is none."""
        self._take(connection, _REOPEN, self._not_there)

    def regain(self, connection: Connection) -> int | None:
        """Hold it on a new connection, as before; which record the run is due. Raises JournalError when it is lost,
        NotYet while the old session still holds the lock: that is ended.
        """
        if not self._lock(connection):
            if epoch_of(self.run_id, connection) != self.epoch:
                raise lost_to(self.run_id, connection)
            raise self._ended_session(connection)
        row = connection.execute(_REGAIN, {"run": self.run_id, "epoch": self.epoch}).fetchone()
        if row is None:
            self._unlock(connection)
            raise lost_to(self.run_id, connection)
        self.generation = self._link.generation
        due: int | None = row[0]
        return due

    def release(self, connection: Connection) -> None:
        """Let others write. What was written before is on disk when this returns (a commit writes all before it)."""
        connection.execute(_RELEASE, {"run": self.run_id, "epoch": self.epoch})
        self._unlock(connection)

    def _take(self, connection: Connection, query: str, refusal: Callable[[], JournalError]) -> None:
        if self.run_id in self._link.renewals:
            raise locked_by(self.run_id, connection)
        if not self._lock(connection):
            if self._is_own(connection):
                raise self._ended_session(connection)
            raise locked_by(self.run_id, connection)
        me = self._me
        given = {
            "run": self.run_id, "host": me.host, "pid": me.pid, "since_ms": me.since_ms, "token": self._token,
        }  # fmt: skip
        row = connection.execute(query, given).fetchone()
        if row is None:
            self._unlock(connection)
            raise refusal()
        self.epoch = row[0]
        self.idle_s = row[1] if len(row) > 1 else None
        self.generation = self._link.generation
        self._link.renewals[self.run_id] = self._renew

    def _is_own(self, connection: Connection) -> bool:
        """Whether this very lease took the run, on a connection that was lost together with the answer."""
        query = "select true from gonogo_runs where run_id = %s and owner_token = %b"
        return connection.execute(query, [self.run_id, self._token]).fetchone() is not None

    def _lock(self, connection: Connection) -> bool:
        """Take the lock, unless this session has it already."""
        if self._locked_in != self._link.generation:
            key = key_of(self.run_id, self._link.schema)
            row = connection.execute("select pg_try_advisory_lock(%s)", [key]).fetchone()
            if row is None or not row[0]:
                return False
            self._locked_in = self._link.generation
        return True

    def _renew(self, connection: Connection) -> None:
        """Have the lock on a new connection, too; not of a run that is another's by now, who would find it locked."""
        given = {"key": key_of(self.run_id, self._link.schema), "run": self.run_id, "epoch": self.epoch}
        row = connection.execute(_RENEW, given).fetchone()
        if row is not None and row[0]:
            self._locked_in = self._link.generation

    def _unlock(self, connection: Connection) -> None:
        self.forget()
        connection.execute("select pg_advisory_unlock(%s)", [key_of(self.run_id, self._link.schema)])

    def forget(self) -> None:
        """Not hold it any more, as far as this process knows."""
        self._link.renewals.pop(self.run_id, None)
        self._locked_in = 0

    def _ended_session(self, connection: Connection) -> NotYet:
        end_session(self.run_id, connection, self._link.schema)
        return NotYet(f"the last session of run {self.run_id} isn't over yet")

    def _there_already(self) -> JournalError:
        return JournalError(f"there is a run {self.run_id} already", advice="'gonogo resume' goes on with it")

    def _not_there(self) -> JournalError:
        return no_such_run(self.run_id, self._link.address)


def key_of(run_id: str, schema: str) -> int:
    """The advisory lock of a run: 64 bits of a wide hash, as Postgres counts them."""
    digest = blake2b(f"gonogo\0{schema}\0{run_id}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), signed=True)


def cut_off(run_id: str, connection: Connection, schema: str) -> bool:
    """Take a run from whoever writes it, and end the session; whether there was one. The epoch comes first: a writer
    that lives has a new session at once, and would have its lock again before anybody else.
    """
    connection.execute(_CUT_OFF, [run_id])
    return end_session(run_id, connection, schema)


def end_session(run_id: str, connection: Connection, schema: str) -> bool:
    """End the session that writes a run, which lets go of it; whether there was one. Takes the rights of its role."""
    key = key_of(run_id, schema)
    pids = [pid for pid, held in connection.execute(_HELD).fetchall() if held == key]
    for pid in pids:
        connection.execute("select pg_terminate_backend(%s)", [pid])
    return bool(pids)


def held_keys(connection: Connection) -> set[int]:
    """The keys of all advisory locks in the database."""
    return {key for _, key in connection.execute(_HELD).fetchall()}


def no_such_run(run_id: str, address: Address) -> NoSuchRun:
    """What to say of a run that isn't there."""
    return NoSuchRun(f"there is no run {run_id} in {address}", advice="'gonogo runs' lists the runs")


def epoch_of(run_id: str, connection: Connection) -> int:
    """The run's epoch; 0 when it is gone."""
    row = connection.execute("select epoch from gonogo_runs where run_id = %s", [run_id]).fetchone()
    return int(row[0]) if row else 0


def holder_of(run_id: str, connection: Connection) -> Holder | None:
    """Who writes the run, or did last without an end."""
    query = "select owner_pid, owner_host, owner_since_ms from gonogo_runs where run_id = %s and owner_pid is not null"
    row = connection.execute(query, [run_id]).fetchone()
    return Holder(*row) if row else None


def locked_by(run_id: str, connection: Connection) -> RunLocked:
    """A refusal that names who writes the run."""
    return RunLocked(
        f"run {run_id} is being written by {holder_of(run_id, connection) or 'another process'}",
        advice="wait until it ends, or stop it; 'gonogo cancel' asks it to stop by itself",
    )


def lost_to(run_id: str, connection: Connection) -> JournalError:
    """What a writer is told whose run another one has taken over."""
    holder = holder_of(run_id, connection)
    by = str(holder) if holder else "another process, which has let go of it since"
    return JournalError(
        f"run {run_id} was taken over by {by}; this process writes no more of it",
        advice="leave it to that process; 'gonogo show' tells how it goes on",
    )
