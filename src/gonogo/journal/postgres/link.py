"""The connection to a Postgres, kept over restarts: what fails because the server is away is done again, for a time.

A connection's first failure is told at once, for then the address is wrong as likely as not. Later ones are waited out
up to `patience_s`. What is done again must know whether it was done already: a commit may have succeeded although its
answer was lost. Every wait has an end: a connection that says nothing for `STATEMENT_S` and a little is given up.

A thread that others wait for, as that of an event loop, doesn't wait itself (`at_once`): a thread of the link's own
does, and tells when the server answers again (`when_back`).
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from gonogo.errors import JournalError
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.schema import make_ready
from gonogo.journal.store import StoreAway

__all__ = ["PATIENCE_S", "Connection", "Link", "NotYet", "answers", "first_line"]

T = TypeVar("T")
_Ear = Callable[[JournalError | None], object]
"""Hears that the server answers again, or why it isn't waited for any longer."""

PATIENCE_S = 60.0
"""How long a Postgres may be away before a run stops (it can be resumed)."""
CONNECT_S = 5
STATEMENT_S = 30
"""Longest for one statement; the server ends it then."""
SILENCE_S = STATEMENT_S + 5.0
"""Longest for an answer, should the server itself stand still."""
AT_ONCE_S = 2.0
"""The same, where others wait meanwhile."""
TURN_S = 0.2
"""Longest for the connection there, while another thread has it."""
LOCK_S = 10
PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.0)
"""Between attempts to get through; the last one for ever after."""
_TCP: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A machine that is gone without a word is noticed in half a minute."""
_SETTINGS = f"""
    select set_config('statement_timeout', '{STATEMENT_S}s', false), set_config('lock_timeout', '{LOCK_S}s', false),
           set_config('idle_in_transaction_session_timeout', '60s', false),
           set_config('default_transaction_isolation', 'read committed', false),
           set_config('synchronous_commit', case when setting = 'off' then 'on' else setting end, false)
    from current_setting('synchronous_commit') as setting
"""  # noqa: S608 - nothing but constants is put in
_PASSING = ("08", "40", "57P", "53300", "55P03", "57014", "25006")
"""SQLSTATEs of what passes: lost connections, deadlocks, a server that stops or starts, too many connections, locks and
statements that took too long, a standby in place of its primary.
"""


_RESUMED = "see that it is up and can be reached, then go on with 'gonogo resume'"


def pause(seconds: float) -> None:
    """Wait."""
    select.select([], [], [], seconds)


class Connection(psycopg.Connection[Any]):
    """One that waits for no answer longer than `SILENCE_S`, or `limit_s` where that is set."""

    limit_s: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As psycopg's, with an end."""
        limit_s = SILENCE_S if self.limit_s is None else self.limit_s
        return super().wait(gen, interval, limit_s if timeout is None else timeout)


class NotYet(Exception):  # noqa: N818 - the name says what is wrong
    """What was to be done can't be done yet, though the connection is well; it is tried again."""


class Link:
    """One connection, for one thread at a time; others wait for their turn.

    `tell` hears of outages and their ends. `generation` rises with each new connection: what belongs to a session
    (locks) is gone then, and taken anew by `renewals`, before anybody else has the connection.
    """

    def __init__(
        self,
        address: Address,
        *,
        tell: Callable[[str], None] = lambda text: None,
        patience_s: float = PATIENCE_S,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = pause,
    ) -> None:
        self.address = address
        self.generation = 0
        self.schema = ""
        self.renewals: dict[str, Callable[[Connection], object]] = {}
        self._tell = tell
        self._patience_s = patience_s
        self._now = now
        self._pause = pause
        self._connection: Connection | None = None
        self._lock = threading.RLock()
        self._is_at_once = False
        self._mending: list[_Ear] | None = None
        """Who wants to know, while a thread waits."""
        self._mends = threading.Lock()

    def do(self, doing: str, work: Callable[[Connection], T]) -> T:
        """What `work` makes with the connection. It may be called again after it was cut short, on another connection.

        Raises:
            JournalError: "can't {doing}": Postgres refuses, or was away for longer than `patience_s`.
            StoreAway: within `at_once`: it doesn't answer now.
        """
        with self._lock:
            if self._is_at_once:
                return self._tried(doing, work)
            return self._patiently(doing, lambda: work(self._ready(doing)))

    def at_once(self, work: Callable[[], T]) -> T:
        """What `work` makes, which uses this link as it likes, but waits for nothing. What was begun may have been done
        when this raises StoreAway.
        """
        if self.is_away or not self._lock.acquire(timeout=TURN_S):
            raise self._away("go on", "it didn't before")
        try:
            self._is_at_once = True
            return work()
        finally:
            self._is_at_once = False
            self._lock.release()

    @property
    def is_away(self) -> bool:
        """Whether somebody waits for the server to come back."""
        return self._mending is not None

    def when_back(self, then: _Ear) -> None:
        """Have `then` called from another thread: once the server answers again, or with why it isn't waited for any
        longer.
        """
        with self._mends:
            if self._mending is None:
                ears = [then]
                threading.Thread(target=self._mend, args=[ears], name="gonogo store", daemon=True).start()
                self._mending = ears
            else:
                self._mending.append(then)

    def attempt(self, work: Callable[[Connection], object]) -> None:
        """Do it if there is a connection; if it fails there is none afterwards."""
        with self._lock:
            if self._connection is None:
                return
            try:
                work(self._connection)
            except psycopg.Error:
                self.drop()

    def drop(self) -> None:
        """Let go of the connection, and of all that belongs to its session."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def close(self) -> None:
        """As `drop`, for good: nobody waits for this link any more."""
        with self._mends:
            if self._mending is not None:
                self._mending.clear()
        self.drop()

    def __del__(self) -> None:
        connection = self.__dict__.get("_connection")
        if connection is not None:
            connection.close()

    def _ready(self, doing: str) -> Connection:
        connection = self._connection
        if connection is not None and not connection.closed:
            return connection
        return self._installed(self._made(doing))

    def _made(self, doing: str) -> Connection:
        try:
            connection = connected(self.address)
        except psycopg.Error as error:
            if self.generation == 0:
                raise self._unreachable(doing, error) from error
            raise
        try:
            make_ready(connection, str(self.address))
            self.schema = schema_of(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _installed(self, connection: Connection) -> Connection:
        self._connection = connection
        self.generation += 1
        for renew in tuple(self.renewals.values()):
            renew(connection)
        return connection

    def _patiently(self, doing: str, work: Callable[[], T]) -> T:
        """What it makes, tried again for a time. Raises JournalError."""
        outage: _Outage | None = None
        while True:
            try:
                done = work()
            except (psycopg.Error, NotYet) as error:
                if not self._passes(error):
                    raise self._trouble(doing, error) from error
                outage = outage or _Outage(self._now(), self._patience_s)
                self._wait(doing, error, outage)
            else:
                if outage is not None and outage.told:
                    self._tell(f"{self.address} answers again after {self._now() - outage.since_s:.0f} s")
                return done

    def _tried(self, doing: str, work: Callable[[Connection], T]) -> T:
        """What it makes, tried once, on a connection that was there before if there ever was one."""
        if self.generation and not self._is_connected:
            raise self._away(doing, "the connection was lost")
        try:
            connection = self._ready(doing)
            connection.limit_s = AT_ONCE_S
            try:
                return work(connection)
            finally:
                connection.limit_s = None
        except (psycopg.Error, NotYet) as error:
            if not self._passes(error):
                raise self._trouble(doing, error) from error
            if not isinstance(error, NotYet):
                self.drop()
            raise self._away(doing, self._words(error)) from error

    def _mend(self, ears: list[_Ear]) -> None:
        """The thread that waits: for somebody else to try again, or for a new connection."""
        problem: JournalError | None = None
        self._pause(PAUSES_S[0])
        try:
            self._patiently("go on", lambda: self._mended(ears))
        except JournalError as error:
            problem = error
        except Exception as error:  # noqa: BLE001 - whoever waits for this thread would wait for ever (law 2)
            problem = self._trouble("go on", error)
        with self._mends:
            self._mending = None
        for ear in ears:
            ear(problem)

    def _mended(self, ears: Sequence[_Ear]) -> None:
        """Others may have the link while the new connection is made: they find none, and don't wait for this. Nobody
        waits any longer for one that was closed.
        """
        if not ears or self._is_connected:
            return
        connection = self._made("go on")
        with self._lock:
            if ears and not self._is_connected:
                self._installed(connection)
            else:
                connection.close()

    @property
    def _is_connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    def _passes(self, error: Exception) -> bool:
        if isinstance(error, NotYet):
            return True
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        if state is not None:
            return state.startswith(_PASSING)
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def _wait(self, doing: str, error: Exception, outage: _Outage) -> None:
        """Until the next attempt. Raises JournalError when there is to be none."""
        if not isinstance(error, NotYet):
            self.drop()
        if self._now() - outage.since_s >= outage.patience_s:
            raise JournalError(
                f"can't {doing}: {self.address} didn't answer for {outage.patience_s:.0f} s: {self._words(error)}",
                advice=_RESUMED,
            ) from error
        if outage.attempts == 1:
            outage.told = True
            self._tell(
                f"{self.address} doesn't answer, waiting up to {outage.patience_s:.0f} s: {self._words(error)}"
            )
        self._pause(PAUSES_S[min(outage.attempts, len(PAUSES_S) - 1)])
        outage.attempts += 1

    def _away(self, doing: str, told: str) -> StoreAway:
        self.when_back(lambda _: None)  # or nobody would make a new connection
        return StoreAway(
            f"can't {doing}: {self.address} doesn't answer: {told}", advice=_RESUMED, when_back=self.when_back
        )

    def _unreachable(self, doing: str, error: psycopg.Error) -> JournalError:
        return JournalError(
            f"can't {doing}: no connection to {self.address}: {self._words(error)}",
            advice="see that it is up and that user, password and database in --store are right",
        )

    def _trouble(self, doing: str, error: Exception) -> JournalError:
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        return JournalError(
            f"can't {doing} in {self.address}: {self._words(error)}", advice=_advice(state or "")
        )

    def _words(self, error: Exception) -> str:
        return self.address.scrubbed(first_line(error))


class _Outage:
    """Since when it doesn't work, and how often it was tried again."""

    def __init__(self, since_s: float, patience_s: float) -> None:
        self.since_s = since_s
        self.patience_s = patience_s
        self.attempts = 0
        self.told = False


def connected(address: Address) -> Connection:
    """A new connection with our time limits. Raises psycopg.Error."""
    named: dict[str, Any] = {} if "application_name=" in address.url else {"application_name": "gonogo"}
    connection = Connection.connect(address.url, autocommit=True, connect_timeout=CONNECT_S, **named, **_TCP)
    try:
        connection.execute(_SETTINGS)
    except BaseException:
        connection.close()
        raise
    return connection


def answers(address: Address) -> bool:
    """Whether there is a connection to be had that does a statement."""
    try:
        connected(address).close()
    except psycopg.Error:
        return False
    return True


def schema_of(connection: Connection) -> str:
    """The schema that has the tables."""
    row = connection.execute(
        "select relnamespace::text from pg_class where oid = to_regclass('gonogo_runs')"
    ).fetchone()
    return str(row[0]) if row else ""


def first_line(error: Exception) -> str:
    """What the server or its library said, in one line."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _advice(state: str) -> str:
    if state.startswith("53"):  # insufficient resources: 53100 is a full disk
        return "what was written before is whole: make room on the server, then go on with 'gonogo resume'"
    if state in ("42501", "3F000"):  # insufficient privilege, no schema to make tables in
        return "give the user the right to create tables in its schema, or name another one in --store"
    if state in ("42P01", "42703"):  # a table or column is missing
        return "the tables were changed by hand: restore them from a backup"
    return "see the server's log, then go on with 'gonogo resume'"
