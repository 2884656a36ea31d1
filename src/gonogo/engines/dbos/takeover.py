"""Notices dead and frozen workers, and gives their work to those that live.

Each worker holds a session lock in Postgres and renews a row every half second. Whoever gets another's lock knows that
its session is gone; whoever finds its row old by the database's own clock (clocks of machines play no part) ends its
sessions first, so that a process that only stood still can write nothing any more when it wakes up. Its work goes back
to its queue, unless it has lost too many workers: then it is set aside. Who couldn't renew its own row for a while, as
when the store takes no writes, looks at the age of others' rows a while later only: these couldn't either.

A lost session of one's own means that others may have taken over already: the worker ends at once. What may pass
(`_PASSING`) is tried again for as long as the session lasts; whatever else goes wrong ends the worker, too, since
nobody would notice one that takes work and doesn't look after the others.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import psycopg
from dbos import DBOSClient, WorkflowStatus

from gonogo.engines.base import TAKEOVERS_MAX
from gonogo.engines.dbos import names
from gonogo.engines.dbos.connections import KEEPALIVE
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.bell import channel_of

PERIOD_S = 0.5
FROZEN_S = 3.5
"""A row this old belongs to a worker that stands still, or whose machine is gone without a word."""
SILENCE_S = 35.0
"""Longest for an answer: a worker that is cut off without a word ends, too."""
LATE_S = 1.75
"""Who renews its own row later can't tell whether others stand still: what was in its way may have been in theirs."""
EXIT_FENCED = 75
"""Exit code of a worker that lost its session (EX_TEMPFAIL): its supervisor starts another one."""
LOCK_S = 2.0
"""Longest wait for a table that somebody has locked; it is tried again."""
STATEMENT_S = 10.0
RUNS_SHOWN = 5
_KEY_OF = "gonogo worker "

_TABLES = """
create table if not exists gonogo_workers
    (id text primary key, seen timestamptz not null default clock_timestamp());
create table if not exists gonogo_takeovers
    (workflow text primary key, times int not null default 1);
"""
_RENEW = "update gonogo_workers set seen = clock_timestamp() where id = %(me)s and %(alive)s"
_LOOK = f"""
    select id, seen < clock_timestamp() - make_interval(secs => %(old)s), pg_try_advisory_lock(
        ('x' || left(encode(sha256(convert_to('{_KEY_OF}' || id, 'utf8')), 'hex'), 16))::bit(64)::bigint
    )
    from gonogo_workers where id <> %(me)s
"""  # noqa: S608 - nothing but constants is put in
_LIMITS = f"""
    select set_config('lock_timeout', '{LOCK_S}s', false), set_config('statement_timeout', '{STATEMENT_S}s', false)
"""
_ENDED = "select pg_terminate_backend(pid, 500) from pg_stat_activity where application_name = %s"
_PASSING = ("08", "25006", "40", "53", "55P03", "57")
"""SQLSTATEs of what may pass: a store that takes no writes, a full disk, deadlocks, locks, too long a statement."""
_SETUP_LOCK = 0x676F6E6F676F0001
_LOST = "%s lost its session with the store (%s): all that it did here stops, since others may have it"
_BROKEN = "%s can't look after other workers any more (%s): it ends, and its work goes to others"

log = logging.getLogger("gonogo.worker")


class _Connection(psycopg.Connection[Any]):
    """One that waits for no answer longer than `SILENCE_S`."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As psycopg's, with an end: nothing is known of a connection that says nothing."""
        try:
            return super().wait(gen, interval, SILENCE_S if timeout is None else timeout)
        except psycopg.errors._WaitTimeout:
            self.close()
            raise psycopg.OperationalError(f"no answer for {SILENCE_S:.0f} s") from None


class Told(Protocol):
    """Who hears of what becomes of dead workers."""

    def lost(self, worker: str) -> None:
        """The calls it had are for others."""
        ...

    def aside(self, run_id: str, takeovers: int) -> None:
        """A run that lost so many workers isn't carried any more."""
        ...


def end_at_once() -> NoReturn:
    """Nothing of this process goes on, be it cleaning up."""
    os._exit(EXIT_FENCED)


class Lease:
    """One worker's life as the database sees it. `acquire` before anything else may be taken."""

    def __init__(self, address: Address, worker: str) -> None:
        self.worker = worker
        self.others = 0
        """How many workers there were beside this one at the last look."""
        self._connection = _connected(address)
        self._renewed_s = self._steady_s = float("-inf")
        """When it was renewed last, and since when never late; by this process's own clock."""
        self._untouchable: set[str] = set()

    def acquire(self) -> None:
        """Hold the lock of this worker's id. Raises RuntimeError when somebody has it: ids are used once."""
        self._connection.execute("select pg_advisory_lock(%s)", (_SETUP_LOCK,))
        self._connection.execute(_TABLES)
        self._connection.execute("select pg_advisory_unlock(%s)", (_SETUP_LOCK,))
        if not self._locked(self.worker):
            raise RuntimeError(f"the worker id {self.worker} is in use")

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """This worker's session."""
        return self._connection

    @property
    def is_lost(self) -> bool:
        """Whether this worker's session is gone, and its lock with it."""
        return self._connection.closed or self._connection.broken

    def enlist(self) -> None:
        """From now on others see whether this worker lives, so somebody has to `renew` this. Raises psycopg.Error."""
        self._connection.execute(_LIMITS)
        self._connection.execute("insert into gonogo_workers (id) values (%s)", (self.worker,))

    def renew(self, *, alive: bool = True) -> None:
        """Say that this worker lives, if it does. Raises psycopg.Error; see `is_lost`."""
        self._connection.execute(_RENEW, {"me": self.worker, "alive": alive})
        now_s = time.monotonic()
        if now_s - self._renewed_s > LATE_S:
            self._steady_s = now_s
        self._renewed_s = now_s

    def look(self) -> list[str]:
        """Find workers whose session is gone; frozen ones lose theirs here.

        Their locks are held then: `forget` them. Raises psycopg.Error; see `is_lost`.
        """
        rows = self._connection.execute(_LOOK, {"me": self.worker, "old": FROZEN_S}).fetchall()
        self.others = len(rows)
        is_steady = self._is_steady()
        return [
            worker
            for worker, is_old, is_gone in rows
            if is_gone or (is_old and is_steady and self._is_ended(worker))
        ]

    def takeovers(self, workflow: str) -> int:
        """How often this workflow was taken over from a dead worker."""
        row = self._connection.execute(
            "select times from gonogo_takeovers where workflow = %s", (workflow,)
        ).fetchone()
        return int(row[0]) if row is not None else 0

    def count(self, workflow: str) -> None:
        """This workflow is taken over once more."""
        self._connection.execute(
            "insert into gonogo_takeovers (workflow) values (%s)"
            " on conflict (workflow) do update set times = gonogo_takeovers.times + 1",
            (workflow,),
        )

    def ring(self, queue: str) -> None:
        """Have workers look at a queue."""
        self._connection.execute("select pg_notify(%s, %s)", (channel_of(queue), queue))

    def forget(self, worker: str) -> None:
        """Its work is with others now."""
        self._connection.execute("delete from gonogo_workers where id = %s", (worker,))
        self.leave_to_others(worker)

    def leave_to_others(self, worker: str) -> None:
        """Whoever finds it dead next takes its work over, be it this worker again."""
        self._connection.execute("select pg_advisory_unlock(%s)", (_key(worker),))

    def release(self) -> None:
        """An orderly end: nobody needs to take anything over."""
        self.forget(self.worker)
        self._connection.close()

    def _locked(self, worker: str) -> bool:
        row = self._connection.execute("select pg_try_advisory_lock(%s)", (_key(worker),)).fetchone()
        return row is not None and bool(row[0])

    def _is_steady(self) -> bool:
        """Whether nothing kept this worker from being renewed lately, nor others then."""
        now_s = time.monotonic()
        return now_s - self._renewed_s <= LATE_S and now_s - self._steady_s >= FROZEN_S

    def _is_ended(self, worker: str) -> bool:
        """Whether it is gone once its sessions are ended; all connections of a worker carry its id as their name."""
        try:
            ended = self._connection.execute(_ENDED, (worker,)).fetchall()
        except psycopg.errors.InsufficientPrivilege:
            if worker not in self._untouchable:
                self._untouchable.add(worker)
                log.error(
                    "%s stands still and its sessions can't be ended, so its work waits: have all workers use the same"
                    " user, or grant pg_signal_backend to this one's",
                    worker,
                )
            return False
        return all(is_ended for (is_ended,) in ended) and self._locked(worker)


class Watch:
    """Two threads: one renews this worker's lease, whatever the other waits for, which takes over from the dead."""

    def __init__(self, lease: Lease, told: Told, alive: Callable[[], bool]) -> None:
        """`alive` says whether the worker's own loop still goes round: a worker that hangs isn't renewed."""
        self._lease = lease
        self._told = told
        self._alive = alive
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._left: set[str] = set()
        """Dead workers whose work couldn't be taken over; each is told of once."""

    def start(self, fenced: Callable[[], object] = end_at_once) -> None:
        """Renew the lease. It is early for that before any work can come here, and late after. `fenced` ends whatever
        this process does, once the lease is lost. Raises psycopg.Error.
        """
        self._fenced = fenced
        self._lease.enlist()
        self._begin("gonogo-lease", lambda: self._lease.renew(alive=self._alive()))

    def take_over_by(self, client: DBOSClient, look: Callable[[], object]) -> None:
        """Once the queues are there, take over, too, and have `look` see what else there is."""

        def once() -> None:
            self._take_over_all(client)
            look()

        self._begin("gonogo-takeover", once)

    def stop(self) -> None:
        """Until the threads have ended."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=10.0)

    def _begin(self, name: str, once: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._run, args=(once,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, once: Callable[[], None]) -> None:
        """A thread never ends by itself: its worker would look well, and do half of what it has to."""
        is_in_trouble = False
        while not self._stop.wait(PERIOD_S):
            try:
                once()
            except Exception as problem:  # noqa: BLE001 - whatever it is, somebody has to hear of it
                if self._stop.is_set():
                    return
                if self._lease.is_lost or not _may_pass(problem):
                    self._end(problem)
                if not is_in_trouble:
                    log.warning("%s keeps trying: the store says %s", self._lease.worker, _words(problem))
                is_in_trouble = True
            else:
                if is_in_trouble:
                    log.warning("%s gets on with the store again", self._lease.worker)
                is_in_trouble = False

    def _end(self, problem: Exception) -> NoReturn:
        """Whatever this process still does could be done twice, or nobody would take over from it."""
        told, trace = (_LOST, None) if self._lease.is_lost else (_BROKEN, problem)
        log.critical(told, self._lease.worker, _words(problem), exc_info=trace)
        self._fenced()
        end_at_once()

    def _take_over_all(self, client: DBOSClient) -> None:
        for worker in self._lease.look():
            try:
                self._take_over(worker, client)
            except Exception as problem:
                if self._lease.is_lost:
                    raise
                if worker not in self._left:
                    log.error("the work of %s can't be taken over yet: %s", worker, _words(problem))
                self._left.add(worker)
                self._lease.leave_to_others(worker)
            else:
                self._left.discard(worker)
                self._lease.forget(worker)

    def _take_over(self, worker: str, client: DBOSClient) -> None:
        """Its calls are free for others before these are told of them: they claim none that a living worker has."""
        self._told.lost(worker)
        left = _under_way(client, worker)
        log.warning("%s is gone or stands still; its work goes to others: %s", worker, _pieces(left))
        for status in left:
            run_id = names.run_of(status.workflow_id)
            if run_id is None:
                resume(client, self._lease, status)
            else:
                self._take_over_run(run_id, status, client)

    def _take_over_run(self, run_id: str, status: WorkflowStatus, client: DBOSClient) -> None:
        """Where this fails it is done again: a takeover counts once it is done, and a run that nobody would find any
        more is set aside before.
        """
        times = self._lease.takeovers(status.workflow_id)
        if times < TAKEOVERS_MAX:
            resume(client, self._lease, status)
            self._lease.count(status.workflow_id)
        else:
            self._told.aside(run_id, times + 1)
            client.cancel_workflow(status.workflow_id)


def hand_back(client: DBOSClient, lease: Lease) -> None:
    """Put what a worker had at its orderly end back into the queues."""
    for status in _under_way(client, lease.worker):
        resume(client, lease, status)


def resume(client: DBOSClient, lease: Lease, status: WorkflowStatus) -> None:
    """Put a workflow back into its queue."""
    client.resume_workflow(status.workflow_id, queue_name=status.queue_name)
    if status.queue_name is not None:
        lease.ring(status.queue_name)


def _under_way(client: DBOSClient, worker: str) -> list[WorkflowStatus]:
    return client.list_workflows(status="PENDING", executor_id=worker, load_input=False, load_output=False)


def _pieces(left: list[WorkflowStatus]) -> str:
    runs = [run_id for status in left if (run_id := names.run_of(status.workflow_id)) is not None]
    shown = ", ".join(runs[:RUNS_SHOWN]) + (", …" if len(runs) > RUNS_SHOWN else "")
    told = f" ({shown})" if runs else ""
    return f"{_count(len(runs), 'run')}{told} and {_count(len(left) - len(runs), 'group')} of calls"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _may_pass(problem: Exception) -> bool:
    """Whether it is worth while to ask the same once more."""
    return isinstance(problem, psycopg.Error) and (problem.sqlstate or "").startswith(_PASSING)


def _words(problem: Exception) -> str:
    """In one line. What isn't the store's may hold anything, so only its kind is told."""
    own = isinstance(problem, psycopg.Error)
    return (own and str(problem).partition("\n")[0]) or type(problem).__name__


def _connected(address: Address) -> psycopg.Connection[Any]:
    return _Connection.connect(address.url, autocommit=True, **KEEPALIVE)


def _key(worker: str) -> int:
    """A lock's number: 64 bits, since 32 would collide among some ten thousand ids."""
    digest = hashlib.sha256(f"{_KEY_OF}{worker}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
