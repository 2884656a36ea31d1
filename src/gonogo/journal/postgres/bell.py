"""Hears what other machines say (LISTEN, NOTIFY), in a thread of its own, and turns it into a descriptor to wait for.

A channel is named by a hash, because Postgres cuts names; the message is the name itself. After a lost connection every
name counts as heard: something may have been said meanwhile.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Collection
from hashlib import blake2b

import psycopg

from gonogo.errors import JournalError
from gonogo.journal.pool import Bell
from gonogo.journal.postgres.address import Address
from gonogo.journal.postgres.link import Connection, connected, first_line

__all__ = ["PostgresBell", "channel_of"]

PAUSES_S = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Between attempts to listen again; the last one for ever after. Whoever listens looks by itself now and then, too."""


def channel_of(name: str) -> str:
    """What is listened to for a run or a worker."""
    return f"gonogo_{blake2b(name.encode(), digest_size=16).hexdigest()}"


class PostgresBell(Bell):
    """Listens from when it is made until it is closed."""

    def __init__(self, address: Address, names: Collection[str]) -> None:
        """Raises JournalError when there is no connection."""
        self._address = address
        self._names = frozenset(names)
        self._heard: set[str] = set()
        self._guard = threading.Lock()
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
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
        return self._outer.fileno()

    def heard(self) -> set[str]:
        """What was heard since."""
        with self._guard:
            names, self._heard = self._heard, set()
            if names:
                self._outer.recv(1)
            return names

    def close(self) -> None:
        """Hear no more."""
        if self._closed:
            return
        self._closed = True
        os.write(self._waker, b"x")
        self._thread.join()
        self._release()

    def _release(self) -> None:
        self._inner.close()
        self._outer.close()
        os.close(self._woken)
        os.close(self._waker)

    def _ring(self, names: Collection[str]) -> None:
        with self._guard:
            if names and not self._heard:
                self._inner.send(b"x")
            self._heard.update(names)

    def _listening(self) -> Connection:
        connection = connected(self._address)
        try:
            for name in sorted(self._names):
                connection.execute(f'listen "{channel_of(name)}"')
        except BaseException:
            connection.close()
            raise
        return connection

    def _listen(self, connection: Connection | None) -> None:
        """The thread: until it is closed, whatever happens to the connection."""
        failures = 0
        while not self._closed:
            try:
                if connection is None:
                    connection = self._listening()
                    self._ring(self._names)
                failures = 0
                self._hear(connection)
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                    connection = None
                select.select([self._woken], [], [], PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1
        if connection is not None:
            connection.close()

    def _hear(self, connection: Connection) -> None:
        """Until it is closed. Raises psycopg.Error."""
        while not self._closed:
            said = {notify.payload for notify in connection.notifies(timeout=0)}
            self._ring(said & self._names)
            select.select([connection.fileno(), self._woken], [], [])
