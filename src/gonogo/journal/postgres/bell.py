"""Hears what other machines say (LISTEN, NOTIFY), in a thread of its own, and turns it into a descriptor to wait for.

A channel is named by a hash, because Postgres cuts names; the message is the name itself. After a lost connection every
name counts as heard: something may have been said meanwhile.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Collection
from hashlib import blake2b

import psycopg

from gonogo.errors import JournalError
from gonogo.journal.pool import Bell
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.link import Connection, connected, first_line

__all__ = ["PostgresBell", "channel_of"]

PAUSES_S = (0.1, 0.25, 0.5)
"""Between attempts to listen again; the last one for ever after. Whoever doesn't hear that it is asked for, once the
server is back, is taken for dead.
"""


def channel_of(name: str) -> str:
    """What is listened to for a run or a worker."""
    return f"gonogo_{blake2b(name.encode(), digest_size=16).hexdigest()}"


class PostgresBell(Bell):
    """Listens from when it is made until it is closed."""

    def __init__(self, address: Address, names: Collection[str]) -> None:
        """Raises JournalError when there is no connection."""
        self._address = address
        self._names = set(names)
        self._listened: set[str] = set()
        self._heard: set[str] = set()
        self._guard = threading.Lock()
        self._outer, self._inner = os.pipe()
        self._woken, self._waker = os.pipe()
        self._closed = False
        try:
            connection = self._listening()
        except psycopg.Error as error:
            self._release()
            raise JournalError(
                f"can't listen to {address}: {address.scrubbed(first_line(error))}",
                advice="see that it is up and that user, password and database in --store are right",
            ) from error
        self._thread = threading.Thread(
            target=self._listen, args=(connection,), name="gonogo bell", daemon=True
        )
        self._thread.start()

    def fileno(self) -> int:
        """Readable while something was heard."""
        return self._outer

    def add(self, name: str) -> None:
        """Listen to this name, too; it is heard once the server knows."""
        with self._guard:
            self._names.add(name)
        self._wake()

    def remove(self, name: str) -> None:
        """Listen to it no more."""
        with self._guard:
            self._names.discard(name)
        self._forget({name})
        self._wake()

    def heard(self) -> set[str]:
        """What was heard since."""
        return self._forget(None)

    def close(self) -> None:
        """Hear no more."""
        if self._closed:
            return
        self._closed = True
        self._wake()
        self._thread.join()
        self._release()

    def _release(self) -> None:
        os.close(self._inner)
        os.close(self._outer)
        os.close(self._woken)
        os.close(self._waker)

    def _wake(self) -> None:
        """Have the thread look at what changed."""
        os.write(self._waker, b"x")

    def _ring(self, names: Collection[str]) -> None:
        with self._guard:
            new = self._names.intersection(names)
            if new and not self._heard:
                os.write(self._inner, b"x")
            self._heard |= new

    def _forget(self, names: Collection[str] | None) -> set[str]:
        """Take these, or all, out of what was heard; which were in it."""
        with self._guard:
            taken = set(self._heard) if names is None else self._heard.intersection(names)
            self._heard -= taken
            if taken and not self._heard:
                os.read(self._outer, 1)
            return taken

    def _listening(self) -> Connection:
        connection = connected(self._address)
        self._listened = set()
        try:
            self._follow(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _follow(self, connection: Connection) -> set[str]:
        """Listen to what is to be listened to now, and to nothing else; which names are new. Raises psycopg.Error."""
        with self._guard:
            new, old = self._names - self._listened, self._listened - self._names
        for name in sorted(old):
            connection.execute(f'unlisten "{channel_of(name)}"')
        for name in sorted(new):
            connection.execute(f'listen "{channel_of(name)}"')
        self._listened = (self._listened | new) - old
        return new

    def _listen(self, connection: Connection | None) -> None:
        """The thread: until it is closed, whatever happens to the connection."""
        failures = 0
        while not self._closed:
            try:
                if connection is None:
                    connection = self._listening()
                    self._ring(self._listened)
                failures = 0
                self._hear(connection)
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                    connection = None
                self._wait([], PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1
        if connection is not None:
            connection.close()

    def _hear(self, connection: Connection) -> None:
        """Until it is closed. Raises psycopg.Error."""
        while not self._closed:
            self._ring(self._follow(connection))
            self._ring({notify.payload for notify in connection.notifies(timeout=0)})
            self._wait([connection.fileno()], None)

    def _wait(self, descriptors: list[int], timeout_s: float | None) -> None:
        """Until one can be read, it is woken, or the time is up."""
        ready, _, _ = select.select([*descriptors, self._woken], [], [], timeout_s)
        if self._woken in ready:
            os.read(self._woken, 4096)
